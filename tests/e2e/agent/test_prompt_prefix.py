"""Each request of a session begins with the whole one before it, in every dialect: what providers
cache is the beginning.
"""

import asyncio
from itertools import count, pairwise
from pathlib import Path

import pytest

from palyra.core.messages import ModelRequest, ToolMessage, Usage
from palyra.features.memory import recall
from palyra.features.memory.model import NewMemory
from palyra.models.dialects import Dialect, open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from palyra.store import prompt_breakdown, route_plans, usage
from tests import prompt_prefix
from tests.fake_provider import WRITERS, Answer, FakeProvider, Request, Script
from tests.inprocess import daemon, finished, say, session
from tests.remembering import ME

# What is remembered comes and goes with these, while the folder changes.
SAID = (
    "what is the harbour fee?",
    "what is the whale's name?",
    "list the folder again",
    "what was the harbour fee?",
    "thanks",
)
REMEMBERED = ("The harbour fee is 40 crowns", "The whale's name is Willy")


@pytest.fixture(autouse=True)
def memory_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a busy machine does to memory is not what these are about."""
    monkeypatch.setattr(recall, "_PATIENCE_S", 20.0)


@pytest.mark.parametrize("dialect", sorted(WRITERS))
def test_a_request_begins_with_all_of_the_one_before_it(dialect: Dialect, tmp_path: Path) -> None:
    number = count()

    def answer(request: Request) -> Answer:
        at = next(number)
        script = (
            Script(text=(f"I look ({at}).",), calls=((f"c{at}", "fs_list", ('{"path": "."}',)),))
            if at % 3 < 2
            else Script(text=(f"That is it ({at}).",), reasoning=("hm",))
        )
        return Answer(WRITERS[dialect](script))

    async def scenario() -> list[Request]:
        http = HttpClient()
        async with FakeProvider(answer) as server:
            endpoint = ProviderEndpoint(name="scripted", base_url=server.url, api_key="sk-test")
            provider = open_provider(dialect, endpoint, http)
            async with daemon(tmp_path, provider) as d:
                for text in REMEMBERED:
                    await d.memory.add(ME, NewMemory(text=text))
                where = await session(d)
                for each, text in enumerate(SAID):
                    (tmp_path / "work" / f"file-{each}.txt").write_text("x")
                    ended = await finished(d, await say(d, where, text))
                    assert ended.kind == "run.completed"
            await http.close()
            return server.requests

    requests = asyncio.run(scenario())
    assert len(requests) == 3 * len(SAID)
    sent = [prompt_prefix.blocks(dialect, request.json()) for request in requests]
    assert any("40 crowns" in block for block in sent[0])
    for before, after in pairwise(sent):
        assert after[: len(before)] == before


def test_a_run_that_outgrows_the_window_disturbs_its_beginning_seldom(tmp_path: Path) -> None:
    """Results give way half a window at once: with one at a time, every request would be new."""
    reads = 40

    def turn(request: ModelRequest) -> Turn:
        done = sum(isinstance(each, ToolMessage) for each in request.messages)
        read = ScriptedCall(name="fs.read", arguments={"path": f"notes-{done}.txt"})
        return Turn(calls=(read,)) if done < reads else Turn(text="done")

    model = ScriptedModel(turn)

    async def scenario() -> None:
        async with daemon(tmp_path, model, window=20_000) as d:
            for each in range(reads):
                (tmp_path / "work" / f"notes-{each}.txt").write_text(f"word {each} " * 300)
            where = await session(d)
            assert (await finished(d, await say(d, where, "read it"))).kind == "run.completed"

    asyncio.run(scenario())
    pairs = list(pairwise(model.requests))
    disturbed = sum(
        after.messages[: len(before.messages)] != before.messages for before, after in pairs
    )
    assert len(pairs) == reads
    assert 2 <= disturbed <= 8


def test_the_bill_says_what_was_read_from_a_cache_and_what_was_written_to_it(
    tmp_path: Path,
) -> None:
    used = Usage(1_000, 10, cached_tokens=600, cache_write_tokens=300)

    async def scenario() -> None:
        async with daemon(tmp_path, [Turn(text="hi", usage=used)]) as d:
            where = await session(d)
            submitted = await say(d, where, "hi")
            await finished(d, submitted)
            total = await d.db.read(lambda tx: usage.total(tx, usage.UsageFilter()))
            turns = await d.db.read(lambda tx: prompt_breakdown.of_run(tx, submitted.run_id))
            plans = await d.db.read(lambda tx: route_plans.of_run(tx, submitted.run_id))
        for each in (total, turns[0], plans[0].calls[0]):
            assert (each.input_tokens, each.cached_tokens, each.cache_write_tokens) == (
                1_000,
                600,
                300,
            )

    asyncio.run(scenario())


def test_what_was_remembered_is_shown_once_and_goes_when_it_is_forgotten(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: Turn(text="well"))

    def shown(request: ModelRequest) -> int:
        return str(request.messages).count("40 crowns")

    async def scenario() -> list[int]:
        async with daemon(tmp_path, model, "[memory]\nembeddings = false\n") as d:
            where = await session(d)
            item = await d.memory.add(ME, NewMemory(text=REMEMBERED[0], pinned=True))
            for text in ("what is the harbour fee?", "thanks", "what is the harbour fee?"):
                await finished(d, await say(d, where, text))
            await d.memory.forget(ME, item.memory_id)
            await finished(d, await say(d, where, "and now?"))
        return [shown(request) for request in model.requests]

    assert asyncio.run(scenario()) == [1, 1, 1, 0]
