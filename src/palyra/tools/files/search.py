"""`fs.search`: lines that match a regular expression, with context, below a folder.

Patterns come from a model and texts from anywhere, so matching is linear by construction (RE2), in
small blocks between which the time limit and a cancel are looked at.

Walking a workspace folder in a stable order: no symlink is followed, protected files are named
but never opened.

`.gitignore` files are honoured as git does it: each counts from its own folder down, the nearest
decides, and nothing below an ignored folder comes back. Patterns are matched by RE2, because a
repository's ignore file is not ours to trust.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event as Flag
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from palyra.core.argument_roles import uses
from palyra.core.errors import InvalidInput
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, ToolResult
from palyra.tools import blocking, paths, protected_names
from palyra.tools.catalogue import Arguments, declare
from palyra.tools.files.file_tool import FileTool, from_files
from palyra.tools.paths import PathGuard, WorkspacePath

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

EntryKind = Literal["file", "folder", "link", "other"]

_MOST_SEEN = 200_000
_MOST_IGNORE_BYTES = 64 << 10
_MOST_IGNORE_LINES = 2_000
_LONGEST_IGNORE_LINE = 512
_MOST_NAMED = 20


class FolderEntry(Struct, frozen=True):
    """One thing that was met. A `closed` entry may be named, not opened."""

    place: WorkspacePath
    kind: EntryKind
    size: int = 0
    target: str = ""
    closed: bool = False


class Walk:
    """One walk and what it left out on the way."""

    def __init__(self, fence: PathGuard, *, ignored: bool = False) -> None:
        self._fence = fence
        self._ignored = ignored
        self._seen = 0
        self.left_out = 0
        self.unreadable = 0
        self.cut = False

    def below(self, start: WorkspacePath, depth: int) -> Iterator[FolderEntry]:
        """Everything below a folder, parents before children, `depth` levels deep."""
        rules: list[_Rules] = []
        parts = start.relative.split("/") if start.relative else []
        if not self._ignored:
            for length in range(len(parts)):
                rules += _rules_in(WorkspacePath(start.root, "/".join(parts[:length])))
        yield from self._folder(start, depth, rules, first=True)

    def _folder(
        self, folder: WorkspacePath, depth: int, above: Sequence["_Rules"], *, first: bool = False
    ) -> Iterator[FolderEntry]:
        try:
            found = self._scan(folder)
        except (OSError, paths.PathRefused):
            if first:
                raise
            self.unreadable += 1
            return
        rules = list(above)
        if not self._ignored and any(entry.place.name == ".gitignore" for entry in found):
            rules += _rules_in(folder)
        for entry in found:
            if _is_ignored(entry, rules):
                self.left_out += 1
                continue
            yield entry
            if entry.kind == "folder" and not entry.closed and depth > 1 and not self.cut:
                yield from self._folder(entry.place, depth - 1, rules)

    def _scan(self, folder: WorkspacePath) -> list[FolderEntry]:
        found = []
        parts = folder.relative.split("/") if folder.relative else []
        with (
            paths.opened_folder(folder.root, parts) as descriptor,
            os.scandir(descriptor) as listing,
        ):
            for item in listing:
                self._seen += 1
                if self._seen > _MOST_SEEN:
                    self.cut = True
                    break
                if not item.name.startswith(protected_names.TEMPORARY):
                    found.append(self._entry(folder, item, descriptor))
        return sorted(found, key=lambda entry: entry.place.relative)

    def _entry(self, folder: WorkspacePath, item: os.DirEntry[str], descriptor: int) -> FolderEntry:
        place = WorkspacePath(
            folder.root, f"{folder.relative}/{item.name}" if folder.relative else item.name
        )
        closed = protected_names.why_name(
            item.name, folder.name
        ) is not None or not self._fence.opens(place)
        try:
            if item.is_symlink():
                return FolderEntry(
                    place, "link", target=os.readlink(item.name, dir_fd=descriptor), closed=True
                )
            if item.is_dir(follow_symlinks=False):
                return FolderEntry(place, "folder", closed=closed)
            found = item.stat(follow_symlinks=False)
        except OSError:
            return FolderEntry(place, "other", closed=True)
        return FolderEntry(
            place, "file" if stat.S_ISREG(found.st_mode) else "other", found.st_size, closed=closed
        )


class _Rules(Struct, frozen=True):
    folder: str
    spec: "GitIgnoreSpec"


def globs(lines: Sequence[str]) -> "GitIgnoreSpec":
    """Patterns in git's dialect; a line that is no pattern is dropped, as git does."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines, backend="re2")
    except ValueError:
        return GitIgnoreSpec.from_lines(
            [line for line in lines if _is_pattern(line)], backend="re2"
        )


def _is_pattern(line: str) -> bool:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        GitIgnoreSpecPattern(line)
    except ValueError:
        return False
    return True


def _rules_in(folder: WorkspacePath) -> list[_Rules]:
    place = WorkspacePath(
        folder.root, f"{folder.relative}/.gitignore" if folder.relative else ".gitignore"
    )
    try:
        with paths.opened_file(place) as descriptor:
            text = os.read(descriptor, _MOST_IGNORE_BYTES).decode("utf-8", "replace")
    except (OSError, paths.PathRefused):
        return []
    lines = [
        line
        for line in text.split("\n")[:_MOST_IGNORE_LINES]
        if 0 < len(line) <= _LONGEST_IGNORE_LINE
    ]
    return [_Rules(folder.relative, globs([line.removesuffix("\r") for line in lines]))]


def _is_ignored(entry: FolderEntry, rules: Sequence[_Rules]) -> bool:
    for rule in reversed(rules):
        path = entry.place.relative[len(rule.folder) :].lstrip("/") + (
            "/" if entry.kind == "folder" else ""
        )
        verdict = rule.spec.check_file(path.encode("utf-8", "replace").decode()).include
        if verdict is not None:
            return verdict
    return False


_MOST_FILE = 4 << 20
_MOST_OUTPUT = 127 << 10
_BLOCK = 64 << 10
_LONGEST_LINE = 300
# Bounds the compiled program and with it the worst time per block.
_REGEX_MEMORY = 1 << 20


class SearchArguments(Arguments, frozen=True, kw_only=True):
    pattern: Annotated[str, Meta(min_length=1, max_length=1000, description="RE2, within a line")]
    path: str = "."
    glob: Annotated[str, Meta(max_length=500, description="e.g. src/**/*.ts")] = ""
    ignore_case: bool = False
    context: Annotated[int, Meta(ge=0, le=10, description="Lines around each match")] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    ignored: Annotated[bool, Meta(description="Also what .gitignore names")] = False


class Searching(Struct):
    """One search while it runs: what it found, what it skipped, and until when it may go on."""

    regex: Any
    limit: int
    context: int
    goes_on: Callable[[], bool]
    lines: list[str] = msgspec.field(default_factory=list)
    # Files whose names match, as long as no line does.
    named: list[str] = msgspec.field(default_factory=list)
    matches: int = 0
    files: int = 0
    binary: int = 0
    large: int = 0
    unreadable: int = 0
    room: int = _MOST_OUTPUT
    full: bool = False
    late: bool = False


class FileSearch(FileTool):
    argument_type = SearchArguments
    spec = declare(
        "fs.search",
        "Search file contents by regular expression.",
        SearchArguments,
        effect="pure",
        capabilities=("fs.read",),
        use=uses(reads_only=True, high_impact=False, path="path"),
        limits=Limits(time_ms=15_000, input_bytes=8 << 10, output_bytes=128 << 10),
    )

    def __init__(self, fence: PathGuard, *, time_ms: int = 10_000) -> None:
        super().__init__(fence)
        self._time_ms = time_ms

    def places(self, arguments: object, workspace: str) -> tuple[WorkspacePath, ...]:
        assert isinstance(arguments, SearchArguments)
        return (self._fence.place(arguments.path, workspace),)

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, SearchArguments)

        def job(stop: Flag) -> ToolResult:
            deadline = time.monotonic() + self._time_ms / 1000
            place = self._fence.place(arguments.path, context.workspace)
            search = Searching(
                regex=compile_pattern(arguments),
                limit=arguments.limit,
                context=arguments.context,
                goes_on=lambda: time.monotonic() < deadline and not stop.is_set(),
            )
            wanted = globs([arguments.glob]) if arguments.glob else None
            steps = Walk(self._fence, ignored=arguments.ignored)
            for file in _candidates(steps, place):
                if wanted is None or wanted.match_file(
                    file.relative[len(place.relative) :].lstrip("/") or file.name
                ):
                    _search_file(search, file)
                    _look_at_name(search, file)
                if search.full or search.late or not search.goes_on():
                    break
            return _report(search, steps)

        return from_files(
            await blocking.results_in(job, paths.printable(arguments.path)), arguments.path
        )


def compile_pattern(arguments: SearchArguments) -> Any:
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.max_mem = _REGEX_MEMORY
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False
    options.case_sensitive = not arguments.ignore_case
    try:
        return re2.compile(f"(?m){arguments.pattern}".encode(), options)
    except re2.error as error:
        said = str(
            error.args[0].decode("utf-8", "replace")
            if error.args and isinstance(error.args[0], bytes)
            else error
        )
        raise InvalidInput(
            f"pattern: {said.replace('(?m)', '', 1)[:200]}; it is RE2 syntax: no look-around, no"
            " back-references"
        ) from None
    except UnicodeEncodeError:
        raise InvalidInput("pattern: it is not valid Unicode") from None


def _candidates(steps: Walk, place: WorkspacePath) -> Iterator[WorkspacePath]:
    if not os.path.isdir(place.absolute):
        # A file that was asked for by name and cannot be opened is an error, not something to skip.
        with paths.opened_file(place):
            yield place
        return
    for entry in steps.below(place, depth=64):
        if entry.kind == "file" and not entry.closed:
            yield entry.place


def _search_file(search: Searching, place: WorkspacePath) -> None:
    try:
        data = _load(search, place)
    except (OSError, paths.PathRefused):
        search.unreadable += 1
        return
    if data is None:
        return
    numbers = []
    for number in matching_lines(search, data):
        numbers.append(number)
        if search.matches + len(numbers) >= search.limit:
            search.full = True
            break
    if numbers:
        search.files += 1
        search.matches += len(numbers)
        _keep(search, place, data, numbers)


def _look_at_name(search: Searching, place: WorkspacePath) -> None:
    """Keep the files whose names match: whoever finds no line may have looked for one of them."""
    if not search.matches and len(search.named) < _MOST_NAMED:
        name = place.name.encode("utf-8", "surrogateescape")
        if search.regex.search(name) is not None:
            search.named.append(place.shown)


def _load(search: Searching, place: WorkspacePath) -> bytes | None:
    with paths.opened_file(place) as descriptor:
        if os.fstat(descriptor).st_size > _MOST_FILE:
            search.large += 1
            return None
        data = os.read(descriptor, 8 << 10)
        if b"\0" in data:
            search.binary += 1
            return None
        while chunk := os.read(descriptor, 1 << 20):
            data += chunk
            if len(data) > _MOST_FILE:
                search.large += 1
                return None
    return data


def matching_lines(search: Searching, data: bytes) -> Iterator[int]:
    """Numbers of the lines that match, ascending, each once."""
    at, number, counted, last = 0, 1, 0, 0
    while at < len(data):
        # A line that is longer than a block is searched in pieces.
        end = data.rfind(b"\n", at, at + _BLOCK) + 1 or min(at + _BLOCK, len(data))
        position = at
        while position < end:
            match = search.regex.search(data, position, end)
            if match is None or match.start() >= end:
                break
            number += data.count(b"\n", counted, match.start())
            counted = match.start()
            if number != last:
                yield number
                last = number
            line_end = data.find(b"\n", counted, end)
            position = line_end + 1 if line_end >= 0 else end
        at = end
        if not search.goes_on():
            search.late = True
            return


def _keep(search: Searching, place: WorkspacePath, data: bytes, numbers: list[int]) -> None:
    lines = data.split(b"\n")
    matched = set(numbers)
    shown = sorted(
        {
            near
            for number in numbers
            for near in range(number - search.context, number + search.context + 1)
        }
    )
    _add(search, place.shown)
    before = 0
    for number in shown:
        if not 1 <= number <= len(lines) or (
            number == len(lines) and not lines[-1] and number not in matched
        ):
            continue
        if search.context and before and number > before + 1:
            _add(search, "  --")
        before = number
        text = lines[number - 1].removesuffix(b"\r").decode("utf-8", "replace")
        cut = (
            text
            if len(text) <= _LONGEST_LINE
            else text[:_LONGEST_LINE] + f"… ({len(text):,} characters)"
        )
        _add(search, f"  line {number}{':' if number in matched else '-'} {cut}")


def _add(search: Searching, line: str) -> None:
    search.room -= len(line.encode("utf-8", "replace")) + 1
    if search.room < 0:
        search.full = True
        return
    search.lines.append(line)


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _report(search: Searching, steps: Walk) -> ToolResult:
    notes = [
        f"{_count(search.matches, 'match', 'matches')} in {_count(search.files, 'file', 'files')}"
    ]
    if search.named and not search.matches:
        named = ", ".join(search.named)
        notes = [f"no line matches, but names of files do: {named}; read one with fs.read"]
    if search.full:
        notes.append("there may be more: narrow the pattern, path or glob")
    elif search.late or not search.goes_on():
        notes.append("stopped at the time limit: narrow the path or glob")
    elif steps.cut:
        notes.append("the folder is too large to be searched whole: narrow the path")
    skipped = {
        "binary": search.binary,
        f"over {_MOST_FILE >> 20} MiB": search.large,
        "unreadable": search.unreadable + steps.unreadable,
    }
    words = [f"{count} {what}" for what, count in skipped.items() if count]
    if words:
        notes.append(f"skipped files: {', '.join(words)}")
    data = {
        "matches": search.matches,
        "files": search.files,
        "complete": not (search.full or search.late or steps.cut),
    }
    return ToolResult(outcome="ok", text="\n".join(["; ".join(notes), *search.lines]), data=data)
