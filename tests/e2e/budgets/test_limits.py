"""Budgets of tokens and money: concurrent runs cannot pass them, people can, and a crash leaves
nothing reserved.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.approval_steps import Answer as Answering
from palyra.core.budgets import Spender, Terms
from palyra.core.errors import Conflict, InvalidInput, NotFound
from palyra.core.events import Decision
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.time_travel.replay.recording import Recording
from palyra.features.time_travel.replay.replay import replay
from palyra.models.scripted import ScriptedCall, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import usage
from palyra.store.usage import UsageFilter
from tests.e2e.time_travel.test_replay import ours
from tests.fake_provider import Answer, FakeProvider, Request, Script, openai_chat
from tests.faults import eventually
from tests.inprocess import IMPATIENT, body, daemon, entries, finished, kinds, say, session, until
from tests.replaying import recording

FAKE = """[providers.fake]
kind = "openai-chat"
base_url = "{url}"
models = ["fake-1"]
context_tokens = 8192
"""
PRICES = """[models]
"fake/*" = { input = 1.0, output = 4.0 }
"scripted/*" = { input = 1.0, output = 4.0 }
"""
LATE_S = 0.03


class Greedy:
    """A provider that uses all it may, reports that late, and counts how many calls were open at
    once.

    The first call is answered when there is a second one: however slow the machine is, they are
    under way together.
    """

    def __init__(self) -> None:
        self.open = self.most_open = 0
        self.largest = 0
        self._waiting: list[asyncio.Event] = []

    def __call__(self, request: Request) -> Answer:
        asked = request.json()
        produced = asked["max_tokens"]
        sent = len(request.body) // 4
        self.largest = max(self.largest, sent + produced)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        told = openai_chat(Script(text=("done",), input_tokens=sent, output_tokens=produced))
        go = asyncio.Event()
        self._waiting.append(go)
        if self.most_open > 1:
            for each in self._waiting:
                asyncio.get_running_loop().call_later(LATE_S, self._finish, each)
            self._waiting.clear()
        return Answer(told, late=(told.rindex(b"data: {", 0, told.rindex(b'"usage"')), go))

    def _finish(self, go: asyncio.Event) -> None:
        self.open -= 1
        go.set()


async def spent(opened: Daemon) -> usage.Spent:
    return await opened.db.read(lambda tx: usage.spent(tx, UsageFilter()))


async def on_the_tape(opened: Daemon, sessions: list[str]) -> tuple[int, int]:
    """Tokens and cost as the replies on the tapes say."""
    tokens = cost = 0
    for each in sessions:
        for entry in await entries(opened, each):
            if entry.kind == "model.replied":
                reply = body(entry)
                tokens += reply["usage"]["input_tokens"] + reply["usage"].get("output_tokens", 0)
                cost += reply.get("cost_microusd", 0)
    return tokens, cost


@pytest.mark.parametrize(("unit", "limit"), [("tokens", 60_000), ("usd", 0.25)])
def test_64_runs_at_once_pass_a_hard_limit_by_no_more_than_one_reservation(
    tmp_path: Path, unit: str, limit: float
) -> None:
    async def scenario() -> None:
        greedy = Greedy()
        async with FakeProvider(greedy) as provider:
            (tmp_path / "home").mkdir()
            (tmp_path / "home" / "prices.toml").write_text(PRICES)
            settings = FAKE.format(url=provider.url) + f"[budgets.limits.all]\n{unit} = {limit}\n"
            async with daemon(tmp_path, [Turn(text="unused")], settings) as opened:
                where = [await session(opened, key=f"s{number}") for number in range(64)]
                sent = await asyncio.gather(
                    *(say(opened, each, "hello", model="fake/fake-1") for each in where)
                )
                ends = await asyncio.gather(*(finished(opened, each) for each in sent))
                done = [each for each in ends if each.kind == "run.completed"]
                failed = [body(each) for each in ends if each.kind == "run.failed"]
                now = await spent(opened)
                used = now.tokens if unit == "tokens" else now.microusd
                ceiling = limit if unit == "tokens" else limit * 1_000_000
                reservation = greedy.largest if unit == "tokens" else greedy.largest * 4
                assert ceiling <= used <= ceiling + reservation
                assert len(done) + len(failed) == 64
                assert done
                assert {each["reason"] for each in failed} == {"budget_spent"}
                assert "0 model turns and 0 tool calls were made" in failed[0]["message"]
                # They really were under way together, and those who came late waited for them
                # instead of failing at once.
                assert greedy.most_open > 1
                assert (now.tokens, now.microusd) == await on_the_tape(
                    opened, [each.session_id for each in where]
                )
                (state,) = await opened.budgets.states(Spender(principal=OWNER))
                assert (state.spent, state.reserved, state.left) == (used, 0, 0)

    asyncio.run(scenario())


def test_what_is_counted_in_memory_is_what_the_journal_says_after_a_restart_too(
    tmp_path: Path,
) -> None:
    settings = """[budgets.limits.month]
tokens = 1000000
every = "month"
[budgets.limits.mine]
tokens = 1000000
per = "principal"
[budgets.limits.each]
tokens = 1000000
per = "session"
"""

    async def counted(opened: Daemon, where: str) -> list[int]:
        whose = Spender(principal=OWNER, session_id=where)
        return [state.spent for state in await opened.budgets.states(whose)]

    async def scenario() -> None:
        turns = [Turn(text="one"), Turn(text="two"), Turn(text="three")]
        async with daemon(tmp_path, turns, settings) as opened:
            one, other = await session(opened, key="one"), await session(opened, key="other")
            await finished(opened, await say(opened, one, "hello"))
            await finished(opened, await say(opened, other, "and you"))
            await finished(opened, await say(opened, one, "again"))
            all_ = (await spent(opened)).tokens
            here = (
                await opened.db.read(
                    lambda tx: usage.spent(tx, UsageFilter(session_id=one.session_id))
                )
            ).tokens
            before = await counted(opened, one.session_id)
            assert before == [all_, all_, here]
            assert 0 < here < all_
        async with daemon(tmp_path, turns, settings) as opened:
            assert await counted(opened, one.session_id) == before

    asyncio.run(scenario())


async def until_asked(opened: Daemon, where: str) -> dict[str, Any]:
    return body(await until(opened, where, "approval.requested"))


ASKING = '[budgets.limits.small]\ntokens = 100\nthen = "ask"\n'


def test_a_person_lets_a_run_go_on_beyond_its_budget_even_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        turns: dict[str, Sequence[Turn]] = {
            "hello": [Turn(text="first")],
            "more": [Turn(text="second")],
        }
        async with daemon(tmp_path, turns, ASKING) as opened:
            where = await session(opened)
            assert (
                await finished(opened, await say(opened, where, "hello"))
            ).kind == "run.completed"
            run = await say(opened, where, "more")
            request = await until_asked(opened, where.session_id)
            assert request["about"] == "budget"
            assert request["budget"]["spent"] == (await spent(opened)).tokens
            assert (await opened.gateway.run(OWNER, run.run_id)).reason == "budget"
        async with daemon(tmp_path, turns, ASKING) as opened:
            with pytest.raises(InvalidInput):
                await opened.answers.answer(
                    OWNER,
                    request["approval_id"],
                    Answering(decision="allow", scope="session"),
                    "test",
                )
            await opened.answers.answer(
                OWNER, request["approval_id"], Answering(decision="allow"), "test"
            )
            end = await finished(opened, run)
            assert (end.kind, body(end)["text"]) == ("run.completed", "second")
            told = await kinds(opened, where.session_id)
            at = told.index("approval.requested")
            assert told[at : at + 4] == [
                "approval.requested",
                "approval.resolved",
                "run.resumed",
                "route.planned",
            ]

    asyncio.run(scenario())


def test_a_no_ends_the_run_and_says_what_was_done(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with daemon(tmp_path, [Turn(text="first"), Turn(text="second")], ASKING) as opened:
            where = await session(opened)
            await finished(opened, await say(opened, where, "hello"))
            run = await say(opened, where, "more")
            request = await until_asked(opened, where.session_id)
            await opened.answers.answer(
                OWNER,
                request["approval_id"],
                Answering(decision="deny", reason="not today"),
                "test",
            )
            end = await finished(opened, run)
            assert (end.kind, body(end)["reason"]) == ("run.failed", "budget_spent")
            assert re.search(
                r"not today.*0 model turns and 0 tool calls were made", body(end)["message"]
            )

    asyncio.run(scenario())


def test_a_budget_of_the_run_itself_ends_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        look = Turn(calls=(ScriptedCall(name="fs.list", arguments={"path": "."}),))
        turns = [look, look, Turn(text="done")]
        async with daemon(tmp_path, turns, "[budgets]\ntokens = 500\n") as opened:
            where = await session(opened)
            end = await finished(opened, await say(opened, where, "look"))
            assert (end.kind, body(end)["reason"]) == ("run.failed", "budget_spent")
            assert "1 model turns and 1 tool calls were made" in body(end)["message"]

    asyncio.run(scenario())


def test_a_model_without_a_price_is_not_asked_where_money_is_limited(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeProvider(Answer(openai_chat(Script(text=("hi",))))) as provider:
            url = provider.url.replace("127.0.0.1", "127.0.0.2")
            settings = FAKE.format(url=url) + "[budgets.limits.all]\nusd = 1.0\n"
            async with daemon(tmp_path, [Turn(text="free")], settings) as opened:
                where = await session(opened)
                end = await finished(opened, await say(opened, where, "hello", model="fake/fake-1"))
                assert (body(end)["reason"], provider.requests) == ("budget_spent", [])
                assert "has no known price" in body(end)["message"]
                # What costs nothing is asked all the same.
                assert (
                    await finished(opened, await say(opened, where, "hello"))
                ).kind == "run.completed"

    asyncio.run(scenario())


def test_the_owner_is_told_once_that_a_budget_is_nearly_used_and_once_that_it_is(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        settings = "[budgets.limits.all]\ntokens = 3000\nwarn_at = 0.1\n"
        turns: dict[str, Sequence[Turn]] = {
            word: [Turn(text=word)] for word in ("one", "two", "three", "four")
        }
        async with daemon(tmp_path, turns, settings) as opened:
            where = await session(opened)
            for word in turns:
                await finished(opened, await say(opened, where, word))
            told = (await opened.notices.listing(OWNER)).notices
            assert sorted(
                each.key.rpartition(":")[2] for each in told if each.about == "budget"
            ) == ["full", "near"]
        async with daemon(tmp_path, turns, settings) as opened:
            await finished(opened, await say(opened, where, "one"))
            assert len((await opened.notices.listing(OWNER)).notices) == len(told)

    asyncio.run(scenario())


def test_a_budget_that_is_set_while_runs_work_counts_what_they_used_before(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with daemon(
            tmp_path,
            [Turn(text="one"), Turn(text="two")],
            "[budgets.limits.fixed]\ntokens = 1000000\n",
        ) as opened:
            where = await session(opened)
            await finished(opened, await say(opened, where, "hello"))
            await opened.budgets.put("mine", Terms(per="principal", tokens=50), OWNER)
            end = await finished(opened, await say(opened, where, "more"))
            assert body(end)["reason"] == "budget_spent"
            await opened.budgets.remove("mine", OWNER)
            assert (
                await finished(opened, await say(opened, where, "more"))
            ).kind == "run.completed"
            for wrong in (
                opened.budgets.put("fixed", Terms(tokens=1), OWNER),
                opened.budgets.remove("fixed", OWNER),
            ):
                with pytest.raises(Conflict):
                    await wrong
            with pytest.raises(NotFound):
                await opened.budgets.remove("mine", OWNER)
            with pytest.raises(InvalidInput):
                await opened.budgets.put("both", Terms(tokens=1, microusd=1), OWNER)
            changes = [
                body(each)
                for each in await entries(opened, SYSTEM_TAPE)
                if each.kind == "admin.changed"
            ]
            assert [
                (each["action"], each["subject"]) for each in changes if each["what"] == "budget"
            ] == [
                ("set", "mine"),
                ("removed", "mine"),
            ]

    asyncio.run(scenario())


def test_an_allowance_is_about_one_person(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = '[budgets.limits.guest]\ntokens = 1\nper = "principal"\nwho = "guest"\n'
        async with daemon(tmp_path, [Turn(text="one")], settings) as opened:
            where = await session(opened)
            assert (
                await finished(opened, await say(opened, where, "hello"))
            ).kind == "run.completed"
            (state,) = await opened.budgets.states(Spender(principal=OWNER))
            assert (state.who, state.spent) == ("guest", 0)

    asyncio.run(scenario())


def test_a_call_that_fails_or_is_cancelled_leaves_nothing_reserved(tmp_path: Path) -> None:
    async def scenario() -> None:
        answers = [
            Answer(
                json.dumps({"error": {"message": "no"}}).encode(),
                status=401,
                content_type="application/json",
            )
        ]
        async with FakeProvider(
            [*answers, Answer(openai_chat(Script(text=("never",))), hang=20)]
        ) as provider:
            settings = FAKE.format(url=provider.url) + "[budgets.limits.all]\ntokens = 1000000\n"
            async with daemon(tmp_path, [Turn(text="unused")], settings + IMPATIENT) as opened:
                where = await session(opened)
                assert (
                    await finished(opened, await say(opened, where, "hello", model="fake/fake-1"))
                ).kind == "run.failed"
                run = await say(opened, where, "again", model="fake/fake-1")
                await until(opened, where.session_id, "input.assembled", run_id=run.run_id)
                (state,) = await opened.budgets.states(Spender(principal=OWNER))
                assert state.reserved > 0
                await opened.gateway.cancel(OWNER, run.run_id)
                await finished(opened, run)
                # A run is cancelled at once; what it was doing may take a moment longer to let go.
                await eventually(lambda: opened.runs.working == 0, "nobody works on it any more")
                (state,) = await opened.budgets.states(Spender(principal=OWNER))
                # The first was refused and cost nothing; the second was sent, and the provider may
                # have worked on it.
                tokens, _ = await on_the_tape(opened, [where.session_id])
                assert (state.reserved, state.spent) == (0, tokens)
                assert tokens > 0

    asyncio.run(scenario())


def test_a_run_that_asked_for_more_is_replayed_identically(tmp_path: Path) -> None:
    async def scenario() -> list[Recording]:
        turns: dict[str, Sequence[Turn]] = {
            word: [Turn(text=word)] for word in ("hello", "more", "enough")
        }
        async with daemon(tmp_path, turns, ASKING) as opened:
            where = await session(opened)
            await finished(opened, await say(opened, where, "hello"))
            recorded = []
            answers: tuple[tuple[str, Decision], ...] = (("more", "allow"), ("enough", "deny"))
            for word, answer in answers:
                run = await say(opened, where, word)
                request = body(
                    await until(opened, where.session_id, "approval.requested", run_id=run.run_id)
                )
                await opened.answers.answer(
                    OWNER, request["approval_id"], Answering(decision=answer), "test"
                )
                await finished(opened, run)
                recorded.append(await recording(opened, run.run_id))
            recorded.append(await recording(opened, where.session_id))
            return recorded

    for each in asyncio.run(scenario()):
        again = replay(each, ours())
        assert again.identical, again.difference


def test_a_question_about_a_budget_times_out_like_any_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        settings = ASKING + "[approvals.timeout_ms]\ninteractive = 1000\n"
        async with daemon(tmp_path, [Turn(text="one"), Turn(text="two")], settings) as opened:
            where = await session(opened)
            await finished(opened, await say(opened, where, "hello"))
            end = await finished(opened, await say(opened, where, "more"))
            assert (end.kind, body(end)["reason"]) == ("run.failed", "budget_spent")
            assert "nobody answered in time" in body(end)["message"]

    asyncio.run(scenario())


def test_a_limit_that_was_passed_before_it_was_set_is_told_when_it_stops_somebody(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        turns: dict[str, Sequence[Turn]] = {
            "hello": [Turn(text="first")],
            "more": [Turn(text="second")],
        }
        async with daemon(tmp_path, turns) as opened:
            where = await session(opened)
            await finished(opened, await say(opened, where, "hello"))
            await opened.budgets.put("late", Terms(tokens=100), OWNER)
            for _ in range(2):
                assert (
                    await finished(opened, await say(opened, where, "more"))
                ).kind == "run.failed"
            await opened.db.write(lambda tx: None)
            (told,) = (await opened.notices.listing(OWNER)).notices
            assert "is used up" in told.text

    asyncio.run(scenario())
