"""`palyra mcp import`: servers from the settings of other programs. What would be done is shown
first, as a table; what is there already stays as it is.
"""

import getpass
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import click
from msgspec import Struct
from msgspec.structs import replace

from palyra.cli import daemon_process
from palyra.cli.confirm import confirm
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.discovery import running
from palyra.core.errors import Conflict, InvalidInput, NotFound, PalyraError
from palyra.features.mcp import client_files
from palyra.features.mcp.client_files import FileInput, Filling, ForeignServer, ServerFile
from palyra.system.redactor import Redactor

Fate = Literal["new", "same", "different", "refused", "added", "failed"]
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|COOKIE|AUTH", re.I)
_REFERENCE = ("vault:", "env:", "file:/")
Settle = Callable[[str, tuple[str, ...], dict[str, Any]], dict[str, Any]]


class ImportedServer(Struct, frozen=True, kw_only=True):
    """One server of a file. `secrets` are the names that its secrets get in the vault, `asks` the
    inputs that it needs, `unknown` the fields that mean nothing here.
    """

    name: str
    file: str
    fate: Fate
    what: str
    secrets: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    why: str = ""


class _Ready(Struct):
    """A server with its variables filled in: what goes into the settings, and into the vault."""

    given: dict[str, Any]
    words: tuple[str, ...]
    secrets: dict[str, str]


def run(
    state: CliState, file: str, inputs: Sequence[str], *, yes: bool, look: bool, settle: Settle
) -> None:
    """Import the servers of a file, or of every usual place. `settle` makes the settings of one."""
    files = _files(file)
    answers = dict(_pair(each) for each in inputs)
    # Nobody is asked before the table was seen.
    rows = [(each, found, _looked(state, each, found, answers)) for each, found in _each(files)]
    planned = [row for _, _, row in rows]
    unknown = [f"{each.path}: {key}" for each in files for key in each.unknown]
    wanted = [row for row in planned if row.fate == "new"]
    if look or not wanted or (state.out.as_json and not yes):
        _say(state, planned, unknown)
        return
    if not yes:
        _table(state, planned, unknown)
        if not sys.stdin.isatty():
            raise InvalidInput("nobody can be asked here: look at the table, then give --yes")
        confirm(f"add {len(wanted)} servers?")
    if any(row.secrets for row in wanted) and running(state.home) is None:
        raise Conflict("secrets go into the vault of a running daemon: start it with `palyra up`")
    daemon_process.make_home(state.home)
    done = [
        _taken(state, each, found, row, answers, settle, ask=not yes) if row.fate == "new" else row
        for each, found, row in rows
    ]
    if any(row.fate == "added" for row in done):
        daemon_process.reload_if_running(state)
    _say(state, done, unknown)


def _files(file: str) -> list[ServerFile]:
    if file:
        return [client_files.read(Path(file).expanduser().absolute())]
    places = client_files.usual_places(Path.cwd(), Path.home())
    found = [client_files.read(each) for each in places if each.is_file() and _has_servers(each)]
    if not found:
        raise NotFound(
            "no settings of other programs were found here; name a file: palyra mcp import FILE"
        )
    return found


def _has_servers(path: Path) -> bool:
    """Return whether a file of a usual place is to be read: some keep much else."""
    try:
        return path.name != ".claude.json" or b'"mcpServers"' in path.read_bytes()
    except OSError:
        return False


def _each(files: Sequence[ServerFile]) -> list[tuple[ServerFile, ForeignServer]]:
    """Return every server, each with a name of its own. The same in two files is one."""
    found = list[tuple[ServerFile, ForeignServer]]()
    for file in files:
        for server in file.servers:
            like = [each for _, each in found if each.name == server.name]
            if any(
                replace(each, file="", given_name="") == replace(server, file="", given_name="")
                for each in like
            ):
                continue
            if like:
                server = replace(
                    server,
                    problem=f"{like[0].file} has another server of this name; rename one of them",
                )
            found.append((file, server))
    return found


def _looked(
    state: CliState, file: ServerFile, server: ForeignServer, answers: dict[str, str]
) -> ImportedServer:
    """Return what would become of one server."""
    row = ImportedServer(
        name=server.name or server.given_name,
        file=server.file,
        fate="new",
        what=Redactor(os.urandom(32)).redact(server.url or " ".join(server.command)),
        unknown=server.unknown,
        why=server.problem,
    )
    if server.problem:
        return replace(row, fate="refused")
    described = {each.name: each for each in file.inputs}
    asks = tuple(each for each in server.inputs() if not answers.get(each))
    # In place of what a person will say, so that all else can be looked at.
    inputs = {each: _default(described, each) or f"input-{each}" for each in asks} | answers
    try:
        ready = _filled(server, file, inputs, described)
    except InvalidInput as error:
        return replace(row, fate="refused", why=error.message)
    # What the file says, and no secret of it.
    what = ready.given["url"] or " ".join(ready.words)
    row = replace(row, what=what, secrets=tuple(ready.secrets), asks=asks)
    existing = state.settings.tables("mcp").get(server.name)
    if existing is None:
        return row
    if asks or _same(existing, ready):
        return replace(row, fate="same", asks=())
    return replace(
        row, fate="different", why=f"[mcp.{server.name}] says otherwise, and stays as it is"
    )


def _default(described: dict[str, FileInput], name: str) -> str:
    return described[name].default if name in described else ""


def _same(existing: Any, ready: _Ready) -> bool:
    has = (existing.url, sorted(existing.env), sorted(existing.headers), tuple(existing.args))
    wants = (
        ready.given["url"],
        sorted(ready.given["variables"]),
        sorted(ready.given["headers"]),
        ready.words[1:],
    )
    program = os.path.basename(ready.words[0]) if ready.words else ""
    return has == wants and os.path.basename(existing.command) == program


def _filled(
    server: ForeignServer,
    file: ServerFile,
    inputs: dict[str, str],
    described: dict[str, FileInput],
) -> _Ready:
    filling = Filling(inputs, os.environ, _workspace(server.file), str(Path.home()))
    hidden = {
        inputs[each] for each in server.inputs() if each in described and described[each].secret
    }
    secrets = dict[str, str]()
    redactor = Redactor(os.urandom(32))

    def is_secret(name: str, value: str) -> bool:
        return bool(value) and (
            any(each in value for each in hidden if each)
            or _SECRET.search(name) is not None
            or redactor.redact(f"{name}={value}") != f"{name}={value}"
        )

    def kept(name: str, text: str) -> str:
        if reference := filling.reference(text):
            return reference
        value = filling.fill(text)
        before, _, last = value.rpartition(" ")
        if last.startswith(_REFERENCE) or not is_secret(name, value):
            return value
        secret = re.sub(r"[^A-Z0-9]+", "_", f"MCP_{server.name}_{name}".upper())
        secrets[secret] = last
        return f"{before} vault:{secret}".strip()

    variables = tuple(f"{name}={kept(name, text)}" for name, text in server.env.items())
    headers = tuple(f"{name}: {kept(name, text)}" for name, text in server.headers.items())
    words, url = tuple(map(filling.fill, server.command)), filling.fill(server.url)
    for text in (*words, url):
        if is_secret("", text):
            raise InvalidInput(
                "its command or address holds a secret, which would be in the settings: move it"
                " to env or headers"
            )
    folder = filling.fill(server.folder)
    given = {
        "url": url,
        "headers": headers,
        "variables": variables,
        "folder": os.path.join(_workspace(server.file), folder) if folder else "",
        "read_only": False,
        "readable": (),
        "hosts": (),
    }
    return _Ready(given, words, secrets)


def _workspace(file: str) -> str:
    """Return the folder of the project that a file belongs to."""
    folder = os.path.dirname(file)
    inside = os.path.basename(folder) in (".vscode", ".cursor")
    return os.path.dirname(folder) if inside else folder


def _taken(
    state: CliState,
    file: ServerFile,
    server: ForeignServer,
    row: ImportedServer,
    answers: dict[str, str],
    settle: Settle,
    *,
    ask: bool,
) -> ImportedServer:
    """Add one server. What goes wrong with it is said of it, and the others go on."""
    described = {each.name: each for each in file.inputs}
    try:
        for name in row.asks:
            answers[name] = _answer(name, described.get(name), ask=ask)
        ready = _filled(server, file, answers, described)
        settings = settle(server.name, ready.words, ready.given)
        if not server.enabled:
            settings["enabled"] = False
        for secret, value in ready.secrets.items():
            state.api.put_secret(name=secret, value=value, tools=[f"mcp:{server.name}"])
        state.settings.set_values(
            {f"mcp.{server.name}.{key}": value for key, value in settings.items()}
        )
    except PalyraError as error:
        return replace(row, fate="failed", why=error.message)
    return replace(row, fate="added", asks=())


def _answer(name: str, about: FileInput | None, *, ask: bool) -> str:
    if not ask:
        if about is not None and about.default:
            return about.default
        raise InvalidInput(f"it needs the input {name}: --input {name}=VALUE")
    question = clean((about.description if about else "") or name)
    if about is None or about.secret:
        return getpass.getpass(f"{question} (not shown): ")
    return str(click.prompt(question, default=about.default or None, err=True))


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark:
        raise InvalidInput("--input is written as NAME=VALUE")
    return name, value


def _say(state: CliState, rows: Sequence[ImportedServer], unknown: Sequence[str]) -> None:
    if state.out.as_json:
        state.out.json({"servers": rows, "unknown": unknown})
        return
    _table(state, rows, unknown)
    if any(row.fate == "added" for row in rows):
        state.out.line("look at what they offer with `palyra mcp show NAME`, then accept it")


def _table(state: CliState, rows: Sequence[ImportedServer], unknown: Sequence[str]) -> None:
    out = state.out
    shown = [
        [clean(row.name), row.fate, clean(", ".join(row.secrets)), one_line(clean(row.what))]
        for row in rows
    ]
    out.table(["name", "result", "to the vault", "program or address"], shown)
    for row in rows:
        if row.why:
            out.note(f"{clean(row.name)}: {one_line(clean(row.why))}")
        if row.asks:
            out.note(f"{clean(row.name)}: asks for {clean(', '.join(row.asks))}")
        if row.unknown:
            out.note(f"{clean(row.name)}: left out: {clean(', '.join(row.unknown))}")
    for each in unknown:
        out.note(f"left out: {clean(each)}")
