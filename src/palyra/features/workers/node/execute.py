"""Doing one call: the same tools as the daemon's, in the worker's own sandbox, in the session's
folder.

Nothing of the daemon is here: no journal, no policy, no secrets. What a call needs came with it.

Contents by their digest: what came from the daemon or is to go there. What is here already is
not sent again.
"""

import asyncio
import os
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from palyra.core.errors import Forbidden, InvalidInput, PalyraError
from palyra.core.events import FileChange
from palyra.core.ports import CallContext
from palyra.core.tools import Tier, ToolResult
from palyra.features.workers import file_transfer
from palyra.features.workers.file_transfer import digest
from palyra.features.workers.node.home import Home
from palyra.features.workers.node.records import CallRecord, Records
from palyra.features.workers.protocol import (
    MOST_FILE_BYTES,
    MOST_TEXT,
    Assign,
    Finished,
    Piece,
    Shipped,
    TakeBack,
    TakenBack,
    TookBack,
    pieces,
)
from palyra.features.workers.tools import REHEARSED, REMOTE
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.system.thread_pool import everyday
from palyra.tools import standard
from palyra.tools.catalogue import Arguments, Catalogue, TypedTool
from palyra.tools.files import checkpoints, restore
from palyra.tools.files.checkpoints import Checkpoint, Reversible
from palyra.tools.files.restore import Tracks
from palyra.tools.net.egress import Egress
from palyra.tools.net.resolve import Resolver
from palyra.tools.paths import PathGuard
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell import tools as shell
from palyra.tools.shell.jobs import Jobs
from palyra.tools.shell.runner import Runner

# Beyond this the ones that were not used for longest go.
_MOST_BYTES = 1 << 30
_MOST_ARRIVING = 64


class Contents:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arriving: dict[str, bytearray] = {}

    def has(self, known: str) -> bool:
        return (self._folder / known).exists()

    def get(self, known: str) -> bytes:
        path = self._folder / known
        os.utime(path)
        return path.read_bytes()

    def put(self, content: bytes) -> None:
        """Store it, not synced: what a power cut destroys is asked for again, because its digest is
        looked at.
        """
        known = digest(content)
        # Several calls may make or get the same content at once.
        part = self._folder / f"{known}.{secrets.token_hex(4)}.part"
        try:
            part.write_bytes(content)
            part.replace(self._folder / known)
        except OSError:
            part.unlink(missing_ok=True)
            raise

    def receive(self, piece: Piece, size: int) -> bool:
        """Put a part where it belongs; whether the content is whole now. What does not fit into its
        `size` is passed over.
        """
        if piece.offset == 0:
            if len(self._arriving) >= _MOST_ARRIVING:
                self._arriving.clear()
            self._arriving[piece.digest] = bytearray()
        so_far = self._arriving.get(piece.digest)
        if (
            so_far is None
            or piece.offset != len(so_far)
            or len(so_far) + len(piece.data) > min(size, MOST_FILE_BYTES)
        ):
            return False
        so_far += piece.data
        if not piece.last:
            return False
        del self._arriving[piece.digest]
        content = bytes(so_far)
        if digest(content) != piece.digest:
            return False
        self.put(content)
        return True

    def told(self, known: str) -> list[Piece]:
        try:
            content = self.get(known)
        except FileNotFoundError:
            return [Piece(digest=known, gone=True)]
        return (
            pieces(known, content) if digest(content) == known else [Piece(digest=known, gone=True)]
        )

    def tidy(self) -> None:
        found = sorted(
            ((path.stat().st_mtime, path.stat().st_size, path) for path in self._folder.iterdir()),
            reverse=True,
        )
        total = 0
        for _, size, path in found:
            total += size
            if total > _MOST_BYTES or path.suffix == ".part":
                path.unlink(missing_ok=True)


_MOST_DIFF = 256 << 10
DEFAULT = ("shell.run", "fs.read", "fs.write")
_MOST_DATA = 1 << 20
# What takes back a call that changed nothing.
_NOTHING = checkpoints.encode(Checkpoint(1, (), (), ()))
T = TypeVar("T")


class Doing:
    """`offered` are the tools that this worker lets be used."""

    def __init__(
        self,
        home: Home,
        records: Records,
        contents: Contents,
        clock: Clock,
        *,
        rehearsal: bool = False,
    ) -> None:
        self._home, self._records, self._contents = home, records, contents
        closed = str(home.state.resolve())
        self._fence = PathGuard((closed,))
        self._sandbox = Sandbox(hidden=(closed,))
        runner = Runner(self._sandbox, Egress(Resolver()))
        jobs = Jobs(runner, home.state / "jobs", Redactor(bytes(32)), clock.now_ms)
        own: tuple[TypedTool, ...] = (
            *standard.tools(self._fence, lambda *_: None),
            *shell.tools(runner, jobs, self._fence),
        )
        names = REMOTE
        if rehearsal:
            from palyra.tools import crash_test_tools as pretended

            own += pretended.tools(self._fence)
            names |= REHEARSED
        self.catalogue = Catalogue([tool for tool in own if tool.spec.name in names])

    async def tier(self) -> Tier:
        return (await self._sandbox.probe()).tier

    async def do(self, assign: Assign, progress: Callable[[str], None]) -> Finished:
        """Do an assignment to its durable result. A cancel is a result too."""
        try:
            (tool, arguments, workspace), stopped = await _whole(everyday.run(self._begin, assign))
        except (PalyraError, OSError) as error:
            # Not begun: there is nothing to remember but that.
            await _whole(everyday.run(self._records.begin, _record(assign), _NOTHING))
            finished = _finished(assign, ToolResult(outcome="error", text=_said(error)))
        else:
            if stopped:
                finished = _finished(
                    assign,
                    ToolResult(outcome="cancelled", text=f"stopped before it began: {stopped}"),
                )
            else:
                finished = await self._run(assign, tool, arguments, workspace, progress)
        await _whole(everyday.run(self._records.finish, finished))
        return finished

    def _begin(self, assign: Assign) -> tuple[TypedTool, Arguments, str]:
        """Write down that it begins, with what takes it back, and lay out its files."""
        workspace = self._home.session(assign.session_id)
        tool, arguments, _ = self.catalogue.parse(assign.tool, assign.arguments)
        contents = {each.sha256: self._contents.get(each.sha256) for each in assign.files}
        if any(len(contents[each.sha256]) != each.size for each in assign.files):
            raise InvalidInput(
                "a file of the call has another size than the daemon said; nothing was begun"
            )
        kept = b""
        if tool.spec.effect == "reversible":
            kept = checkpoints.prepare(cast("Reversible", tool), arguments, workspace)
        self._records.begin(_record(assign), kept)
        file_transfer.unpack(self._fence, workspace, assign.files, contents)
        return tool, arguments, workspace

    async def _run(
        self,
        assign: Assign,
        tool: TypedTool,
        arguments: Arguments,
        workspace: str,
        progress: Callable[[str], None],
    ) -> Finished:
        context = CallContext(
            principal="system",
            session_id=assign.session_id,
            run_id="",
            call_id=assign.call_id,
            workspace=workspace,
            key=assign.call_id,
            attempt=assign.attempt,
            progress=progress,
        )
        # Not longer than the tool has here, whatever the daemon allows.
        limit_ms = max(1, min(assign.time_ms, tool.spec.limits.time_ms))
        result = await self._executed(tool, arguments, context, limit_ms / 1000)
        files: tuple[Shipped, ...] = ()
        if assign.results and result.outcome != "cancelled":
            try:
                files, _ = await _whole(everyday.run(self._pack, workspace, assign.results))
            except (PalyraError, OSError) as error:
                told = f"{result.text}\nwhat it made could not be packed: {_said(error)}"
                result = ToolResult(outcome="error", text=told, data=result.data)
        return _finished(assign, result, files)

    async def _executed(
        self, tool: TypedTool, arguments: Arguments, context: CallContext, limit: float
    ) -> ToolResult:
        name = tool.spec.name
        try:
            async with asyncio.timeout(limit):
                return await tool.execute(arguments, context)
        except TimeoutError:
            return ToolResult(
                outcome="timeout", text=f"{name} took longer than {limit:g} s and was stopped"
            )
        except asyncio.CancelledError as cancelled:
            why = str(cancelled.args[0]) if cancelled.args else "it was cancelled"
            return ToolResult(outcome="cancelled", text=f"{name} was stopped while it ran: {why}")
        except PalyraError as error:
            return ToolResult(
                outcome="denied" if isinstance(error, Forbidden) else "error", text=error.message
            )
        except Exception as error:  # noqa: BLE001  a tool's crash is a result, not the worker's end
            return ToolResult(
                outcome="error", text=f"{name} failed: {type(error).__name__}: {error}"
            )

    def _pack(self, workspace: str, results: tuple[str, ...]) -> tuple[Shipped, ...]:
        parcels = file_transfer.pack(self._fence, workspace, results, missing_ok=True)
        for parcel in parcels:
            self._contents.put(parcel.content)
        return tuple(parcel.about for parcel in parcels)

    def roll_back(self, call_id: str, session_id: str) -> tuple[FileChange, ...]:
        """Put back what a call changed. Raises Conflict, and changes nothing, if somebody else has
        changed a file since.
        """
        kept = self._records.checkpoint(call_id)
        changes = checkpoints.restore(kept, self._home.session(session_id)) if kept else []
        self._records.forget(call_id)
        return tuple(changes)

    def take_back(self, said: TakeBack) -> TookBack:
        """Put back what calls changed that are over. Nothing is, if somebody else has changed one
        of their files since.
        """
        missing = tuple(call_id for call_id in said.calls if not self._records.checkpoint(call_id))
        if missing:
            return TookBack(ask_id=said.ask_id, missing=missing)
        workspace = self._home.session(said.session_id)
        tracks = Tracks()
        touched = {call_id: tracks.add(self._records.checkpoint(call_id)) for call_id in said.calls}
        aim = tracks.aim(workspace, force=said.force)
        taken = tuple(
            TakenBack(
                call_id,
                self._records.undone(call_id)
                or tuple(each for each in aim.changes if each.path in paths),
            )
            for call_id, paths in touched.items()
        )
        clashes = tuple(clash.path for clash in aim.clashes)
        if said.look:
            diff = restore.preview(aim.target, workspace).body[:_MOST_DIFF]
            return TookBack(ask_id=said.ask_id, taken=taken, clashes=clashes, diff=diff)
        if clashes and not said.force:
            return TookBack(ask_id=said.ask_id, clashes=clashes)
        for each in taken:
            self._records.undo(each.call_id, each.changes)
        checkpoints.restore(aim.target, workspace)
        return TookBack(ask_id=said.ask_id, taken=taken)


def _record(assign: Assign) -> CallRecord:
    return CallRecord(
        call_id=assign.call_id,
        attempt=assign.attempt,
        session_id=assign.session_id,
        tool=assign.tool,
        state="running",
    )


def _finished(assign: Assign, result: ToolResult, files: tuple[Shipped, ...] = ()) -> Finished:
    text = result.text.encode("utf-8", "replace")[:MOST_TEXT].decode("utf-8", "ignore")
    data = result.data if len(msgspec.msgpack.encode(result.data)) <= _MOST_DATA else None
    return Finished(
        call_id=assign.call_id,
        attempt=assign.attempt,
        outcome=result.outcome,
        text=text,
        data=data,
        files=files,
    )


async def _whole(work: Awaitable[T]) -> tuple[T, str]:
    """Do something to its end, whoever cancels meanwhile; what it gave, and why somebody wanted it
    to stop.
    """
    task, why = asyncio.ensure_future(work), ""
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as cancelled:
            why = str(cancelled.args[0]) if cancelled.args else "it was cancelled"
        except Exception:  # noqa: BLE001  it is raised below
            break
    return task.result(), why


def _said(error: PalyraError | OSError) -> str:
    return error.message if isinstance(error, PalyraError) else str(error)
