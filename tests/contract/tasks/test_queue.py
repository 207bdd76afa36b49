"""The queue keeps what it promises: order without starvation, leases, retries, expiry, and no work
without a reason.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.idle_gate import IdleGate
from palyra.core import events
from palyra.core.errors import Conflict, InvalidInput
from palyra.core.events import AdminChanged, TaskFinished
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.tasks.service import TaskVerbs
from palyra.features.tasks.worker import LEASE_MS, Hopeless, NotNow, Step, Tasks
from palyra.store import tape, tasks
from palyra.store.database import Database, Tx
from palyra.store.tasks import HIGH, LOW, Task
from palyra.system.redactor import Redactor
from tests import stores
from tests.clocks import HeldClock
from tests.faults import eventually
from tests.journals import run

Seen = list[dict[str, Any]]


@asynccontextmanager
async def queue(
    folder: Path, clock: HeldClock | None = None, lull: IdleGate | None = None
) -> AsyncIterator[tuple[Database, Tasks, HeldClock]]:
    clock = clock or HeldClock()
    db = Database(stores.dialect(folder / "journal.db"), clock.now_ms)
    db.open()
    worker = Tasks(db, Redactor(b"k" * 32), clock, lull)
    try:
        yield db, worker, clock
    finally:
        await worker.close()
        await db.close()


def noting(seen: Seen) -> Callable[[Task], Awaitable[None]]:
    async def handler(task: Task) -> None:
        seen.append(task.payload)

    return handler


async def told(db: Database) -> list[events.AnyEvent]:
    return [
        event
        for _, _, _, event in await db.read(
            lambda tx: tape.events_between(tx, SYSTEM_TAPE, 1, 1 << 40)
        )
    ]


async def of(db: Database, task_id: str) -> Task:
    return await db.read(lambda tx: tasks.get(tx, task_id))


async def awake(clock: HeldClock, naps: int) -> None:
    """Wait until somebody lies down to sleep again."""
    await eventually(lambda: clock.naps > naps, "somebody sleeps again")


def test_a_step_and_its_task_commit_together_or_not_at_all(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, _):
            seen: Seen = []
            worker.register("note", noting(seen))
            worker.start()

            def broken(tx: Tx) -> None:
                tasks.enqueue(tx, "note", {"n": 1})
                raise InvalidInput("no")

            with pytest.raises(InvalidInput):
                await db.write(broken)
            await db.write(lambda tx: tasks.enqueue(tx, "note", {"n": 2}))
            await worker.settled()
            assert seen == [{"n": 2}]
            assert await told(db) == []  # Housekeeping that went well is not worth an entry.

    run(inside())


def test_the_oldest_goes_first_and_a_priority_is_a_head_start_and_no_right_of_way(
    tmp_path: Path,
) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (_db, worker, clock):
            seen: Seen = []
            worker.register("note", noting(seen), limit=1)
            await worker.enqueue("note", {"n": "old and low"}, priority=LOW)
            clock.advance(1)
            await worker.enqueue("note", {"n": "old"})
            clock.advance(1)
            await worker.enqueue("note", {"n": "older urgent"}, priority=HIGH)
            clock.advance(2 * tasks.HEAD_START_MS)
            # However many come later, the old ones have their turn first.
            for n in range(3):
                await worker.enqueue("note", {"n": n}, priority=HIGH)
                clock.advance(1)
            worker.start()
            await worker.settled()
            assert [each["n"] for each in seen] == ["older urgent", "old", "old and low", 0, 1, 2]

    run(inside())


def test_a_key_makes_enqueueing_idempotent_and_again_asks_once_more(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (_db, worker, _):
            seen: Seen = []
            began, go_on = asyncio.Event(), asyncio.Event()

            async def handler(task: Task) -> None:
                seen.append(task.payload)
                began.set()
                await go_on.wait()

            worker.register("note", handler, limit=4)
            worker.start()
            first = await worker.enqueue("note", {"n": 1}, key="k")
            assert await worker.enqueue("note", {"n": 2}, key="k") == first
            await began.wait()
            for n in (3, 4):
                assert await worker.enqueue("note", {"n": n}, key="k", again=True) == first
            go_on.set()
            await worker.settled()
            assert seen == [{"n": 1}, {"n": 4}]
            assert await worker.enqueue("note", {"n": 5}, key="k") == first
            await worker.enqueue("note", {"n": 6}, key="k", again=True)
            await worker.settled()
            assert seen == [{"n": 1}, {"n": 4}, {"n": 6}]

    run(inside())


def test_a_failing_task_is_tried_with_growing_pauses_and_then_has_failed(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, clock):
            at: list[int] = []

            async def handler(task: Task) -> None:
                at.append(clock.ms)
                raise RuntimeError("the well is dry")

            worker.register("draw", handler, max_attempts=4, backoff_ms=1_000)
            worker.start()
            task_id = await worker.enqueue("draw")
            await worker.settled()
            while (await of(db, task_id)).state == "queued":
                naps = clock.naps
                clock.advance(max(1, clock.next_ms))
                await awake(clock, naps)
                await worker.settled()
            pauses = [later - earlier for earlier, later in pairwise(at)]
            assert len(at) == 4
            assert all(
                least <= pause <= 2 * least
                for least, pause in zip((500, 1_000, 2_000), pauses, strict=True)
            ), pauses
            assert (await of(db, task_id)).error == "the well is dry"
            assert await told(db) == [
                TaskFinished(
                    task_id=task_id, task_kind="draw", outcome="failed", message="the well is dry"
                )
            ]

    run(inside())


def test_not_now_is_no_attempt_and_hopeless_is_the_last(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, clock):
            calls = 0

            async def handler(task: Task) -> None:
                nonlocal calls
                calls += 1
                if calls == 1:
                    raise NotNow(5_000)
                raise Hopeless("it will never work")

            worker.register("try", handler)
            worker.start()
            task_id = await worker.enqueue("try")
            await worker.settled()
            waiting = await of(db, task_id)
            assert (waiting.state, waiting.attempts, waiting.ready_ms) == (
                "queued",
                0,
                clock.ms + 5_000,
            )
            naps = clock.naps
            clock.advance(5_000)
            await awake(clock, naps)
            await worker.settled()
            ended = await of(db, task_id)
            assert (ended.state, ended.attempts, ended.error) == ("failed", 1, "it will never work")

    run(inside())


def test_what_a_handler_returns_commits_with_the_end_of_its_task(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, clock):

            async def handler(task: Task) -> Step:
                return lambda tx: tasks.enqueue(tx, "leaf", {"of": task.task_id})

            worker.register("tree", handler)
            worker.start()
            task_id = await worker.enqueue("tree")
            await worker.settled()
            (leaf,) = await db.read(lambda tx: tasks.listing(tx, kind="leaf"))
            assert leaf.payload == {"of": task_id}
            # A worker that has lost its lease meanwhile has no say.
            stale = await db.write(lambda tx: tasks.claim(tx, "leaf", "elsewhere", 1_000, 1, 1))
            clock.advance(2_000)
            worker.register("leaf", noting([]))
            await worker.settled()
            assert not await db.write(lambda tx: tasks.end(tx, stale[0], "failed", "too late"))
            assert (await of(db, leaf.task_id)).state == "done"

    run(inside())


@pytest.mark.parametrize(
    ("promise", "state", "runs"),
    [("at_least_once", "done", 2), ("at_most_once", "failed", 1)],
    ids=["at least once", "at most once"],
)
def test_a_task_whose_worker_died_is_dealt_with_as_its_kind_promises(
    tmp_path: Path, promise: Any, state: str, runs: int
) -> None:
    async def inside() -> None:
        clock = HeldClock()
        async with queue(tmp_path, clock) as (db, _, _):
            await db.write(lambda tx: tasks.enqueue(tx, "work"))
            # It ran once, for a worker that is no more.
            (lost,) = await db.write(lambda tx: tasks.claim(tx, "work", "dead", LEASE_MS, 1, 1))
            worker = Tasks(db, Redactor(b"k" * 32), clock)
            seen: Seen = [{}]
            worker.register("work", noting(seen), promise=promise)
            worker.start(alone=False)
            await worker.settled()
            assert (
                await of(db, lost.task_id)
            ).state == "running"  # For all anybody knows, it is still worked on.
            naps = clock.naps
            clock.advance(LEASE_MS)
            await awake(clock, naps)
            await worker.settled()
            assert ((await of(db, lost.task_id)).state, len(seen)) == (state, runs)
            await worker.close()

    run(inside())


def test_the_daemon_that_is_alone_does_not_wait_for_the_leases_of_the_dead(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, _):
            await db.write(lambda tx: tasks.enqueue(tx, "work", {"n": 1}))
            await db.write(lambda tx: tasks.claim(tx, "work", "dead", LEASE_MS, 1, 1))
            seen: Seen = []
            worker.register("work", noting(seen))
            worker.start()
            await worker.settled()
            assert seen == [{"n": 1}]

    run(inside())


def test_the_limit_of_a_kind_holds_for_all_workers_on_one_database(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, _):
            for _ in range(5):
                await worker.enqueue("work")
            first = await db.write(lambda tx: tasks.claim(tx, "work", "a", LEASE_MS, 5, 3))
            second = await db.write(lambda tx: tasks.claim(tx, "work", "b", LEASE_MS, 5, 3))
            assert (len(first), len(second)) == (3, 0)

    run(inside())


def test_a_heartbeat_keeps_the_lease_and_tells_a_worker_what_it_has_lost(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, clock):
            began, stopped = asyncio.Event(), asyncio.Event()

            async def handler(task: Task) -> None:
                began.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    stopped.set()

            worker.register("work", handler)
            worker.start()
            task_id = await worker.enqueue("work")
            await began.wait()
            for _ in range(6):
                naps = clock.naps
                clock.advance(LEASE_MS // 3)
                await awake(clock, naps)
                await db.write(lambda tx: None)
            held = await of(db, task_id)
            assert (held.state, held.attempts) == ("running", 1)
            assert held.lease_until_ms > clock.ms
            await db.write(lambda tx: tasks.move(tx, tasks.get(tx, task_id), "cancelled"))
            clock.advance(LEASE_MS // 3)
            await asyncio.wait_for(stopped.wait(), 10)
            assert (await of(db, task_id)).state == "cancelled"

    run(inside())


def test_a_handler_that_hangs_is_stopped(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, _):

            async def handler(task: Task) -> None:
                await asyncio.Event().wait()

            worker.register("hang", handler, timeout_ms=20, max_attempts=1)
            worker.start()
            task_id = await worker.enqueue("hang")
            await asyncio.wait_for(worker.settled(), 10)
            assert ((await of(db, task_id)).state, (await of(db, task_id)).error) == (
                "failed",
                "it took longer than 0 s",
            )

    run(inside())


def test_a_task_that_nobody_began_in_time_expires(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, clock):
            seen: Seen = []
            worker.register("late", noting(seen))
            worker.start()
            task_id = await worker.enqueue(
                "late", not_before_ms=clock.ms + 9_000, expires_ms=clock.ms + 5_000
            )
            await worker.settled()
            naps = clock.naps
            clock.advance(5_000)
            await awake(clock, naps)
            await worker.settled()
            assert ((await of(db, task_id)).state, seen) == ("expired", [])
            assert [type(event) for event in await told(db)] == [TaskFinished]

    run(inside())


def test_closing_puts_back_what_was_being_done(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, _):
            began = asyncio.Event()

            async def handler(task: Task) -> None:
                began.set()
                await asyncio.Event().wait()

            worker.register("least", handler)
            worker.register("most", handler, promise="at_most_once")
            worker.start()
            ids = [await worker.enqueue("least"), await worker.enqueue("most")]
            await eventually(lambda: worker.working == 2, "both are being done")
            await worker.close()
            after = [await of(db, each) for each in ids]
            assert [(each.state, each.attempts) for each in after] == [("queued", 0), ("failed", 1)]

    run(inside())


def test_what_is_claimed_in_the_moment_of_closing_was_not_begun(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, _):
            seen: Seen = []
            worker.register("work", noting(seen), promise="at_most_once")
            task_id = await worker.enqueue("work")
            # The worker asks for it while the store is busy with something else.
            busy = threading.Event()
            held = db.write(lambda tx: busy.wait(20))
            worker.start()
            await eventually(lambda: worker.counts.rounds == 1, "the worker asks for it")
            closing = asyncio.create_task(worker.close())
            await asyncio.sleep(0)
            busy.set()
            await asyncio.gather(held, closing)
            await db.write(lambda tx: None)  # Whatever was handed over before this has been done.
            left = await of(db, task_id)
            assert (left.state, left.attempts, left.lease_owner, seen) == ("queued", 0, "", [])

    run(inside())


def test_what_nobody_waits_for_waits_until_nobody_works_and_is_put_back_like_anything_else(
    tmp_path: Path,
) -> None:
    async def inside() -> None:
        lull = IdleGate(calm_s=0, patience_s=3600)
        async with queue(tmp_path, lull=lull) as (db, worker, _):
            seen: Seen = []
            worker.register("now", noting(seen))
            worker.register("some time", noting(seen), unhurried=True, limit=1)
            lull.begun()
            worker.start()
            first = await worker.enqueue("some time", {"n": 1})
            await worker.enqueue("now", {"n": 2})
            await eventually(lambda: seen == [{"n": 2}], "what is wanted now is done")
            lull.ended()
            await eventually(
                lambda: seen == [{"n": 2}, {"n": 1}], "the other one is done in the lull"
            )
            await worker.settled()
            assert (await of(db, first)).state == "done"
            lull.begun()
            second = await worker.enqueue("some time", {"n": 3})
            await eventually(lambda: worker.working == 1, "it waits in the worker's hands")
            await worker.close()
            after = await of(db, second)
            assert (after.state, after.attempts, len(seen)) == ("queued", 0, 2)

    run(inside())


def test_a_person_can_pause_resume_retry_and_cancel_and_it_is_recorded(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, _clock):
            seen: Seen = []
            worker.register("note", noting(seen))
            worker.start()
            verbs = TaskVerbs(db, worker)
            await verbs.pause_kind(OWNER, "note", paused=True)
            one, two = (
                await worker.enqueue("note", {"n": 1}),
                await worker.enqueue("note", {"n": 2}),
            )
            await worker.settled()
            assert seen == []
            assert (await verbs.change(OWNER, one, "pause")).state == "paused"
            assert (await verbs.change(OWNER, two, "cancel")).state == "cancelled"
            await verbs.pause_kind(OWNER, "note", paused=False)
            await worker.settled()
            assert seen == []
            await verbs.change(OWNER, one, "resume")
            await verbs.change(OWNER, two, "retry")
            await worker.settled()
            assert sorted(each["n"] for each in seen) == [1, 2]
            with pytest.raises(Conflict):
                await verbs.change(OWNER, one, "cancel")
            recorded = [event.action for event in await told(db) if isinstance(event, AdminChanged)]
            assert recorded == ["paused", "paused", "cancelled", "resumed", "resumed", "retried"]

    run(inside())


def test_a_silent_task_can_be_taken_from_its_worker(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, _):
            rounds: list[int] = []
            began = asyncio.Event()

            async def handler(task: Task) -> None:
                rounds.append(task.attempts)
                began.set()
                if len(rounds) == 1:
                    await asyncio.Event().wait()

            worker.register("work", handler)
            worker.start()
            task_id = await worker.enqueue("work")
            await began.wait()
            left = await of(db, task_id)
            worker.let_go(task_id)
            assert await db.write(lambda tx: worker.recover(tx, left)) == "the task is queued"
            await asyncio.wait_for(worker.settled(), 10)
            assert (rounds, (await of(db, task_id)).state) == ([1, 2], "done")

    run(inside())


def test_an_idle_worker_wakes_once_in_five_minutes_and_asks_without_writing(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, clock):
            worker.register("note", noting([]))
            worker.start()
            await worker.settled()
            await eventually(lambda: clock.next_ms, "the worker sleeps")
            wakes, commits = worker.counts.wakes, db.commits
            for _ in range(3_600):
                naps = clock.naps
                rings = clock.next_ms <= 1_000
                clock.advance(1_000)
                if rings:
                    await awake(clock, naps)
            assert worker.counts.wakes - wakes == 12
            assert db.commits == commits

    run(inside())


def test_rows_of_tasks_that_ended_long_ago_are_forgotten(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, clock):
            worker.register("note", noting([]))
            worker.start()
            await worker.enqueue("note")
            await worker.settled()
            clock.jump(8 * 24 * 3_600_000)
            last = await worker.enqueue("note")
            await worker.settled()
            assert [task.task_id for task in await db.read(lambda tx: tasks.listing(tx))] == [last]

    run(inside())


def test_a_task_that_asks_for_itself_again_runs_on_and_on_under_its_lease(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, _):
            rounds = 0

            async def handler(task: Task) -> Step | None:
                nonlocal rounds
                rounds += 1
                if rounds == 50:
                    return None
                return lambda tx: tasks.enqueue(tx, "loop", {"n": rounds}, key="k", again=True)

            worker.register("loop", handler)
            worker.start()
            task_id = await worker.enqueue("loop", key="k")
            await asyncio.wait_for(worker.settled(), 20)
            assert (rounds, worker.working, (await of(db, task_id)).state) == (50, 0, "done")

    run(inside())


@pytest.mark.sqlite
def test_a_defect_in_looking_at_the_queue_does_not_end_the_looking(tmp_path: Path) -> None:
    async def inside() -> None:
        async with queue(tmp_path) as (db, worker, clock):
            seen: Seen = []
            worker.register("note", noting(seen))
            await worker.enqueue("note", {"n": 1})
            defect = "CREATE TRIGGER defect BEFORE UPDATE ON tasks BEGIN SELECT RAISE(ABORT, 'a defect'); END"
            await db.write(lambda tx: tx.run(defect))
            naps = clock.naps
            worker.start()
            await awake(clock, naps)
            assert seen == []
            await db.write(lambda tx: tx.run("DROP TRIGGER defect"))
            clock.advance(20_000)
            await worker.settled()
            assert seen == [{"n": 1}]

    run(inside())
