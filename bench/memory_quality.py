"""Quality of memory search, through the daemon's own search: beside plain full text and plain
embeddings of the same items.

On the conversations in `PALYRA_MATERIAL`, if they are there: turns are remembered in their order,
questions name the turns that answer them. On our own small set always. A question without an answer
is one about another conversation.
"""

import asyncio
import json
import math
import os
import random
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import apsw
import numpy as np
from tests.daemon import DaemonProcess, start

from bench import agent_sessions
from bench.common import ROOT, Table
from bench.memory_facts import FACTS, UNKNOWN
from bench.memory_set import ANSWERED, TALK_QUESTIONS, TALKS, UNANSWERED
from palyra.features.memory import words as memory_words
from palyra.features.memory.relevance import TOLD_FROM
from palyra.models.embeddings import LocalEmbedder

_CONFIG = "[limits]\nrequests_per_second = 1000000\n"
_DATE = re.compile(r"on (\d+) (\w+), (\d+)")
_SECONDS = 900
_TOP = 10


class Question(NamedTuple):
    text: str
    answers: frozenset[int]
    category: str


class Collection(NamedTuple):
    name: str
    items: list[dict[str, Any]]
    questions: list[Question]
    unanswered: list[str]


def tables() -> list[Table]:
    conversations = list(_conversations())
    collections = [
        _ours(),
        _facts(),
        _our_talk(),
        *_agents(),
        *conversations,
        *map(_assisted, conversations),
    ]
    with tempfile.TemporaryDirectory() as folder, start(Path(folder), config=_CONFIG) as daemon:
        return [table for each in collections for table in _measured(daemon, each)]


def _ours() -> Collection:
    items = [{"text": text} for text, _ in ANSWERED]
    questions = [
        Question(asked, frozenset((at,)), "paraphrase") for at, (_, asked) in enumerate(ANSWERED)
    ]
    return Collection("our own set", items, questions, list(UNANSWERED))


def _facts() -> Collection:
    """Two hundred short facts, as people have them remembered; half of the unanswered questions are
    about the same person.
    """
    questions = [
        Question(asked, frozenset((at,)), "paraphrase")
        for at, (_, asked) in enumerate(FACTS)
        if asked
    ]
    return Collection("200 facts", [{"text": text} for text, _ in FACTS], questions, list(UNKNOWN))


def _our_talk() -> Collection:
    places = {
        text: at
        for at, (_, text) in enumerate(
            (part, text) for part, texts in TALKS.items() for text in texts
        )
    }
    items = [
        {"text": text, "source": part, "place": place}
        for part, texts in TALKS.items()
        for place, text in enumerate(texts)
    ]
    questions = [
        Question(asked, frozenset(places[each] for each in answers), "conversation")
        for asked, answers in TALK_QUESTIONS
    ]
    return Collection("our own conversations", items, questions, list(UNANSWERED))


def _agents() -> Iterator[Collection]:
    """Sessions with tools, half by half; all of a half are searched together."""
    sessions = agent_sessions.read()
    middle = len(sessions) // 2
    for half, several in (("first", sessions[:middle]), ("second", sessions[middle:])):
        items: list[dict[str, Any]] = []
        questions: list[Question] = []
        for each in several:
            first = len(items)
            for place, line in enumerate(each.lines):
                given = f" {line.given}" if line.given else ""
                text = f"{line.who}:{given} {line.text}"
                items.append({"text": text, "source": each.title, "place": place})
            questions += [
                Question(asked.text, frozenset(first + at for at in asked.lines), "agent session")
                for asked in each.questions
            ]
        unanswered = [text for each in several for text in each.unanswered]
        yield Collection(f"agent sessions, {half} half", items, questions, unanswered)


def _conversations() -> Iterator[Collection]:
    folder = Path(os.environ.get("PALYRA_MATERIAL", ROOT.parent / "shared" / "material")) / "memory"
    if not folder.is_dir():
        print(
            f"no conversations: {folder} is not there; PALYRA_MATERIAL names where it is\n",
            flush=True,
        )
        return
    for path in sorted(folder.glob("*.json")):
        given = json.loads(path.read_text())
        asked = [[each["question"] for each in one["qa"]] for one in given]
        for at, one in enumerate(given):
            others = [
                question for number, each in enumerate(asked) if number != at for question in each
            ]
            yield _conversation(one, others)


def _assisted(talk: Collection) -> Collection:
    """The same with a long reply behind every second turn, made of what was said around it: texts
    that have all the words, and not the answer.
    """
    chance = random.Random(3)
    said = [str(each["text"]).partition(": ")[2] for each in talk.items]
    items: list[dict[str, Any]] = []
    moved: dict[int, int] = {}
    for at, each in enumerate(talk.items):
        moved[at] = len(items)
        items.append({**each, "place": each["place"] * 2})
        if at % 2 == 0:
            around = said[max(0, at - 12) : at + 12]
            reply = " ".join(chance.sample(around, min(8, len(around))))
            text = f"assistant: Thanks for telling me. You said: {said[at]} {reply} Tell me more."
            items.append({**each, "text": text[:3_900], "place": each["place"] * 2 + 1})
    questions = [
        each._replace(answers=frozenset(moved[answer] for answer in each.answers))
        for each in talk.questions
    ]
    return Collection(f"{talk.name}, with an assistant", items, questions, talk.unanswered)


def _conversation(given: dict[str, Any], others: list[str]) -> Collection:
    items: list[dict[str, Any]] = []
    numbers: dict[str, int] = {}
    talk = given["conversation"]
    for part in sorted(
        (key for key in talk if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:])
    ):
        said_ms = _said_ms(talk[f"{part}_date_time"])
        for place, turn in enumerate(talk[part]):
            numbers[turn["dia_id"]] = len(items)
            caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            text = f"{turn['speaker']}: {turn['text']}{caption}"
            items.append(
                {
                    "text": text,
                    "source": f"{given['sample_id']}/{part}",
                    "place": place,
                    "valid_from_ms": said_ms,
                }
            )
    questions = [
        Question(each["question"], answers, f"category {each['category']}")
        for each in given["qa"]
        if (answers := frozenset(numbers[turn] for turn in each["evidence"] if turn in numbers))
    ]
    return Collection(given["sample_id"], items, questions, others)


def _said_ms(text: str) -> int:
    found = _DATE.search(text)
    assert found is not None, text
    return int(
        datetime.strptime(" ".join(found.groups()), "%d %B %Y").replace(tzinfo=UTC).timestamp()
        * 1000
    )


def _measured(daemon: DaemonProcess, given: Collection) -> list[Table]:
    with _remembered(daemon, given) as (session_id, numbers):

        def ask(text: str) -> tuple[list[int], list[float]]:
            query = urlencode({"text": text, "session_id": session_id, "limit": _TOP})
            searched = daemon.get(f"/v1/memory/search?{query}")
            ranked = [numbers[each["item"]["memory_id"]] for each in searched["found"]]
            return ranked, searched.get("relevance", [])

        ours = [ask(question.text) for question in given.questions]
        nothing = [ask(text)[1] for text in given.unanswered]
    parents = asyncio.run(_parents(given))
    rows = [
        _row("words alone (FTS5, BM25)", given.questions, parents[0]),
        _row("meaning alone (cosine)", given.questions, parents[1]),
        _row("palyra", given.questions, [ranked for ranked, _ in ours]),
    ]
    title = f"Memory on {given.name}: {len(given.items)} items, {len(given.questions)} questions"
    by_category = _categories(given.questions, [ranked for ranked, _ in ours])
    columns = ("search", "recall@1", "recall@5", "recall@10", "MRR", "nDCG@10")
    return [
        Table(title, columns, rows),
        by_category,
        _abstention(given, [likely for _, likely in ours], nothing),
    ]


@contextmanager
def _remembered(daemon: DaemonProcess, given: Collection) -> Iterator[tuple[str, dict[str, int]]]:
    session_id = daemon.post("/v1/sessions")["session_id"]
    for first in range(0, len(given.items), 200):
        new = [{**item, "scope": "session"} for item in given.items[first : first + 200]]
        daemon.post("/v1/memory/import", {"new": new, "session_id": session_id}, timeout_s=120)
    until = time.monotonic() + _SECONDS
    while daemon.get("/v1/memory/status")["not_embedded"]:
        assert time.monotonic() < until, "embedding took too long"
        time.sleep(0.2)
    places = {_key(item): at for at, item in enumerate(given.items)}
    numbers, before = {}, ""
    while True:
        page = daemon.get(
            "/v1/memory?"
            + urlencode({"state": "active", "limit": 500} | ({"before": before} if before else {}))
        )
        for item in page["items"]:
            at = places.get(_key(item))
            if at is not None and item.get("scope_value") == session_id:
                numbers[item["memory_id"]] = at
        before = page.get("next", "")
        if not before:
            break
    yield session_id, numbers


def _key(item: dict[str, Any]) -> tuple[str, int]:
    return (item["source"], item["place"]) if item.get("source") else (item["text"], 0)


async def _parents(given: Collection) -> tuple[list[list[int]], list[list[int]]]:
    dated = [memory_words.dated(item["text"], item.get("valid_from_ms", 0)) for item in given.items]
    table = apsw.Connection(":memory:")
    table.execute("CREATE VIRTUAL TABLE plain USING fts5(text, tokenize = 'porter unicode61')")
    table.executemany("INSERT INTO plain (rowid, text) VALUES (?, ?)", list(enumerate(dated)))
    words = []
    for question in given.questions:
        terms = " OR ".join(f'"{term}"' for term in memory_words.terms(question.text))
        rows = (
            table.execute(
                "SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?", (terms, _TOP)
            )
            if terms
            else []
        )
        words.append([int(row[0]) for row in rows])
    embedder = LocalEmbedder()
    try:
        items = np.array(
            [
                np.frombuffer(raw, "<f4")
                for raw in await embedder.embed([item["text"] for item in given.items])
            ]
        )
        asked = np.array(
            [
                np.frombuffer(raw, "<f4")
                for raw in await embedder.embed([each.text for each in given.questions])
            ]
        )
    finally:
        await embedder.close()
    return words, [np.argsort(-(items @ vector), kind="stable")[:_TOP].tolist() for vector in asked]


def _recall(questions: Sequence[Question], found: Sequence[list[int]], top: int) -> float:
    shares = [
        len(each.answers & set(ranked[:top])) / len(each.answers)
        for each, ranked in zip(questions, found, strict=True)
    ]
    return sum(shares) / len(shares)


def _row(name: str, questions: Sequence[Question], found: Sequence[list[int]]) -> tuple[str, ...]:
    first = [
        next((1 / (at + 1) for at, item in enumerate(r) if item in q.answers), 0.0)
        for q, r in zip(questions, found, strict=True)
    ]
    gain = [
        _ndcg(question.answers, ranked) for question, ranked in zip(questions, found, strict=True)
    ]
    recalls = (f"{_recall(questions, found, top):.3f}" for top in (1, 5, _TOP))
    return (name, *recalls, f"{sum(first) / len(first):.3f}", f"{sum(gain) / len(gain):.3f}")


def _ndcg(answers: frozenset[int], ranked: list[int]) -> float:
    best = sum(1 / math.log2(at + 2) for at in range(min(_TOP, len(answers))))
    return (
        sum(1 / math.log2(at + 2) for at, item in enumerate(ranked[:_TOP]) if item in answers)
        / best
    )


def _categories(questions: Sequence[Question], found: Sequence[list[int]]) -> Table:
    rows = []
    for name in sorted({each.category for each in questions}):
        chosen = [
            (q, ranked) for q, ranked in zip(questions, found, strict=True) if q.category == name
        ]
        picked, ranks = [q for q, _ in chosen], [ranked for _, ranked in chosen]
        rows.append(
            (
                name,
                str(len(chosen)),
                *(f"{_recall(picked, ranks, top):.3f}" for top in (1, 5, _TOP)),
            )
        )
    return Table(
        "The same by category, palyra",
        ("category", "questions", "recall@1", "recall@5", "recall@10"),
        rows,
    )


def _abstention(
    given: Collection, answered: list[list[float]], nothing: list[list[float]]
) -> Table:
    """Return whether what the search says of its results tells a question with an answer from one
    without.
    """
    high, low = ([sum(each) for each in several] for several in (answered, nothing))
    pairs = [(one > other) + (one == other) / 2 for one in high for other in low]
    above, wrong = (
        sum(max(each, default=0.0) >= TOLD_FROM for each in several)
        for several in (answered, nothing)
    )
    row = (
        f"{sum(pairs) / len(pairs):.3f}",
        f"{above} of {len(answered)}",
        f"{len(nothing) - wrong} of {len(nothing)}",
        f"{above / (above + wrong):.3f}" if above + wrong else "-",
    )
    columns = (
        "AUC",
        "with an answer: something told",
        "without: nothing told",
        "of those told something, with an answer",
    )
    return Table(f"Whether there is an answer, on {given.name}", columns, [row])
