"""Firing schedules: each firing is a run with the origin `scheduled`, submitted like any other,
once.

It has no timer of its own. When a schedule is due is a task in the queue, and each step on the way
can be taken again: the firing is a row, its run has an id that is made from it, and a submission
with a known id is the one that was made before.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from palyra.agent import durable_write
from palyra.agent.approval_steps import Answer
from palyra.agent.approvals import ApprovalService
from palyra.agent.gateway import Gateway
from palyra.agent.message_inputs import Attaching
from palyra.agent.sessions import Resolve, Sessions
from palyra.agent.submit import InputOrigin, Submission
from palyra.core.call_values import doubtful, value_words
from palyra.core.errors import Conflict, NotFound, PalyraError, Unavailable
from palyra.core.events import ApprovalRequested, RunFailed
from palyra.core.input_checks import as_line
from palyra.core.labels import CLEAN, Label, merge, untrusted
from palyra.features.notices.service import Notices
from palyra.features.schedules import rows, steps
from palyra.features.schedules.model import Firing, FiringState, Schedule
from palyra.features.tasks.worker import Step, Tasks
from palyra.store import approvals, runs, tasks
from palyra.store.database import Appended, Database, Tx
from palyra.store.sessions import Session
from palyra.store.tasks import Task

log = logging.getLogger("palyra.schedules")
_AT_ONCE = 16
# A schedule whose task gives up would never fire again.
_ALWAYS = 1 << 30


_MOST_NAMED = 3


class Scheduler:
    def __init__(
        self,
        db: Database,
        queue: Tasks,
        gateway: Gateway,
        sessions: Sessions,
        answers: ApprovalService,
        notices: Notices,
    ) -> None:
        self._db = db
        self._queue = queue
        self._gateway = gateway
        self._sessions = sessions
        self._answers = answers
        self._notices = notices
        # Runs of schedules that have not ended, and those of them whose questions are answered with
        # no.
        self._open: set[str] = set()
        self._denying: set[str] = set()
        self._beside: set[asyncio.Task[str]] = set()
        queue.register(steps.FIRE, self._fire, limit=_AT_ONCE, max_attempts=_ALWAYS)
        queue.register(steps.ENDED, self._after, limit=_AT_ONCE, max_attempts=20)
        queue.register(steps.DENY, self._deny, limit=_AT_ONCE, max_attempts=20)
        queue.on_jump.connect(self._jumped)

    async def start(self) -> None:
        """Go on where the last process stopped. Without schedules this is one look."""
        if not await self._db.read(lambda tx: bool(rows.listing(tx, limit=1))):
            return
        for firing, schedule in await self._db.write(steps.recover):
            self._watch(firing.run_id, schedule)
            if schedule.ask == "deny":
                for approval in await self._db.read(
                    partial(approvals.pending_of_run, run_id=firing.run_id)
                ):
                    self._say_no(approval.approval_id)

    async def _fire(self, task: Task) -> Step | None:
        schedule_id = str(task.payload["schedule_id"])
        schedule = await self._db.write(partial(steps.come_due, schedule_id=schedule_id))
        if schedule is None:
            return None
        if schedule.state != "paused":
            for firing in await self._db.read(partial(_waiting, schedule_id=schedule_id)):
                await self._launch(schedule, firing)
        return partial(_plan, schedule_id=schedule_id)

    async def _launch(self, schedule: Schedule, firing: Firing) -> None:
        before = await self._db.read(partial(steps.before, firing=firing))
        run_id = steps.run_id_of(firing.schedule_id, firing.due_ms)
        for over in before.over:
            await self._queue.enqueue(steps.ENDED, {"run_id": over}, key=over, again=True)
        if before.own is not None:
            await self._mark(firing, "started", run_id=run_id, session_id=before.own.session_id)
            self._watch(run_id, schedule)
            await self._queue.enqueue(steps.ENDED, {"run_id": run_id}, key=run_id, again=True)
            return
        if before.busy and schedule.overlap == "replace":
            for run in before.busy:
                await self._gateway.cancel(
                    run.principal, run.run_id, "replaced by the next firing of its schedule"
                )
        elif before.busy:
            await self._wait_or_skip(schedule, firing, before)
            return
        try:
            session = await self._session(schedule, firing)
            self._watch(run_id, schedule)
            await self._submit(schedule, firing, session, run_id)
        except PalyraError as error:
            self._open.discard(run_id)
            self._denying.discard(run_id)
            if error.retryable:
                raise
            await self._failed(schedule, firing, error.message)
            return
        await self._mark(firing, "started", run_id=run_id, session_id=session.session_id)

    async def _wait_or_skip(self, schedule: Schedule, firing: Firing, before: steps.Before) -> None:
        if firing.state == "queued":
            return
        caught_up = firing.note.startswith("caught up")
        if caught_up or (schedule.overlap == "queue" and not before.queued):
            await self._mark(
                firing, "queued", note=firing.note or "the run before it has not ended"
            )
        else:
            why = (
                "one waits already"
                if schedule.overlap == "queue"
                else "the run before it has not ended"
            )
            await self._mark(firing, "skipped", note=why)

    async def _session(self, schedule: Schedule, firing: Firing) -> Session:
        if firing.session_id:
            session = await self._sessions.get(schedule.owner, firing.session_id)
        else:
            session = await self.session_for(schedule, firing.due_ms)
        await self._db.write(
            partial(steps.prepare, schedule=schedule, firing=firing, session_id=session.session_id)
        )
        return session

    async def session_for(self, schedule: Schedule, due_ms: int) -> Session:
        """Return its own session, or one for this firing: if that is wanted, or its own was
        archived meanwhile.
        """
        key = f"schedule:{schedule.schedule_id}"
        for each in (f"{key}:{due_ms}",) if schedule.fresh else (key, f"{key}:{due_ms}"):
            wanted = Resolve(key=each, title=as_line(schedule.name), workspace=schedule.workspace)
            # Who is no user of the daemon sees no folder but the one they were given, and perhaps
            # none.
            folder = None if schedule.owner.startswith("user:") else schedule.workspace
            session, _ = await self._sessions.find_or_create(schedule.owner, wanted, folder=folder)
            if not session.archived:
                break
        return session

    async def _submit(
        self, schedule: Schedule, firing: Firing, session: Session, run_id: str
    ) -> None:
        attached = (Attaching(artifact=firing.artifact, name="webhook"),) if firing.artifact else ()
        brought: Label = untrusted(f"webhook:{schedule.schedule_id}") if firing.artifact else CLEAN
        submission = Submission(
            text=schedule.text, run_id=run_id, model=schedule.model, attachments=attached
        )
        await self._gateway.submit(
            schedule.owner,
            session.session_id,
            submission,
            origin="scheduled",
            schedule_id=schedule.schedule_id,
            brought=merge(brought, schedule.label),
            said=InputOrigin(label=schedule.label),
        )

    async def _mark(
        self,
        firing: Firing,
        state: FiringState,
        *,
        run_id: str = "",
        session_id: str = "",
        note: str = "",
    ) -> None:
        step = partial(
            rows.set_firing,
            schedule_id=firing.schedule_id,
            due_ms=firing.due_ms,
            state=state,
            run_id=run_id,
            session_id=session_id,
            note=note,
        )
        await self._db.write(step)

    async def _failed(self, schedule: Schedule, firing: Firing, why: str) -> None:
        log.warning("schedule %s could not fire: %s", schedule.schedule_id, why)
        text = f"{schedule.name} could not begin: {why}"
        tell = self._notices.telling(
            "schedule", _key(firing), text, _page(schedule.schedule_id), to=schedule.owner
        )

        def step(tx: Tx) -> None:
            rows.set_firing(tx, firing.schedule_id, firing.due_ms, "failed", note=why)
            tell(tx)

        await self._db.write(step)

    def _watch(self, run_id: str, schedule: Schedule) -> None:
        self._open.add(run_id)
        if schedule.ask == "deny":
            self._denying.add(run_id)

    def run_ended(self, run_id: str) -> None:
        """Handle the end of a run; called for each."""
        if run_id in self._open:
            self._open.discard(run_id)
            self._denying.discard(run_id)
            self._enqueue(
                partial(
                    tasks.enqueue,
                    kind=steps.ENDED,
                    payload={"run_id": run_id},
                    key=run_id,
                    again=True,
                )
            )

    async def _after(self, task: Task) -> Step | None:
        run_id = str(task.payload["run_id"])
        looked = await self._db.read(partial(rows.firing_of_run, run_id=run_id))
        if looked is None:
            return None
        schedule = await self._db.read(partial(rows.find, schedule_id=looked.schedule_id))
        name = schedule.name if schedule else looked.schedule_id
        owner = schedule.owner if schedule else ""

        def step(tx: Tx) -> None:
            found = steps.ended(tx, run_id)
            if found is not None and found[1].state == "failed":
                end = runs.ending(tx, run_id)
                text = (
                    f"{name} failed:"
                    f" {end.message if isinstance(end, RunFailed) else found[1].reason}"
                )
                self._notices.telling(
                    "schedule", _key(looked), text, _page(looked.schedule_id), to=owner
                )(tx)

        return step

    def on_commit(self, appended: list[Appended]) -> None:
        """Handle a commit; called for each: an approval asked by a run that must not ask anybody is
        denied.
        """
        for entry in appended if self._denying else ():
            if isinstance(entry.event, ApprovalRequested) and entry.run_id in self._denying:
                self._say_no(entry.event.approval_id)

    def _say_no(self, approval_id: str) -> None:
        self._enqueue(
            partial(
                tasks.enqueue,
                kind=steps.DENY,
                payload={"approval_id": approval_id},
                key=approval_id,
            )
        )

    def _enqueue(self, step: Callable[[Tx], str]) -> None:
        """Enqueue it, however long the store refuses: nobody else would, before the next start."""
        self._db.write(step).add_done_callback(partial(self._enqueued, step))

    def _enqueued(self, step: Callable[[Tx], str], done: "asyncio.Future[str]") -> None:
        if done.cancelled() or not isinstance(done.exception(), Unavailable) or self._db.closed:
            return
        task = asyncio.create_task(
            durable_write.write_until_stored(self._db, step, "what follows from a schedule's run")
        )
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _deny(self, task: Task) -> None:
        approval_id = str(task.payload["approval_id"])
        approval = await self._db.read(partial(approvals.find, approval_id=approval_id))
        if approval is None:
            return
        no = Answer(decision="deny", reason=_refusal(approval.request))
        try:
            await self._answers.answer(approval.owner, approval_id, no, "schedule")
        except (Conflict, NotFound):
            return  # Somebody was faster.

    async def _jumped(self, by_ms: int) -> None:
        log.info("the clock was set by %d s", by_ms // 1000)
        if by_ms < 0:
            await self._db.write(steps.set_back)


def _refusal(request: ApprovalRequested) -> str:
    """Return why a call is denied, and what would have to be approved beforehand for it."""
    about = "; ".join(value_words(each) for each in doubtful(request.values)[:_MOST_NAMED])
    fitting = next((each for each in request.subjects if each.kind != "tool"), None)
    wanted = fitting or next(iter(request.subjects), None)
    scope = ""
    if wanted is not None:
        value = wanted.value.replace("\n", " & ")
        limits = f":{wanted.kind}={value}" if value else ""
        scope = f" (it would need the scope {wanted.tool}{limits})"
    return (
        "this schedule may only do what was approved beforehand: go on without it"
        f"{f'. {about}' if about else ''}{scope}"
    )


def _waiting(tx: Tx, schedule_id: str) -> list[Firing]:
    """Firings whose time has come and that have no run yet, oldest first."""
    return [
        each
        for each in rows.open_firings(tx, schedule_id)
        if each.state != "started" and each.due_ms <= tx.now_ms
    ]


def _plan(tx: Tx, schedule_id: str) -> None:
    schedule = rows.find(tx, schedule_id)
    if schedule is not None:
        steps.plan(tx, schedule)


def _page(schedule_id: str) -> str:
    return f"#/schedules/{schedule_id}"


def _key(firing: Firing) -> str:
    return f"schedule:{firing.schedule_id}:{firing.due_ms}"
