"""Many messages over all connectors at once, through a real daemon that is killed every few
moments; and what became of each.

The platforms (tests/crash/storm_ends.py) and the model's provider live in this process. They
repeat, break off, refuse, limit and lose answers; the provider is slow and fails. `python -m bench
channels` does it at full size.
"""

import asyncio
import itertools
import json
import random
import re
import signal
import sqlite3
import time
from collections import Counter
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import ports
from tests.crash.storm_ends import ENDS, End
from tests.daemon import DaemonProcess, configure, launch
from tests.fake_provider import Answer, FakeProvider, Request, Script, openai_chat

_IN_FLIGHT = 3
# With the libraries of six platforms to load and work waiting, on a machine that is busy.
_START_S = 60.0
_SECRETS = ("token", "app_token", "password", "secret")
_NUMBER = re.compile(r"m(\d+)\b")
_SETTINGS = """[models]
default = "fake/fake-1"
[providers.fake]
kind = "openai-chat"
base_url = "{url}"
models = ["fake-1"]
[memory]
embeddings = false
[learning]
enabled = false
[healing]
mode = "disabled"
[log]
level = "error"
"""
_CHANNEL = """[channels.{name}]
kind = "{name}"
settings = {settings}
direct = "allow"
groups = "allow"
mention = false
per_minute = 1000000
waiting = 1000
concurrency = 16
"""


@dataclass
class Storm:
    """What was done, and what came of it; counts by channel."""

    said: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    disturbed: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    marked: Counter[str] = field(default_factory=Counter)
    twice: Counter[str] = field(default_factory=Counter)
    # How many messages have come to an end so far.
    ended: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    model_calls: int = 0
    model_failures: int = 0
    slow: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


class _Provider:
    """Says which messages it was shown; now and then it is slow, has a bad day, or will not answer
    at all.
    """

    def __init__(self, storm: Storm, rng: random.Random) -> None:
        self._storm = storm
        self._rng = rng

    def answer(self, request: Request) -> Answer:
        self._storm.model_calls += 1
        users = [each for each in request.json()["messages"] if each["role"] == "user"]
        numbers = _NUMBER.findall(json.dumps(users[-1]["content"]))
        body = openai_chat(Script(text=(" ".join(f"m{number}" for number in numbers),)))
        # However few calls there are, one is slow and one fails.
        luck = {2: 0.05, 4: 0.01}.get(self._storm.model_calls) or self._rng.random()
        if luck < 0.03:
            self._storm.model_failures += 1
            status, code = (503, "overloaded") if luck < 0.02 else (400, "invalid_request_error")
            return Answer(
                json.dumps({"error": {"code": code, "message": "a bad day"}}).encode(),
                status,
                "application/json",
            )
        if luck < 0.10:
            self._storm.slow += 1
            go = asyncio.Event()
            asyncio.get_running_loop().call_later(self._rng.uniform(0.2, 3.0), go.set)
            return Answer(body, late=(20, go))
        return Answer(body)


class _Feed:
    """People who write on: in each conversation a few messages ahead of the answers, and not before
    the last was delivered.
    """

    def __init__(
        self, name: str, end: End, count: int, numbers: "itertools.count[int]", rng: random.Random
    ) -> None:
        self.name = name
        self.end = end
        # One in twenty meets trouble, one in twenty comes again; which is drawn before it begins,
        # and so the same every time.
        some = -(-count // 20)
        self._disturbed, self._repeated = (
            iter(rng.sample([True] * some + [False] * (count - some), count)) for _ in range(2)
        )
        self.of: list[list[int]] = [[] for _ in end.places]
        for each in range(count):
            self.of[each % len(end.places)].append(next(numbers))
        self.next = [0] * len(end.places)
        self.writing: asyncio.Task[None] | None = None
        self._rng = rng

    async def on(self, ended: dict[str, int], storm: Storm) -> None:
        for at, place in enumerate(self.end.places):
            while (
                self.next[at] < len(self.of[at])
                and self.next[at] - ended.get(place, 0) < _IN_FLIGHT
            ):
                number = self.of[at][self.next[at]]
                self.next[at] += 1
                if next(self._disturbed):
                    storm.disturbed[self.name] += 1
                    self.end.trouble(self._rng.choice(self.end.troubles))
                await self.end.say(at, number)
                storm.said[self.name] += 1
                if next(self._repeated):
                    storm.repeated[self.name] += 1
                    await self.end.again()


def storm(
    folder: Path,
    counts: dict[str, int],
    *,
    people: int,
    kill_every_s: float,
    seed: int,
    limit_s: float,
) -> Storm:
    """So many messages on each channel, by so many people there."""
    return asyncio.run(_storm(folder, counts, people, kill_every_s, seed, limit_s))


async def _storm(
    folder: Path,
    counts: dict[str, int],
    people: int,
    kill_every_s: float,
    seed: int,
    limit_s: float,
) -> Storm:
    rng, found, port = random.Random(seed), Storm(), ports.free()
    random.seed(seed)
    home, workspace = folder / "home", folder / "work"
    workspace.mkdir()
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(FakeProvider(_Provider(found, rng).answer))
        numbers, feeds, tables = itertools.count(1), [], ""
        for name, count in counts.items():
            end = await stack.enter_async_context(
                ENDS[name](people, f"http://127.0.0.1:{port}/v1/channels/{name}/hook")
            )
            feeds.append(_Feed(name, end, count, numbers, rng))
            tables += _CHANNEL.format(name=name, settings=_written(folder, name, end.settings))
        configure(home, config=_SETTINGS.format(url=provider.url) + tables)
        daemon = await asyncio.to_thread(launch, home, workspace, port=port, start_s=_START_S)
        try:
            daemon = await _blow(daemon, feeds, found, rng, port, kill_every_s, limit_s)
        finally:
            # Whatever went wrong, it ends with us.
            if daemon.process.poll() is None:
                await asyncio.to_thread(daemon.stop)
        for feed in feeds:
            _account(home / "journal.db", feed, await feed.end.seen(), found)
    return found


async def _blow(
    daemon: DaemonProcess,
    feeds: list[_Feed],
    found: Storm,
    rng: random.Random,
    port: int,
    kill_every_s: float,
    limit_s: float,
) -> DaemonProcess:
    """Let people write and the daemon die until every message has come to an end; gives the daemon
    that lives then.
    """
    journal, total = (
        daemon.home / "journal.db",
        sum(len(each) for feed in feeds for each in feed.of),
    )
    # Nobody writes before each channel was connected once: what was said before that is nobody's to
    # read.
    await _connected(daemon, len(feeds), limit_s=60)
    began, over = time.monotonic(), asyncio.Event()
    killing = asyncio.create_task(_kill(daemon, feeds, found, rng, port, kill_every_s, over))
    dropping = asyncio.create_task(_drop(feeds, found, rng, kill_every_s / 2, over))
    try:
        while not over.is_set():
            ended, waiting = _ended(journal)
            found.ended = Counter(
                {feed.name: sum(_of(feed.name, ended).values()) for feed in feeds}
            )
            if found.ended.total() >= total and not waiting:
                break
            if time.monotonic() - began > limit_s:
                found.problems.append(
                    f"it did not come to an end: {found.ended} of {total}, {waiting} answers wait"
                )
                break
            # Each by itself: a slow platform holds up no other.
            for feed in feeds:
                if feed.writing is None or feed.writing.done():
                    if feed.writing is not None:
                        feed.writing.result()
                    feed.writing = asyncio.create_task(feed.on(_of(feed.name, ended), found))
            await asyncio.sleep(0.1)  # Another process: there is nothing to wait on but the clock.
    finally:
        over.set()
        found.seconds = time.monotonic() - began
        for feed in feeds:
            if feed.writing is not None:
                feed.writing.cancel()
        await dropping
        daemon = await killing
    return daemon


async def _kill(
    daemon: DaemonProcess,
    feeds: list[_Feed],
    found: Storm,
    rng: random.Random,
    port: int,
    every_s: float,
    over: asyncio.Event,
) -> DaemonProcess:
    before: Counter[str] = Counter()
    while not await _passed(rng.uniform(0.5, 1.5) * every_s, over):
        unfinished = [
            feed.name for feed in feeds if found.ended[feed.name] < sum(map(len, feed.of))
        ]
        moved = [name for name in unfinished if found.ended[name] > before[name]]
        if unfinished and 2 * len(moved) < len(unfinished):
            continue  # Not before half of the channels did something: a machine that is busy would never come to an end.
        before = found.ended
        daemon.process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(daemon.process.wait)
        found.kills += 1
        try:
            daemon = await asyncio.to_thread(
                launch, daemon.home, daemon.workspace, port=port, start_s=_START_S
            )
        except AssertionError as error:
            found.problems.append(str(error))
            over.set()
    return daemon


async def _drop(
    feeds: list[_Feed], found: Storm, rng: random.Random, every_s: float, over: asyncio.Event
) -> None:
    while not await _passed(rng.uniform(0.5, 1.5) * every_s, over):
        feed = rng.choice(feeds)
        found.dropped[feed.name] += 1
        await feed.end.drop()


async def _passed(seconds: float, over: asyncio.Event) -> bool:
    """Wait for so long, or until it is over; whether it is."""
    try:
        await asyncio.wait_for(over.wait(), seconds)
    except TimeoutError:
        return False
    return True


def _of(name: str, ended: dict[tuple[str, str], int]) -> dict[str, int]:
    return {place: count for (channel, place), count in ended.items() if channel == name}


async def _connected(daemon: DaemonProcess, channels: int, limit_s: float) -> None:
    until = time.monotonic() + limit_s
    while True:
        shown = (await asyncio.to_thread(daemon.get, "/v1/channels"))["channels"]
        if sum(each["connection"]["state"] == "connected" for each in shown) == channels:
            return
        assert time.monotonic() < until, [(each["name"], each["connection"]) for each in shown]
        await asyncio.sleep(0.05)


def _written(folder: Path, name: str, settings: dict[str, str]) -> str:
    """As they stand in the file: a secret by the place where it lies."""
    lines = []
    for key, value in settings.items():
        if key in _SECRETS:
            place = folder / f"{name}-{key}"
            place.write_text(value)
            place.chmod(0o600)
            value = f"file:{place}"
        lines.append(f"{key}={value}")
    return json.dumps(lines)


def _rows(journal: Path, sql: str, *values: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True, timeout=30)) as connection:
        return connection.execute(sql, values).fetchall()


def _ended(journal: Path) -> tuple[dict[tuple[str, str], int], int]:
    """How many messages of each conversation have come to an end, and how many answers are still to
    be sent.
    """
    rows = _rows(
        journal,
        """SELECT connector, conversation, count(*) FROM channel_messages
            WHERE state IN ('answered', 'refused', 'failed') GROUP BY connector, conversation""",
    )
    ((waiting,),) = _rows(
        journal, "SELECT count(*) FROM channel_outbox WHERE state IN ('waiting', 'sending')"
    )
    return {(connector, place): count for connector, place, count in rows}, waiting


def _account(journal: Path, feed: _Feed, seen: list[tuple[str, str]], found: Storm) -> None:
    """Every way in which a promise was broken on one channel."""
    name, problems = feed.name, found.problems
    messages = _rows(
        journal,
        "SELECT conversation, state, reason, run_id, body FROM channel_messages WHERE connector = ? ORDER BY number",
        name,
    )
    replies = _rows(
        journal,
        "SELECT conversation, reply_id, state, doubtful, kind, body FROM channel_outbox WHERE connector = ? ORDER BY number",
        name,
    )
    states = Counter(row[1] for row in messages)
    found.answered[name], found.refused[name], found.failed[name] = (
        states["answered"],
        states["refused"],
        states["failed"],
    )
    found.answers[name] = sum(reply[2] == "sent" for reply in replies)
    found.marked[name] = sum(bool(reply[3]) for reply in replies if reply[2] == "sent")
    taken = Counter(int(_NUMBER.findall(json.loads(row[4])["text"])[0]) for row in messages)
    if taken != Counter(number for each in feed.of for number in each):
        problems.append(
            f"{name}: {len(messages)} messages are accounted for, and {sum(map(len, feed.of))} were said"
        )
    if sum(states[state] for state in ("answered", "refused", "failed")) != len(messages):
        problems.append(f"{name}: not every message has come to an end: {dict(states)}")
    _each_answered(name, messages, replies, problems)
    for place in feed.end.places:
        ours = [
            (json.loads(row[5])["text"], row[2], bool(row[3])) for row in replies if row[0] == place
        ]
        _as_sent(f"{name} {place}", ours, [text for at, text in seen if at == place], found, name)


def _each_answered(
    name: str, messages: list[tuple[Any, ...]], replies: list[tuple[Any, ...]], problems: list[str]
) -> None:
    """A message that is said to be answered is: by the one reply of its run, which names it or says
    what went wrong.
    """
    sent = {
        row[1]: json.loads(row[5])["text"]
        for row in replies
        if row[2] == "sent" and row[4] == "answer"
    }
    for _, state, reason, run_id, body in messages:
        number = _NUMBER.findall(json.loads(body)["text"])[0]
        answer = sent.get(run_id, "")
        if (
            state == "answered"
            and number not in _NUMBER.findall(answer)
            and not answer.startswith(("That did not", "Stopped"))
        ):
            problems.append(f"{name} m{number} is said to be answered, and is not: {answer!r}")
        if state != "answered" and run_id in sent:
            problems.append(f"{name} m{number} is {state} ({reason}) and was answered")


def _as_sent(
    where: str, ours: list[tuple[str, str, bool]], seen: list[str], found: Storm, name: str
) -> None:
    """What people see is what was sent: each once, or said to be perhaps twice; in the order in
    which they wrote.
    """
    there, sent = Counter(seen), Counter(text for text, state, _ in ours if state == "sent")
    perhaps = {text for text, _, doubtful in ours if doubtful}
    for text in there.keys() | sent.keys():
        more = there[text] - sent[text]
        found.twice[name] += max(more, 0) if sent[text] else 0
        if more < 0:
            found.problems.append(
                f"{where}: {text!r} was sent {sent[text]} times and is there {there[text]} times"
            )
        if more > 0 and text not in perhaps:
            found.problems.append(
                f"{where}: {text!r} is there {more} times too often, and nobody said so"
            )
    last, known = 0, set()
    for text in seen:
        numbers = [int(each) for each in _NUMBER.findall(text)]
        if not numbers or text in known:
            continue
        known.add(text)
        if numbers != sorted(numbers) or numbers[0] < last:
            found.problems.append(f"{where}: {text!r} came after m{last}")
        last = max(last, *numbers)
