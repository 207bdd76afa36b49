"""The watchdog's checks of runs, approvals and tasks: who has been silent for too long.

A run that waits has no task and is never looked at. A working one is stuck only when nothing came
of it for longer than what it does may take: a model call by the time a provider is given, a tool by
its own limit.
"""

from collections.abc import Sequence
from functools import partial

from palyra.agent import approval_steps
from palyra.agent.run_activity import Vital
from palyra.agent.runs import Runs
from palyra.core.errors import NotFound, Unavailable
from palyra.core.events import ApprovalResolved
from palyra.core.ids import SYSTEM
from palyra.core.messages import ModelFailure
from palyra.features.health.watchdog import (
    Healing,
    HealthFinding,
    IncidentNotice,
    LookTime,
    Remedy,
    Watchdog,
)
from palyra.features.notices.service import Notices
from palyra.features.tasks.worker import Tasks
from palyra.store import approvals, runs, tasks
from palyra.store.approvals import Approval
from palyra.store.database import Database, Tx
from palyra.store.runs import RunRow
from palyra.store.tasks import Task
from palyra.tools.catalogue import Catalogue

_MOST = 200


class RunsWatched:
    """Working runs by what comes of them, and runs that ought to be worked on and are not."""

    def __init__(self, db: Database, runs_: Runs, catalogue: Catalogue, watchdog: Watchdog) -> None:
        self._db = db
        self._runs = runs_
        self._catalogue = catalogue
        self._watchdog = watchdog
        # By run: what it had achieved, how it last stirred, and for how long it has been silent.
        self._seen: dict[str, tuple[tuple[int, ...], tuple[int, ...], int]] = {}
        # Runs that nobody had begun at the last look.
        self._unbegun: set[str] = set()

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        _can_be_seen(self._db)
        found = self._working(moment.passed_ms)
        before_ms = moment.now_ms - self._watchdog.settings.run_ms
        for run in await self._db.read(lambda tx: runs.silent(tx, before_ms, _MOST)):
            if not self._runs.works_on(run.run_id):
                found.append(self._stranded(run))
        late = await self._db.read(lambda tx: runs.unbegun(tx, before_ms, _MOST))
        found += [self._not_begun(run) for run in late]
        self._unbegun = {run.run_id for run in late}
        return found

    def _working(self, passed_ms: int) -> list[HealthFinding]:
        found, seen = [], self._seen
        self._seen = {}
        for vital in self._runs.vitals():
            achieved, stirred, silent_ms = seen.get(vital.run_id, (vital.achieved, (), 0))
            if achieved != vital.achieved:
                self._seen[vital.run_id] = vital.achieved, vital.stirred, 0
                continue
            silent_ms = silent_ms + passed_ms if stirred == vital.stirred else 0
            self._seen[vital.run_id] = vital.achieved, vital.stirred, silent_ms
            found.append(self._silent(vital, silent_ms))
        return found

    def _silent(self, vital: Vital, silent_ms: int) -> HealthFinding:
        """Report a silence from the first look on; certain only when it is too long."""
        settings = self._watchdog.settings
        if vital.tools:
            allowed_ms = max(map(self._limit_ms, vital.tools)) + settings.run_ms
            what = f"the tool {', '.join(vital.tools)} has not come back, though its time is over"
            remedies: tuple[Remedy, ...] = (self._cancel(vital.run_id, "a tool hung"),)
        else:
            allowed_ms = max(settings.run_ms, settings.call_ms)
            what = "the model has said nothing"
            again = Remedy(
                "ask again", partial(self._ask_again, vital.run_id), wait_ms=settings.run_ms
            )
            remedies = (again, again, self._cancel(vital.run_id, "the model hung"))
        return HealthFinding(
            key=f"run:{vital.run_id}",
            domain="run",
            summary=f"run {vital.run_id} is stuck: {what} for {silent_ms // 1000} s",
            fix=f"look at session {vital.session_id}, or cancel the run",
            remedies=remedies,
            certain=silent_ms >= allowed_ms,
        )

    def _limit_ms(self, tool: str) -> int:
        try:
            return self._catalogue.get(tool).spec.limits.time_ms
        except NotFound:
            return 0

    async def _ask_again(self, run_id: str) -> str:
        failure = ModelFailure(
            "timeout",
            "the model said nothing for too long, and the watchdog broke the call off",
            sent=True,
        )
        if self._runs.break_off(run_id, failure):
            return "the call was broken off; the run asks again, or asks another model"
        return "there was no call to break off"

    def _cancel(self, run_id: str, why: str) -> Remedy:
        async def cancel() -> str:
            run = await self._db.read(lambda tx: runs.find(tx, run_id))
            if run is None:
                return "the run is gone"
            return (
                "the run is"
                f" {(await self._runs.cancel(run, f'{why}, and the watchdog ended the run')).state}"
            )

        return Remedy("cancel the run", cancel)

    def _stranded(self, run: RunRow) -> HealthFinding:
        async def resume() -> str:
            return (
                "the run goes on"
                if await self._runs.resume(run.run_id)
                else "the run needs nothing any more"
            )

        return HealthFinding(
            key=f"run:{run.run_id}",
            domain="run",
            summary=f"nobody works on run {run.run_id}, though it is in progress",
            severity="error",
            fix="cancel it, or restart the daemon",
            remedies=(Remedy("resume the run", resume),),
        )

    def _not_begun(self, run: RunRow) -> HealthFinding:
        """Report it as certain at the second look: the one before may have just ended."""

        async def begin() -> str:
            await self._runs.begin_next(run.session_id)
            return "the mailbox goes on"

        return HealthFinding(
            key=f"run:{run.run_id}",
            domain="run",
            summary=f"run {run.run_id} was accepted and nobody begins it",
            severity="error",
            fix="cancel it, or restart the daemon",
            remedies=(Remedy("begin the run", begin),),
            certain=run.run_id in self._unbegun,
        )


def _can_be_seen(db: Database) -> None:
    """Raise while nothing can be written: no heartbeat is then, and who holds on to a result waits,
    so silence says nothing.
    """
    if db.trouble is not None:
        raise Unavailable("nobody can show that they live while the journal takes nothing")


class ApprovalsWatched:
    """Questions that nobody answers. The run behind one is well: it waits."""

    def __init__(self, db: Database, notices: Notices, watchdog: Watchdog) -> None:
        self._db = db
        self._notices = notices
        self._watchdog = watchdog

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        before_ms = moment.now_ms - self._watchdog.settings.approval_ms
        waiting = await self._db.read(lambda tx: approvals.pending_since(tx, before_ms, _MOST))
        return [self._forgotten(each, self._watchdog.settings, moment.now_ms) for each in waiting]

    def _forgotten(self, approval: Approval, settings: Healing, now_ms: int) -> HealthFinding:
        minutes = (now_ms - approval.requested_ms) // 60_000
        text = (
            f"{approval.request.tool} has waited for your answer for {minutes} minutes:"
            f" {approval.request.preview.title}"
        )
        key = f"approval:{approval.approval_id}"
        expire = Remedy("expire the approval", partial(self._expire, approval))
        return HealthFinding(
            key=key,
            domain="approval",
            summary=(
                f"nobody has answered approval {approval.approval_id} ({approval.request.tool})"
            ),
            fix="answer it: palyra approvals",
            remedies=(
                (expire,)
                if settings.forgotten == "expire" and approval.request.about == "tool"
                else ()
            ),
            stays=True,
            told=IncidentNotice("approval", key, text, "#/approvals", approval.owner),
        )

    async def _expire(self, approval: Approval) -> str:
        """Expire an approval, with its notice, in one step. One that was answered meanwhile is
        Conflict, and stays answered.
        """
        expired = ApprovalResolved(
            approval_id=approval.approval_id,
            call_id=approval.request.call_id,
            decision="expired",
            reason="nobody answered in time",
        )
        text = (
            f"{approval.request.tool} was denied, because nobody answered:"
            f" {approval.request.preview.title}"
        )
        tell = self._notices.telling(
            "approval",
            f"approval:{approval.approval_id}:expired",
            text,
            "#/approvals",
            to=approval.owner,
        )

        def step(tx: Tx) -> None:
            approval_steps.resolve(tx, approval.approval_id, expired, SYSTEM)
            tell(tx)

        await self._db.write(step)
        return "the approval expired, and its run goes on without it"


class TasksWatched:
    """Background tasks whose worker is silent, and the worker itself."""

    def __init__(self, db: Database, tasks_: Tasks, watchdog: Watchdog) -> None:
        self._db = db
        self._tasks = tasks_
        self._watchdog = watchdog
        # When those that were silent at the last look had last been heard of.
        self._silent_since: dict[str, int] = {}

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        _can_be_seen(self._db)
        found = [] if self._tasks.alive else [self._dead_worker()]
        before_ms = moment.now_ms - self._watchdog.settings.task_ms
        silent = await self._db.read(lambda tx: tasks.silent(tx, before_ms, _MOST))
        found += [self._silent(each) for each in silent]
        self._silent_since = {each.task_id: each.heartbeat_ms for each in silent}
        return found

    def _silent(self, task: Task) -> HealthFinding:
        """One that this worker has in hand may only have slept along with the machine: it has until
        the next look to stir.
        """
        return HealthFinding(
            key=f"task:{task.task_id}",
            domain="task",
            summary=(
                f"nothing was heard of task {task.task_id} ({task.kind}) since its worker took it"
            ),
            fix=f"palyra tasks retry {task.task_id}",
            remedies=(Remedy("put the task back", partial(self._put_back, task)),),
            certain=not self._tasks.holds(task.task_id)
            or self._silent_since.get(task.task_id) == task.heartbeat_ms,
        )

    async def _put_back(self, task: Task) -> str:
        self._tasks.let_go(task.task_id)
        return await self._db.write(partial(self._tasks.recover, left=task))

    def _dead_worker(self) -> HealthFinding:
        async def revive() -> str:
            self._tasks.start(alone=False)
            return "the queue's worker was restarted"

        return HealthFinding(
            key="task:worker",
            domain="worker",
            summary="the worker of the task queue has ended",
            severity="error",
            fix="restart the daemon; its log says why",
            remedies=(Remedy("start the worker", revive),),
        )
