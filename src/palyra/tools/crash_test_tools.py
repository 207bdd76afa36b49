"""Tools for rehearsing crashes: one of each effect class, each able to stand still where a test
wants it.

They are registered only where a configuration asks for them. The rule: what they do can be counted
afterwards, so that a repeated effect, a lost one, or one that was not rolled back shows.
"""

import asyncio
import os
from hashlib import sha256
from threading import Event as Flag
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from palyra.core.errors import LimitExceeded
from palyra.core.ports import CallContext
from palyra.core.tools import Preview, Scope, Subject, ToolResult, ToolSpec
from palyra.tools import blocking, paths
from palyra.tools.catalogue import Arguments, TypedTool, declare
from palyra.tools.files import content as files_content
from palyra.tools.files.content import ContentChange
from palyra.tools.files.file_tool import FileTool, subjects
from palyra.tools.paths import PathGuard, WorkspacePath

_LONGEST_HOLD_S = 60.0
_MOST_BYTES = 1 << 20


class HoldArguments(Arguments, frozen=True, kw_only=True):
    """`hold` names a FIFO: the tool waits there until somebody writes to it. A FIFO that is not
    there does not hold.
    """

    hold: str = ""
    hold_at: Literal["before", "after"] = "after"


class PureArguments(HoldArguments, frozen=True, kw_only=True):
    text: str = ""


class FolderArguments(HoldArguments, frozen=True, kw_only=True):
    folder: str
    text: str = ""


class LineArguments(HoldArguments, frozen=True, kw_only=True):
    path: str
    line: str


class SleepArguments(Arguments, frozen=True, kw_only=True):
    ms: Annotated[int, Meta(ge=0, le=600_000)]


async def hold(arguments: HoldArguments, at: Literal["before", "after"], workspace: str) -> None:
    """Stand still at a FIFO. Whoever opens it for writing knows that the tool has arrived; writing
    a byte lets it go on.
    """
    if not arguments.hold or arguments.hold_at != at:
        return
    try:
        descriptor = os.open(
            os.path.join(workspace, arguments.hold), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )
    except FileNotFoundError:
        return
    loop = asyncio.get_running_loop()
    released = asyncio.Event()
    try:
        loop.add_reader(descriptor, released.set)
        try:
            await asyncio.wait_for(released.wait(), _LONGEST_HOLD_S)
        except TimeoutError:
            raise LimitExceeded(
                f"nobody released {arguments.hold} in {_LONGEST_HOLD_S:.0f} s"
            ) from None
        finally:
            loop.remove_reader(descriptor)
    finally:
        os.close(descriptor)


class Pure:
    """`test.pure` gives its text back."""

    argument_type = PureArguments
    spec = declare("test.pure", "Rehearsal: gives its text back.", PureArguments, effect="pure")

    def scope(self, arguments: object, workspace: str) -> Scope:
        return Scope(workspace=workspace)

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return subjects(self.spec.name, scope)

    def preview(self, arguments: object, workspace: str) -> Preview:
        return Preview("text", self.spec.name)

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, PureArguments)
        await hold(arguments, "before", context.workspace)
        await hold(arguments, "after", context.workspace)
        return ToolResult(outcome="ok", text=arguments.text)


class Sleep:
    """`test.sleep` waits, and can be cancelled at any moment."""

    argument_type = SleepArguments
    spec = declare("test.sleep", "Rehearsal: waits.", SleepArguments, effect="pure")

    def scope(self, arguments: object, workspace: str) -> Scope:
        return Scope(workspace=workspace)

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return subjects(self.spec.name, scope)

    def preview(self, arguments: object, workspace: str) -> Preview:
        return Preview("text", self.spec.name)

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, SleepArguments)
        await asyncio.sleep(arguments.ms / 1000)
        return ToolResult(outcome="ok", text=f"waited {arguments.ms} ms")


class _Acting(FileTool):
    """Base of those that leave something behind: hold, act on a thread, hold."""

    spec: ClassVar[ToolSpec]

    def act(self, arguments: object, context: CallContext, stop: Flag) -> str:
        raise NotImplementedError

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, HoldArguments)
        await hold(arguments, "before", context.workspace)

        def job(stop: Flag) -> ToolResult:
            return ToolResult(outcome="ok", text=self.act(arguments, context, stop))

        result = await blocking.results_in(job, self.spec.name, settle=True)
        await hold(arguments, "after", context.workspace)
        return result


class Idempotent(_Acting):
    """`test.idempotent` writes a file named by the call's key: however often it runs, there is one
    file per call.
    """

    argument_type = FolderArguments
    spec = declare(
        "test.idempotent",
        "Rehearsal: a file per key.",
        FolderArguments,
        effect="idempotent",
        capabilities=("fs.write",),
    )

    def places(self, arguments: object, workspace: str) -> tuple[WorkspacePath, ...]:
        assert isinstance(arguments, FolderArguments)
        return (self._fence.place(arguments.folder, workspace, writing=True),)

    def act(self, arguments: object, context: CallContext, stop: Flag) -> str:
        assert isinstance(arguments, FolderArguments)
        name = sha256(context.key.encode()).hexdigest()[:32]
        place = self._fence.place(f"{arguments.folder}/{name}", context.workspace, writing=True)
        files_content.apply(
            [ContentChange(place, files_content.read(place, _MOST_BYTES), arguments.text.encode())],
            stop,
        )
        return place.relative


class _Appending(_Acting):
    argument_type = LineArguments

    def places(self, arguments: object, workspace: str) -> tuple[WorkspacePath, ...]:
        assert isinstance(arguments, LineArguments)
        return (self._fence.place(arguments.path, workspace, writing=True),)


class Once(_Appending):
    """`test.once` appends a line and syncs: lines are effects, so two equal lines are a repeated
    effect.
    """

    spec = declare(
        "test.once",
        "Rehearsal: appends a line.",
        LineArguments,
        effect="once",
        capabilities=("fs.write",),
    )

    def act(self, arguments: object, context: CallContext, stop: Flag) -> str:
        assert isinstance(arguments, LineArguments)
        (place,) = self.places(arguments, context.workspace)
        if stop.is_set():
            raise files_content.WriteStopped
        with paths.opened_folder(place.root, place.folders, create=True) as folder:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(place.name, flags, 0o644, dir_fd=folder)
            try:
                os.write(descriptor, arguments.line.encode() + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.fsync(folder)
        return f"appended to {place.shown}"


class ReversibleAppend(_Appending):
    """`test.reversible` appends a line too, but by replacing the file: only a rollback before a
    second run keeps it single.
    """

    spec = declare(
        "test.reversible",
        "Rehearsal: appends a line.",
        LineArguments,
        effect="reversible",
        capabilities=("fs.write",),
    )

    def act(self, arguments: object, context: CallContext, stop: Flag) -> str:
        change = self._change(arguments, context.workspace)
        files_content.apply([change], stop)
        return f"appended to {change.place.shown}"

    def checkpoint_paths(self, arguments: object, workspace: str) -> tuple[str, ...]:
        return tuple(place.absolute for place in self.places(arguments, workspace))

    def foresee(self, arguments: object, workspace: str) -> dict[str, str]:
        change = self._change(arguments, workspace)
        return {change.place.absolute: sha256(change.after or b"").hexdigest()}

    def _change(self, arguments: object, workspace: str) -> ContentChange:
        assert isinstance(arguments, LineArguments)
        (place,) = self.places(arguments, workspace)
        before = files_content.read(place, _MOST_BYTES)
        return ContentChange(
            place, before, (before.data if before else b"") + arguments.line.encode() + b"\n"
        )


def tools(fence: PathGuard) -> tuple[TypedTool, ...]:
    return (Pure(), Sleep(), Idempotent(fence), Once(fence), ReversibleAppend(fence))
