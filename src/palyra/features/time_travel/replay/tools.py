"""The tools and the policy of a replay: they say what the recorded ones said, and do nothing.

Our own tools read a model's arguments as they do now, and are described to it as they are now: both
are what a replay looks at. What a call is about, its preview, its result and the verdict on it are
taken from the tape.
"""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from palyra.agent import unchanged_calls
from palyra.agent.active_run import ActiveRun
from palyra.agent.checkpoints import Checkpoints
from palyra.core.errors import Conflict, Forbidden, InvalidInput, PalyraError
from palyra.core.events import (
    AgentSpawned,
    AnyEvent,
    ApprovalRequested,
    Call,
    FileChange,
    ModelReplied,
    RunResumed,
    SessionRuled,
    ToolDecided,
    ToolFinished,
    ToolProposed,
    ToolStarted,
    ToolUndone,
)
from palyra.core.labels import CLEAN
from palyra.core.messages import ToolSchema
from palyra.core.ports import CallContext, InDoubt
from palyra.core.run_progress import CallProgress
from palyra.core.tools import Limits, Preview, Scope, Subject, ToolResult, ToolSpec
from palyra.core.verdicts import Allow, Ask, Deny, Question, Verdict
from palyra.features.time_travel.replay.driver import Director
from palyra.features.time_travel.replay.script import RecordedEntry
from palyra.policy.rules import PREFIX
from palyra.tools.catalogue import Arguments, Catalogue, TypedTool
from palyra.tools.files.checkpoints import Reversible

# A stand-in waits for its turn, not for work: no limit of a tool's may end that.
_PATIENT = Limits(time_ms=1 << 40)
_DENIED = "denied: "
Stored = Callable[[str], bytes | None]
Proposal = tuple[RecordedEntry, ToolProposed]
Judgement = tuple[ToolProposed, ToolDecided]


class RecordedArguments(Arguments, frozen=True, kw_only=True):
    """Arguments of a tool whose own shape we do not know."""

    values: dict[str, Any]


def _plain(arguments: object) -> dict[str, Any]:
    return (
        arguments.values
        if isinstance(arguments, RecordedArguments)
        else dict(msgspec.to_builtins(arguments))
    )


class RecordedCalls:
    """The recorded calls of the reply that is being worked on."""

    def __init__(self, director: Director, stored: Stored) -> None:
        self.director = director
        self.stored = stored
        # Which call policy was asked about last, and all of those that are not on the tape yet.
        self.judging = ""
        # A call that changes nothing: policy is asked next whether its file may be read.
        self.settling = False
        self._judged: set[str] = set()
        director.on_restart.connect(self._judged.clear)

    def reply(self) -> tuple[Call, ...]:
        director = self.director
        found = director.script.before(director.head, director.run_id, "model.replied")
        replied = found.event if found is not None else None
        return replied.calls if isinstance(replied, ModelReplied) else ()

    def proposals(self) -> list[Proposal]:
        """Return the proposals of the last reply, in the model's order."""
        script, wanted = self.director.script, {call.id for call in self.reply()}
        since = script.before(self.director.head, self.director.run_id, "model.replied")
        found = []
        for entry in script.after(since.seq if since else 0, self.director.run_id):
            if entry.kind == "model.replied":
                break
            if isinstance(entry.event, ToolProposed) and entry.event.call_id in wanted:
                found.append((entry, entry.event))
        return found

    def decided(self, call_id: str) -> ToolDecided | None:
        return self.director.script.decisions.get(call_id)

    def proposed(self, tool: str, plain: Mapping[str, Any]) -> Proposal | None:
        """A proposal of this tool with these arguments; one that is still to come before one that
        was.
        """
        # Arguments that were no JSON were never looked at.
        unread = {call.id for call in self.reply() if call.malformed}
        same = [
            each
            for each in self.proposals()
            if each[1].tool == tool and each[1].arguments == plain and each[1].call_id not in unread
        ]
        fresh = [
            each
            for each in same
            if each[0].seq > self.director.head and each[1].call_id not in self._judged
        ]
        edited = [each for each in self.proposals() if each[1].tool == tool]
        return next(iter(fresh or same or edited), None)

    def next_judged(self, question: Question | None = None) -> Judgement | None:
        """The next call that policy was asked about, as the tape goes on."""
        for entry, proposed in self.proposals():
            if (
                entry.seq <= self.director.head
                or proposed.asked is None
                or proposed.call_id in self._judged
            ):
                continue
            decided = self.decided(proposed.call_id)
            fits = question is None or (question.tool.name, question.scope) == (
                proposed.tool,
                proposed.scope,
            )
            if fits and decided is not None and decided.by in ("policy", "grant"):
                return proposed, decided
        return None

    def judge(self, call_id: str) -> None:
        self.judging = call_id
        self._judged.add(call_id)

    def request(self) -> ApprovalRequested | None:
        return self.director.script.request(self.director.head, self.judging)


class StandIn:
    """One tool, in name and in what it takes."""

    def __init__(
        self, spec: ToolSpec, calls: RecordedCalls, argument_type: type[Arguments]
    ) -> None:
        self.spec = spec
        self.argument_type = argument_type
        self._calls = calls

    def scope(self, arguments: object, workspace: str) -> Scope:
        """Return the scope, on a thread of its own: it may wait for a rule told to policy."""
        found = self._calls.proposed(self.spec.name, _plain(arguments))
        if found is None:
            return Scope(workspace=workspace)
        entry, proposed = found
        decided = self._calls.decided(proposed.call_id)
        if (
            decided is not None
            and proposed.asked is None
            and decided.by in ("hard_rule", "catalogue")
        ):
            raise (
                Forbidden(decided.reason)
                if decided.by == "hard_rule"
                else InvalidInput(decided.reason)
            )
        self._await_rules(entry, proposed)
        return proposed.scope

    def _await_rules(self, entry: RecordedEntry, proposed: ToolProposed) -> None:
        told = {rule.rule_id for rule in proposed.asked.rules} if proposed.asked else set()
        director = self._calls.director
        for each in reversed(director.script.entries[director.head : entry.seq]):
            if (
                isinstance(each.event, SessionRuled)
                and (each.event.rule_id in told) != each.event.removed
            ):
                asyncio.run_coroutine_threadsafe(director.reach(each.seq), director.loop).result(60)
                return

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        request = self._calls.request()
        return request.subjects if request else ()

    def preview(self, arguments: object, workspace: str) -> Preview:
        request = self._calls.request()
        return request.preview if request else Preview("text", self.spec.name)

    def unchanged(self, arguments: object, workspace: str) -> ToolResult | None:
        """The result of a call that was settled before it started."""
        director, decided = self._calls.director, self._calls.decided(self._calls.judging)
        if decided is None or decided.reason != unchanged_calls.REASON:
            return None
        finished = director.script.finished(director.head, director.run_id, decided.call_id)
        self._calls.settling = True
        return self._result(cast("ToolFinished", finished.event)) if finished else None

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        director = self._calls.director
        doubted = self._doubted(context)
        if doubted:
            await director.reach(doubted - 1)
            raise InDoubt
        finished = director.script.finished(director.head, context.run_id, context.call_id)
        if finished is None:
            return ToolResult(outcome="unknown", text=str(await director.never()))
        assert isinstance(finished.event, ToolFinished)
        if finished.event.outcome == "interrupted" and finished.event.attestation is None:
            await director.interrupted(context.run_id, self._last_before(finished))
        await director.reach(finished.seq - 1)
        return self._result(finished.event)

    def _doubted(self, context: CallContext) -> int:
        """Return where it was settled that nobody knew what came of this attempt, though the daemon
        had not stopped: a worker was lost.
        """
        for entry in self._calls.director.script.after(self._calls.director.head, context.run_id):
            event = entry.event
            if isinstance(event, RunResumed):
                return 0
            if getattr(event, "call_id", "") == context.call_id:
                about = isinstance(event, ApprovalRequested) and event.about == "in_doubt"
                return entry.seq if about or isinstance(event, ToolStarted | ToolUndone) else 0
        return 0

    def _last_before(self, finished: RecordedEntry) -> int:
        """Calls that an interrupt ended have their results in one step."""
        seq = finished.seq - 1
        while (before := self._calls.director.script.at(seq)) is not None:
            event = before.event
            if not (
                isinstance(event, ToolFinished)
                and event.outcome == "interrupted"
                and event.attestation is None
            ):
                break
            seq -= 1
        return seq

    def _result(self, finished: ToolFinished) -> ToolResult:
        body = self._calls.stored(finished.artifact) if finished.artifact else None
        images = []
        for each in finished.images:
            data = self._calls.stored(each.artifact)
            if data is not None:
                images.append(f"data:{each.media_type};base64,{b64encode(data).decode()}")
        return ToolResult(
            outcome=finished.outcome,
            text=body.decode() if body is not None else finished.text,
            data=finished.data,
            images=tuple(images),
            label=finished.label,
        )


class Foreign(StandIn):
    """A tool from elsewhere: what it made of the arguments is known from the tape."""

    def parse(self, arguments: Mapping[str, Any]) -> tuple[Arguments, dict[str, Any]]:
        for call in self._calls.reply():
            if call.tool == self.spec.name and call.arguments == arguments:
                decided = self._calls.decided(call.id)
                if decided is not None and decided.by == "catalogue":
                    raise InvalidInput(decided.reason)
                normal = next(
                    (
                        each.arguments
                        for _, each in self._calls.proposals()
                        if each.call_id == call.id
                    ),
                    arguments,
                )
                return RecordedArguments(values=dict(normal)), dict(normal)
        return RecordedArguments(values=dict(arguments)), dict(arguments)


class RecordedCatalogue(Catalogue):
    """The tools that were on offer: ours as they are now, others as they were."""

    def __init__(
        self,
        ours: Catalogue,
        calls: RecordedCalls,
        offered: Callable[[], tuple[ToolSchema, ...] | None],
    ) -> None:
        super().__init__(())
        self._ours = ours
        self._calls = calls
        self._offered = offered
        self._made_of: object = ()
        self._own_specs = {spec.name: spec for spec in ours.specs()}

    def _refresh(self) -> None:
        offered = self._offered()
        if offered is self._made_of:
            return
        self._made_of = offered
        schemas = offered if offered is not None else tuple(map(_schema, self._ours.specs()))
        made = [self._stand_in(schema) for schema in schemas]
        self._tools = {tool.spec.name: tool for tool in made}
        self._specs = tuple(tool.spec for tool in made)

    def specs(self) -> tuple[ToolSpec, ...]:
        self._refresh()
        return self._specs

    def get(self, name: str) -> TypedTool:
        self._refresh()
        if name not in self._tools and any(
            each.tool == name and each.asked for _, each in self._calls.proposals()
        ):
            return self._stand_in(ToolSchema(name, "", {}))
        return super().get(name)

    def parse(
        self, name: str, arguments: Mapping[str, Any]
    ) -> tuple[TypedTool, Arguments, dict[str, Any]]:
        gone = self._gone(name, arguments)
        if gone:
            raise InvalidInput(gone)
        return super().parse(name, arguments)

    def _gone(self, name: str, arguments: Mapping[str, Any]) -> str:
        """A call that had begun, and whose tool was another one or none after the daemon was
        started again.
        """
        script, head = self._calls.director.script, self._calls.director.head
        last, following = script.at(head), script.at(head + 1)
        if (
            last is None
            or following is None
            or last.kind != "tool.started"
            or not isinstance(following.event, ToolFinished)
        ):
            return ""
        finished = following.event
        without = finished.outcome == "error" and finished.attestation is None
        mine = any(
            each.call_id == finished.call_id and each.tool == name
            for _, each in self._calls.proposals()
        )
        return finished.text if without and mine else ""

    def _stand_in(self, schema: ToolSchema) -> TypedTool:
        known = self._own_specs.get(schema.name)
        if known is not None and known.source == "internal":
            tool = self._ours.get(schema.name)
            kind = Foreign if hasattr(tool, "parse") else StandIn
            return kind(
                replace(known, limits=_PATIENT, yields=CLEAN), self._calls, tool.argument_type
            )
        return Foreign(self._remembered(schema), self._calls, RecordedArguments)

    def _remembered(self, schema: ToolSchema) -> ToolSpec:
        """Return what a tool from elsewhere declared, as far as a call of it says."""
        spec = ToolSpec(
            name=schema.name,
            description=schema.description,
            parameters=schema.parameters,
            effect="once",
            limits=_PATIENT,
        )
        for entry in self._calls.director.script.entries:
            event = entry.event
            if (
                isinstance(event, ToolProposed)
                and event.tool == schema.name
                and event.asked is not None
            ):
                asked = event.asked
                spec = replace(
                    spec, effect=event.effect, capabilities=asked.capabilities, source=asked.source
                )
                ended = self._calls.director.script.finished(entry.seq, entry.run_id, event.call_id)
                if (
                    ended is not None
                    and isinstance(ended.event, ToolFinished)
                    and ended.event.attestation
                ):
                    return replace(spec, tier=ended.event.attestation.tier)
        return spec


def _schema(spec: ToolSpec) -> ToolSchema:
    return ToolSchema(spec.name, spec.description, spec.parameters)


class RecordedPolicy:
    """Policy that decides as recorded. What it is asked is on the tape and is compared there."""

    def __init__(self, calls: RecordedCalls) -> None:
        self._calls = calls

    @property
    def version(self) -> str:
        found = self._calls.next_judged()
        return found[1].policy_version if found else ""

    def judge(self, question: Question) -> Verdict:
        if self._calls.settling:
            self._calls.settling = False
            return Allow("recorded")
        found = self._calls.next_judged(question)
        if found is None:
            return self._again(question)
        proposed, decided = found
        self._calls.judge(proposed.call_id)
        match decided.verdict:
            case "deny":
                return Deny(decided.reason, decided.policies)
            case "allow" if decided.by != "grant":
                return Allow(decided.reason, decided.policies)
        request = self._calls.request()
        sends_private = bool(request and request.flow and request.flow.sends_private)
        return Ask(
            decided.reason, request.risk if request else "low", decided.policies, sends_private
        )

    def _again(self, question: Question) -> Verdict:
        """A call that was decided before is looked at once more when it is about to run: a rule may
        have come since.
        """
        script, head = self._calls.director.script, self._calls.director.head
        for _, proposed in self._calls.proposals():
            if (proposed.tool, proposed.scope) != (question.tool.name, question.scope):
                continue
            for entry in script.after(head, self._calls.director.run_id):
                event = entry.event
                if getattr(event, "call_id", "") != proposed.call_id:
                    continue
                if (
                    isinstance(event, ToolFinished)
                    and event.attestation is None
                    and event.text.startswith(_DENIED)
                ):
                    return Deny(event.text.removeprefix(_DENIED), (f"{PREFIX}recorded",))
                break
        return Allow("recorded")


class RecordedSpawning:
    """Double that starts nobody; it puts on the tape what starting subagents put there."""

    def __init__(self, director: Director) -> None:
        self._director = director

    async def spawn(self, run: ActiveRun, calls: Sequence[CallProgress], *, waiting: int) -> None:
        wanted, recorded = {call.call.id for call in calls}, list[AnyEvent]()
        for entry in self._director.script.after(self._director.head):
            event = entry.event
            if entry.run_id != run.run_id or getattr(event, "call_id", "") not in wanted:
                break
            if not isinstance(event, ToolStarted | AgentSpawned) and not (
                isinstance(event, ToolFinished) and event.agent is None
            ):
                break
            recorded.append(event)
        if recorded:
            await run.append(*recorded)
        else:
            await self._director.never()


class RecordedCheckpoints(Checkpoints):
    """Double that takes nothing and puts nothing back; says what was said."""

    def __init__(self, director: Director) -> None:
        super().__init__(b"")
        self._director = director

    def _next(self, call_id: str) -> object:
        for entry in self._director.script.after(self._director.head, self._director.run_id):
            if getattr(entry.event, "call_id", "") == call_id:
                return entry.event
        return None

    async def take(
        self, tool: Reversible, arguments: Arguments, workspace: str, call_id: str
    ) -> bytes:
        following = self._next(call_id)
        if isinstance(following, ToolFinished) and following.outcome == "error":
            raise PalyraError(following.text)
        return b"recorded"

    async def restore(
        self, sealed: bytes, workspace: str, call_id: str, *, force: bool = False
    ) -> list[FileChange]:
        following = self._next(call_id)
        if isinstance(following, ToolUndone):
            return list(following.changes)
        raise Conflict("somebody had changed the files since")
