"""Runs outlive their provider: they wait, are tried again, and are answered in order."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palyra.agent.submit import Submitted
from palyra.core.errors import Conflict
from palyra.core.events import RetryPlanned, RunResumed, RunWaiting, decode
from palyra.core.ids import OWNER
from palyra.core.messages import FailureClass, ModelCall, ModelFailure
from palyra.core.verdicts import Origin
from palyra.serve.wiring.daemon import reload_config
from palyra.store import run_waits, runs
from tests.clocks import HeldClock
from tests.inprocess import body, daemon, entries, finished, kinds, say, session, until
from tests.provider_away import AwayProvider, in_loop, passing, soon, waits
from tests.provider_away import until as eventually

MINUTE = 60_000
_ORIGINS: tuple[Origin, ...] = ("interactive", "channel", "scheduled", "api")
TWO_MODELS = """
[providers.blind]
kind = "scripted"
models = ["other"]
script = "none"
"""


@in_loop
async def test_a_run_whose_provider_is_away_waits_and_is_answered(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    async with daemon(tmp_path, provider, clock=clock) as d:
        where = await session(d)
        run = await say(d, where, "hello")
        entry = await soon(clock, until(d, where.session_id, "run.waiting"))
        waiting = decode(bytes(entry.event))
        assert isinstance(waiting, RunWaiting)
        assert (waiting.cause, waiting.provider, waiting.model) == ("overloaded", "scripted", "one")
        assert waiting.deadline_ms - waiting.since_ms == 15 * MINUTE
        assert waiting.since_ms < waiting.next_try_ms < waiting.since_ms + 10_000
        shown = await d.gateway.run(OWNER, run.run_id)
        assert (shown.state, shown.reason) == ("waiting", "provider")
        assert shown.wait is not None
        assert shown.wait.next_try_ms == waiting.next_try_ms
        # It costs nothing while it waits.
        await eventually(lambda: _none_works(d))
        provider.down = None
        end = await passing(clock, finished(d, run))
        assert body(end)["text"] == "answer to hello"
        told = await kinds(d, where.session_id)
        assert told[told.index("run.waiting") :][:2] == ["run.waiting", "run.resumed"]
        assert (await d.gateway.run(OWNER, run.run_id)).wait is None
        await eventually(lambda: _nobody_waits(d))


async def _none_works(d: object) -> bool:
    return not d.runs.working  # type: ignore[attr-defined]


async def _all_wait(d: Any, many: int) -> bool:
    return await _none_works(d) and len(await d.db.read(run_waits.everybody)) == many


async def _nobody_waits(d: object) -> bool:
    return not await d.db.read(run_waits.plans)  # type: ignore[attr-defined, no-any-return]


@in_loop
async def test_who_waits_is_answered_in_order_and_not_all_at_once(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="network")
    async with daemon(tmp_path, provider, clock=clock) as d:
        started = []
        for number in range(40):
            where = await session(d, key=f"s{number}")
            started.append(await say(d, where, f"message {number}"))
            await soon(clock, until(d, where.session_id, "run.waiting"))
        asked = len(provider.asked)
        # Only the first asked for itself; the others waited without asking, but for probes.
        assert set(provider.asked) == {"message 0"}
        provider.down = None
        ends = [await passing(clock, finished(d, run)) for run in started]
        assert [body(end)["text"] for end in ends] == [
            f"answer to message {number}" for number in range(40)
        ]
        assert sorted(provider.asked[asked:]) == sorted({*provider.asked[asked:]})
        assert provider.most_at_once <= 16
        # They were let through in the order in which they came.
        resumed = [await _last_resumed(d, run) for run in started]
        assert resumed == sorted(resumed)


async def _last_resumed(d: Any, run: Submitted) -> int:
    """Where in the journal a run was set to work last."""
    told = await entries(d, run.session_id)
    return max(each.position for each in told if each.kind == "run.resumed")


@in_loop
async def test_only_one_run_probes_while_the_provider_is_slow_to_answer(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="timeout")
    async with daemon(tmp_path, provider, clock=clock) as d:
        started = []
        for number in range(5):
            where = await session(d, key=f"s{number}")
            started.append(await say(d, where, f"message {number}"))
            await soon(clock, until(d, where.session_id, "run.waiting"))
        provider.down, provider.slow = None, asyncio.Event()
        await passing(clock, eventually(lambda: _asks(provider, 1)))
        clock.advance(4 * MINUTE)
        await d.db.write(lambda tx: None)
        assert provider.at_once == 1
        provider.slow.set()
        for run in started:
            assert (await passing(clock, finished(d, run))).kind == "run.completed"


async def _asks(provider: AwayProvider, many: int) -> bool:
    return provider.at_once == many


@in_loop
async def test_the_servers_own_retry_after_is_obeyed(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="rate_limited")
    provider.retry_after_ms = 7 * MINUTE
    async with daemon(tmp_path, provider, clock=clock) as d:
        where = await session(d)
        run = await say(d, where, "hello")
        entry = await soon(clock, until(d, where.session_id, "run.waiting"))
        waiting = body(entry)
        assert waiting["next_try_ms"] - waiting["since_ms"] >= 7 * MINUTE
        asked, provider.down = len(provider.asked), None
        end = await passing(clock, finished(d, run))
        assert end.time_ms >= waiting["next_try_ms"]
        assert len(provider.asked) == asked + 1


@pytest.mark.parametrize("failure", ["overloaded", "rate_limited", "network", "timeout", "auth"])
@in_loop
async def test_without_patience_a_run_fails_at_once(tmp_path: Path, failure: FailureClass) -> None:
    clock, provider = HeldClock(), AwayProvider(down=failure)
    settings = "[waiting.patience_ms]\ninteractive = 0\n"
    async with daemon(tmp_path, provider, settings, clock=clock) as d:
        where = await session(d)
        end = await passing(clock, finished(d, await say(d, where, "hello")))
        assert body(end)["reason"] == f"model_{failure}"
        assert "send" not in body(end)["message"]
        assert "run.waiting" not in await kinds(d, where.session_id)


@pytest.mark.parametrize("failure", ["bad_request", "content_blocked", "malformed"])
@in_loop
async def test_what_waiting_cannot_help_fails_at_once(
    tmp_path: Path, failure: FailureClass
) -> None:
    clock, provider = HeldClock(), AwayProvider(down=failure)
    async with daemon(tmp_path, provider, clock=clock) as d:
        where = await session(d)
        end = await passing(clock, finished(d, await say(d, where, "hello")))
        assert body(end)["reason"] == f"model_{failure}"


@in_loop
async def test_at_its_deadline_a_run_fails_and_says_what_to_do(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    settings = "[waiting.patience_ms]\ninteractive = 120000\nchannel = 600000\n"
    async with daemon(tmp_path, provider, settings, clock=clock) as d:
        here, there = await session(d), await session(d, key="there")
        first = await say(d, here, "hello")
        await soon(clock, until(d, here.session_id, "run.waiting"))
        patient = await say(d, there, "hello", origin="channel")
        end = await passing(clock, finished(d, first))
        assert end.kind == "run.failed"
        assert body(end)["reason"] in ("provider_unavailable", "model_overloaded")
        assert "another model" in body(end)["message"]
        assert "again" not in body(end)["message"]
        waited = end.time_ms - (await entries(d, here.session_id))[0].time_ms
        assert 120_000 <= waited < 200_000
        # Another origin has more patience.
        assert await waits(d, patient.run_id)
        provider.down = None
        assert (await passing(clock, finished(d, patient))).kind == "run.completed"


@in_loop
async def test_runs_wait_on_over_restarts(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    started, deadlines = [], []
    async with daemon(tmp_path, provider, clock=clock) as d:
        for number in range(3):
            where = await session(d, key=f"s{number}")
            started.append(await say(d, where, f"message {number}"))
            entry = await soon(clock, until(d, where.session_id, "run.waiting"))
            deadlines.append(body(entry)["deadline_ms"])
        deadline = deadlines[0]
    for _ in range(3):
        clock.advance(30_000)
        async with daemon(tmp_path, provider, clock=clock) as d:
            late = await say(d, await session(d, key=f"late{clock.ms}"), "late")
            await soon(clock, until(d, late.session_id, "run.waiting"))
            # Unless it is the one that asks just now, as a probe.
            oldest = started[0].run_id
            await passing(clock, eventually(lambda oldest=oldest: _deadline(d, oldest, deadline)))
            started.append(late)
    provider.down = None
    async with daemon(tmp_path, provider, clock=clock) as d:
        for run in started:
            assert (await passing(clock, finished(d, run))).kind == "run.completed"
        # They are set to work in order; those that ask at once are answered as it happens.
        resumed = [await _last_resumed(d, run) for run in started]
        assert resumed == sorted(resumed)
    assert sorted(provider.answered) == sorted(
        ["message 0", "message 1", "message 2", *["late"] * 3]
    )


@in_loop
async def test_ten_minutes_and_three_restarts_cost_who_waits_nothing(tmp_path: Path) -> None:
    """A hundred runs of every origin, by the clock: of those that wait nothing is kept but rows,
    their tapes do not grow, and each is answered once, in the order of its session.
    """
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    began, started = clock.ms, list[Submitted]()
    for part in range(4):
        async with daemon(tmp_path, provider, clock=clock) as d:
            for number in range(25):
                # In each session four messages of one origin, one more after each restart.
                where = await session(d, key=f"s{number}")
                origin = _ORIGINS[number % len(_ORIGINS)]
                started.append(await say(d, where, f"message {len(started)}", origin=origin))
                if not part:
                    await soon(clock, until(d, where.session_id, "run.waiting"))
            while clock.ms < began + (part + 1) * 150_000:
                await passing(clock, asyncio.sleep(0.01))
            await passing(clock, eventually(lambda d=d: _all_wait(d, 25)))
    probes = len(provider.asked)
    provider.down = None
    async with daemon(tmp_path, provider, clock=clock) as d:
        for run in started:
            assert (await passing(clock, finished(d, run))).kind == "run.completed"
        told = [await entries(d, run.session_id) for run in started[:25]]
    for number, tape in enumerate(told):
        done = [body(each)["text"] for each in tape if each.kind == "run.completed"]
        assert done == [f"answer to message {number + 25 * part}" for part in range(4)]
    # One run asked for all, every two minutes in the end, and only its tape says so.
    assert probes < 30
    waits_of = Counter(each.run_id for tape in told for each in tape if each.kind == "run.waiting")
    assert waits_of.total() <= len(waits_of) + probes
    assert sorted(provider.answered) == sorted(f"message {number}" for number in range(100))


@in_loop
async def test_a_waiting_run_is_cancelled_and_stopped_at_once(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    async with daemon(tmp_path, provider, clock=clock) as d:
        one, two = await session(d), await session(d, key="two")
        first = await say(d, one, "hello")
        await soon(clock, until(d, one.session_id, "run.waiting"))
        second = await say(d, two, "hello")
        await soon(clock, until(d, two.session_id, "run.waiting"))
        assert (await d.gateway.cancel(OWNER, first.run_id)).state == "cancelled"
        stopped = await d.gateway.stop(OWNER)
        assert stopped.cancelled == (second.run_id,)
        assert await d.db.read(run_waits.everybody) == []


@pytest.mark.parametrize("failure", ["auth", "quota"])
@in_loop
async def test_the_owner_is_told_once_and_the_run_waits_for_a_person(
    tmp_path: Path, failure: FailureClass
) -> None:
    clock, provider = HeldClock(), AwayProvider(down=failure)
    started = []
    for number in range(3):
        async with daemon(tmp_path, provider, clock=clock) as d:
            where = await session(d, key=f"s{number}")
            started.append(await say(d, where, f"message {number}", origin="channel"))
            await soon(clock, until(d, where.session_id, "run.waiting"))
    async with daemon(tmp_path, provider, clock=clock) as d:
        told = [
            each for each in (await d.notices.listing(OWNER)).notices if each.about == "provider"
        ]
        assert len(told) == 1
        assert "scripted" in told[0].text
        provider.down = None
        # The settings are read again: whoever changed them may have put in a key.
        d.gateway.waits.try_now()
        for run in started:
            assert (await finished(d, run)).kind == "run.completed"


@in_loop
async def test_no_secret_that_a_provider_repeats_is_kept(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="auth")
    secret = "sk-ant-api03-" + "A1b2C3d4E5" * 9 + "-AbCdEfAA"
    provider.message = f"the key {secret} is not known"
    async with daemon(tmp_path, provider, clock=clock) as d:
        where = await session(d)
        run = await say(d, where, "hello")
        entry = await soon(clock, until(d, where.session_id, "run.waiting"))
        assert secret not in bytes(entry.event).decode()
        assert secret not in (await d.gateway.run(OWNER, run.run_id)).wait.message
        told = (await d.notices.listing(OWNER)).notices
        assert secret not in "".join(each.text for each in told)


@in_loop
async def test_try_now_asks_at_once_and_another_model_can_be_chosen(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    provider.well.add("other")
    async with daemon(tmp_path, provider, TWO_MODELS, clock=clock) as d:
        here, there = await session(d), await session(d, key="there")
        first = await say(d, here, "first")
        await soon(clock, until(d, here.session_id, "run.waiting"))
        second = await say(d, there, "second")
        await soon(clock, until(d, there.session_id, "run.waiting"))
        asked = len(provider.asked)
        tried = await d.gateway.retry(OWNER, first.run_id)
        assert tried.state == "in_progress"
        await eventually(lambda: waits(d, first.run_id))
        assert provider.asked[asked:] == ["first"]
        await d.gateway.retry(OWNER, second.run_id, "blind/other")
        assert body(await finished(d, second))["text"] == "answer to second"
        assert provider.models[-1] == "other"
        resumed = [
            decode(bytes(each.event))
            for each in await entries(d, there.session_id)
            if each.kind == "run.resumed"
        ]
        assert resumed == [RunResumed(after="provider", model="blind/other")]
        # That says nothing of the model that the other one waits for.
        assert await waits(d, first.run_id)
        with pytest.raises(Conflict):
            await d.gateway.retry(OWNER, second.run_id)


@pytest.mark.parametrize("by_ms", [86_400_000, -86_400_000])
@in_loop
async def test_a_clock_that_is_set_neither_ends_nor_prolongs_a_wait(
    tmp_path: Path, by_ms: int
) -> None:
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    async with daemon(tmp_path, provider, clock=clock) as d:
        where = await session(d)
        run = await say(d, where, "hello")
        await soon(clock, until(d, where.session_id, "run.waiting"))
        before = (await d.gateway.run(OWNER, run.run_id)).wait.deadline_ms
        clock.jump(by_ms)
        began = clock.ticks_ms()
        await d.gateway.waits.clock_was_set(by_ms)
        await eventually(lambda: _deadline(d, run.run_id, before + by_ms))
        end = await passing(clock, finished(d, run))
        assert end.kind == "run.failed"
        assert 14 * MINUTE < clock.ticks_ms() - began < 21 * MINUTE


async def _deadline(d: object, run_id: str, expected: int) -> bool:
    run = await d.gateway.run(OWNER, run_id)  # type: ignore[attr-defined]
    return run.wait is not None and run.wait.deadline_ms == expected


@in_loop
async def test_messages_of_one_session_stay_in_their_order(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    async with daemon(tmp_path, provider, clock=clock) as d:
        where = await session(d)
        started = [await say(d, where, f"message {number}") for number in range(5)]
        await soon(clock, until(d, where.session_id, "run.waiting"))
        provider.down = None
        for run in started:
            assert (await passing(clock, finished(d, run))).kind == "run.completed"
        assert provider.answered == [f"message {number}" for number in range(5)]


@in_loop
async def test_a_try_that_brought_nothing_is_no_active_time(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    settings = "[budgets]\nactive_minutes = 1\n[waiting.patience_ms]\nchannel = 36000000\n"
    async with daemon(tmp_path, provider, settings, clock=clock) as d:
        where = await session(d)
        run = await say(d, where, "hello", origin="channel")
        await soon(clock, until(d, where.session_id, "run.waiting"))
        for _ in range(3):
            provider.slow = asyncio.Event()
            provider.down = None
            await passing(clock, eventually(lambda: _asks(provider, 1)))
            clock.advance(30_000)
            provider.down = "overloaded"
            d.runs.break_off(run.run_id, _overloaded())
            await eventually(lambda: waits(d, run.run_id))
        provider.slow = provider.down = None
        assert (await passing(clock, finished(d, run))).kind == "run.completed"


def _overloaded() -> Exception:
    return ModelFailure("overloaded", "broken off")


@in_loop
async def test_a_subagent_that_waits_keeps_its_parent_waiting_as_long_as_the_parent_would(
    tmp_path: Path,
) -> None:
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    provider.calls["begin"] = ModelCall("c1", "agent.spawn", '{"task": "count"}')
    provider.only.add("count")
    async with daemon(tmp_path, provider, clock=clock) as d:
        where = await session(d)
        run = await say(d, where, "begin", origin="channel")
        entry = await passing(clock, until(d, where.session_id, "agent.spawned"))
        child = body(entry)["session_id"]
        waiting = body(await soon(clock, until(d, child, "run.waiting")))
        assert waiting["deadline_ms"] - waiting["since_ms"] == 6 * 60 * MINUTE
        assert (await d.gateway.run(OWNER, run.run_id)).reason == "child"
        provider.down = None
        end = await passing(clock, finished(d, run))
        assert body(end)["text"] == "answer to begin"


@in_loop
async def test_whoever_watches_a_run_that_waits_hears_of_each_later_try(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="overloaded")
    async with daemon(tmp_path, provider, clock=clock) as d:
        first, second = await session(d), await session(d, key="second")
        await say(d, first, "first")
        await soon(clock, until(d, first.session_id, "run.waiting"))
        run = await say(d, second, "second")
        await soon(clock, until(d, second.session_id, "run.waiting"))

        async def heard() -> RetryPlanned:
            async for batch in d.gateway.watch(OWNER, second.session_id, 0):
                for seq, wire in batch:
                    if not seq and b"run.retry_planned" in wire:
                        return msgspec.json.decode(wire, type=RetryPlanned)
            raise AssertionError("the watch ended")

        planned = await passing(clock, heard())
        assert planned.run_id == run.run_id
        shown = await d.gateway.run(OWNER, run.run_id)
        assert shown.wait is not None
        assert planned.next_try_ms <= shown.wait.next_try_ms
        # Only the one that probes has more on its tape.
        assert (await kinds(d, second.session_id)).count("run.waiting") == 1
        assert (await kinds(d, first.session_id)).count("run.waiting") > 1


@in_loop
async def test_an_open_breaker_makes_runs_wait_for_a_probe(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider()
    async with daemon(tmp_path, provider, clock=clock) as d:
        breaker = d.models.breaker(d.models.targets[0])
        for _ in range(5):
            # As calls outside of runs fail: summaries, extractions.
            breaker.failed("overloaded", clock.now_ms())
        where = await session(d)
        run = await say(d, where, "hello")
        entry = await until(d, where.session_id, "run.waiting")
        assert "paused after repeated failures" in body(entry)["message"]
        assert provider.asked == []
        assert (await passing(clock, finished(d, run))).kind == "run.completed"
        assert clock.ticks_ms() < 30_000


@in_loop
async def test_changed_settings_are_a_reason_to_try_at_once(tmp_path: Path) -> None:
    clock, provider = HeldClock(), AwayProvider(down="quota")
    async with daemon(tmp_path, provider, clock=clock) as d:
        where = await session(d)
        run = await say(d, where, "hello")
        await soon(clock, until(d, where.session_id, "run.waiting"))
        provider.down = None
        await reload_config(d.daemon, {})
        assert (await finished(d, run)).kind == "run.completed"


@in_loop
async def test_homes_from_before_have_nobody_who_waits(tmp_path: Path) -> None:
    async with daemon(tmp_path, AwayProvider()) as d:
        run = await say(d, await session(d), "hello")
        assert (await finished(d, run)).kind == "run.completed"
        row = await d.db.read(lambda tx: runs.find(tx, run.run_id))
        assert row.wait is None
