"""Targets of each kind of reference: the text, whole, with its label and what a person should know
about it.

One function for each kind, over the tool that a model would use. Raises one of the family if there
is nothing to show.
"""

import os
import re
import shlex
from base64 import b64decode
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.agent.direct_tools import ByHand, DirectCallContext, Failed
from palyra.core import ids, labels
from palyra.core.errors import InvalidInput, NotFound, PalyraError
from palyra.core.events import (
    AnyEvent,
    InputAssembled,
    InputReceived,
    ModelReplied,
    ReferenceKind,
    RunCancelled,
    RunFailed,
    ToolFinished,
)
from palyra.core.labels import CLEAN, Label
from palyra.core.references import LIMITS, MOST_FILES
from palyra.core.tools import ToolResult
from palyra.store import runs
from palyra.store.database import Database
from palyra.store.runs import RunRow
from palyra.system import thread_pool
from palyra.tools import blocking, protected_names
from palyra.tools.files.search import Walk
from palyra.tools.paths import PathGuard, WorkspacePath, printable
from palyra.tools.shell.runner import KEPT

_MOST_SEEN = 2_000
_DEEPEST = 8
_GIT_S = 20
_NO_GIT = 127
READ_ON = "cut; read on with fs.read"


class Whole(Struct, frozen=True, kw_only=True):
    """Everything that was found. `paged`: what is not shown is worth keeping, because no tool gives
    it again.
    """

    text: str
    label: Label = CLEAN
    size: int = 0
    unit: Literal["bytes", "characters", "files"] = "characters"
    note: str = ""
    warnings: tuple[str, ...] = ()
    paged: bool = False
    cut: bool = False


class Kinds:
    def __init__(self, db: Database, hand: ByHand, fence: PathGuard) -> None:
        self._db = db
        self._hand = hand
        self._fence = fence
        self._by_kind: dict[ReferenceKind, Callable[[DirectCallContext, str], Awaitable[Whole]]] = {
            "file": self._file,
            "folder": self._folder,
            "diff": lambda at, target: self._git(at, target, staged=False),
            "staged": lambda at, target: self._git(at, target, staged=True),
            "url": self._url,
            "memory": self._memory,
            "run": self._run,
        }

    async def find(self, at: DirectCallContext, kind: ReferenceKind, target: str) -> Whole:
        return await self._by_kind[kind](at, target)

    async def names(self, at: DirectCallContext, prefix: str, most: int) -> list[str]:
        """Paths that begin so, for whoever is typing one; folders end in a slash. Policy is asked
        as for listing the folder.
        """
        folder, _, begun = prefix.rpartition("/")
        await self._hand.read(at, "fs.list", {"path": folder or "."})
        with blocking.family(printable(folder or ".")):
            return await thread_pool.everyday.run(
                self._names, folder or ".", begun, at.workspace, most
            )

    def _names(self, folder: str, begun: str, workspace: str, most: int) -> list[str]:
        met = Walk(self._fence).below(self._fence.place(folder, workspace), 1)
        fitting = (
            entry for entry in met if not entry.closed and entry.place.name.startswith(begun)
        )
        return [
            entry.place.relative + "/" * (entry.kind == "folder") for entry in islice(fitting, most)
        ]

    async def _file(self, at: DirectCallContext, target: str) -> Whole:
        try:
            read = await self._hand.read(at, "fs.read", {"path": target})
        except Failed as error:
            hint = (
                "; attach it instead, with -f or /attach"
                if "not UTF-8 text" in error.message
                else ""
            )
            raise InvalidInput(f"{error.message}{hint}") from error
        head, _, text = read.text.partition("\n")
        more = "continue with offset" in head
        note = READ_ON if more or len(text) > LIMITS["file"] else ""
        return Whole(
            text=text, label=read.label, size=read.data["size"], unit="bytes", note=note, cut=more
        )

    async def _folder(self, at: DirectCallContext, target: str) -> Whole:
        # Policy is asked about the listing first, and then about each file by itself.
        listed = await self._hand.read(at, "fs.list", {"path": target})
        with blocking.family(printable(target)):
            files, more = await thread_pool.everyday.run(self._walk, target, at.workspace)
        parts, skipped, left = list[str](), list[str](), LIMITS["folder"]
        label, cut = listed.label, more > 0
        for place, file in enumerate(files):
            try:
                read = await self._hand.read(at, "fs.read", {"path": file.relative})
            except PalyraError as error:
                skipped.append(
                    error.message
                    if file.shown in error.message
                    else f"{file.shown}: {error.message}"
                )
                continue
            label = labels.merge(label, read.label)
            share = left // (len(files) - place)
            text = read.text.partition("\n")[2]
            shown = cut_at(text, max(0, share - len(file.shown) - 8))
            cut |= len(shown) < len(text) or "continue with offset" in read.text.partition("\n")[0]
            parts.append(
                f"--- {file.shown}"
                + (f" ({READ_ON})" if len(shown) < len(text) else "")
                + f"\n{shown}"
            )
            left -= len(parts[-1]) + 1
        warnings = [f"left out: {each}" for each in skipped]
        if more:
            warnings.append(f"{more} more files are not shown: at most {MOST_FILES} are")
        if not parts:
            raise InvalidInput(
                f"there is no text file in it{': ' + '; '.join(skipped[:3]) if skipped else ''}"
            )
        note = "; ".join(warnings)[:600]
        text = "\n".join(parts)
        return Whole(
            text=text,
            label=label,
            size=len(files) + more,
            unit="files",
            note=note,
            warnings=tuple(warnings),
            cut=cut,
        )

    def _walk(self, target: str, workspace: str) -> tuple[list[WorkspacePath], int]:
        """The files to show, those near the top first, and how many more there are."""
        walk = Walk(self._fence)
        met = islice(walk.below(self._fence.place(target, workspace), _DEEPEST), _MOST_SEEN)
        files = [entry.place for entry in met if entry.kind == "file" and not entry.closed]
        files.sort(key=lambda place: (place.relative.count("/"), place.relative))
        return files[:MOST_FILES], max(0, len(files) - MOST_FILES)

    async def _git(self, at: DirectCallContext, target: str, *, staged: bool) -> Whole:
        """Run it where nothing can be written and there is no network, whatever programs the
        repository's settings name.
        """
        where = self._fence.place(target or ".", at.workspace) if at.workspace else None
        path = where.relative or "." if where else "."
        command = (
            f"diff --no-ext-diff --no-textconv --no-color{' --cached' if staged else ''} --"
            f" {shlex.quote(path)}"
        )
        # Git leaves protected names out by itself, so that nothing of them shows, not even that
        # they changed: this counts them.
        known = (
            (await self._ask_git(at, f"ls-files -z -- {shlex.quote(path)}"))
            .text.partition("\n")[2]
            .split("\0")
        )
        hidden = sum(1 for name in known if name and protected_names.why(name))
        done = await self._ask_git(at, command)
        text = done.text.partition("\n")[2]
        if done.outcome != "ok":
            raise InvalidInput(_no_diff(done.data or {}, text, done.text))
        dropped = (done.data or {}).get("dropped", 0)
        if dropped:
            # Behind the gap nobody knows which file a line belongs to.
            text = text.encode()[: KEPT // 2].decode("utf-8", "ignore")
        text, closed = _without_protected(text)
        closed = max(closed, hidden)
        if (
            not text
            and not closed
            and where
            and not await thread_pool.everyday.run(os.path.lexists, where.absolute)
        ):
            raise InvalidInput(
                f"{where.shown}: there is no such file or folder, and none that git knows of was"
                " changed"
            )
        note = f"{closed} protected files left out" if closed else ""
        nothing = "nothing is staged" if staged else "no changes"
        warnings = (*((note,) if note else ()), *(() if text else (nothing,)))
        named = f"git:{'staged' if staged else 'diff'}" + (f":{path}" if path != "." else "")
        label = labels.merge(done.label, labels.private(named))
        return Whole(
            text=text or f"({nothing})",
            label=label,
            size=len(text) + dropped,
            note=note,
            warnings=warnings,
            paged=True,
            cut=bool(dropped),
        )

    async def _ask_git(self, at: DirectCallContext, command: str) -> ToolResult:
        return await self._hand.use(
            at, "shell.run", {"command": f"git {command}", "timeout_s": _GIT_S}, harmless=True
        )

    async def _url(self, at: DirectCallContext, target: str) -> Whole:
        fetched = await self._fetched(at, target)
        return Whole(text=fetched.text, label=fetched.label, size=len(fetched.text), paged=True)

    async def _fetched(self, at: DirectCallContext, url: str) -> ToolResult:
        try:
            return await self._hand.read(at, "http.fetch", {"url": url})
        except Failed as error:
            # The first lines say what happened; behind them comes the page that says sorry.
            raise InvalidInput(
                "; ".join(error.message.split("\n\n")[0].splitlines()[:2])[:500]
            ) from error

    async def picture(self, at: DirectCallContext, url: str) -> tuple[bytes, Label]:
        """An image by its address, as its bytes."""
        fetched = await self._fetched(at, url)
        if not fetched.images:
            raise InvalidInput(
                f"there is no image that can be taken: {fetched.text.splitlines()[0][:300]}"
            )
        return b64decode(fetched.images[0].partition(",")[2]), fetched.label

    async def _memory(self, at: DirectCallContext, target: str) -> Whole:
        found = await self._hand.read(at, "memory.search", {"query": target})
        if not found.data["found"]:
            raise NotFound("nothing is remembered about that")
        return Whole(text=found.text, label=found.label, size=len(found.text), paged=True)

    async def _run(self, at: DirectCallContext, target: str) -> Whole:
        run_id = ids.check(target.upper(), "the run's id")
        row = await self._db.read(lambda tx: runs.get(tx, run_id, at.session.owner))
        events = await self._db.read(lambda tx: runs.events_of(tx, run_id))
        text = _retold(row, events)
        return Whole(text=text, label=labels.join(map(_label, events)), size=len(text), paged=True)


def cut_at(text: str, most: int) -> str:
    """The beginning, in whole lines unless that would take too much away."""
    if len(text) <= most:
        return text
    head = text[:most]
    line = head.rfind("\n")
    return head[:line] if line > most // 2 else head


_SECTION = re.compile(r"^(?=diff --(?:git|cc|combined) )", re.MULTILINE)
_OCTAL = re.compile(rb"\\([0-7]{3}|.)")
_LETTERS = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
}


def _no_diff(data: dict[str, object], text: str, everything: str) -> str:
    code = data.get("code")
    if "not a git repository" in text or "usage: git diff" in text.lower():
        return "the workspace is not a git repository; one in a folder above it is not looked at"
    if code == _NO_GIT:
        return "git is not installed"
    return "git says: " + "; ".join((text or everything).strip().splitlines()[:2])[:300]


def _without_protected(diff: str) -> tuple[str, int]:
    """The diff without files that file tools never touch: what was committed of them is still a
    secret.
    """
    if not diff:
        return "", 0
    kept, closed = [], 0
    for section in _SECTION.split(diff):
        head = section[: section.find("\n@@")] if "\n@@" in section else section
        if section and any(protected_names.why(name) for name in _names(head)):
            closed += 1
        else:
            kept.append(section)
    return "".join(kept), closed


def _names(head: str) -> list[str]:
    """Return every path that the head of a section may mean, with the letter and slash before it
    taken off.
    """
    found = []
    for line in head.splitlines()[:12]:
        for start in (
            "diff --git ",
            "diff --cc ",
            "diff --combined ",
            "--- ",
            "+++ ",
            "rename from ",
            "rename to ",
            "copy from ",
        ):
            if line.startswith(start):
                found += _unquoted(line[len(start) :])
    return [name for each in found for name in (each, each.partition("/")[2]) if name]


def _unquoted(names: str) -> list[str]:
    """One name or two. A blank can end a name or stand in it, so every piece counts as one too."""
    quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', names)
    plain = re.sub(r'"(?:[^"\\]|\\.)*"', " ", names)
    spelt = [_OCTAL.sub(_byte, each.encode()).decode("utf-8", "replace") for each in quoted]
    return [*spelt, plain.strip(), *plain.split()]


def _byte(match: "re.Match[bytes]") -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _LETTERS.get(code, code)


def _retold(row: RunRow, events: list[AnyEvent]) -> str:
    lines = [f"run {row.run_id}, {row.state}"]
    tools: dict[str, str] = {}
    for event in events:
        match event:
            case InputReceived():
                lines.append(f"user: {event.text}")
            case ModelReplied():
                if event.text:
                    lines.append(f"assistant: {event.text}")
                for call in event.calls:
                    tools[call.id] = (
                        f"{call.tool} {msgspec.json.encode(call.arguments).decode()[:300]}"
                    )
            case ToolFinished():
                lines.append(f"called {tools.get(event.call_id, 'a tool')}: {event.outcome}")
            case RunFailed():
                lines.append(f"failed: {event.message}")
            case RunCancelled():
                lines.append(f"cancelled: {event.reason}")
            case _:
                pass
    return "\n".join(lines)


def _label(event: AnyEvent) -> Label:
    match event:
        case InputReceived():
            return event.brings
        case ToolFinished():
            return event.label
        case InputAssembled():
            return labels.join(part.label for part in event.parts)
        case _:
            return CLEAN
