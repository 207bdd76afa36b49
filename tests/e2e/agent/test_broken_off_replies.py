"""Model calls that never came to their end: what they used is in the books, and what they said is
in the session.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.submit import Submission, Submitted
from palyra.core.events import Budgets
from palyra.core.ids import OWNER
from palyra.core.messages import AssistantMessage, FailureClass, ModelRequest
from palyra.features.compaction.service import Compact
from palyra.models.scripted import ScriptedCall, ScriptedFailure, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import usage
from palyra.store.usage import UsageFilter, UsageRow
from tests.fake_provider import Answer, FakeProvider, Script, anthropic, openai_chat
from tests.faults import eventually
from tests.inprocess import IMPATIENT, body, daemon, entries, finished, kinds, say, session, until

PRICES = '[models]\n"scripted/*" = { input = 1.0, output = 4.0 }\n"fake/*" = { input = 1.0, output = 4.0 }\n'
SAID = "The first half of it is said, "
THOUGHT = "This has to be thought over. "
PIECES = -(-len(SAID) // 4) - (-len(THOUGHT) // 4)


def priced(folder: Path) -> None:
    (folder / "home").mkdir(exist_ok=True)
    (folder / "home" / "prices.toml").write_text(PRICES)


def halting(hold: StreamPause) -> ScriptedModel:
    return ScriptedModel(
        lambda _: Turn(
            text=(SAID, "and the rest."), reasoning=(THOUGHT,), hold="here", hold_after=1
        ),
        holds={"here": hold},
    )


async def total(d: Daemon, **asked: Any) -> UsageRow:
    return await d.db.read(lambda tx: usage.total(tx, UsageFilter(**asked)))


async def begun(d: Daemon, hold: StreamPause) -> Submitted:
    run = await say(d, await session(d), "go")
    await asyncio.wait_for(hold.reached.wait(), 30)
    return run


async def go_on(d: Daemon, run: Submitted, text: str = "go on") -> Submitted:
    return await d.gateway.submit(OWNER, run.session_id, Submission(text=text))


def shown_of_the_model(request: ModelRequest) -> list[str]:
    return [each.text for each in request.messages if isinstance(each, AssistantMessage)]


def test_a_cancelled_reply_is_counted_and_stays_in_the_session(tmp_path: Path) -> None:
    async def scenario() -> None:
        priced(tmp_path)
        hold = StreamPause()
        model = halting(hold)
        async with daemon(tmp_path, model) as d:
            run = await begun(d, hold)
            await d.gateway.cancel(OWNER, run.run_id)
            tape = await entries(d, run.session_id)
            assert [each.kind for each in tape][-2:] == ["model.replied", "run.cancelled"]
            reply = body(tape[-2])
            assert (reply["text"], reply["reasoning"], reply["stop"], reply["estimated"]) == (
                SAID,
                THOUGHT,
                "interrupted",
                True,
            )
            assert reply["usage"]["input_tokens"] > 100
            assert reply["usage"]["output_tokens"] == PIECES
            used = await total(d, run_id=run.run_id)
            assert (used.calls, used.estimated, used.cost_microusd) == (
                1,
                1,
                reply["cost_microusd"],
            )
            assert used.cost_microusd == used.input_tokens + 4 * used.output_tokens
            # The next message goes on from what was said, and the model is told that it was cut
            # off.
            hold.released.set()
            await finished(d, await go_on(d, run))
            asked = model.requests[-1]
            assert shown_of_the_model(asked) == [SAID]
            assert "Your last reply is incomplete: the user stopped it." in str(asked.messages[-1])

    asyncio.run(scenario())


def test_stop_and_the_time_budget_keep_what_was_said(tmp_path: Path) -> None:
    async def scenario() -> None:
        hold = StreamPause()
        async with daemon(tmp_path, halting(hold)) as d:
            usual, d.settings.budgets = d.settings.budgets, Budgets(active_ms=300)
            run = await begun(d, hold)
            d.settings.budgets = usual
            assert body(await finished(d, run))["reason"] == "time_budget"
            assert (await total(d, run_id=run.run_id)).calls == 1
            hold.reached.clear()
            other = await begun(d, hold)
            await d.gateway.stop(OWNER)
            for each in (run, other):
                tape = await entries(d, each.session_id)
                assert (
                    body(next(entry for entry in tape if entry.kind == "model.replied"))["text"]
                    == SAID
                )
            assert (await total(d)).estimated == 2

    asyncio.run(scenario())


def test_twenty_rounds_of_stop_and_retry_are_ended_by_a_money_budget(tmp_path: Path) -> None:
    async def scenario() -> None:
        priced(tmp_path)
        hold = StreamPause()
        async with daemon(tmp_path, halting(hold), "[budgets.limits.all]\nusd = 0.008\n") as d:
            for number in range(20):
                hold.reached.clear()
                run = await say(d, await session(d, label=f"round {number}"), "go")
                waiting = asyncio.create_task(finished(d, run))
                speaking = asyncio.create_task(hold.reached.wait())
                done, _ = await asyncio.wait(
                    [waiting, speaking], timeout=30, return_when=asyncio.FIRST_COMPLETED
                )
                assert done
                if waiting in done:
                    assert body(waiting.result())["reason"] == "budget_spent"
                    speaking.cancel()
                    break
                await d.gateway.cancel(OWNER, run.run_id)
                await waiting
            else:
                raise AssertionError(
                    "twenty replies were stopped, and the budget noticed none of them"
                )
            used = await total(d)
            assert used.estimated == used.calls == number
            assert 8_000 <= used.cost_microusd < 8_000 + 2 * used.cost_microusd // number

    asyncio.run(scenario())


def test_concurrent_cancelled_calls_hold_their_reservation_until_they_are_counted(
    tmp_path: Path,
) -> None:
    """Whoever waits for room gets it only after what was broken off is on the tape."""

    async def scenario() -> None:
        priced(tmp_path)
        hold = StreamPause()
        async with daemon(tmp_path, halting(hold), "[budgets.limits.all]\nusd = 0.000001\n") as d:
            first = await begun(d, hold)
            second = await say(d, await session(d, label="another"), "go")
            await eventually(lambda: d.runs.working == 2, "the second run works")
            await d.gateway.cancel(OWNER, first.run_id)
            assert body(await finished(d, second))["reason"] == "budget_spent"
            assert (await total(d)).calls == 1

    asyncio.run(scenario())


def test_what_an_earlier_try_had_shown_stays_with_the_failure_that_ends_the_turn(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        fail = [
            ScriptedFailure(failure="network", after=after, retry_after_ms=1) for after in (1, 0, 0)
        ]
        model = ScriptedModel(lambda _: Turn(text=(SAID, "and the rest."), fail=fail.pop(0)))
        async with daemon(tmp_path, model, IMPATIENT) as d:
            run = await say(d, await session(d), "go")
            await finished(d, run)
            failed = [
                body(each)
                for each in await entries(d, run.session_id)
                if each.kind == "model.failed"
            ]
            assert [each.get("text", "") for each in failed] == [SAID, "", SAID]
            assert (await total(d)).calls == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("failure", "after", "calls"),
    [("network", 1, 3), ("overloaded", 0, 0), ("auth", 0, 0), ("bad_request", 1, 1)],
)
def test_a_failed_call_counts_if_the_provider_had_begun_to_answer(
    tmp_path: Path, failure: FailureClass, after: int, calls: int
) -> None:
    async def scenario() -> None:
        priced(tmp_path)
        fail = ScriptedFailure(failure=failure, after=after, retry_after_ms=1)
        model = ScriptedModel(lambda _: Turn(text=(SAID, "and the rest."), fail=fail))
        async with daemon(tmp_path, model, IMPATIENT) as d:
            run = await say(d, await session(d), "go")
            assert body(await finished(d, run))["reason"] == f"model_{failure}"
            failed = [
                body(each)
                for each in await entries(d, run.session_id)
                if each.kind == "model.failed"
            ]
            used = await total(d)
            assert (used.calls, used.estimated) == (calls, calls)
            assert sum(each.get("cost_microusd", 0) for each in failed) == used.cost_microusd
            assert [each.get("text", "") for each in failed] == [SAID if after else ""] * len(
                failed
            )
            if after:
                # What was shown before it failed is what the model is shown of itself afterwards.
                await finished(d, await go_on(d, run))
                assert shown_of_the_model(model.requests[-1]) == [SAID]
                assert "Your last reply is incomplete: it could not be finished." in str(
                    model.requests[-1].messages[-1]
                )

    asyncio.run(scenario())


def test_an_interrupt_counts_what_was_thought_as_well(tmp_path: Path) -> None:
    async def scenario() -> None:
        hold = StreamPause()
        async with daemon(tmp_path, halting(hold)) as d:
            run = await begun(d, hold)
            await d.gateway.submit(
                OWNER, run.session_id, Submission(text="rather this", mode="interrupt")
            )
            reply = body(await until(d, run.session_id, "model.replied"))
            assert (reply["text"], reply["reasoning"], reply["usage"]["output_tokens"]) == (
                SAID,
                THOUGHT,
                PIECES,
            )
            hold.released.set()
            await finished(d, run)

    asyncio.run(scenario())


def test_a_secret_in_what_was_said_is_redacted_before_it_is_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        hold, secret = StreamPause(), "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        turn = Turn(text=(f"The token is {secret} as you ", "know."), hold="here", hold_after=1)
        async with daemon(tmp_path, ScriptedModel(lambda _: turn, holds={"here": hold})) as d:
            run = await begun(d, hold)
            await d.gateway.cancel(OWNER, run.run_id)
            (reply,) = [
                body(each)
                for each in await entries(d, run.session_id)
                if each.kind == "model.replied"
            ]
            assert secret not in str(reply)
            assert reply["text"].startswith("The token is [redacted:")

    asyncio.run(scenario())


def test_a_daemon_that_is_stopped_counts_the_reply_it_broke_off_and_asks_again(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        hold = StreamPause()
        async with daemon(tmp_path, halting(hold)) as d:
            run = await begun(d, hold)
        hold.released.set()
        async with daemon(tmp_path, halting(hold)) as d:
            await finished(d, run)
            (failed,) = [
                body(each)
                for each in await entries(d, run.session_id)
                if each.kind == "model.failed"
            ]
            assert (failed["failure"], failed["will_retry"], failed["text"]) == (
                "interrupted",
                True,
                SAID,
            )
            assert failed["usage"]["output_tokens"] == PIECES
            used = await total(d)
            assert (used.calls, used.estimated) == (2, 1)

    asyncio.run(scenario())


def test_a_cancelled_subagent_is_counted_for_whoever_started_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        priced(tmp_path)
        hold = StreamPause()
        spawn = Turn(calls=(ScriptedCall(name="agent.spawn", arguments={"task": "look around"}),))

        def say_it(request: ModelRequest) -> Turn:
            below = "look around" in str(request.messages[0])
            return Turn(text=(SAID, "end"), hold="here", hold_after=1) if below else spawn

        async with daemon(tmp_path, ScriptedModel(say_it, holds={"here": hold})) as d:
            run = await begun(d, hold)
            child = body(await until(d, run.session_id, "agent.spawned"))["session_id"]
            await d.gateway.cancel(OWNER, run.run_id)
            assert (await kinds(d, child))[-2:] == ["model.replied", "run.cancelled"]
            used = await total(d, session_id=child)
            assert (used.calls, used.estimated) == (1, 1)
            assert used.cost_microusd > 0

    asyncio.run(scenario())


FAKE = """[providers.fake]
kind = "{kind}"
base_url = "{url}"
models = ["fake-1"]
context_tokens = 8192
"""


@pytest.mark.parametrize("kind", ["anthropic", "openai-chat"])
def test_the_providers_own_figure_counts_as_far_as_it_came(tmp_path: Path, kind: str) -> None:
    """Anthropic says at once what was sent; the others only at the end."""

    async def scenario() -> None:
        told = (anthropic if kind == "anthropic" else openai_chat)(
            Script(text=("half ", "whole"), input_tokens=777)
        )
        never = asyncio.Event()
        async with FakeProvider(Answer(told, late=(told.index(b"whole") - 60, never))) as server:
            settings = FAKE.format(kind=kind, url=server.url)
            async with daemon(tmp_path, [], settings) as d:
                where = await session(d)
                run = await say(d, where, "go", model="fake/fake-1")
                async for batch in d.gateway.watch(OWNER, where.session_id, 0):
                    if any(b"half" in wire for _, wire in batch):
                        break
                await d.gateway.cancel(OWNER, run.run_id)
                (reply,) = [
                    body(each)
                    for each in await entries(d, run.session_id)
                    if each.kind == "model.replied"
                ]
                assert reply["estimated"]
                assert (reply["usage"]["input_tokens"] == 777) == (kind == "anthropic")
                assert reply["usage"]["input_tokens"] > 100

    asyncio.run(scenario())


def test_what_was_never_sent_costs_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = FAKE.format(kind="openai-chat", url="http://127.0.0.1:9") + IMPATIENT
        async with daemon(tmp_path, [], settings) as d:
            run = await say(d, await session(d), "go", model="fake/fake-1")
            assert body(await finished(d, run))["reason"] == "model_network"
            assert (await total(d)).calls == 0

    asyncio.run(scenario())


def test_a_summary_that_fails_or_is_broken_off_is_counted(tmp_path: Path) -> None:
    """A model that writes summaries fails in mid-answer, and then is stopped in mid-answer."""

    async def scenario() -> None:
        priced(tmp_path)
        hold, ways = StreamPause(), ["fails", "hangs"]

        def say_it(request: ModelRequest) -> Turn:
            if "You condense a conversation" not in request.instructions:
                return Turn(text=("word " * 200,))
            if ways.pop(0) == "fails":
                return Turn(text=(SAID, "end"), fail=ScriptedFailure(failure="network", after=1))
            return Turn(text=(SAID, "end"), hold="here", hold_after=1)

        async with daemon(
            tmp_path, ScriptedModel(say_it, holds={"here": hold}), summary="scripted/one"
        ) as d:
            where = await session(d)
            for number in range(12):
                await finished(d, await say(d, where, f"number {number}"))
            before = await total(d)
            await d.compacting.compact(OWNER, where.session_id, Compact())
            after = await total(d)
            assert (after.calls, after.estimated) == (before.calls + 1, before.estimated + 1)
            for number in range(12):
                await finished(d, await say(d, where, f"again {number}"))
            before = await total(d)
            condensing = asyncio.create_task(
                d.compacting.compact(OWNER, where.session_id, Compact())
            )
            await asyncio.wait_for(hold.reached.wait(), 30)
            condensing.cancel()
            used = body(await until(d, where.session_id, "model.used"))
            assert (used["task"], used["estimated"]) == ("summary", True)
            after = await total(d)
            assert (after.calls, after.estimated) == (before.calls + 1, before.estimated + 1)
            assert after.cost_microusd > before.cost_microusd

    asyncio.run(scenario())
