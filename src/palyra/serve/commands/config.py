"""`palyra config`: the one settings file, read and changed in place. A running daemon is told, and
says what needs a restart.
"""

import click

from palyra.cli import daemon_process, exit_codes
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.core.errors import NotFound
from palyra.serve import config as configuration

config = group("config", "Settings: show, get, set, unset, check.", default="show")


@verb(config, "show", help="Show every setting in force and where it comes from.")
@click.option("--changed", is_flag=True, help="Only those that are not the default.")
def show(state: CliState, changed: bool) -> None:
    found = [
        each
        for each in configuration.show(configuration.load(state.home, state.env))
        if not changed or each.source != "default"
    ]
    if state.out.as_json:
        state.out.json({"settings": found})
        return
    if not found:
        state.out.line("every setting has its default")
        return
    state.out.table(
        ["setting", "value", "from"],
        [[each.key, _shown(each.value), each.source] for each in found],
    )


@verb(config, "get", help="Print one setting.")
@click.argument("key")
def get(state: CliState, key: str) -> None:
    for each in configuration.show(
        configuration.load(state.home, state.env), with_lines=state.out.as_json
    ):
        if each.key == key:
            if state.out.as_json:
                state.out.json(each)
            else:
                state.out.line(clean(_shown(each.value)))
            return
    raise NotFound(f"there is no setting {key}: `palyra config show` lists them")


@verb(config, "set", help="Change one setting in the file. What would not load is not written.")
@click.argument("key")
@click.argument("value")
def set_(state: CliState, key: str, value: str) -> None:
    daemon_process.make_home(state.home)
    configuration.set_value(state.home, key, value)
    restart = _tell_daemon(state, key)
    if state.out.as_json:
        state.out.json({"key": key, "value": value, "restart": restart})
        return
    state.out.line(
        f"{clean(key)} is set in {state.home / configuration.FILE}"
        + ("; restart the daemon to use it" if restart else "")
    )


@verb(
    config, "unset", help="Take one setting out of the file, so that its default is in force again."
)
@click.argument("key")
def unset(state: CliState, key: str) -> None:
    configuration.unset_value(state.home, key)
    restart = _tell_daemon(state, key)
    now = next(
        (
            each
            for each in configuration.show(configuration.load(state.home, state.env))
            if each.key == key
        ),
        None,
    )
    if state.out.as_json:
        state.out.json({"key": key, "value": now.value if now else None, "restart": restart})
        return
    value = f"; it is {_shown(now.value)!r} now, from {now.source}" if now else ""
    state.out.line(
        clean(f"{key} is no longer set in {state.home / configuration.FILE}{value}")
        + ("; restart the daemon to use it" if restart else "")
    )


def _tell_daemon(state: CliState, key: str) -> bool:
    """Make a running daemon read the file again; whether this setting waits for its next start."""
    return (
        discovery.running(state.home) is not None and key in state.api.reload_config().after_restart
    )


@verb(
    config, "check", help="Check the settings file and the environment, without starting anything."
)
def check(state: CliState) -> int:
    problems = configuration.check(state.home, state.env)
    if state.out.as_json:
        state.out.json({"ok": not problems, "problems": problems})
    else:
        for problem in problems:
            state.out.line(state.out.style("✗ ", "red") + clean(str(problem)))
        if not problems:
            state.out.line(state.out.style("✓ ", "green") + "the configuration is good")
    return exit_codes.CONFIG if problems else exit_codes.OK


@verb(config, "path", help="Print where the settings file is.")
def path(state: CliState) -> None:
    where = state.home / configuration.FILE
    if state.out.as_json:
        state.out.json({"path": str(where), "exists": where.exists()})
    else:
        state.out.line(str(where))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
