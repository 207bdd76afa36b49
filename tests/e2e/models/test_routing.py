"""Who is asked and why: the plan on the tape, private data, and the first provider failing in each
way there is.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.system.clock import Clock
from tests.fake_provider import SSE, Answer, FakeProvider, Script, openai_chat
from tests.inprocess import body, daemon, entries, finished, say, session

FIRST, SECOND = "first/one", "second/two"
TWO = """[providers.first]
kind = "openai-chat"
base_url = "{first}"
models = ["one"]
timeout_ms = {patience_ms}
[providers.second]
kind = "openai-chat"
base_url = "{second}"
models = ["two"]
[routing.all]
use = ["first/one", "second/two"]
"""


class Quick(Clock):
    """Nobody waits between two tries."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[int] = []

    async def sleep(self, ms: int) -> None:
        self.slept.append(ms)


def refusal(status: int, code: str, message: str = "no") -> Answer:
    return Answer(
        json.dumps({"error": {"code": code, "message": message}}).encode(),
        status,
        "application/json",
    )


GOOD = Answer(openai_chat(Script(text=("from the second",))))
# What the first provider answers, for each failure class; how often it is asked; who answers in the
# end.
FAILURES: dict[str, tuple[Answer, int, bool]] = {
    "auth": (refusal(401, "invalid_api_key"), 1, True),
    "permission": (refusal(403, "forbidden"), 1, True),
    "quota": (refusal(429, "insufficient_quota"), 1, True),
    "rate_limited": (refusal(429, "rate_limit_exceeded"), 3, True),
    "overloaded": (refusal(503, "overloaded"), 3, True),
    "network": (Answer(b"data: {", cut=3, content_type=SSE), 3, True),
    "timeout": (Answer(b"data: {", hang=3, content_type=SSE), 3, True),
    "malformed": (
        Answer(b'{"object": "chat.completion"}', content_type="application/json"),
        2,
        True,
    ),
    "context_too_long": (refusal(400, "context_length_exceeded"), 1, True),
    "content_blocked": (refusal(400, "content_filter"), 1, False),
    "bad_request": (refusal(400, "invalid_request_error"), 1, False),
}


async def told(opened: Daemon, where: str, kind: str) -> list[dict[str, Any]]:
    return [body(entry) for entry in await entries(opened, where) if entry.kind == kind]


@pytest.mark.parametrize("failure", FAILURES)
def test_when_the_first_provider_fails_the_right_thing_happens(
    tmp_path: Path, failure: str
) -> None:
    answer, asked, goes_on = FAILURES[failure]

    async def scenario() -> None:
        async with FakeProvider(answer) as first, FakeProvider(GOOD) as second:
            clock = Quick()
            # Only who is to be waited for in vain is not waited for long: the others may be slow.
            settings = TWO.format(
                first=first.url,
                second=second.url,
                patience_ms=1_000 if failure == "timeout" else 60_000,
            )
            async with daemon(tmp_path, [Turn(text="unused")], settings, clock=clock) as opened:
                where = await session(opened)
                end = await finished(opened, await say(opened, where, "hello"))
                failed = await told(opened, where.session_id, "model.failed")
                assert {each["failure"] for each in failed} == {failure}
                assert (len(first.requests), len(second.requests)) == (asked, 1 if goes_on else 0)
                assert len([each for each in failed if each["will_retry"]]) == (
                    asked if goes_on else 0
                )
                plans = await told(opened, where.session_id, "route.planned")
                assert [f"{each['provider']}/{each['model']}" for each in plans] == (
                    [FIRST, SECOND] if goes_on else [FIRST]
                )
                if goes_on:
                    assert (end.kind, body(end)["text"]) == ("run.completed", "from the second")
                    assert (
                        plans[1]["reasons"][0]
                        == f"first: {failure}, so the next of the plan is asked"
                    )
                else:
                    assert (end.kind, body(end)["reason"]) == ("run.failed", f"model_{failure}")

    asyncio.run(scenario())


def test_the_plan_says_what_for_why_and_what_it_will_cost(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "prices.toml").write_text(
            '[models]\n"scripted/*" = { input = 2.0, output = 10.0 }\n'
        )
        settings = '[routing.cheap]\ntasks = ["background"]\nuse = ["demo"]\n'
        async with daemon(
            tmp_path, {"hello": [Turn(text="hi")], "again": [Turn(text="yes")]}, settings
        ) as opened:
            where = await session(opened)
            await finished(opened, await say(opened, where, "hello"))
            await finished(opened, await say(opened, where, "again", origin="scheduled"))
            one, other = await told(opened, where.session_id, "route.planned")
            assert (one["provider"], one["model"], one["reasons"]) == (
                "scripted",
                "one",
                ["the default model"],
            )
            assert "rule" not in one
            tokens, output = one["expected_input_tokens"], one["expected_output_tokens"]
            assert tokens > 500
            assert one["expected_microusd"] == 2 * tokens + 10 * output
            assert (other["provider"], other["task"], other["rule"]) == (
                "demo",
                "background",
                "cheap",
            )
            assert other["reasons"] == [
                "the rule cheap chooses it for task class background",
                "nobody waits for it",
            ]
            assert other["expected_microusd"] == 0
            replies = await told(opened, where.session_id, "model.replied")
            used = replies[0]["usage"]
            assert replies[0]["priced"] == "own"
            assert (
                replies[0]["cost_microusd"] == 2 * used["input_tokens"] + 10 * used["output_tokens"]
            )
            assert (replies[1]["priced"], replies[1]["task"]) == ("free", "background")

    asyncio.run(scenario())


NOT_TRUSTED = """[providers.far]
kind = "scripted"
models = ["away"]
script = "none"
private = false
[routing.first-far]
use = ["far/away", "scripted/one"]
"""


def test_what_is_private_is_never_sent_to_who_may_not_have_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeProvider(GOOD) as far:
            settings = NOT_TRUSTED.replace(
                'kind = "scripted"', f'kind = "openai-chat"\nbase_url = "{far.url}"'
            ).replace('script = "none"\n', "")
            async with daemon(tmp_path, [Turn(text="at home")] * 3, settings) as opened:
                (tmp_path / "work" / "diary.txt").write_text("dear diary")
                where = await session(opened)
                await finished(opened, await say(opened, where, "hello"))
                assert len(far.requests) == 1
                end = await finished(
                    opened, await say(opened, where, "what is in @file:diary.txt ?")
                )
                assert body(end).get("text") == "at home", body(end)
                assert len(far.requests) == 1
                plan = (await told(opened, where.session_id, "route.planned"))[-1]
                assert plan["passed_over"] == [
                    {"model": "far/away", "why": "it may not be sent private data"}
                ]
                assert "what is sent is private" in plan["reasons"]
                # Not even by name, and not if nobody else is left.
                await finished(opened, await say(opened, where, "and now?", model="far/away"))
                assert len(far.requests) == 1

    asyncio.run(scenario())


def test_a_run_fails_if_nobody_may_be_sent_what_is_private(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeProvider(GOOD) as far:
            settings = f"""[providers.far]
kind = "openai-chat"
base_url = "{far.url}"
models = ["away"]
private = false
[routing.only]
use = ["far"]
"""
            async with daemon(tmp_path, [Turn(text="unused")], settings) as opened:
                (tmp_path / "work" / "diary.txt").write_text("dear diary")
                where = await session(opened)
                end = await finished(opened, await say(opened, where, "read @file:diary.txt"))
                assert (end.kind, body(end)["reason"]) == ("run.failed", "no_permitted_provider")
                assert far.requests == []

    asyncio.run(scenario())


def test_when_money_runs_out_what_costs_nothing_is_asked(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "prices.toml").write_text(
            '[models]\n"scripted/*" = { input = 2.0, output = 10.0 }\n'
        )
        settings = (
            '[budgets.limits.all]\nusd = 0.001\n[routing.all]\nuse = ["scripted/one", "demo"]\n'
        )
        async with daemon(tmp_path, [Turn(text="one"), Turn(text="two")], settings) as opened:
            where = await session(opened)
            await finished(opened, await say(opened, where, "hello"))
            assert (
                await finished(opened, await say(opened, where, "hello again"))
            ).kind == "run.completed"
            one, other = await told(opened, where.session_id, "route.planned")
            assert (one["provider"], other["provider"]) == ("scripted", "demo")
            assert other["passed_over"] == [
                {"model": "scripted/one", "why": "a budget is used up, and it costs money"}
            ]

    asyncio.run(scenario())


def test_usage_that_a_provider_does_not_report_is_counted_here(tmp_path: Path) -> None:
    async def scenario() -> None:
        silent = openai_chat(Script(text=("quietly",), input_tokens=0, output_tokens=0))
        async with FakeProvider(Answer(silent)) as first:
            settings = TWO.format(first=first.url, second=first.url, patience_ms=60_000)
            async with daemon(tmp_path, [Turn(text="unused")], settings) as opened:
                where = await session(opened)
                await finished(opened, await say(opened, where, "hello"))
                (reply,) = await told(opened, where.session_id, "model.replied")
                (assembled,) = await told(opened, where.session_id, "input.assembled")
                assert (reply["estimated"], reply["usage"]["input_tokens"]) == (
                    True,
                    assembled["tokens"],
                )
                assert reply["usage"]["output_tokens"] == 2

    asyncio.run(scenario())
