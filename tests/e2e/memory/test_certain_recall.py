"""What is pinned is told whatever the embedding model does; what was not searched as it should be is
on the tape; whoever may ask soon finds the model started.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from palyra.core.ids import OWNER
from palyra.core.messages import Text, UserMessage
from palyra.features.memory import embedding, recall
from palyra.features.memory.model import NewMemory
from palyra.models.scripted import ScriptedModel, Turn
from palyra.serve.wiring.daemon import Daemon
from tests.faults import eventually, in_daemon
from tests.inprocess import body, entries, finished, say, session
from tests.remembering import ME, WordEmbedder

FINE = {"*": [Turn(text=("fine",))] * 4}
PINNED = NewMemory(text="Answer in Czech", pinned=True)
FEE = NewMemory(text="The harbour fee is 40 crowns")


class SilentEmbedder:
    """A model that is asked and never answers."""

    name = "silent"
    running = True

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        await asyncio.Event().wait()
        return []

    async def close(self) -> None:
        pass


class AskedEmbedder(WordEmbedder):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.asked += texts
        return await super().embed(texts)


async def shown(d: Daemon, session_id: str) -> dict[str, dict[str, Any]]:
    """The parts of the first prompt of a session, by their source."""
    assembled = next(e for e in await entries(d, session_id) if e.kind == "input.assembled")
    return {part["source"]: part for part in body(assembled)["parts"]}


def with_embedder(d: Daemon, embedder: Any) -> None:
    d.memory.embedding._embedder = embedder


def test_pins_are_told_and_words_searched_while_the_model_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "PATIENCE_S", 0.01)
    monkeypatch.setattr(recall, "_PATIENCE_S", 60.0)

    async def scenario(d: Daemon) -> None:
        with_embedder(d, SilentEmbedder())
        pinned, fee = [await d.memory.add(ME, each) for each in (PINNED, FEE)]
        where = await session(d)
        run = await say(d, where, "harbour fee 40 crowns?")
        await finished(d, run)
        parts = await shown(d, where.session_id)
        assert pinned.memory_id in parts["memory"]["note"]
        assert fee.memory_id in parts["memory"]["note"]
        assert parts["memory search"]["note"] == (
            "searched by words only: the embedding model was not ready in time"
        )
        await d.replays.start(OWNER, run.run_id)
        replayed = await d.replays.get(OWNER, run.run_id, 20_000)
        assert replayed.replayed is not None
        assert replayed.replayed.identical, replayed.replayed.difference

    in_daemon(tmp_path, FINE, scenario)


def test_a_search_that_takes_too_long_is_left_out_and_the_tape_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "_PATIENCE_S", 0.01)

    async def scenario(d: Daemon) -> None:
        with_embedder(d, SilentEmbedder())
        pinned, _ = [await d.memory.add(ME, each) for each in (PINNED, FEE)]
        where = await session(d)
        await finished(d, await say(d, where, "harbour fee 40 crowns?"))
        parts = await shown(d, where.session_id)
        assert parts["memory"]["note"] == f"{pinned.memory_id} 0.00"
        assert parts["memory search"]["note"] == "not searched: no answer within 0.01 s"

    in_daemon(tmp_path, FINE, scenario)


def test_nothing_is_said_of_memory_where_all_went_well_or_there_is_none(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        with_embedder(d, AskedEmbedder())
        empty = await session(d)
        await finished(d, await say(d, empty, "hello"))
        assert not {"memory", "memory search"} & (await shown(d, empty.session_id)).keys()
        await d.memory.add(ME, FEE)
        where = await session(d)
        await finished(d, await say(d, where, "The harbour fee is 40 crowns"))
        parts = await shown(d, where.session_id)
        assert "memory" in parts
        assert "memory search" not in parts

    in_daemon(tmp_path, FINE, scenario)


def test_the_model_is_started_when_somebody_may_ask_and_has_something_remembered(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        model = AskedEmbedder()
        with_embedder(d, model)
        await session(d)
        await eventually(lambda: not d.memory.embedding._asking, "a look at what is remembered")
        assert model.asked == []
        await d.memory.add(ME, FEE)
        await eventually(lambda: model.asked, "it was embedded")
        model.asked.clear()
        d.memory.embedding._warm_until = 0.0
        watching = d.hub.subscribe(None)
        await eventually(lambda: model.asked == ["?"], "opening a page starts the model")
        # Once is enough for a while.
        await session(d)
        d.memory.embedding._warm_until = 0.0
        await session(d)
        await eventually(lambda: model.asked == ["?", "?"], "so does a new session")
        d.hub.unsubscribe(None, watching)

    in_daemon(tmp_path, FINE, scenario)


def test_a_model_that_ended_is_started_again_for_who_may_ask(tmp_path: Path) -> None:
    class EndedEmbedder(AskedEmbedder):
        running = False

    async def scenario(d: Daemon) -> None:
        model = EndedEmbedder()
        with_embedder(d, model)
        await d.memory.add(ME, FEE)
        await eventually(lambda: model.asked, "it was embedded")
        for _ in range(2):
            model.asked.clear()
            await session(d)
            await eventually(lambda: model.asked == ["?"], "it was kept, and had ended")
            await eventually(lambda: not d.memory.embedding._asking, "it has answered")

    in_daemon(tmp_path, FINE, scenario)


def test_what_is_doubtful_is_told_with_a_word_of_doubt_and_keeps_it_where_it_stands(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([Turn(text=("fine",))] * 2)

    async def scenario(d: Daemon) -> None:
        with_embedder(d, WordEmbedder())
        # Three say the same of other things: none of them is likelier than the others.
        for name in ("north", "south", "east"):
            await d.memory.add(ME, NewMemory(text=f"The {name} gate opens at dawn"))
        await d.memory.embedding.settled()
        where = await session(d)
        for question in ("the gate opens at dawn", "and after that?"):
            await finished(d, await say(d, where, question))
        first, second = [
            body(each)
            for each in await entries(d, where.session_id)
            if each.kind == "input.assembled"
        ]
        note = next(part["note"] for part in first["parts"] if part["source"] == "memory")
        assert note.count("?") == 3
        assert len(second["kept_memory"]) == 3
        requests = [
            "\n".join(
                part.text
                for message in request.messages
                if isinstance(message, UserMessage)
                for part in message.parts
                if isinstance(part, Text)
            )
            for request in model.requests
        ]
        assert requests[0].count("(may be about something else)") == 3
        assert requests[1].startswith(requests[0])

    in_daemon(tmp_path, model, scenario)
