"""Checks of doctor where no daemon answers, and of what only the command line can see: the daemon
from outside.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import palyra
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.core.errors import ConfigInvalid, PalyraError
from palyra.features.health import home_checks
from palyra.features.health.doctor import DoctorCheck
from palyra.serve import config
from palyra.store.upkeep import FileUpkeep

Looks = Callable[[CliState], Iterator[DoctorCheck]]


def installation(state: CliState) -> Iterator[DoctorCheck]:
    yield from home_checks.installation()


def sqlite(state: CliState) -> Iterator[DoctorCheck]:
    yield from home_checks.sqlite()


def home_folder(state: CliState) -> Iterator[DoctorCheck]:
    yield from home_checks.home_folder(state.home)


def disk(state: CliState) -> Iterator[DoctorCheck]:
    yield from home_checks.disk(state.home)


def settings(state: CliState) -> Iterator[DoctorCheck]:
    from palyra.serve.wiring import settings as wiring

    yield from wiring.config_checks(state.home, state.env)


def providers(state: CliState) -> Iterator[DoctorCheck]:
    if config.check(state.home, state.env):
        return
    try:
        chosen = config.choose(
            config.load(state.home, state.env).config, config.detect(state.env, None)
        )
    except ConfigInvalid as error:
        fix = "set models.default to a provider that is there"
        yield DoctorCheck(id="model", title="model", state="fail", detail=error.message, fix=fix)
        return
    is_demo = chosen.default == config.DEMO
    yield DoctorCheck(
        id="model",
        title="model",
        state="warn" if is_demo else "ok",
        detail=f"{chosen.default} is the default"
        + (", which only knows a few phrases" if is_demo else ""),
        fix=(
            "`palyra setup` finds a real one: a server on this machine, or a key such as"
            " OPENAI_API_KEY"
            if is_demo
            else ""
        ),
    )
    for name, provider in chosen.providers.items():
        if provider.api_key:
            yield _key(name, provider.api_key, state.env)


def _key(name: str, reference: str, env: dict[str, str]) -> DoctorCheck:
    known, title = f"key:{name}", f"key of {name}"
    try:
        config.secret(reference, env)
    except ConfigInvalid as error:
        return DoctorCheck(
            id=known,
            title=title,
            state="fail",
            detail=error.message,
            fix="set it, or remove the provider",
        )
    return DoctorCheck(
        id=known, title=title, state="ok", detail=f"there, from {reference.partition(':')[0]}"
    )


def policies(state: CliState) -> Iterator[DoctorCheck]:
    from palyra.policy import store

    if config.check(state.home, state.env):
        return
    given = config.load(state.home, state.env).config.policy
    folder = Path(given.folder) if given.folder else state.home / "policies"
    problems = store.check(folder if folder.exists() else None, given.preset)
    fix = "fix the file; until then the last good set is in force"
    for at, problem in enumerate(problems):
        yield DoctorCheck(
            id=f"policy:{at}", title="policy", state="fail", detail=str(problem), fix=fix
        )
    if not problems:
        yield DoctorCheck(
            id="policy",
            title="policy",
            state="ok",
            detail=f"preset {given.preset}, files in {folder} load",
        )


def sandbox(state: CliState) -> Iterator[DoctorCheck]:
    from palyra.tools.sandbox.sandbox import Sandbox

    yield home_checks.sandbox(asyncio.run(Sandbox().probe()))


def browser(state: CliState) -> Iterator[DoctorCheck]:
    from palyra.serve.wiring import settings as wiring

    if not config.check(state.home, state.env):
        yield from wiring.browser_checks(config.load(state.home, state.env).config, state.env)


def memory(state: CliState) -> Iterator[DoctorCheck]:
    from palyra.features.memory import cli as remembered

    if config.check(state.home, state.env):
        return
    why = remembered.words_only(state)
    if why is None:
        yield DoctorCheck(
            id="memory",
            title="memory",
            state="ok",
            detail="searched by words only, as the config says",
        )
    elif why:
        fix = "see logs/daemon.log in the home folder, or set memory.embeddings to false"
        yield DoctorCheck(
            id="memory",
            title="memory",
            state="warn",
            detail=f"searched by words only: {why}",
            fix=fix,
        )
    else:
        yield DoctorCheck(
            id="memory", title="memory", state="ok", detail="searched by words and by meaning"
        )


def port(state: CliState) -> Iterator[DoctorCheck]:
    if discovery.running(state.home) is not None or config.check(state.home, state.env):
        return
    server = config.load(state.home, state.env).config.server
    with socket.socket(socket.AF_INET6 if ":" in server.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((server.host, server.http_port))
        except OSError as error:
            fix = "stop the program that has it, or run `palyra config set server.http_port 0`"
            detail = f"{server.http_port}: {(error.strerror or '').lower()}"
            yield DoctorCheck(id="port", title="port", state="fail", detail=detail, fix=fix)
        else:
            yield DoctorCheck(
                id="port", title="port", state="ok", detail=f"{server.http_port} is free"
            )


def journal(state: CliState) -> Iterator[DoctorCheck]:
    yield from home_checks.journal(FileUpkeep(state.home / "journal.db"))


def journal_log(state: CliState) -> Iterator[DoctorCheck]:
    yield from home_checks.journal_log(state.home / "journal.db")


def backups(state: CliState) -> Iterator[DoctorCheck]:
    from palyra.features.backups import health
    from palyra.serve.commands.backup import home_backups

    if config.check(state.home, state.env):
        return
    found = home_backups(state)
    yield from health.check(found.settings, found.status, _now_ms())


def left_over(state: CliState) -> Iterator[DoctorCheck]:
    yield from home_checks.left_over(state.home, _now_ms())


def processes(state: CliState) -> Iterator[DoctorCheck]:
    yield from home_checks.orphaned(state.home)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


# Without a daemon, in the order in which they are shown.
ALONE: tuple[Looks, ...] = (
    installation,
    sqlite,
    home_folder,
    disk,
    settings,
    providers,
    policies,
    sandbox,
    browser,
    memory,
    port,
    journal,
    journal_log,
    backups,
    left_over,
    processes,
)


def mend(state: CliState, check: DoctorCheck) -> str:
    """Repair what can be repaired without a daemon; what was done."""
    match check.id:
        case "home":
            return home_checks.close_home(state.home)
        case "leftovers":
            return home_checks.remove_leftovers(state.home, _now_ms())
        case "processes":
            return home_checks.end_orphans(state.home)
        case _:
            return home_checks.fold(state.home / "journal.db")


def daemon(state: CliState) -> Iterator[DoctorCheck]:
    """The daemon as it looks from outside."""
    running = discovery.running(state.home)
    if running is None and not state.env.get("PALYRA_URL"):
        yield DoctorCheck(
            id="daemon", title="daemon", state="ok", detail="does not run; `palyra up` starts it"
        )
        return
    try:
        found = state.api.status()
    except PalyraError as error:
        fix = "start it again with `palyra up --detach`"
        yield DoctorCheck(id="daemon", title="daemon", state="fail", detail=error.message, fix=fix)
        return
    where = f"{running.url} (pid {running.pid})" if running is not None else found.url
    yield DoctorCheck(id="daemon", title="daemon", state="ok", detail=f"runs at {where}")
    if found.version != palyra.__version__:
        detail = f"the daemon is version {found.version}, this command line {palyra.__version__}"
        fix = "restart the daemon: palyra stop --daemon, then palyra up"
        yield DoctorCheck(id="version", title="version", state="warn", detail=detail, fix=fix)
