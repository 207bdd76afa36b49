"""`fs.list`: the files and folders below a folder, with sizes, in a stable order and within
bounds.
"""

from itertools import islice
from threading import Event as Flag
from typing import Annotated

from msgspec import Meta

from palyra.core.argument_roles import uses
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, ToolResult
from palyra.tools import blocking, paths
from palyra.tools.catalogue import Arguments, declare
from palyra.tools.files.content import WriteStopped
from palyra.tools.files.file_tool import FileTool, from_files
from palyra.tools.files.search import FolderEntry, Walk
from palyra.tools.paths import WorkspacePath

_MOST_BYTES = 127 << 10


class ListArguments(Arguments, frozen=True, kw_only=True):
    path: str = "."
    depth: Annotated[int, Meta(ge=1, le=16, description="Levels")] = 1
    limit: Annotated[int, Meta(ge=1, le=1000, description="Entries")] = 200
    ignored: Annotated[bool, Meta(description="Also what .gitignore names")] = False


class List(FileTool):
    argument_type = ListArguments
    spec = declare(
        "fs.list",
        "List a folder.",
        ListArguments,
        effect="pure",
        capabilities=("fs.read",),
        use=uses(reads_only=True, high_impact=False, path="path"),
        limits=Limits(time_ms=10_000, input_bytes=8 << 10, output_bytes=128 << 10),
    )

    def places(self, arguments: object, workspace: str) -> tuple[WorkspacePath, ...]:
        assert isinstance(arguments, ListArguments)
        return (self._fence.place(arguments.path, workspace),)

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, ListArguments)

        def job(stop: Flag) -> ToolResult:
            place = self._fence.place(arguments.path, context.workspace)
            walk = Walk(self._fence, ignored=arguments.ignored)
            entries = []
            for entry in islice(walk.below(place, arguments.depth), arguments.limit + 1):
                if stop.is_set():
                    raise WriteStopped
                entries.append(entry)
            return _listing(place, walk, entries, arguments.limit)

        return from_files(
            await blocking.results_in(job, paths.printable(arguments.path)), arguments.path
        )


def _listing(
    place: WorkspacePath, walk: Walk, entries: list[FolderEntry], limit: int
) -> ToolResult:
    lines: list[str] = []
    room = _MOST_BYTES
    for entry in entries[:limit]:
        line = _line(place, entry)
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines.append(line)
    more = len(lines) < len(entries) or walk.cut
    notes = [f"{place.shown}: {len(lines)} entries"]
    if more:
        notes.append("there are more: list a folder below or raise limit")
    if walk.left_out:
        notes.append(f"{walk.left_out} ignored by .gitignore left out")
    if walk.unreadable:
        notes.append(f"{walk.unreadable} folders could not be read")
    return ToolResult(
        outcome="ok",
        text="\n".join(["; ".join(notes), *lines]),
        data={"entries": len(lines), "more": more},
    )


def _line(start: WorkspacePath, entry: FolderEntry) -> str:
    name = paths.printable(entry.place.relative[len(start.relative) :].lstrip("/"))
    match entry.kind:
        case "folder":
            return f"{name}/" + ("  (protected)" if entry.closed else "")
        case "link":
            return f"{name} -> {paths.printable(entry.target)}"
        case "file":
            return f"{name}  {entry.size:,}" + ("  (protected)" if entry.closed else "")
        case "other":
            return f"{name}  (not a file)"
