"""`fs.search`: lines that match a regular expression, with context, below a folder.

Patterns come from a model and texts from anywhere, so matching is linear by construction (RE2), in
small blocks between which the time limit and a cancel are looked at.
"""

import os
import time
from collections.abc import Callable, Iterator
from threading import Event as Flag
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from palyra.core.errors import InvalidInput
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, ToolResult
from palyra.tools import blocking, paths
from palyra.tools.catalogue import Arguments, declare
from palyra.tools.files import walk
from palyra.tools.files.file_tool import FileTool, from_files
from palyra.tools.paths import PathGuard, WorkspacePath

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
    limit: Annotated[int, Meta(ge=1, le=1000, description="Matches")] = 100
    ignored: Annotated[bool, Meta(description="Also what .gitignore names")] = False


class Searching(Struct):
    """One search while it runs: what it found, what it skipped, and until when it may go on."""

    regex: Any
    limit: int
    context: int
    goes_on: Callable[[], bool]
    lines: list[str] = msgspec.field(default_factory=list)
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
            wanted = walk.globs([arguments.glob]) if arguments.glob else None
            steps = walk.Walk(self._fence, ignored=arguments.ignored)
            for file in _candidates(steps, place):
                if wanted is None or wanted.match_file(
                    file.relative[len(place.relative) :].lstrip("/") or file.name
                ):
                    _search_file(search, file)
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


def _candidates(steps: walk.Walk, place: WorkspacePath) -> Iterator[WorkspacePath]:
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
        _add(search, f"  {number}{':' if number in matched else '-'} {cut}")


def _add(search: Searching, line: str) -> None:
    search.room -= len(line.encode("utf-8", "replace")) + 1
    if search.room < 0:
        search.full = True
        return
    search.lines.append(line)


def _report(search: Searching, steps: walk.Walk) -> ToolResult:
    notes = [f"{search.matches} matching lines in {search.files} files"]
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
