"""Work off the event loop: every result comes back, nothing waits behind what is stuck, and a
cancel is heard.
"""

import asyncio
import os
import threading
from collections.abc import Callable

import pytest

from palyra.core.errors import Unavailable
from palyra.system.thread_pool import ThreadPool
from tests.faults import eventually


def test_results_and_errors_come_back_to_whoever_asked() -> None:
    hands = ThreadPool("test", least=2, most=4)

    def fails(number: int) -> int:
        if number % 3 == 0:
            raise ValueError(str(number))
        return number * 2

    async def many() -> list[int | BaseException]:
        return await asyncio.gather(
            *(hands.run(fails, n) for n in range(300)), return_exceptions=True
        )

    found = asyncio.run(many())
    assert [x for x in found if isinstance(x, int)] == [n * 2 for n in range(300) if n % 3]
    assert [str(x) for x in found if isinstance(x, ValueError)] == [
        str(n) for n in range(300) if n % 3 == 0
    ]
    # A second loop, after the first is closed.
    assert asyncio.run(many())[1] == 2
    hands.close()


def test_nothing_waits_behind_what_is_stuck() -> None:
    hands = ThreadPool("test", least=2, most=8)
    free = threading.Event()

    async def run() -> str:
        stuck = [hands.run(free.wait, 60) for _ in range(5)]
        answer = await asyncio.wait_for(hands.run(lambda: "through"), 20)
        free.set()
        await asyncio.gather(*stuck)
        return answer

    assert asyncio.run(run()) == "through"
    hands.close()


def test_there_are_never_more_threads_than_allowed() -> None:
    hands = ThreadPool("test", least=1, most=3)
    free = threading.Event()

    def running() -> int:
        return sum(thread.name.startswith("test_") for thread in threading.enumerate())

    async def run() -> int:
        stuck = [hands.run(free.wait, 20) for _ in range(20)]
        await eventually(lambda: running() >= 3, "as many threads as allowed are stuck")
        # Time enough for another look at what is stuck.
        await asyncio.sleep(0.2)
        most = running()
        free.set()
        await asyncio.gather(*stuck)
        return most

    assert asyncio.run(run()) == 3
    hands.close()


def test_a_cancelled_job_that_has_not_begun_never_does() -> None:
    hands = ThreadPool("test", least=1, most=1)
    free = threading.Event()
    begun: list[str] = []

    async def run() -> None:
        first = hands.run(free.wait, 10)
        second = hands.run(begun.append, "second")
        second.cancel()
        free.set()
        await first
        await hands.run(lambda: None)

    asyncio.run(run())
    assert begun == []
    hands.close()


def test_a_thread_can_ask_too() -> None:
    hands = ThreadPool("test", least=1, most=1)
    assert hands.run_sync(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        hands.run_sync(lambda: 1 // 0)
    hands.close()


def test_a_thread_that_asks_does_not_wait_behind_what_is_stuck() -> None:
    hands = ThreadPool("test", least=1, most=2)
    free = threading.Event()

    async def run() -> str:
        stuck = hands.run(free.wait, 60)
        answer = await asyncio.wait_for(asyncio.to_thread(hands.run_sync, lambda: "through"), 20)
        free.set()
        await stuck
        return answer

    assert asyncio.run(run()) == "through"
    hands.close()


def test_closing_finishes_what_was_given() -> None:
    hands = ThreadPool("test", least=2, most=2)
    done: list[int] = []

    async def run() -> None:
        for n in range(50):
            hands.run(done.append, n)
        await asyncio.get_running_loop().run_in_executor(None, hands.close)

    asyncio.run(run())
    assert sorted(done) == list(range(50))


def test_a_thread_that_asks_after_the_end_is_turned_away() -> None:
    hands = ThreadPool("test", least=1, most=2)
    assert hands.run_sync(lambda: 1) == 1
    hands.close()
    found: list[object] = []

    def late() -> None:
        try:
            found.append(hands.run_sync(lambda: 2))
        except Unavailable as error:
            found.append(error)

    asking = threading.Thread(target=late, daemon=True)
    asking.start()
    asking.join(20)
    assert [type(each) for each in found] == [Unavailable]


def test_a_forked_child_has_hands_of_its_own() -> None:
    hands = ThreadPool("test", least=2, most=2)
    assert hands.run_sync(lambda: 1) == 1
    in_child(lambda: hands.run_sync(lambda: 2) == 2)
    hands.close()


def in_child(works: Callable[[], bool]) -> None:
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if works() else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_closing_ends_every_thread_also_one_that_came_while_the_others_were_stuck() -> None:
    hands = ThreadPool("late", least=1, most=4)
    stuck, looked = threading.Event(), threading.Event()

    async def inside() -> None:
        loop = asyncio.get_running_loop()
        jobs = [hands.run(stuck.wait), hands.run(looked.set)]
        closing = loop.run_in_executor(None, hands.close)
        # A second thread comes for the second job, and finds the end first.
        await jobs[1]
        stuck.set()
        await asyncio.wait_for(closing, 20)
        await jobs[0]

    asyncio.run(inside())
    assert looked.is_set()
    assert not any(thread.is_alive() for thread in hands._threads)


def test_a_job_that_runs_out_of_something_is_heard_of_too() -> None:
    """A future refuses a StopIteration: whoever waits for it, or behind it, must not wait for
    ever.
    """
    hands = ThreadPool("test", least=1, most=1)

    async def run() -> list[object]:
        both = [hands.run(next, iter(())), hands.run(lambda: "through")]
        return await asyncio.wait_for(asyncio.gather(*both, return_exceptions=True), 20)

    stopped, through = asyncio.run(run())
    assert isinstance(stopped, RuntimeError)
    assert isinstance(stopped.__cause__, StopIteration)
    assert through == "through"
    hands.close()


def test_a_loop_that_ended_in_the_middle_does_not_keep_the_next_from_more_threads() -> None:
    hands = ThreadPool("test", least=1, most=2)

    async def short() -> None:
        free = threading.Event()
        stuck = [hands.run(free.wait, 10) for _ in range(2)]
        free.set()
        await asyncio.gather(*stuck)

    async def run() -> str:
        free = threading.Event()
        stuck = hands.run(free.wait, 60)
        try:
            return await asyncio.wait_for(hands.run(lambda: "through"), 20)
        finally:
            free.set()
            await stuck

    asyncio.run(short())
    assert asyncio.run(run()) == "through"
    hands.close()


def test_closing_while_another_thread_is_being_started_is_safe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go = threading.Event(), threading.Event()
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == "slowly_1":
            begun.set()
            go.wait(10)
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    hands = ThreadPool("slowly", least=1, most=2)
    hands.run_sync(lambda: None)
    growing = threading.Thread(target=hands._more)
    growing.start()
    assert begun.wait(10)
    try:
        hands.close()
    finally:
        go.set()
        growing.join(10)
    assert not growing.is_alive()
