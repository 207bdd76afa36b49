"""The one path to a tool: propose, judge, ask, record the start, execute, redact, record.

No effect begins before its `tool.started` is durable, and every call leaves a proposal, a decision
and a result on the tape, denied ones too. A call that only looks is recorded with its result.
"""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import sha256
from itertools import takewhile
from typing import Any, Protocol, cast

import msgspec

from palyra.agent import durable_write, planning, tool_events
from palyra.agent import images as agent_images
from palyra.agent.active_run import ActiveRun, Interrupted
from palyra.agent.authorize import Authorizer
from palyra.agent.broadcast import Broadcast
from palyra.agent.checkpoints import Checkpoints
from palyra.agent.client_tools import hand_over
from palyra.agent.judged_call import Judged
from palyra.agent.large_results import LARGE_RESULT, summary
from palyra.agent.prompt import small_window
from palyra.agent.remote_tools import PREFIX as WORKERS
from palyra.agent.remote_tools import RemoteTool
from palyra.agent.turn_decision import TurnDecision, as_decided
from palyra.core import labels
from palyra.core.errors import Conflict, Forbidden, PalyraError, Unavailable
from palyra.core.events import (
    AnyEvent,
    Attestation,
    FileChange,
    ToolFinished,
    ToolProgress,
    ToolUndone,
    encode,
)
from palyra.core.ids import ApprovalId, CallId
from palyra.core.labels import Label
from palyra.core.next_step import AGENTS_AT_ONCE, SPAWN
from palyra.core.ports import CallContext, InDoubt
from palyra.core.run_progress import CallProgress
from palyra.core.tools import Outcome, ToolResult, input_digest
from palyra.core.verdicts import Origin
from palyra.store import approvals, artifacts, tape
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Arguments, Catalogue, TypedTool
from palyra.tools.files.checkpoints import Reversible

PURE_AT_ONCE = 4
LONGEST_PROGRESS = 4 << 10
# How long a cancelled tool gets to say what it did before its silence is recorded.
_LAST_WORDS_S = 0.15
_UNATTENDED: frozenset[Origin] = frozenset({"scheduled", "child"})


class Spawning(Protocol):
    """Port that gives calls to subagents."""

    async def spawn(self, run: ActiveRun, calls: Sequence[CallProgress], *, waiting: int) -> None:
        """Start one for each of these calls. So many more of the same turn wait for a free
        place.
        """
        ...


class ToolFlow:
    def __init__(
        self,
        db: Database,
        hub: Broadcast,
        judging: Authorizer,
        catalogue: Catalogue,
        redactor: Redactor,
        checkpoints: Checkpoints,
        clock: Clock,
        spawning: Spawning | None = None,
    ) -> None:
        self._db = db
        self._hub = hub
        self._spawning = spawning
        self._judging = judging
        self._catalogue = catalogue
        self._redactor = redactor
        self._checkpoints = checkpoints
        self._clock = clock

    async def decide(self, run: ActiveRun, call_ids: Iterable[str]) -> None:
        """Validate and judge these calls, all in one step, before any of them runs.

        Where all of them are pure and allowed, their start is part of that step, and they run. One
        that only looks at what is here need not wait for the step.
        """
        calls = [run.call(call_id) for call_id in call_ids]
        judged: list[Judged] = []
        for call in calls:
            judged.append(await self._judging.judge(run, call, judged))
        planning.ask_together(judged)
        origin = run.progress.accepted.origin
        at_once = all(one.pure and one.allowed for one in judged)
        events: list[AnyEvent] = [*planning.declared(run, judged)]
        events += [event for one in judged for event in one.events]
        if at_once:
            events += [tool_events.start(call) for call in calls]

        def step(tx: Tx) -> None:
            appended = tape.append(tx, run.session_id, run.principal, events, run.run_id)
            for one in judged:
                if one.grant:
                    approvals.used(tx, one.grant)
                if one.request is not None:
                    tool_events.record_request(tx, run, origin, one.request, appended)

        decision = TurnDecision(self._db, step)
        if not at_once:
            await decision.tell()
            return
        if len(judged) == 1 and judged[0].looks:
            decision.tell_soon()
        else:
            await decision.tell()
        decided = [as_decided(call, one) for call, one in zip(calls, judged, strict=True)]
        await self._run_pure(run, decided, decision)

    async def perform(self, run: ActiveRun, call_ids: Iterable[str]) -> None:
        """Run decided calls: the pure ones together, then the first of the others in the model's
        order; the caller's come last.

        The loop comes back for the next: a shutdown or a spent budget falls between two effects,
        not into one.
        """
        given = [run.call(call_id) for call_id in call_ids]
        calls = [call for call in given if not call.clients]
        if not calls:
            await self._db.write(partial(hand_over, run=run, calls=given))
            return
        pure = [call for call in calls if call.proposed and call.proposed.effect == "pure"]
        held_back = [call for call in pure if await self._held_back(run, call, "denied")]
        free = [call for call in pure if call not in held_back]
        if free:
            await run.append(*(tool_events.start(call) for call in free))
            await self._run_pure(run, free)
        effects = [call for call in calls if call not in pure]
        effect = next(iter(effects), None)
        if effect is not None and effect.call.tool == SPAWN and self._spawning is not None:
            await self._spawn(run, self._spawning, effects)
        elif effect is not None and not await self._held_back(run, effect, "denied"):
            await self._perform_effect(run, effect)

    async def _spawn(
        self, run: ActiveRun, spawning: Spawning, effects: Sequence[CallProgress]
    ) -> None:
        """Start subagents for the calls up to the next of another kind: starting is in order, and
        they work together.
        """
        beside = list(takewhile(lambda call: call.call.tool == SPAWN, effects))
        away = sum(call.away for call in run.progress.last.calls) if run.progress.last else 0
        free = beside[: AGENTS_AT_ONCE - away]
        started = [call for call in free if not await self._held_back(run, call, "denied")]
        if started:
            await spawning.spawn(run, started, waiting=len(beside) - len(free))

    async def _held_back(self, run: ActiveRun, call: CallProgress, outcome: Outcome) -> bool:
        """Return whether a rule of the session forbids the call by now; its result says so."""
        why = await self._judging.forbidden_now(run, call)
        if why:
            await run.append(tool_events.ended(call, outcome, f"denied: {why}"))
        return bool(why)

    async def _run_pure(
        self, run: ActiveRun, calls: list[CallProgress], decision: TurnDecision | None = None
    ) -> None:
        """Run started pure calls together, a few at a time. An interrupt ends those that are not
        done.
        """
        slots = asyncio.Semaphore(PURE_AT_ONCE)

        async def one(call: CallProgress) -> ToolFinished | None:
            async with slots:
                return await self._execute(run, call, decision=decision)

        tasks = [asyncio.ensure_future(one(call)) for call in calls]
        try:
            done: asyncio.Future[Any] = tasks[0] if len(tasks) == 1 else asyncio.gather(*tasks)
            await run.interruptible(done)
        except Interrupted:
            # Some may have finished in the same moment; what is on the tape by now is not said
            # again.
            await asyncio.wait(tasks)
            if decision is not None:
                await decision.told()
            await self._db.write(lambda tx: None)
            late = [
                tool_events.ended(
                    call, "interrupted", "interrupted by new input before it finished"
                )
                for call in calls
                if not run.call(call.call.id).finished
            ]
            if late:
                await run.append(*late)
        finally:
            if decision is not None:
                decision.close()
            for task in tasks:
                task.cancel()

    async def _perform_effect(self, run: ActiveRun, call: CallProgress) -> None:
        """One call that changes something. From here on neither an interrupt nor a shutdown cuts it
        short.
        """
        run.in_effect = True
        try:
            sealed = await self._checkpoint(run, call)
            if sealed is None:
                return
            await self._db.write(
                partial(tool_events.record_start, run=run, call=call, sealed=sealed)
            )
            await self._execute(run, call)
        finally:
            run.in_effect = False

    async def _checkpoint(self, run: ActiveRun, call: CallProgress) -> bytes | None:
        """Return the checkpoint that undoes the call, if it can be undone. None: the call must not
        start, and its result says why.
        """
        try:
            tool, arguments = self._parsed(call)
            if tool.spec.effect != "reversible" or isinstance(tool, RemoteTool):
                return b""  # A worker takes its own, of files that only it has.
            return await self._checkpoints.take(
                cast("Reversible", tool), arguments, run.workspace, call.call.id
            )
        except Unavailable:
            raise
        except PalyraError as error:
            # Why a change does not fit can show lines of the file.
            said = await self._redactor.redacted(error.message)
            await run.append(tool_events.ended(call, "error", said, tool_events.files(call)))
            return None

    def _parsed(self, call: CallProgress) -> tuple[TypedTool, Arguments]:
        tool, arguments, _ = self._catalogue.parse(call.call.tool, call.arguments)
        return tool, arguments

    async def _execute(
        self,
        run: ActiveRun,
        call: CallProgress,
        *,
        resume: bool = False,
        decision: TurnDecision | None = None,
    ) -> ToolFinished | None:
        """Execute a call that is on the tape as started, or goes there with its result, which is
        put there. None: it is in doubt what came of it.
        """
        began = self._clock.ticks_ms()
        try:
            tool, arguments = self._parsed(call)
        except PalyraError as error:
            # The catalogue changed since the call was judged: the tool is gone, or takes other
            # arguments now.
            gone = tool_events.ended(call, "error", await self._redactor.redacted(error.message))
            if decision is not None:
                await decision.told()
            await run.append(gone)
            return gone
        work = asyncio.ensure_future(
            self._run_tool(tool, arguments, self._context(run, call), resume=resume)
        )
        try:
            result = await asyncio.shield(work)
        except asyncio.CancelledError:
            work.cancel()
            done, _ = await asyncio.wait([work], timeout=_LAST_WORDS_S)
            if done and not work.cancelled() and (late := work.result()) is not None:
                # It finished in the same moment: what it did is recorded, not guessed.
                await self._finish(run, call, tool, late, began, decision)
            raise
        if result is None:
            return None
        return await self._finish(run, call, tool, result, began, decision)

    def _context(self, run: ActiveRun, call: CallProgress) -> CallContext:
        return CallContext(
            principal=run.principal,
            session_id=run.session_id,
            run_id=run.run_id,
            call_id=call.call.id,
            workspace=run.workspace,
            key=call.call.id,
            attempt=max(1, call.attempts),
            progress=lambda text: self._progress(run, call.call.id, text),
        )

    async def _run_tool(
        self, tool: TypedTool, arguments: Arguments, context: CallContext, *, resume: bool
    ) -> ToolResult | None:
        limit = tool.spec.limits.time_ms / 1000
        self._db.check_lease()
        try:
            async with asyncio.timeout(limit):
                if resume and isinstance(tool, RemoteTool):
                    return await tool.resume(arguments, context)
                return await tool.execute(arguments, context)
        except InDoubt:
            return None
        except TimeoutError:
            return ToolResult(
                outcome="timeout",
                text=f"{tool.spec.name} took longer than {limit:g} s and was stopped",
            )
        except PalyraError as error:
            return ToolResult(
                outcome="denied" if isinstance(error, Forbidden) else "error", text=error.message
            )
        except Exception as error:  # noqa: BLE001  a tool's crash is a result, not the run's end
            return ToolResult(
                outcome="error", text=f"{tool.spec.name} failed: {type(error).__name__}: {error}"
            )

    async def _finish(
        self,
        run: ActiveRun,
        call: CallProgress,
        tool: TypedTool,
        result: ToolResult,
        began: int,
        decision: TurnDecision | None,
    ) -> ToolFinished:
        images, left_out = await agent_images.checked(result.images)
        text = await self._redactor.redacted("\n".join([result.text, *left_out]))
        body = text.encode()
        data = await self._redactor.redacted_json(result.data)
        # Pages of an artifact are never turned into artifacts again.
        most = small_window.result_bytes(run.live.conversation.small_budget, LARGE_RESULT)
        large = len(body) > most and tool.spec.name != "artifact.read"
        attestation = Attestation(
            executor=tool.spec.source if tool.spec.source.startswith(WORKERS) else "daemon:local",
            tier=tool.spec.tier,
            policy_version=call.decided.policy_version if call.decided else "",
            input_sha256=input_digest(call.arguments),
            output_sha256=sha256(body).hexdigest(),
            approval_id=call.answered.approval_id if call.answered else None,
        )
        finished = ToolFinished(
            call_id=call.call.id,
            outcome=result.outcome,
            text=text,
            data=data,
            size=len(body),
            duration_ms=self._clock.ticks_ms() - began,
            changes=tool_events.changes(data),
            label=self._label(tool, result),
            attestation=attestation,
        )
        traced = await self._judging.files.trace(run, call, tool.spec, finished, result)
        decide = await decision.take() if decision is not None else None

        def step(tx: Tx) -> ToolFinished:
            if decide is not None:
                decide(tx)
            final = msgspec.structs.replace(finished, label=traced.label)
            self._judging.files.keep(tx, run, traced)
            if images:
                stored = tuple(image.stored(tx, run.session_id) for image in images)
                final = msgspec.structs.replace(final, images=stored)
            if large:
                artifact_id = artifacts.keep_artifact(
                    tx, run.session_id, body, "text/plain; charset=utf-8"
                )
                final = msgspec.structs.replace(
                    final, text=summary(text, len(body), artifact_id), artifact=artifact_id
                )
            tape.append(tx, run.session_id, run.principal, [final], run.run_id)
            if isinstance(tool, RemoteTool):
                tool.settled(tx, call.call.id)
            return final

        # What was done is not done again because the store refuses to hear of it.
        return await durable_write.write_until_stored(
            self._db, step, f"the result of {tool.spec.name} in run {run.run_id}"
        )

    def _label(self, tool: TypedTool, result: ToolResult) -> Label:
        """Return the label that the tool always yields, with what this result adds. A name of a
        file can hold a secret like any other text.
        """
        return labels.renamed(labels.merge(tool.spec.yields, result.label), self._redactor.redact)

    def _progress(self, run: ActiveRun, call_id: CallId, text: str) -> None:
        run.pulse += 1
        if self._hub.watched(run.session_id):
            wire = encode(
                ToolProgress(
                    run_id=run.run_id,
                    call_id=call_id,
                    text=self._redactor.redact_head(text, LONGEST_PROGRESS),
                )
            )
            self._hub.publish_live(run.session_id, wire)

    async def settle(self, run: ActiveRun, call_id: str) -> None:
        """A call began and its result is not on the tape. What that means depends on its declared
        effect.
        """
        call = run.call(call_id)
        if self._elsewhere(call) is not None and await self._taken_up(run, call):
            return
        match call.proposed.effect if call.proposed else "once":
            case "pure":
                if await self._held_back(run, call, "denied"):
                    return
                await run.append(tool_events.start(call))
                await self._execute(run, call)
            case "idempotent":
                if await self._held_back(run, call, "unknown"):
                    return
                await run.append(tool_events.start(call))
                run.in_effect = True
                try:
                    await self._execute(run, call)
                finally:
                    run.in_effect = False
            case "reversible":
                await self._roll_back(run, call)
            case "once":
                await self._ask_what_happened(run, call)

    def _elsewhere(self, call: CallProgress) -> RemoteTool | None:
        """The call's tool, if it is a worker's that there still is."""
        try:
            tool, _ = self._parsed(call)
        except PalyraError:
            return None
        return tool if isinstance(tool, RemoteTool) else None

    async def _taken_up(self, run: ActiveRun, call: CallProgress) -> bool:
        """Return whether a worker still had the call, or never got it: then it has come to its end,
        and was not begun twice.
        """
        run.in_effect = True
        try:
            return await self._execute(run, call, resume=True) is not None
        finally:
            run.in_effect = False

    async def _put_back(self, run: ActiveRun, call: CallProgress) -> Sequence[FileChange]:
        """Restore and return what a reversible call changed. Raise Conflict, with nothing changed,
        if that cannot be done safely.
        """
        tool = self._elsewhere(call)
        if tool is None:
            sealed = await self._db.read(lambda tx: artifacts.checkpoint(tx, call.call.id))
            if not sealed:
                raise Conflict("the worker that has these files is no worker of ours any more")
            return await self._checkpoints.restore(sealed, run.workspace, call.call.id)
        try:
            return await tool.roll_back(self._context(run, call))
        except PalyraError as error:
            raise Conflict(error.message) from error

    async def _roll_back(self, run: ActiveRun, call: CallProgress) -> None:
        """Put the files back as they were before the call, and say so: the call is then ready to
        run again.
        """
        try:
            changes = await self._put_back(run, call)
        except Conflict:
            # Somebody changed the files since: nobody's work is overwritten without asking.
            await self._ask_what_happened(run, call)
            return
        told = tuple(
            FileChange(self._redactor.redact(change.path), change.change) for change in changes
        )
        await run.append(
            ToolUndone(call_id=call.call.id, changes=told, tool=call.call.tool, why="settled")
        )

    async def _ask_what_happened(self, run: ActiveRun, call: CallProgress) -> None:
        if run.progress.accepted.origin in _UNATTENDED:
            text = (
                f"{tool_events.who_stopped(call)} while this ran: whether it happened is unknown,"
                " and it was not repeated"
            )
            await run.append(tool_events.ended(call, "unknown", text))
            return
        request = tool_events.in_doubt(call, ApprovalId(self._clock.new_id()))
        origin = run.progress.accepted.origin

        def step(tx: Tx) -> None:
            appended = tape.append(tx, run.session_id, run.principal, [request], run.run_id)
            tool_events.record_request(tx, run, origin, request, appended)

        await self._db.write(step)
