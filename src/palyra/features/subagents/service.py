"""Subagents: a call that is done by a run of its own. The run that made the call waits, and costs
nothing while it does.

The rule: the call's start, the subagent's session and its run are one step, and its run id is the
call's id; so a call has one subagent, whenever the daemon dies. Its result reaches the call in one
step as well, and whoever waits is woken when there is something to do.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec

from palyra.agent.active_run import ActiveRun
from palyra.agent.large_results import LARGE_RESULT, summary
from palyra.agent.session_cache import SessionCache
from palyra.agent.settings import Settings
from palyra.agent.submit import Submission, commissioned
from palyra.core import subagent_limits
from palyra.core.errors import InvalidInput, PalyraError, Unavailable
from palyra.core.events import (
    AgentSpawned,
    AnyEvent,
    Attestation,
    Budgets,
    Commission,
    RunCompleted,
    RunFailed,
    RunResumed,
    SessionCreated,
    ToolFinished,
    ToolStarted,
)
from palyra.core.ids import RunId, SessionId
from palyra.core.labels import Label
from palyra.core.next_step import WaitForPerson, what_next
from palyra.core.run_progress import CallProgress, RunProgress
from palyra.core.run_state import TERMINAL
from palyra.core.tools import Outcome, input_digest
from palyra.features.subagents.tools import SpawnArguments
from palyra.models.routing import Models
from palyra.store import artifacts, runs, session_rules, sessions, subagents, tape
from palyra.store.database import Database, Tx
from palyra.store.subagents import Subagent
from palyra.system.clock import Clock
from palyra.tools.catalogue import Catalogue

log = logging.getLogger("palyra.agents")
_RETRY_S = 5.0
_OUTCOMES: dict[str, Outcome] = {"done": "ok", "failed": "error", "cancelled": "cancelled"}


class _Given(msgspec.Struct, frozen=True):
    """A task that is about to be given to a subagent."""

    child: Subagent
    task: str
    model: str
    budgets: Budgets
    commission: Commission


class Children:
    def __init__(
        self,
        db: Database,
        lives: SessionCache,
        catalogue: Catalogue,
        models: Models,
        clock: Clock,
        settings: Settings,
    ) -> None:
        self._db = db
        self._lives = lives
        self._catalogue = catalogue
        self._models = models
        self._clock = clock
        self._settings = settings
        # Whether somebody works on a run now.
        self.works_on: Callable[[str], bool] = lambda run_id: False
        # Subagents whose result has not reached the call it belongs to, by their run.
        self._awaited: dict[str, Subagent] = {}
        # Those of them that the last process left behind, until they are looked at.
        self._left: dict[str, Subagent] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    async def spawn(self, run: ActiveRun, calls: Sequence[CallProgress], *, waiting: int) -> None:
        """Start a subagent for each of these calls, all in one step; a call that cannot have one
        gets its result instead.
        """
        have, label = subagent_limits.left(run.progress), run.live.conversation.label
        given: list[_Given] = []
        refused: list[ToolFinished] = []
        for call in calls:
            try:
                given.append(
                    self._given(
                        run,
                        call,
                        subagent_limits.share(
                            have, len(calls) + waiting, self._asked(call).budgets
                        ),
                        label,
                    )
                )
            except PalyraError as error:
                refused.append(_refusal(call, error.message))
        self._awaited.update((each.child.run_id, each.child) for each in given)
        writing = self._db.write(lambda tx: self._step(tx, run, given, refused))
        writing.add_done_callback(partial(self._came_about, given))
        # Whoever waits here may be cancelled: what came of the step is heard all the same.
        await asyncio.shield(writing)

    def _came_about(self, given: Sequence[_Given], writing: "asyncio.Future[None]") -> None:
        if writing.cancelled() or writing.exception() is not None:
            for each in given:
                self._awaited.pop(each.child.run_id, None)

    def _asked(self, call: CallProgress) -> SpawnArguments:
        _, arguments, _ = self._catalogue.parse(call.call.tool, call.arguments)
        assert isinstance(arguments, SpawnArguments)
        return arguments

    def _given(
        self, run: ActiveRun, call: CallProgress, budgets: Budgets | None, label: Label
    ) -> _Given:
        asked, own = self._asked(call), run.progress.accepted.commission
        if budgets is None:
            raise InvalidInput(
                "there is not enough left of this run's budget for a subagent: do it yourself, or"
                " answer with what you have"
            )
        for name in asked.tools:
            self._catalogue.get(name)
            if why := subagent_limits.not_given(own, name):
                raise InvalidInput(why)
        serves = subagent_limits.class_of(asked.model)
        if asked.model and serves is None:
            self._models.find(asked.model)
        session = SessionId(run.session_id)
        child = Subagent(
            run_id=RunId(call.call.id),
            session_id=SessionId(self._clock.new_id()),
            parent_run_id=run.run_id,
            parent_session_id=session,
            call_id=call.call.id,
            principal=run.principal,
            depth=own.depth + 1 if own else 1,
            task=subagent_limits.shortened(asked.task),
        )
        commission = Commission(
            session_id=session,
            run_id=run.run_id,
            call_id=call.call.id,
            root=own.root if own else session,
            depth=child.depth,
            task=child.task,
            tools=subagent_limits.narrowed(own, asked.tools),
            label=label,
            serves=serves,
        )
        # Who serves a class is for the rules to say, not for the model that the parent was begun
        # with.
        model = "" if serves is not None else asked.model or run.progress.model
        return _Given(child, asked.task, model, budgets, commission)

    def _step(
        self, tx: Tx, run: ActiveRun, given: Sequence[_Given], refused: Sequence[ToolFinished]
    ) -> None:
        started: list[AnyEvent] = [
            ToolStarted(call_id=each.child.call_id, key=each.child.call_id, attempt=1)
            for each in given
        ]
        spawned = [
            AgentSpawned(
                call_id=each.child.call_id,
                session_id=each.child.session_id,
                run_id=each.child.run_id,
                budgets=each.budgets,
            )
            for each in given
        ]
        tape.append(tx, run.session_id, run.principal, [*refused, *started, *spawned], run.run_id)
        laid_down = session_rules.laid_down(tx, run.session_id)
        parent = sessions.get(tx, run.session_id, run.principal)
        for each in given:
            child = each.child
            created = SessionCreated(
                owner=parent.owner,
                title=sessions.title_from(child.task),
                device=parent.device,
                channel=parent.channel,
                workspace=parent.workspace,
                parent_run_id=child.parent_run_id,
            )
            sessions.create(tx, child.session_id, created)
            for rule in laid_down:
                session_rules.add(tx, child.session_id, parent.owner, rule)
            subagents.add(tx, child)
            submission = Submission(text=each.task, run_id=child.run_id, model=each.model)
            settings = Settings(
                each.budgets, self._settings.approval_times, self._settings.mailbox_depth
            )
            paid_by = run.progress.accepted.schedule_id
            commissioned(
                parent.owner,
                child.session_id,
                submission,
                settings,
                each.commission,
                schedule_id=paid_by,
            )(tx)

    async def remember(self) -> None:
        """Load whose end is waited for, before runs are set to work again."""
        self._left = {child.run_id: child for child in await self._db.read(subagents.undelivered)}
        self._awaited = dict(self._left)

    async def go_on(self) -> None:
        """Deliver what ended when nobody was there to deliver it, and wake whom nobody woke."""
        left, self._left = self._left, {}
        waited_for = {child.run_id: child for child in await self._db.read(subagents.waited_for)}
        # Not those that runs start meanwhile: such a one may not be stored yet, and would be taken
        # for one that is gone.
        for child in (waited_for | left).values():
            self._begin(self._go_on(child))

    async def _go_on(self, child: Subagent) -> None:
        run = await self._db.read(lambda tx: runs.find(tx, child.run_id))
        if run is None or run.state in TERMINAL:
            self._awaited.pop(child.run_id, None)
            await self._deliver(child)
        else:
            await self._wake(child)

    def ended(self, run_id: str) -> None:
        """Handle the end of a run; called for each."""
        child = self._awaited.pop(run_id, None)
        if child is not None:
            self._begin(self._deliver(child))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        if self._closing:
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, child: Subagent) -> None:
        """Bring a subagent's result to the call that it worked on, and wake the run that waits for
        it.
        """
        while not self._closing:
            try:
                live = await self._lives.hold(child.session_id)
                label = live.conversation.label
                self._lives.release(live)
                await self._db.write(partial(_deliver, child=child, label=label))
                await self._wake(child)
                return
            except Unavailable as error:
                log.error("the result of subagent %s waits: %s", child.run_id, error.message)
                await asyncio.sleep(_RETRY_S)
            except Exception:
                # The run that waits for it would wait for ever.
                log.exception("the result of subagent %s could not be delivered", child.run_id)
                await asyncio.sleep(_RETRY_S)

    async def _wake(self, child: Subagent) -> None:
        """Set the waiting run to work if there is something to do for it: all are back, or a place
        is free for the next.
        """
        session_id, run_id = child.parent_session_id, child.parent_run_id
        while True:
            live = await self._lives.hold(session_id)
            try:
                progress, seq = live.conversation.runs.get(run_id), live.conversation.seq
                idle = (
                    progress is None
                    or self._at_work(progress)
                    or isinstance(what_next(progress), WaitForPerson)
                )
            finally:
                self._lives.release(live)
            if idle or await self._db.write(partial(_resume, child=child, seq=seq)):
                return

    def _at_work(self, run: RunProgress) -> bool:
        """One whose next subagent was refused while others worked is in progress on the tape, and
        nobody works on it.
        """
        return run.state != "waiting" and self.works_on(run.run_id)

    async def close(self) -> None:
        self._closing = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1)


def _refusal(call: CallProgress, text: str) -> ToolFinished:
    return ToolFinished(call_id=call.call.id, outcome="error", text=text, size=len(text))


def _resume(tx: Tx, child: Subagent, seq: int) -> bool:
    """Resume only if nothing has happened on the tape since it was looked at."""
    if tape.head(tx, child.parent_session_id) != seq:
        return False
    tape.append(
        tx,
        child.parent_session_id,
        child.principal,
        [RunResumed(after="child")],
        child.parent_run_id,
    )
    return True


def _deliver(tx: Tx, child: Subagent, label: Label) -> None:
    parent = runs.find(tx, child.parent_run_id)
    ending = subagents.ending(tx, child)
    if parent is None or ending is None or subagents.is_delivered(tx, child.run_id):
        return
    subagents.deliver(tx, child.run_id)
    if parent.state in TERMINAL:
        return
    finished = _finished(tx, child, ending, label)
    tape.append(tx, child.parent_session_id, child.principal, [finished], child.parent_run_id)


def _finished(
    tx: Tx, child: Subagent, ending: subagents.SubagentResult, label: Label
) -> ToolFinished:
    """The call's result: the subagent's answer with where its tape ends. All of it was redacted
    when it came to that tape.
    """
    text = _words(ending)
    body, artifact = text.encode(), None
    if len(body) > LARGE_RESULT:
        artifact = artifacts.keep_artifact(
            tx, child.parent_session_id, body, "text/plain; charset=utf-8"
        )
        text = summary(text, len(body), artifact)
    run = runs.find(tx, child.run_id)
    assert run is not None
    return ToolFinished(
        call_id=child.call_id,
        outcome=_OUTCOMES[ending.end.state],
        text=text,
        size=len(body),
        artifact=artifact,
        duration_ms=run.ended_ms - run.created_ms,
        label=label,
        attestation=Attestation(
            executor=f"agent:{child.session_id}",
            tier="none",
            policy_version="",
            input_sha256=input_digest(
                tape.proposal(tx, child.parent_run_id, child.call_id).arguments
            ),
            output_sha256=sha256(body).hexdigest(),
        ),
        agent=ending.end,
    )


def _words(ending: subagents.SubagentResult) -> str:
    match ending.event:
        case RunCompleted(text=text):
            return text or "(the subagent ended without a word)"
        case RunFailed(reason=reason, message=message):
            return f"the subagent failed ({reason}): {message}"
        case cancelled:
            return f"the subagent was cancelled: {cancelled.reason}"
