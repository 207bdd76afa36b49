"""`memory.search`, `memory.write` and `memory.forget`: what the agent may do about what is
remembered.

The rule: a tool writes with the label of what the run has read. What came from outside waits for a
person, whatever it says.

Memory as the tools see it: from inside a call's session, with the label of what the run had read
when the call was proposed.

The tools by which the agent remembers and looks back.
"""

from typing import Annotated, Protocol

from msgspec import Meta

from palyra.core import labels
from palyra.core.labels import CLEAN, Label
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, ToolResult
from palyra.features.memory import session_search
from palyra.features.memory.model import LONGEST_TEXT, Found, Item, Kind, NewMemory, ScopeKind
from palyra.features.memory.recall import Transcripts
from palyra.features.memory.service import Memory, MemoryChange, Origin
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.tools.catalogue import Arguments, Catalogue, Placeless, TypedTool, declare


class SessionKeeper:
    def __init__(self, db: Database, memory: Memory) -> None:
        self._db = db
        self._memory = memory

    async def search(self, context: CallContext, text: str, limit: int) -> tuple[list[Found], str]:
        where = await self._memory.where(context.principal, context.session_id)
        searched = await self._memory.search(where, text, limit)
        return searched.found, searched.words_only

    async def write(
        self, context: CallContext, text: str, kind: Kind, scope: ScopeKind, corrects: str
    ) -> Item:
        where = await self._memory.where(context.principal, context.session_id)
        origin = await self._db.read(lambda tx: _origin(tx, context))
        if corrects:
            return await self._memory.change(
                where, corrects, MemoryChange(text=text, kind=kind), origin
            )
        return await self._memory.add(where, NewMemory(text=text, kind=kind, scope=scope), origin)

    async def forget(self, context: CallContext, memory_id: str) -> Item:
        where = await self._memory.where(context.principal, context.session_id)
        return await self._memory.forget(where, memory_id, context.run_id)


def _origin(tx: Tx, context: CallContext) -> Origin:
    """Return what the call was made from. Without a record, nothing is known to be trusted."""
    asked = tape.proposal(tx, context.run_id, context.call_id).asked
    label = (
        asked.label
        if asked is not None
        else labels.join([CLEAN, Label("untrusted", sources=("unknown",))])
    )
    started = tape.last_start(tx, context.run_id)
    return Origin("tool", label, (started,) if started else (), context.run_id)


_SEEN = {
    "principal": "in all your sessions",
    "channel": "in this channel",
    "session": "in this session",
    "workspace": "in this folder",
}
_LIMITS = Limits(time_ms=60_000, input_bytes=16 << 10, output_bytes=64 << 10)


class MemoryPort(Protocol):
    """Memory as the tools need it: from inside the call's session, with the run's label."""

    async def search(self, context: CallContext, text: str, limit: int) -> tuple[list[Found], str]:
        """Return what was found, and why meanings were not searched, if they were not."""
        ...

    async def write(
        self, context: CallContext, text: str, kind: Kind, scope: ScopeKind, corrects: str
    ) -> Item: ...

    async def forget(self, context: CallContext, memory_id: str) -> Item: ...


class MemoryQueryArguments(Arguments, frozen=True, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=2_000, description="What you want to know")]
    limit: Annotated[int, Meta(ge=1, le=20)] = 5


class RememberArguments(Arguments, frozen=True, kw_only=True):
    text: Annotated[
        str,
        Meta(min_length=1, max_length=LONGEST_TEXT),
    ]
    kind: Kind = "fact"
    scope: ScopeKind = "principal"
    corrects: Annotated[str, Meta(max_length=64, description="Id that this replaces")] = ""


class ForgetArguments(Arguments, frozen=True, kw_only=True):
    id: Annotated[str, Meta(min_length=1, max_length=64)]


class _MemoryTool(Placeless):
    def __init__(self, keeper: MemoryPort) -> None:
        self._keeper = keeper


class MemorySearch(_MemoryTool):
    argument_type = MemoryQueryArguments
    spec = declare(
        "memory.search",
        "Search what was remembered in earlier conversations.",
        MemoryQueryArguments,
        effect="pure",
        capabilities=("memory",),
        limits=_LIMITS,
    )

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, MemoryQueryArguments)
        return Preview("text", "search memory", arguments.query)

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, MemoryQueryArguments)
        found, words_only = await self._keeper.search(context, arguments.query, arguments.limit)
        lines = [
            f"{each.score:.2f}  {each.item.memory_id}  ({each.item.kind}) {each.item.text}"
            for each in found
        ]
        if words_only:
            lines.append(f"(searched by words only: {words_only})")
        data = {
            "found": [
                {
                    "id": each.item.memory_id,
                    "score": each.score,
                    "text": each.item.text,
                    "kind": each.item.kind,
                }
                for each in found
            ]
        }
        # What was said for one conversation was not said for whoever can be reached from another.
        label = labels.join(
            [*(each.item.label for each in found), *([labels.private("memory")] if found else [])]
        )
        return ToolResult(
            outcome="ok",
            text="\n".join(lines) or "nothing is remembered about that",
            data=data,
            label=label,
        )


class MemoryWrite(_MemoryTool):
    argument_type = RememberArguments
    # Saying the same again changes nothing, so a call in doubt is simply made again;
    # `memory.forget` takes it back.
    spec = declare(
        "memory.write",
        "Remember one statement, clear on its own, or correct one. No secrets.",
        RememberArguments,
        effect="idempotent",
        capabilities=("memory",),
        limits=_LIMITS,
    )

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, RememberArguments)
        what = (
            f"correct memory {arguments.corrects}"
            if arguments.corrects
            else f"remember a {arguments.kind}"
        )
        return Preview("text", f"{what}, to be known {_SEEN[arguments.scope]}", arguments.text)

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, RememberArguments)
        item = await self._keeper.write(
            context, arguments.text, arguments.kind, arguments.scope, arguments.corrects
        )
        data = {"id": item.memory_id, "state": item.state}
        if item.state == "review":
            text = (
                f"kept as {item.memory_id} for a person to look at, and not used before: {item.why}"
            )
        else:
            text = f"remembered as {item.memory_id}"
        return ToolResult(outcome="ok", text=text, data=data)


class MemoryForget(_MemoryTool):
    argument_type = ForgetArguments
    spec = declare(
        "memory.forget",
        "Forget a memory by its id.",
        ForgetArguments,
        effect="idempotent",
        capabilities=("memory",),
        limits=_LIMITS,
    )

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, ForgetArguments)
        return Preview("text", f"forget memory {arguments.id}")

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, ForgetArguments)
        item = await self._keeper.forget(context, arguments.id)
        # What it said is said once more here, also if it was waiting for a look: it is no more
        # trusted for being forgotten.
        return ToolResult(
            outcome="ok",
            text=f"forgotten: {item.text}",
            data={"id": item.memory_id},
            label=labels.merge(item.label, labels.private("memory")),
        )


def tools(keeper: MemoryPort) -> tuple[TypedTool, ...]:
    return (MemorySearch(keeper), MemoryWrite(keeper), MemoryForget(keeper))


def offer(catalogue: Catalogue, db: Database, memory: Memory, transcripts: Transcripts) -> None:
    kept = tools(SessionKeeper(db, memory))
    catalogue.renew("memory", (*kept, *session_search.tools(transcripts)))
