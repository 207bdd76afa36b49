"""A tool on another machine as a tool of its own: `worker:attic/shell.run`. Same catalogue, same
policy, same tape.

The daemon declares it, by its own tool of that name; a worker only says which of them it has. So a
worker can neither describe itself to a model nor call an effect harmless. A yes to a tool here is
none to the same tool there.
"""

import functools
import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec
from msgspec import Meta, Struct

from palyra.agent.remote_tools import PREFIX, RemoteTool
from palyra.core.errors import InvalidInput
from palyra.core.events import FileChange
from palyra.core.labels import Label, join, private, untrusted
from palyra.core.obeyed_files import obeyed
from palyra.core.ports import CallContext, InDoubt
from palyra.core.tools import Limits, Preview, Scope, Subject, Tier, ToolResult
from palyra.features.workers import file_transfer
from palyra.features.workers.file_transfer import Parcel
from palyra.features.workers.protocol import MOST_FILES, Finished, Shipped
from palyra.system.thread_pool import everyday
from palyra.tools.catalogue import Arguments, TypedTool, schema_of
from palyra.tools.paths import PathGuard
from palyra.tools.sandbox.command import STRENGTH
from palyra.tools.shell import runner
from palyra.tools.shell.parse import parse
from palyra.tools.shell.tools import LONGEST_S, RunArguments

if TYPE_CHECKING:
    from palyra.store.database import Tx

# What a worker can be asked for. Others are about this daemon's own things: its memory, its
# browser, its schedules.
REMOTE = frozenset({"shell.run", "fs.read", "fs.list", "fs.search", "fs.write", "fs.patch"})
REHEARSED = frozenset(
    {"test.pure", "test.sleep", "test.idempotent", "test.once", "test.reversible"}
)
# A worker may be away for a moment, and files have to get there and back.
_GRACE_MS = 120_000
# For the sandbox to start and to end, beyond the time that a command has.
_START_MS = 5_000
_MOST_ATTEMPTS = 3
_MOST_DATA = 256 << 10
_MOST_NAMED = 12


class Errand(Struct, frozen=True, kw_only=True):
    """Request to a worker for one call."""

    tool: str
    arguments: dict[str, Any]
    time_ms: int
    tier: Tier
    parcels: tuple[Parcel, ...] = ()
    results: tuple[str, ...] = ()


class CallDispatcher(Protocol):
    """Dispatcher of errands to workers; see `palyra.features.workers`."""

    async def perform(
        self, worker: str, errand: Errand, context: CallContext, *, resume: bool
    ) -> Finished:
        """Perform it. Raise InDoubt if it cannot be known what came of it. With `resume`, a call
        that was lost is not begun again.
        """
        ...

    async def fetch(
        self, worker: str, context: CallContext, files: tuple[Shipped, ...]
    ) -> dict[str, bytes]: ...

    async def roll_back(self, worker: str, context: CallContext) -> tuple[FileChange, ...]: ...

    def settled(self, tx: "Tx", call_id: str) -> None: ...


class WorkerTool(RemoteTool):
    """One of our own tools, at a worker. Its files are the worker's: a folder there for each
    session.
    """

    def __init__(self, base: TypedTool, worker: str, crew: CallDispatcher) -> None:
        spec = base.spec
        self._base, self._worker, self._crew = base, worker, crew
        self.executor = f"{PREFIX}{worker}"
        limits = Limits(
            spec.limits.time_ms + _GRACE_MS, spec.limits.input_bytes, spec.limits.output_bytes
        )
        self.spec = msgspec.structs.replace(
            spec,
            name=f"{self.executor}/{spec.name}",
            description=f"{spec.name} on the machine {worker}, in this session's own folder there.",
            limits=limits,
            source=self.executor,
            # Another machine's word: nobody here can tell how it came about.
            yields=join((spec.yields, private(self.executor), untrusted(self.executor))),
        )

    @property
    def argument_type(self) -> type[Arguments]:
        return self._base.argument_type

    def scope(self, arguments: object, workspace: str) -> Scope:
        """Return the scope; its paths are below `/worker:NAME`, which stands for the folder there:
        the worker keeps them inside it.
        """
        return self._base.scope(arguments, f"/{self.executor}")

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return tuple(
            msgspec.structs.replace(each, tool=self.spec.name)
            for each in self._base.subjects(scope)
        )

    def preview(self, arguments: object, workspace: str) -> Preview:
        body = msgspec.json.format(msgspec.json.encode(arguments)).decode()
        return Preview(
            "text",
            f"{self._base.spec.name} on the worker {self._worker}",
            f"{body}\nworker: {self._worker}",
        )

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        return await self._perform(arguments, context, resume=False)

    async def resume(self, arguments: object, context: CallContext) -> ToolResult | None:
        """Take up a call that was begun before, where the worker still has it, or never got it.
        None: it is in doubt.
        """
        try:
            return await self._perform(arguments, context, resume=True)
        except InDoubt:
            return None

    async def roll_back(self, context: CallContext) -> tuple[FileChange, ...]:
        """Have the worker put back what a call changed. Raises a PalyraError if it could not."""
        return await self._crew.roll_back(self._worker, context)

    def settled(self, tx: "Tx", call_id: str) -> None:
        """End its lease, in the step that puts the result on the tape."""
        self._crew.settled(tx, call_id)

    async def _perform(
        self, arguments: object, context: CallContext, *, resume: bool
    ) -> ToolResult:
        if context.attempt > _MOST_ATTEMPTS:
            text = (
                f"the worker {self._worker} was lost {_MOST_ATTEMPTS} times while it did this; what"
                " came of it is unknown"
            )
            return ToolResult(outcome="unknown", text=text)
        errand = await self.errand(arguments, context)
        finished = await self._crew.perform(self._worker, errand, context, resume=resume)
        return await self.result(finished, arguments, context)

    async def errand(self, arguments: object, context: CallContext) -> Errand:
        spec = self._base.spec
        return Errand(
            tool=spec.name,
            arguments=msgspec.to_builtins(arguments),
            time_ms=spec.limits.time_ms,
            tier=self._base.spec.tier,
        )

    async def result(
        self, finished: Finished, arguments: object, context: CallContext
    ) -> ToolResult:
        return ToolResult(outcome=finished.outcome, text=finished.text, data=_plain(finished.data))


class RemoteRunArguments(Arguments, frozen=True, kw_only=True):
    command: Annotated[str, Meta(min_length=1, max_length=32 << 10, description="For bash")]
    cwd: Annotated[str, Meta(description="Folder in the session's folder there")] = "."
    timeout_s: Annotated[int, Meta(ge=1, le=LONGEST_S)] = 120
    hosts: Annotated[
        tuple[str, ...],
        Meta(max_length=16, description="Hosts it needs; there is no network without"),
    ] = ()
    files: Annotated[
        tuple[str, ...],
        Meta(max_length=MOST_FILES, description="From the workspace here, copied there first"),
    ] = ()
    results: Annotated[
        tuple[str, ...],
        Meta(max_length=MOST_FILES, description="Copied back into the workspace here"),
    ] = ()


class RemoteRun(WorkerTool):
    """`shell.run` at a worker: files of the workspace go there, named ones come back."""

    def __init__(
        self, base: TypedTool, worker: str, crew: CallDispatcher, fence: PathGuard
    ) -> None:
        super().__init__(base, worker, crew)
        self._fence = fence
        self.spec = msgspec.structs.replace(
            self.spec,
            description=(
                f"Run a command on the machine {worker}, in a sandbox. It has a folder there for"
                " this session."
            ),
            parameters=schema_of(RemoteRunArguments),
        )

    @property
    def argument_type(self) -> type[Arguments]:
        return RemoteRunArguments

    def scope(self, arguments: object, workspace: str) -> Scope:
        """Paths are those here: what is sent there, and what is written when it comes back."""
        assert isinstance(arguments, RemoteRunArguments)
        scope = self._base.scope(self._there(arguments), f"/{self.executor}")
        sent = [self._fence.place(name, workspace) for name in arguments.files]
        written = [self._fence.place(name, workspace, writing=True) for name in arguments.results]
        places = [place.absolute for place in (*sent, *written)]
        root = self._fence.place(".", workspace).absolute if places else workspace
        parsed = parse(arguments.command)
        more = ("fs.write",) if written else ()
        return msgspec.structs.replace(
            scope,
            paths=tuple(dict.fromkeys(places)),
            workspace=root,
            program=parsed.program if parsed.simple and not scope.hosts and not places else "",
            capabilities=(*scope.capabilities, *more),
            command=f"{scope.command} [files: {', '.join(places)}]" if places else scope.command,
            harmless=False,
        )

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        found = [Subject(self.spec.name, "command", scope.command)]
        if scope.program and not parse(scope.command).spawns:
            found.append(Subject(self.spec.name, "program", scope.program))
        return (*found, Subject(self.spec.name, "tool"))

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, RemoteRunArguments)
        about = [
            f"worker: {self._worker}",
            f"folder there: {arguments.cwd}",
            f"sandbox: tier {self.spec.tier}",
            f"network: {', '.join(arguments.hosts) or 'none'}",
            f"time: at most {arguments.timeout_s} s",
        ]
        if arguments.files:
            about.append(f"sent there: {', '.join(arguments.files)}")
        if arguments.results:
            about.append(f"written here: {', '.join(arguments.results)}")
        return Preview(
            "command",
            f"{arguments.command} (on {self._worker})",
            "\n".join([arguments.command, "", *about]),
        )

    async def errand(self, arguments: object, context: CallContext) -> Errand:
        assert isinstance(arguments, RemoteRunArguments)
        parcels: tuple[Parcel, ...] = ()
        if arguments.files:
            parcels = await everyday.run(
                file_transfer.pack, self._fence, context.workspace, arguments.files
            )
        for name in arguments.results:
            # Refused before anything runs, not when it is too late.
            self._fence.place(name, context.workspace, writing=True)
        return Errand(
            tool=self._base.spec.name,
            arguments=msgspec.to_builtins(self._there(arguments)),
            time_ms=arguments.timeout_s * 1000 + _START_MS,
            tier=self._base.spec.tier,
            parcels=parcels,
            results=arguments.results,
        )

    async def result(
        self, finished: Finished, arguments: object, context: CallContext
    ) -> ToolResult:
        assert isinstance(arguments, RemoteRunArguments)
        data = _plain(finished.data)
        text = finished.text
        if finished.files:
            self._check_asked_for(finished, arguments)
            files, notes = _without_obeyed(finished.files, arguments.results)
            changes = await self._bring(files, context)
            data["changes"] = msgspec.to_builtins(changes)
            text += (
                "\nbrought back:"
                f" {', '.join(each.path for each in changes) or 'nothing that is new'}"
            )
            text += "".join(f"\nnote: {note}" for note in notes)
        missing = set(arguments.results) - {each.path for each in finished.files}
        gone = [
            name
            for name in missing
            if not any(each.path.startswith(f"{_normal(name)}/") for each in finished.files)
        ]
        if gone:
            text += f"\nnot there: {', '.join(sorted(gone))}"
        label: Label = runner.label(arguments.command, arguments.hosts)
        return ToolResult(outcome=finished.outcome, text=text, data=data, label=label)

    def _check_asked_for(self, finished: Finished, arguments: RemoteRunArguments) -> None:
        """A worker does not choose what is changed here."""
        wanted = [_normal(name) for name in arguments.results]
        for each in finished.files:
            inside = any(
                each.path == name or name == "." or each.path.startswith(f"{name}/")
                for name in wanted
            )
            if not inside or _normal(each.path) != each.path:
                raise InvalidInput(
                    f"the worker {self._worker} sent {each.path[:200]!r}, which was not asked for;"
                    " nothing was written"
                )
        file_transfer.check(self._worker, finished.files)

    async def _bring(
        self, files: tuple[Shipped, ...], context: CallContext
    ) -> tuple[FileChange, ...]:
        known = await everyday.run(file_transfer.known, self._fence, context.workspace, files)
        missing = tuple(each for each in files if each.sha256 not in known)
        contents = known | await self._crew.fetch(self._worker, context, missing)
        unpack = functools.partial(file_transfer.unpack, executable=False)
        return await everyday.run(unpack, self._fence, context.workspace, files, contents)

    @staticmethod
    def _there(arguments: RemoteRunArguments) -> RunArguments:
        return RunArguments(
            command=arguments.command,
            cwd=arguments.cwd,
            timeout_s=arguments.timeout_s,
            hosts=arguments.hosts,
        )


def tools(
    worker: str,
    offered: tuple[str, ...],
    tier: Tier,
    own: Callable[[str], TypedTool | None],
    crew: CallDispatcher,
    fence: PathGuard,
) -> list[TypedTool]:
    """The tools of one worker: those of ours that it has, and holds tightly enough."""
    found: list[TypedTool] = []
    for name in dict.fromkeys(offered):
        base = own(name) if name in REMOTE | REHEARSED else None
        if base is not None and STRENGTH.index(base.spec.tier) <= STRENGTH.index(tier):
            found.append(
                RemoteRun(base, worker, crew, fence)
                if name == "shell.run"
                else WorkerTool(base, worker, crew)
            )
    return found


def _without_obeyed(
    files: tuple[Shipped, ...], results: tuple[str, ...]
) -> tuple[tuple[Shipped, ...], list[str]]:
    """Leave out what other programs would obey, unless it was named by itself: a person has been
    asked about those.

    Also return what is to be said about it.
    """
    named = {_normal(name) for name in results}
    held = {
        each.path: row
        for each in files
        if each.path not in named and (row := obeyed(each.path)) is not None
    }
    kept = tuple(each for each in files if each.path not in held)
    notes = []
    if held:
        listed = ", ".join(f"{path} ({row.who})" for path, row in list(held.items())[:_MOST_NAMED])
        more = f" and {len(held) - _MOST_NAMED} more" if len(held) > _MOST_NAMED else ""
        notes.append(
            f"held back, because other programs would obey them: {listed}{more}. To get one, name"
            " the file itself in results: a person is asked then"
        )
    runnable = [each.path for each in kept if each.executable]
    if runnable:
        notes.append(
            f"no file became executable; made to be run: {', '.join(runnable[:_MOST_NAMED])}"
        )
    return kept, notes


def _normal(path: str) -> str:
    return posixpath.normpath(path)


def _plain(data: Any) -> dict[str, Any]:
    """Return what the result says of itself. File changes there are left out: they are none of
    files here that could be undone.
    """
    if not isinstance(data, dict) or len(msgspec.json.encode(data)) > _MOST_DATA:
        return {}
    return {key: value for key, value in data.items() if key != "changes"}
