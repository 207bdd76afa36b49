"""The tools about files and results that every daemon has, in the order a model sees them.

`artifact.read`: pages of a result that was too large to be shown. A page is small enough not to
become an artifact itself.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated

from msgspec import Meta

from palyra.core.labels import Label
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, ToolResult
from palyra.tools.catalogue import Arguments, Placeless, TypedTool, declare
from palyra.tools.files.list import List
from palyra.tools.files.patch import Patch
from palyra.tools.files.read import FileRead
from palyra.tools.files.search import FileSearch
from palyra.tools.files.write import Write
from palyra.tools.paths import PathGuard

# The bytes and the label of an artifact if it belongs to the session, else None. Called on a
# thread.
Load = Callable[[str, str], tuple[bytes, Label] | None]

_MOST_BYTES = 7_800
_LOOKED_AT = 8 << 10


class ArtifactArguments(Arguments, frozen=True, kw_only=True):
    id: str
    offset: Annotated[int, Meta(ge=0, description="First byte")] = 0
    limit: Annotated[int, Meta(ge=1, le=_MOST_BYTES, description="Bytes")] = _MOST_BYTES


class ArtifactRead(Placeless):
    argument_type = ArtifactArguments
    spec = declare(
        "artifact.read",
        "Read a page of a large result by its handle.",
        ArtifactArguments,
        effect="pure",
        limits=Limits(time_ms=10_000, input_bytes=1 << 10, output_bytes=8 << 10),
    )

    def __init__(self, load: Load) -> None:
        self._load = load

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, ArtifactArguments)
        return Preview("text", f"read artifact {arguments.id}")

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, ArtifactArguments)
        found = await asyncio.to_thread(self._load, arguments.id, context.session_id)
        if found is None:
            return ToolResult(
                outcome="error", text=f"there is no artifact {arguments.id[:64]!r} in this session"
            )
        data, label = found
        if arguments.offset >= max(len(data), 1):
            return ToolResult(
                outcome="error",
                text=f"the artifact has {len(data):,} bytes, there is no byte {arguments.offset}",
            )
        begin, end = _whole_characters(data, arguments.offset, arguments.offset + arguments.limit)
        page = data[begin:end]
        # Also by how it begins, as for files: a page small enough would show, piece by piece, what
        # redaction never read as text.
        if b"\0" in page or b"\0" in data[:_LOOKED_AT]:
            return ToolResult(
                outcome="error",
                text=f"the artifact is binary, {len(data):,} bytes; it cannot be shown as text",
            )
        more = f"; continue with offset {end}" if end < len(data) else ""
        header = f"bytes {begin}-{end} of {len(data)}{more}"
        # A replacement character is longer than the byte it stands for; what does not fit is left
        # for the next page.
        text = page.decode("utf-8", "replace")
        if len(text.encode()) > _MOST_BYTES:
            return await self.execute(_shorter(arguments), context)
        following = end if end < len(data) else None
        return ToolResult(
            outcome="ok",
            text=f"{header}\n{text}",
            data={"size": len(data), "next": following},
            label=label,
        )


def _shorter(arguments: ArtifactArguments) -> ArtifactArguments:
    return ArtifactArguments(id=arguments.id, offset=arguments.offset, limit=_MOST_BYTES // 3)


def _whole_characters(data: bytes, begin: int, end: int) -> tuple[int, int]:
    """The span without the halves of characters at its edges; at most three bytes shorter, never
    empty.
    """
    end = min(end, len(data))
    start = begin
    while start < min(begin + 3, end - 1) and data[start] & 0xC0 == 0x80:
        start += 1
    stop = end
    while stop < len(data) and stop > max(end - 3, start + 1) and data[stop] & 0xC0 == 0x80:
        stop -= 1
    return start, stop


def tools(fence: PathGuard, load: Load) -> tuple[TypedTool, ...]:
    return (
        FileRead(fence),
        List(fence),
        FileSearch(fence),
        Write(fence),
        Patch(fence),
        ArtifactRead(load),
    )
