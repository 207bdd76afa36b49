"""What nobody waits for keeps out of the way, and is done all the same."""

import asyncio

from palyra.agent.idle_gate import IdleGate


async def kept_waiting(lull: IdleGate) -> bool:
    task = asyncio.create_task(lull.wait())
    done, _ = await asyncio.wait([task], timeout=0.02)
    task.cancel()
    return not done


def test_where_nothing_was_ever_done_there_is_a_lull() -> None:
    async def scenario() -> None:
        assert not await kept_waiting(IdleGate(calm_s=60, patience_s=60))

    asyncio.run(scenario())


def test_nobody_gets_past_a_run_and_all_do_after_the_last_one() -> None:
    async def scenario() -> None:
        lull = IdleGate(calm_s=0, patience_s=60)
        lull.begun()
        lull.begun()
        lull.ended()
        assert await kept_waiting(lull)
        waiting = asyncio.create_task(lull.wait())
        lull.ended()
        await asyncio.wait_for(waiting, 10)

    asyncio.run(scenario())


def test_a_run_that_has_just_ended_is_no_lull_yet() -> None:
    async def scenario() -> None:
        lull = IdleGate(calm_s=60, patience_s=60)
        lull.begun()
        lull.ended()
        assert await kept_waiting(lull)

    asyncio.run(scenario())


def test_a_run_that_begins_while_it_gets_calm_begins_the_wait_anew() -> None:
    async def scenario() -> None:
        lull = IdleGate(calm_s=0.3, patience_s=60)
        lull.begun()
        lull.ended()
        waiting = asyncio.create_task(lull.wait())
        await asyncio.sleep(0)
        lull.begun()
        done, _ = await asyncio.wait([waiting], timeout=0.6)
        assert not done
        lull.ended()
        await asyncio.wait_for(waiting, 10)

    asyncio.run(scenario())


def test_patience_has_an_end() -> None:
    async def scenario() -> None:
        lull = IdleGate(calm_s=60, patience_s=0.01)
        lull.begun()
        await asyncio.wait_for(lull.wait(), 10)

    asyncio.run(scenario())
