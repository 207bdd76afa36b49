"""Benchmark of what memory tells a run, end to end: facts are remembered, plain questions about
them in other words are asked in new sessions, and what arrives at the provider's socket is read.

The right fact in the prompt, the share of what was told that has nothing to do with the question,
questions without an answer that were told nothing, and corrected facts that were told all the same.
First with an embedding process that has just been ended, as after a pause, then warm.
"""

import asyncio
import json
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.daemon import DaemonProcess, start
from tests.fake_provider import Answer, FakeProvider, Script, openai_chat

from bench.common import CONFIG, Table
from bench.memory_facts import FACTS, UNKNOWN
from bench.memory_set import ANSWERED, UNANSWERED

_HERE = Path(__file__).resolve().parent
_LINE = re.compile(r"^- (.*) \[\w+ ([0-9A-Z]{26})\]", re.MULTILINE)
_SECONDS = 600
_CORRECTED = 10


class Told(NamedTuple):
    """A store of facts, what is asked about them, and questions that none of them answers. Of the
    questions of a fitted set every second one was used to fit the weights.
    """

    name: str
    facts: list[tuple[str, str]]
    unknown: list[str]
    fitted: bool


def read(name: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The facts of a file with the question that each answers, and the questions without one."""
    facts: list[tuple[str, str]] = []
    unknown: list[str] = []
    for line in (_HERE / name).read_text().splitlines():
        if line.startswith("? "):
            unknown.append(line[2:])
        elif line and not line.startswith("#"):
            text, _, question = line.partition(" | ")
            facts.append((text, question))
    return facts, unknown


def stores() -> Iterator[Told]:
    yield Told("200 facts", list(FACTS), list(UNKNOWN), fitted=True)
    for name in ("notes", "sayings"):
        yield Told(name, *read(f"memory_{name}.txt"), fitted=True)
    yield Told("our own set", list(ANSWERED), list(UNANSWERED), fitted=False)


def tables() -> list[Table]:
    columns = (
        "set",
        "questions",
        "right fact told",
        "of what was told, irrelevant",
        "without an answer: told nothing",
        "corrected facts told",
        "not searched or words only",
    )
    rows = []
    for each in stores():
        with _at_the_socket() as (provider, url), tempfile.TemporaryDirectory() as folder:
            config = CONFIG.format(url=url, window=128_000)
            with start(Path(folder), config=config) as daemon:
                rows += _measured(daemon, provider, each)
    return [Table("What memory tells a run, read at the provider's socket", columns, rows)]


@contextmanager
def _at_the_socket() -> Iterator[tuple[FakeProvider, str]]:
    """A provider on loopback that keeps what it was sent."""
    provider = FakeProvider(lambda request: Answer(openai_chat(Script(("Noted.",)))))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(provider.listen(0), loop).result(10)
    try:
        yield provider, provider.url
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def _measured(daemon: DaemonProcess, provider: FakeProvider, given: Told) -> list[tuple[str, ...]]:
    corrected = _remembered(daemon, given)
    asked = [(question, text) for text, question in given.facts if question]
    halves = [("", asked, given.unknown)]
    if given.fitted:
        halves = [
            (" (fitted half)", asked[::2], given.unknown[::2]),
            (" (held-out half)", asked[1::2], given.unknown[1::2]),
        ]
    rows = []
    for cold in (True, False):
        for name, questions, unknown in halves:
            answers = [
                (_ask(daemon, provider, text, cold=cold), right) for text, right in questions
            ]
            nothing = [_ask(daemon, provider, text, cold=cold) for text in unknown]
            when = "after a pause" if cold else "warm"
            rows.append(_row(f"{given.name}{name}, {when}", answers, nothing, corrected))
            if cold:
                # One half is enough to see that a pause changes nothing.
                break
    return rows


class _Answer(NamedTuple):
    told: list[str]
    problem: str


def _row(
    name: str,
    answers: list[tuple[_Answer, str]],
    nothing: list[_Answer],
    corrected: set[str],
) -> tuple[str, ...]:
    told = [text for answer, _ in answers for text in answer.told]
    told += [text for answer in nothing for text in answer.told]
    right = sum(text in answer.told for answer, text in answers)
    stale = sum(text in corrected for text in told)
    problems = sum(bool(answer.problem) for answer, _ in answers)
    return (
        name,
        f"{len(answers)} + {len(nothing)}",
        f"{right / len(answers):.2f}",
        f"{1 - right / max(1, len(told)):.2f} of {len(told)}",
        f"{sum(not answer.told for answer in nothing) / len(nothing):.2f}",
        str(stale),
        str(problems),
    )


def _remembered(daemon: DaemonProcess, given: Told) -> set[str]:
    """Facts that nobody asks about were something else before. Says what they were."""
    old: set[str] = set()
    for text, question in given.facts:
        if not question and len(old) < _CORRECTED:
            before = f"Formerly: {text}"
            item = daemon.post("/v1/memory", {"text": before})
            daemon.request("PATCH", f"/v1/memory/{item['memory_id']}", {"text": text})
            old.add(before)
        else:
            daemon.post("/v1/memory", {"text": text})
    until = time.monotonic() + _SECONDS
    while daemon.get("/v1/memory/status")["not_embedded"]:
        assert time.monotonic() < until, "embedding took too long"
        time.sleep(0.2)
    return old


def _ask(daemon: DaemonProcess, provider: FakeProvider, text: str, *, cold: bool) -> _Answer:
    """Return what the model was shown of memory with a question that begins a new session."""
    if cold:
        _end_the_embedding_process(daemon)
    sent = len(provider.requests)
    _, entries = daemon.run(text)
    request: dict[str, Any] = json.loads(provider.requests[sent].body)
    shown = "\n".join(
        part if isinstance(part, str) else json.dumps(part)
        for message in request["messages"]
        for part in _texts(message["content"])
    )
    assembled = next(each["event"] for each in entries if each["kind"] == "input.assembled")
    problem = next(
        (part["note"] for part in assembled["parts"] if part["source"] == "memory search"), ""
    )
    return _Answer([found[1] for found in _LINE.finditer(shown)], problem)


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part.get("text", "") for part in content or []]


def _end_the_embedding_process(daemon: DaemonProcess) -> None:
    """End the embedding process, as it ends by itself after a pause."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            command = (stat.parent / "cmdline").read_text()
        except (OSError, ValueError):
            continue
        if parent == daemon.process.pid and "palyra.models.embedding_process" in command:
            os.kill(int(stat.parent.name), signal.SIGKILL)
