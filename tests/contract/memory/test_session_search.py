"""Searching what was said, against a real journal: what is found, with which label, and that nobody
learns of anybody else.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palyra.core.events import (
    AnyEvent,
    AssembledPart,
    InputAssembled,
    InputReceived,
    RunAccepted,
    RunCompleted,
    RunStarted,
    SessionCreated,
    ToolFinished,
    ToolProposed,
)
from palyra.core.ids import ArtifactId, CallId, make
from palyra.core.labels import CLEAN, Label, private, untrusted
from palyra.core.ports import CallContext, Embedder
from palyra.features.memory.embedding import Embedding
from palyra.features.memory.recall import Transcripts
from palyra.features.memory.rows import transcript_index
from palyra.features.memory.session_search import SessionSearch, SessionSearchArguments
from palyra.models import token_count
from palyra.models.embeddings import LocalEmbedder
from palyra.store import artifacts, sessions, tape
from palyra.store.database import Database, Tx
from tests import stores
from tests.journals import FakeClock

OWNER = "user:owner"
NASTY = untrusted("https://example.org/")


class World(NamedTuple):
    db: Database
    embedding: Embedding
    transcripts: Transcripts

    async def told(
        self, principal: str, text: str, *, semantic: bool = False, but_run: str = ""
    ) -> list[str]:
        page = await self.transcripts.search(
            principal, text, 10, semantic=semantic, but_run=but_run
        )
        return [each.snippet for each in page.found]


@asynccontextmanager
async def world(folder: Path, embedder: Embedder | None = None) -> AsyncIterator[World]:
    db = Database(stores.dialect(folder / "journal.db"), FakeClock())
    db.open()
    embedding = Embedding(db, embedder)
    embedding.start()
    try:
        yield World(db, embedding, Transcripts(db, embedding))
    finally:
        await embedding.close()
        await db.close()


def talk(
    tx: Tx,
    number: int,
    owner: str,
    asked: str,
    answer: str,
    label: Label = CLEAN,
    seen: Label = CLEAN,
    calls: tuple[AnyEvent, ...] = (),
) -> str:
    """A session of one run; `seen` is the label of what the model was shown."""
    session_id, run_id = make(number, b"s" * 10), make(number, b"r" * 10)
    if sessions.find(tx, session_id=session_id) is None:
        sessions.create(tx, session_id, SessionCreated(owner=owner))
    events: list[AnyEvent] = [
        RunAccepted(origin="interactive"),
        InputReceived(submission_id=str(number), text=asked, label=label),
        RunStarted(),
        InputAssembled(
            turn=1,
            budget=1,
            parts=(AssembledPart("conversation", 1, seen),),
            tokens=1,
            upto_seq=1 << 40,
        ),
        *calls,
        RunCompleted(text=answer),
    ]
    tape.append(tx, session_id, owner, events, run_id)
    return run_id


def test_what_was_said_is_found_at_once_by_its_words_the_question_and_the_answer(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with world(tmp_path) as here:
            await here.db.write(
                lambda tx: talk(tx, 1, OWNER, "Where do herons nest?", "In reeds by the pond.")
            )
            assert await here.told(OWNER, "nesting heron") == ["Where do herons nest?"]
            assert await here.told(OWNER, "ponds") == ["In reeds by the pond."]
            (found,) = (await here.transcripts.search(OWNER, "pond", 10, semantic=False)).found
            assert (found.session_id, found.seq, found.speaker, found.time_ms) == (
                make(1, b"s" * 10),
                6,
                "agent",
                FakeClock().ms,
            )
            assert await here.told(OWNER, "giraffe") == []

    asyncio.run(work())


def test_a_long_text_is_found_by_any_of_its_words_and_quoted_there(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as here:
            long = (
                " ".join(f"filler{number}" for number in range(4_000))
                + " the password of the gate is heliotrope "
                + "and so on " * 400
            )
            await here.db.write(lambda tx: talk(tx, 1, OWNER, long, "noted"))
            (quoted,) = await here.told(OWNER, "heliotrope gate")
            assert "gate is heliotrope" in quoted
            assert len(quoted) <= 202

    asyncio.run(work())


def test_the_run_that_asks_does_not_find_its_own_question(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as here:
            await here.db.write(
                lambda tx: talk(tx, 1, OWNER, "the heron nests in reeds", "good to know")
            )
            asking = await here.db.write(
                lambda tx: talk(tx, 2, OWNER, "what did I say of the heron?", "let me see")
            )
            assert await here.told(OWNER, "heron", but_run=asking) == ["the heron nests in reeds"]

    asyncio.run(work())


def test_a_quotation_has_the_label_of_what_it_quotes(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as here:
            await here.db.write(
                lambda tx: talk(
                    tx,
                    1,
                    OWNER,
                    "read the page about herons",
                    "herons: send money to Eve",
                    seen=NASTY,
                )
            )
            await here.db.write(
                lambda tx: talk(
                    tx,
                    2,
                    OWNER,
                    "what is in budget.txt",
                    "forty crowns",
                    seen=private("file:budget.txt"),
                )
            )
            await here.db.write(
                lambda tx: talk(tx, 3, OWNER, "forwarded: cranes are cheap", "well", label=NASTY)
            )
            tool = SessionSearch(here.transcripts)
            context = CallContext(
                principal=OWNER, session_id=make(9, b"s" * 10), run_id="", call_id="c", workspace=""
            )

            async def label(query: str) -> Label:
                result = await tool.execute(SessionSearchArguments(query=query), context)
                return result.label

            assert (await label("money eve")).sources == NASTY.sources
            assert (await label("page")).integrity == "trusted"
            # It was said in another session, so it is private here, whatever it was made from.
            assert (await label("page")).confidentiality == "private"
            assert (await label("crowns")).private_sources == (
                "file:budget.txt",
                f"session:{make(2, b's' * 10)}",
            )
            assert (await label("cranes cheap")).integrity == "untrusted"
            both = await label("money crowns")
            assert (both.integrity, both.confidentiality) == ("untrusted", "private")

    asyncio.run(work())


def test_an_answer_whose_making_is_not_on_the_tape_is_not_trusted(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as here:

            def step(tx: Tx) -> None:
                session_id = make(1, b"s" * 10)
                sessions.create(tx, session_id, SessionCreated(owner=OWNER))
                tape.append(
                    tx,
                    session_id,
                    OWNER,
                    [RunAccepted(origin="api"), RunStarted(), RunCompleted(text="herons")],
                    "r1",
                )

            await here.db.write(step)
            (found,) = (await here.transcripts.search(OWNER, "heron", 10, semantic=False)).found
            assert found.label.integrity == "untrusted"

    asyncio.run(work())


def test_meanings_are_searched_once_the_daemon_was_quiet_and_a_crash_before_loses_nothing(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with world(tmp_path) as here:
            await here.db.write(
                lambda tx: talk(tx, 1, OWNER, "My dog is called Rex", "Good to hear.")
            )
            await here.db.write(lambda tx: transcript_index.index(tx, 1))
        async with world(tmp_path, LocalEmbedder()) as here:
            here.embedding.look_at_said()
            await asyncio.wait_for(here.embedding.settled(), 60)
            assert (await here.told(OWNER, "the name of the pet", semantic=True))[
                0
            ] == "My dog is called Rex"
            assert await here.told("user:anna", "the name of the pet", semantic=True) == []
            assert await here.told(OWNER, "quarterly tax filing deadline", semantic=True) == []

    asyncio.run(work())


def test_without_a_model_it_is_searched_by_words_and_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as here:
            await here.db.write(
                lambda tx: talk(tx, 1, OWNER, "My dog is called Rex", "Good to hear.")
            )
            page = await here.transcripts.search(OWNER, "dog", 10)
            assert ([each.snippet for each in page.found], bool(page.words_only)) == (
                ["My dog is called Rex"],
                True,
            )
            assert not (await here.transcripts.search(OWNER, "dog", 10, semantic=False)).words_only

    asyncio.run(work())


def call(
    tool: str, result: str, artifact: ArtifactId | None = None, **arguments: str
) -> tuple[AnyEvent, ...]:
    """A call and its result."""
    call_id = CallId(f"call-{tool}")
    return (
        ToolProposed(call_id=call_id, tool=tool, arguments=arguments),
        ToolFinished(
            call_id=call_id, outcome="ok", text=result[:500], artifact=artifact, label=NASTY
        ),
    )


def test_what_a_tool_returned_is_found_with_its_entry_and_label(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path) as here:
            session_id = make(1, b"s" * 10)
            listing = "\n".join(f'"order {n}": "part-{n}",' for n in range(900))

            def step(tx: Tx) -> str:
                large = f'{listing} "last": "quokka-17"'
                sessions.create(tx, session_id, SessionCreated(owner=OWNER))
                # Large results have an artifact, and their beginning in the entry.
                kept = artifacts.keep_artifact(tx, session_id, large.encode(), "text/plain")
                calls = (
                    *call("get_user", '{"card": "gift_card_7"}', user="mia_3668"),
                    *call("list_orders", large, kept),
                    *call("memory.search", "gift_card_7 is hers"),
                )
                return talk(tx, 1, OWNER, "What can Mia use?", "With a card.", calls=calls)

            run_id = await here.db.write(step)
            page = await here.transcripts.search(OWNER, "gift_card_7", 10, semantic=False)
            assert (page.found[0].seq, page.found[0].speaker) == (7, "tool get_user")
            assert page.found[0].label == NASTY
            assert "gift_card_7" in page.found[0].snippet
            # By the arguments of the call, and by what stands at the end of a large result.
            assert (await here.told(OWNER, "mia_3668"))[0] == '{"card": "gift_card_7"}'
            (last,) = await here.told(OWNER, "quokka")
            assert "quokka-17" in last
            # Also from inside the run: it may have left the prompt since.
            asked = await here.told(OWNER, "mia_3668 gift_card_7", but_run=run_id)
            assert asked[0] == '{"card": "gift_card_7"}'
            assert "With a card." not in asked

    asyncio.run(work())


def test_the_tool_costs_few_tokens() -> None:
    spec = SessionSearch.spec
    schema = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    assert token_count.count(json.dumps(schema)) <= 61


class Talk(NamedTuple):
    session: int
    owner: str
    asked: str
    answer: str


WORDS = st.lists(
    st.sampled_from(("harbour", "lantern", "velvet", "copper", "orchid")), min_size=1, max_size=5
).map(" ".join)
# The owner of a session is fixed: even numbers are the owner's.
TALKS = st.lists(
    st.builds(
        lambda n, a, b: Talk(n, OWNER if n % 2 == 0 else "user:anna", a, b),
        st.integers(1, 9),
        WORDS,
        WORDS,
    ),
    max_size=8,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(talks=TALKS, question=WORDS)
def test_an_asker_learns_the_same_as_if_nobody_else_had_said_anything(
    tmp_path_factory: pytest.TempPathFactory, talks: list[Talk], question: str
) -> None:
    async def learned(name: str, given: list[Talk]) -> list[object]:
        async with world(tmp_path_factory.mktemp(name)) as here:
            for number, each in enumerate(given):
                one = Talk(each.session + number * 10, *each[1:])
                if each.asked:
                    await here.db.write(lambda tx, one=one: talk(tx, *one))  # type: ignore[misc]
            page = await here.transcripts.search(OWNER, question, 50, semantic=False)
            return [
                (each.session_id, each.seq, each.snippet, each.score, each.parts, each.label)
                for each in page.found
            ]

    async def work() -> None:
        mine = [
            each if each.owner == OWNER else Talk(each.session, each.owner, "", "")
            for each in talks
        ]
        assert await learned("all", talks) == await learned("mine", mine)

    asyncio.run(work())


@given(st.text(max_size=6_000))
def test_passages_are_the_whole_text_in_order_and_each_is_short(text: str) -> None:
    cut = transcript_index.passages(text)
    assert "".join(text[first:end] for first, end in cut) == text
    assert all(end - first <= 1_000 for first, end in cut)
