"""`fs.read`: a page of a text file. It never loads more than a page, however large the file is."""

import os
from collections.abc import Iterator
from hashlib import sha256
from threading import Event as Flag
from typing import Annotated, BinaryIO

from msgspec import Meta, Struct

from palyra.core.argument_roles import uses
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, ToolResult
from palyra.tools import blocking, paths
from palyra.tools.catalogue import Arguments, declare
from palyra.tools.files.file_tool import FileTool, from_files
from palyra.tools.paths import WorkspacePath

MOST_BYTES = 128 << 10
_HEADER_BYTES = 1 << 10
_CHUNK = 64 << 10
# Lines are counted and the digest is made only this far into a file.
_MOST_SCANNED = 64 << 20
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class ReadArguments(Arguments, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="In the workspace")]
    offset: Annotated[int, Meta(ge=1, description="First line")] = 1
    limit: Annotated[int, Meta(ge=1, description="Lines")] = 2000


class FileRead(FileTool):
    argument_type = ReadArguments
    spec = declare(
        "fs.read",
        "Read a text file, at most 128 KiB per call.",
        ReadArguments,
        effect="pure",
        capabilities=("fs.read",),
        use=uses(reads_only=True, high_impact=False, path="path"),
        limits=Limits(time_ms=10_000, input_bytes=8 << 10, output_bytes=MOST_BYTES),
    )

    def places(self, arguments: object, workspace: str) -> tuple[WorkspacePath, ...]:
        assert isinstance(arguments, ReadArguments)
        return (self._fence.place(arguments.path, workspace),)

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, ReadArguments)

        def job(stop: Flag) -> ToolResult:
            place = self._fence.place(arguments.path, context.workspace)
            with (
                paths.opened_file(place) as descriptor,
                os.fdopen(os.dup(descriptor), "rb") as file,
            ):
                return _read(place, file, arguments, stop)

        return from_files(
            await blocking.results_in(job, paths.printable(arguments.path)), arguments.path
        )


class _Page(Struct):
    """The bytes of the lines asked for, and what the scan learnt about the whole file."""

    data: bytes
    lines: int
    scanned: int
    complete: bool
    sha256: str


def _read(place: WorkspacePath, file: BinaryIO, arguments: ReadArguments, stop: Flag) -> ToolResult:
    size = os.fstat(file.fileno()).st_size
    head = file.read(8 << 10)
    if head.startswith(_UTF16) or b"\0" in head:
        what = "UTF-16 text" if head.startswith(_UTF16) else "a binary file"
        return ToolResult(
            outcome="error",
            text=f"{place.shown} is {what} of {size:,} bytes, not UTF-8 text",
            data={"size": size},
        )
    file.seek(0)
    page = _scan(file, arguments.offset, arguments.limit, stop)
    if arguments.offset > max(page.lines, 1):
        return ToolResult(
            outcome="error",
            text=f"{place.shown} has {page.lines} lines, there is no line {arguments.offset}",
        )
    text, notes = _decode(page.data)
    shown_lines = text.count("\n") + (not text.endswith("\n") and text != "")
    last = arguments.offset + shown_lines - 1
    if last < min(page.lines, arguments.offset + arguments.limit - 1):
        notes.append(f"cut at {MOST_BYTES >> 10} KiB")
    if last < page.lines:
        notes.append(f"continue with offset {last + 1}")
    total = f"{page.lines}" if page.complete else f"more than {page.lines}"
    span = f"lines {arguments.offset}-{last} of {total}" if text else "empty"
    digest = f", sha256 {page.sha256[:16]}" if page.complete else ""
    header = f"{place.shown}: {span}, {size:,} bytes{digest}" + "".join(
        f"; {note}" for note in notes
    )
    data = {
        "path": place.relative,
        "size": size,
        "lines": page.lines,
        "sha256": page.sha256 if page.complete else "",
    }
    return ToolResult(outcome="ok", text=f"{header}\n{text}", data=data)


def _scan(file: BinaryIO, offset: int, limit: int, stop: Flag) -> _Page:
    first, end = offset - 1, offset - 1 + limit
    most = MOST_BYTES - _HEADER_BYTES
    kept, newlines, scanned, last = bytearray(), 0, 0, b""
    digest = sha256()
    for chunk in _chunks(file, stop):
        here = chunk.count(b"\n")
        if newlines + here >= first and newlines < end and len(kept) <= most:
            begin = _after(chunk, first - newlines)
            stopping = _after(chunk, end - newlines) if newlines + here >= end else len(chunk)
            kept += chunk[begin:stopping][: most + 1 - len(kept)]
        newlines += here
        scanned += len(chunk)
        last = chunk[-1:]
        digest.update(chunk)
    lines = newlines + (last not in (b"", b"\n"))
    return _Page(_cut(bytes(kept), most), lines, scanned, not file.read(1), digest.hexdigest())


def _chunks(file: BinaryIO, stop: Flag) -> Iterator[bytes]:
    scanned = 0
    while scanned < _MOST_SCANNED and not stop.is_set():
        chunk = file.read(_CHUNK)
        if not chunk:
            return
        scanned += len(chunk)
        yield chunk


def _after(chunk: bytes, newlines: int) -> int:
    """The index after so many line ends."""
    index = 0
    for _ in range(newlines):
        index = chunk.index(b"\n", index) + 1
    return index


def _cut(data: bytes, most: int) -> bytes:
    """Whole lines if there is one, else whole characters."""
    if len(data) <= most:
        return data
    data = data[:most]
    line = data.rfind(b"\n") + 1
    if line:
        return data[:line]
    while data and data[-1] & 0xC0 == 0x80:
        data = data[:-1]
    return data[:-1] if data and data[-1] >= 0xC0 else data


def _decode(data: bytes) -> tuple[str, list[str]]:
    notes = ["CRLF line ends"] if data.count(b"\r\n") > data.count(b"\n") // 2 else []
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode(), notes
    except UnicodeDecodeError:
        # A replacement character takes three bytes, so a page of invalid bytes must start smaller
        # to stay within the limit.
        data = _cut(data, (MOST_BYTES - _HEADER_BYTES) // 3)
        text = data.decode("utf-8", "replace")
        wrong = text.count("�") - data.count("�".encode())
        return text, [*notes, f"{wrong} bytes are not UTF-8 and are shown as �"]
