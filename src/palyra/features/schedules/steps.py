"""Steps over a transaction for a schedule's rows when its time comes.

The rule: whether a firing is due is decided once, in the step that also moves the schedule on. Its
run has an id made from both, so whoever comes back to it after a crash finds the same run and not a
second one.
"""

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from palyra.core import ids, run_state
from palyra.core.labels import CLEAN
from palyra.core.verdicts import Grant
from palyra.features.schedules import model, rows
from palyra.features.schedules.model import GRACE_MS, AtTrigger, Firing, FiringState, Schedule
from palyra.store import approvals, runs, tasks
from palyra.store.database import Tx
from palyra.store.runs import RunRow
from palyra.store.verify_projections import schedule_grant

FIRE = "schedule.fire"
ENDED = "schedule.ended"
DENY = "schedule.deny"
KEPT_FIRINGS = 200
_OPEN: frozenset[FiringState] = frozenset({"due", "queued", "started"})


def run_id_of(schedule_id: str, due_ms: int) -> str:
    return ids.derive(due_ms, "firing", schedule_id, due_ms)


def plan(tx: Tx, schedule: Schedule) -> None:
    """Have the queue come back when there is something to do for it."""
    waiting = [
        firing.due_ms
        for firing in rows.open_firings(tx, schedule.schedule_id)
        if firing.state == "due"
    ]
    moments = [*waiting, *([schedule.next_ms] if schedule.next_ms else [])]
    if schedule.state == "active" and moments:
        look(tx, schedule, min(moments))


def look(tx: Tx, schedule: Schedule, at_ms: int = 0) -> None:
    tasks.enqueue(
        tx,
        FIRE,
        {"schedule_id": schedule.schedule_id},
        key=schedule.schedule_id,
        again=True,
        not_before_ms=at_ms,
        principal=schedule.owner,
        schedule_id=schedule.schedule_id,
    )


def come_due(tx: Tx, schedule_id: str) -> Schedule | None:
    """Note what has come due since it was looked at last, and move the schedule on to its next
    time.
    """
    schedule = rows.find(tx, schedule_id)
    if (
        schedule is None
        or schedule.state != "active"
        or not schedule.next_ms
        or schedule.next_ms > tx.now_ms
    ):
        return schedule
    kept, count = model.due_between(schedule, schedule.next_ms, tx.now_ms)
    fires = (
        kept
        if schedule.missed == "catch_up"
        else kept[-1:]
        if tx.now_ms - kept[-1] <= GRACE_MS
        else []
    )
    lost = count - len(fires)
    note = f"{lost} before it were missed" if lost and fires else ""
    for due_ms in fires:
        late = "caught up" if tx.now_ms - due_ms > GRACE_MS else ""
        rows.add_firing(tx, schedule_id, due_ms, "due", "; ".join(filter(None, (late, note))))
        note = ""
    if lost and not fires:
        rows.add_firing(
            tx,
            schedule_id,
            kept[-1],
            "missed",
            "nobody was there" if lost == 1 else f"{lost} were missed",
        )
    next_ms = model.next_firing(schedule, tx.now_ms)
    schedule = replace(
        schedule,
        next_ms=next_ms,
        state="done" if isinstance(schedule.trigger, AtTrigger) else "active",
    )
    rows.save(tx, schedule)
    return schedule


def set_back(tx: Tx) -> None:
    """The clock was set back: what would have fired in the hours that come again fires then, unless
    it did already.
    """
    for schedule in rows.listing(tx):
        if schedule.state != "active" or not schedule.next_ms:
            continue
        next_ms = model.next_firing(schedule, tx.now_ms)
        while (
            next_ms
            and next_ms < schedule.next_ms
            and rows.has_firing(tx, schedule.schedule_id, next_ms)
        ):
            next_ms = model.next_firing(schedule, next_ms)
        if next_ms and next_ms < schedule.next_ms:
            schedule = replace(schedule, next_ms=next_ms)
            rows.save(tx, schedule)
            plan(tx, schedule)


def happened(
    tx: Tx,
    schedule: Schedule,
    note: str,
    *,
    artifact: str = "",
    session_id: str = "",
    by_hand: bool = False,
) -> Firing:
    """Fire it for something that is no clock: a change, a call, a person. Quiet hours hold, except
    for a person.

    `artifact`: what came with it, stored in that session.
    """
    due_ms = tx.now_ms
    until_ms = 0 if by_hand else model.quiet_until(schedule, due_ms)
    firing_state: FiringState = "due"
    if until_ms and schedule.quiet is not None:
        if schedule.quiet.then == "skip":
            firing_state, note = "skipped", f"{note}, in quiet hours"
        else:
            due_ms, note = until_ms, f"{note}, in quiet hours"
    while rows.has_firing(tx, schedule.schedule_id, due_ms):
        due_ms += 1
    rows.add_firing(
        tx,
        schedule.schedule_id,
        due_ms,
        firing_state,
        note,
        artifact=artifact,
        session_id=session_id,
    )
    if firing_state == "due":
        look(tx, schedule, due_ms)
    return Firing(
        schedule_id=schedule.schedule_id,
        due_ms=due_ms,
        state=firing_state,
        note=note,
        artifact=artifact,
    )


class Before(Struct, frozen=True):
    """State before a firing: its own run if that was begun, and runs of the schedule that have not
    ended.
    """

    own: RunRow | None
    busy: tuple[RunRow, ...]
    queued: int
    # Runs that have ended while their firings do not say so: the store could not take it when they
    # did.
    over: tuple[str, ...] = ()


def before(tx: Tx, firing: Firing) -> Before:
    own = runs.find(tx, run_id_of(firing.schedule_id, firing.due_ms))
    others = [
        each for each in rows.open_firings(tx, firing.schedule_id) if each.due_ms != firing.due_ms
    ]
    found = [
        runs.find(tx, each.run_id) for each in others if each.state == "started" and each.run_id
    ]
    busy = tuple(run for run in found if run is not None and run.state not in run_state.TERMINAL)
    over = tuple(run.run_id for run in found if run is not None and run.state in run_state.TERMINAL)
    return Before(own, busy, sum(each.state == "queued" for each in others), over)


def prepare(tx: Tx, schedule: Schedule, firing: Firing, session_id: str) -> None:
    """Prepare a firing before its run is there: the firing knows it, and its session has what was
    approved beforehand.
    """
    run_id = run_id_of(firing.schedule_id, firing.due_ms)
    rows.set_firing(
        tx, firing.schedule_id, firing.due_ms, firing.state, run_id=run_id, session_id=session_id
    )
    _grant(tx, schedule, session_id)


def _grant(tx: Tx, schedule: Schedule, session_id: str) -> None:
    """Add the grants before the session's first run. What was revoked since stays so."""
    if not runs.of_session(tx, session_id, limit=1):
        _add_grants(tx, schedule, session_id)


def _add_grants(tx: Tx, schedule: Schedule, session_id: str) -> None:
    known = {each.approval_id for each in approvals.grants_for(tx, schedule.owner, session_id)}
    for grant_id, subject in zip(grant_ids(schedule, session_id), schedule.scopes, strict=True):
        if grant_id not in known:
            approvals.add_grant(
                tx,
                Grant(
                    approval_id=grant_id,
                    subject=subject,
                    principal=schedule.owner,
                    session_id=session_id,
                    seen=CLEAN,
                ),
                rows.entry_of(tx, schedule.schedule_id),
            )


def remove_grants(tx: Tx, schedule: Schedule) -> list[str]:
    """Remove what a schedule gave to its sessions; gives these, newest first."""
    firings = rows.firings(tx, schedule.schedule_id, KEPT_FIRINGS * 2)
    sessions = list(dict.fromkeys(each.session_id for each in firings if each.session_id))
    for session_id in sessions:
        held = {each.approval_id for each in approvals.grants_for(tx, schedule.owner, session_id)}
        for grant_id in grant_ids(schedule, session_id):
            if grant_id in held:
                approvals.remove_grant(tx, schedule.owner, grant_id)
    return sessions


def renew_grants(tx: Tx, before: Schedule, after: Schedule) -> None:
    """Renew what the owner has approved for it, also in the session that it continues in."""
    sessions = remove_grants(tx, before)
    if sessions and not after.fresh:
        _add_grants(tx, after, sessions[0])


def grant_ids(schedule: Schedule, session_id: str) -> list[str]:
    """One for each scope, in the place of the approval that a grant otherwise comes from."""
    made = partial(schedule_grant, schedule.created_ms, schedule.schedule_id, session_id)
    return [made(number) for number in range(len(schedule.scopes))]


def ended(tx: Tx, run_id: str) -> tuple[Firing, RunRow, Schedule] | None:
    """A run of a schedule has ended: say so in its firing, and have the one that waits for it
    begun.

    Its firing may not even say yet that it began.
    """
    firing, run = rows.firing_of_run(tx, run_id), runs.find(tx, run_id)
    if (
        firing is None
        or run is None
        or run.state not in run_state.TERMINAL
        or firing.state not in _OPEN
    ):
        return None
    state: FiringState = (
        "done" if run.state == "done" else "failed" if run.state == "failed" else "cancelled"
    )
    rows.set_firing(tx, firing.schedule_id, firing.due_ms, state, note=run.reason)
    rows.forget_firings(tx, firing.schedule_id, KEPT_FIRINGS)
    schedule = rows.find(tx, firing.schedule_id)
    if schedule is None:
        return None
    if any(each.state == "queued" for each in rows.open_firings(tx, firing.schedule_id)):
        look(tx, schedule)
    return firing, run, schedule


def recover(tx: Tx) -> list[tuple[Firing, Schedule]]:
    """Recover after a start: everything is planned again, and what was under way is named."""
    # The clock may have been set while nobody was there.
    set_back(tx)
    by_id = {schedule.schedule_id: schedule for schedule in rows.listing(tx)}
    for schedule in by_id.values():
        plan(tx, schedule)
    found: list[tuple[Firing, Schedule]] = []
    for firing in rows.open_firings(tx):
        whose = by_id.get(firing.schedule_id)
        if whose is not None and firing.state == "started":
            found.append((firing, whose))
            tasks.enqueue(tx, ENDED, {"run_id": firing.run_id}, key=firing.run_id, again=True)
        elif whose is not None and whose.state != "paused":
            look(tx, whose)
    return found
