"""`palyra up`, `serve`, `stop` and `status`: the daemon's life. Only `serve` is the daemon; all
other commands call it.
"""

import os
import signal
import sys
import threading
from contextlib import suppress

import click

from palyra.cli import daemon_process, formatting
from palyra.cli.chat import command as chat_command
from palyra.cli.commands import command
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.core.errors import InvalidInput, PalyraError


@command(
    "up",
    help=(
        "Start Palyra if it is not running, and chat. Without a terminal, run the daemon in the"
        " foreground."
    ),
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="Listen on this port; 0 picks a free one."
)
@click.option("--quic", is_flag=True, help="Serve HTTP/3 as well, on UDP port server.quic_port.")
@click.option("--grpc", is_flag=True, help="Serve gRPC as well, on port server.grpc_port.")
@click.option(
    "--detach", is_flag=True, help="Leave the daemon running in the background, and do not chat."
)
@click.option(
    "--workspace",
    default="",
    metavar="FOLDER",
    help="Chat in this folder instead of the current one.",
)
@click.option(
    "--store",
    default="",
    metavar="ADDRESS",
    help="Keep the journal in PostgreSQL, postgresql://USER@HOST/DATABASE; see journal.store.",
)
@click.option("--no-open", is_flag=True, help="Do not open the console in a browser.")
@click.option("--no-setup", is_flag=True, help="Do not offer to set up a model.")
def up(
    state: CliState,
    port: int | None,
    quic: bool,
    grpc: bool,
    detach: bool,
    workspace: str,
    store: str,
    no_open: bool,
    no_setup: bool,
) -> int:
    _with_grpc(grpc)
    if store:
        os.environ["PALYRA_JOURNAL__STORE"] = store
    running = daemon_process.is_up(state.home, state.env)
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if detach:
        return _detach(state, port, quic, running)
    if not terminal:
        if running:
            state.out.note("Palyra is already running for this home folder")
            return _tell_where(state)
        return _serve(state, port, quic)
    if running:
        chat_command.talk(state, chat_command.session_for(state, workspace))
        return 0
    chat_command.check_folder(discovery.folder_of(workspace), state.home)
    state.out.note(f"Starting Palyra ({state.home})")
    process = daemon_process.start(state.home, port, quic=quic, lifeline=True)
    try:
        daemon_process.wait_ready(process, state.home, state.env)
        _notes(state)
        if not no_setup:
            _offer_setup(state)
        daemon_process.console(state, browser=not no_open)
        state.out.note("Palyra stops with this chat. To keep it running: palyra up --detach")
        chat_command.talk(
            state,
            chat_command.session_for(state, workspace),
            farewell=("Palyra stopped. Unfinished runs continue when it starts again."),
        )
    finally:
        daemon_process.end(process)
    return 0


def _offer_setup(state: CliState) -> None:
    from palyra.features.setup import cli

    cli.offer(state)


def _detach(state: CliState, port: int | None, quic: bool, running: bool) -> int:
    if not running:
        daemon_process.wait_ready(
            daemon_process.start(state.home, port, quic=quic, lifeline=False), state.home, state.env
        )
        _notes(state)
    return _tell_where(state)


def _tell_where(state: CliState) -> int:
    found = discovery.running(state.home)
    if state.out.as_json:
        state.out.json(found)
    elif found is not None:
        state.out.line(
            f"Palyra is running at {found.url} (pid {found.pid})."
            " Stop it with: palyra stop --daemon"
        )
        # Whoever may start it may use it; the link works once.
        with suppress(PalyraError):
            state.out.line(f"Open the console: {clean(state.api.create_login_link().url)}")
    return 0


def _notes(state: CliState) -> None:
    for note in state.api.status().notes:
        state.out.note(clean(note))


@command("serve", help="Run the daemon in the foreground until it is stopped.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="Listen on this port; 0 picks a free one."
)
@click.option("--quic", is_flag=True, help="Serve HTTP/3 as well, on UDP port server.quic_port.")
@click.option("--grpc", is_flag=True, help="Serve gRPC as well, on port server.grpc_port.")
@click.option("--lifeline", is_flag=True, hidden=True, help="End when standard input ends.")
def serve(state: CliState, port: int | None, quic: bool, grpc: bool, lifeline: bool) -> int:
    _with_grpc(grpc)
    if lifeline:
        # Whoever started us holds the other end: when they go, however they go, it closes.
        threading.Thread(target=_follow_parent, daemon=True).start()
    return _serve(state, port, quic)


def _with_grpc(wanted: bool) -> None:
    """Tell this process and the daemon that it starts, like any other setting."""
    if wanted:
        os.environ["PALYRA_SERVER__GRPC"] = "true"


def _follow_parent() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _serve(state: CliState, port: int | None, quic: bool) -> int:
    from palyra.serve import restart

    restart.supervise_early(state.home, state.env)
    from palyra.serve.process import serve as run

    run(state.home, port=port, quic=quic)
    return 0


@command(
    "stop", help="STOP: cancel everything that runs or waits. With --daemon, end the daemon itself."
)
@click.option(
    "--daemon",
    is_flag=True,
    help="Stop the daemon; unfinished runs continue when it starts again.",
)
def stop(state: CliState, daemon: bool) -> None:
    if daemon:
        if state.env.get("PALYRA_URL"):
            raise InvalidInput(
                "PALYRA_URL names a daemon that may be elsewhere: end it where it runs"
            )
        pid = daemon_process.stop(state.home)
        if state.out.as_json:
            state.out.json({"ended": pid})
        else:
            state.out.line(f"Palyra (pid {pid}) has stopped")
        return
    stopped = state.api.stop()
    if state.out.as_json:
        state.out.json(stopped)
    else:
        count = len(stopped.cancelled)
        state.out.line(
            f"stopped {count} run{'' if count == 1 else 's'}" if count else "nothing was running"
        )
        if not stopped.recorded:
            state.out.line(
                "not recorded yet: the journal's disk is slow or refuses; `palyra doctor` says more"
            )


@command("status", help="What the daemon is and does now.")
def status(state: CliState) -> None:
    found = state.api.status()
    if state.out.as_json:
        state.out.json(found)
        return
    known = discovery.running(state.home)
    pid = f" (pid {known.pid})" if known and known.url.rstrip("/") == found.url.rstrip("/") else ""
    default = next((each.name for each in found.models if each.default), "none")
    sick = [each.name for each in found.models if not each.healthy]
    rows = [
        ["version", found.version],
        ["address", found.url + pid],
        ["home", found.home],
        ["up for", formatting.duration(found.uptime_ms)],
        ["model", default + (f"; not healthy: {', '.join(sick)}" if sick else "")],
        ["policy", f"{found.policy.preset} ({found.policy.version[:16]})" if found.policy else ""],
        ["tools", ", ".join(found.tools)],
        ["runs working", str(found.runs_working)],
        ["watchers", str(found.watchers)],
        ["journal", formatting.counted(found.entries, "entry", "entries")],
    ]
    for name, value in rows:
        state.out.line(f"{state.out.style(f'{name:<13}', 'bold')} {clean(value)}")
    for problem in state.api.get_policy().problems:
        shown = (
            f"policy problem, so the last good rules are in force: {problem.file}:{problem.line}:"
            f" {problem.message}"
        )
        state.out.line(state.out.style(clean(shown), "yellow"))
    if found.incidents:
        shown = (
            f"{formatting.counted(found.incidents, 'incident is', 'incidents are')} open: palyra"
            " incidents --open"
        )
        state.out.line(state.out.style(shown, "yellow"))
    if found.unread:
        state.out.line(
            state.out.style(
                f"{formatting.counted(found.unread, 'notice', 'notices')} unread: palyra notices",
                "dim",
            )
        )
    for note in found.notes:
        state.out.line(state.out.style(clean(note), "dim"))
