"""Many messages through a daemon that is killed every few moments, over connections that break,
with a platform that repeats, refuses, limits and loses answers; and what became of each message.

The platform lives in this process and speaks lines of JSON over a socket; the daemon is a process
of its own, with two channels: one whose platform knows keys, and one whose platform does not.
`python -m bench channels` does the same at full size.
"""

import asyncio
import json
import os
import random
import re
import signal
import sqlite3
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palyra.core.messages import Emit, ModelFailure, ModelReply, ModelRequest, UserMessage
from palyra.features.channels.contract import (
    Abilities,
    ConnectorKind,
    ConnectorLimits,
    ConnectorSettings,
    Inbox,
    Lost,
    Mark,
    Me,
    OutgoingMessage,
    SendFailed,
    SentReceipt,
    Setting,
)
from palyra.features.channels.message_splitter import LengthLimit
from palyra.features.channels.model import Inbound, Sender
from tests.daemon_names import Inside

CHANNELS = ("keyed", "plain")
_IN_FLIGHT = 3
_NUMBER = re.compile(r"m(\d+)\b")


class StormConnector:
    limits = ConnectorLimits(text=LengthLimit(2_000), per_second=100_000.0)

    def __init__(self, given: ConnectorSettings) -> None:
        self.name = given.name
        self._path = given.settings["socket"]
        self.abilities = Abilities(idempotent=given.name == "keyed")
        self._writer: asyncio.StreamWriter | None = None
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def serve(self, door: Inbox) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=1 << 20)
        except OSError as error:
            raise Lost(str(error)) from error
        self._writer = writer
        came: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        taking = asyncio.create_task(self._take(door, came))
        try:
            self._say({"hello": self.name})
            await door.connected(Me(account="palyra", names=("@palyra",)))
            while line := await reader.readline():
                told = json.loads(line)
                if "native" in told:
                    came.put_nowait(told)
                elif (
                    future := self._waiting.pop(told["key"], None)
                ) is not None and not future.done():
                    future.set_result(told)
        except (ConnectionError, ValueError) as error:
            raise Lost(str(error)) from error
        finally:
            self._writer = None
            taking.cancel()
            writer.close()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(SendFailed("the connection broke", maybe_sent=True))
            self._waiting.clear()
        raise Lost("the platform hung up")

    async def _take(self, door: Inbox, came: "asyncio.Queue[dict[str, str]]") -> None:
        """Beside the reading: what is being stored must not hold up the answers to what is being
        sent.
        """
        while True:
            told = await came.get()
            where = told["conversation"]
            message = Inbound(
                native_id=told["native"],
                conversation=where,
                sender=Sender(where),
                text=told["text"],
                is_direct=True,
            )
            await door.take(message)
            self._say({"taken": told["native"]})

    def _say(self, words: dict[str, Any]) -> None:
        if self._writer is None:
            raise Lost("not connected")
        self._writer.write(json.dumps(words).encode() + b"\n")

    async def send(self, out: OutgoingMessage) -> SentReceipt:
        future = self._waiting[out.key] = asyncio.get_running_loop().create_future()
        try:
            self._say({"send": out.key, "conversation": out.conversation, "text": out.text})
            told = await asyncio.wait_for(future, 45)
        except TimeoutError:
            raise SendFailed("no answer", maybe_sent=True) from None
        finally:
            self._waiting.pop(out.key, None)
        if told.get("failed"):
            raise SendFailed(told["failed"], retry_after_ms=told.get("retry_after_ms", 0))
        return SentReceipt(told["id"])

    async def edit(self, conversation: str, native_id: str, text: str, *, thread: str = "") -> None:
        raise NotImplementedError

    async def typing(self, conversation: str, *, thread: str = "") -> None:
        raise NotImplementedError

    async def acknowledge(self, conversation: str, native_id: str, mark: Mark) -> None:
        raise NotImplementedError

    async def test(self) -> Me:
        return Me(account="palyra")

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


KIND = ConnectorKind(
    name="storm",
    title="storm",
    make=StormConnector,
    settings=(Setting(name="socket", words="socket"),),
    hidden=True,
)


class StormModel:
    """Says which messages it was shown; now and then it is slow, and now and then its provider
    fails.
    """

    name = "scripted"

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        said = next(
            message for message in reversed(request.messages) if isinstance(message, UserMessage)
        )
        found = _NUMBER.findall("".join(getattr(part, "text", "") for part in said.parts))
        luck = random.random()
        if luck < 0.02:
            raise ModelFailure("overloaded", "the provider has a bad day", retry_after_ms=20)
        if luck < 0.10:
            await asyncio.sleep(0.3)
        return ModelReply(text=" ".join(f"m{number}" for number in found))


async def _daemon(folder: Path) -> None:
    from palyra.features.channels import registry
    from palyra.serve import config
    from palyra.serve.wiring import daemon

    registry._KINDS["storm"] = "tests.crash.channel_storm:KIND"
    loaded = config.load(folder / "home", {})
    opened = Inside(
        await daemon.start(
            loaded, config.choose(loaded.config, []), {}, providers={"scripted": StormModel()}
        )
    )
    opened.channels.intake.holding.quiet_ms = 30
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await opened.close()


_SETTINGS = """[models]
default = "scripted/one"
[providers.scripted]
kind = "scripted"
models = ["one"]
script = "none"
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
kind = "storm"
settings = ["socket={socket}"]
direct = "allow"
per_minute = 1000000
waiting = 1000
concurrency = 16
"""


@dataclass
class Storm:
    messages: int
    kills: int = 0
    drops: int = 0
    seconds: float = 0.0
    states: dict[str, int] = field(default_factory=dict)
    repeated: int = 0
    refused_sends: int = 0
    lost_answers: int = 0
    marked: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass
class _Line:
    """One channel as the platform sees it."""

    name: str
    unconfirmed: dict[str, dict[str, str]] = field(default_factory=dict)
    to_come: dict[str, deque[dict[str, str]]] = field(default_factory=dict)
    confirmed: list[dict[str, str]] = field(default_factory=list)
    posts: list[tuple[str, str, str]] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    writer: asyncio.StreamWriter | None = None


class _Platform:
    def __init__(self, storm: Storm, rng: random.Random) -> None:
        self.storm = storm
        self.rng = rng
        self.lines = {name: _Line(name) for name in CHANNELS}
        # One in twenty comes twice; which is drawn before it begins, so that some always do.
        self.twice = set(
            rng.sample([f"n{number}" for number in range(storm.messages)], storm.messages // 20)
        )

    @property
    def said(self) -> int:
        return sum(len(line.posts) for line in self.lines.values())

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line: _Line | None = None
        try:
            while raw := await reader.readline():
                told = json.loads(raw)
                if "hello" in told:
                    line = self.lines[told["hello"]]
                    line.writer = writer
                    for message in list(line.unconfirmed.values()):
                        self._deliver(line, message)
                    self.feed(line)
                elif line is not None and "taken" in told:
                    self._taken(line, told["taken"])
                elif line is not None:
                    self._sent(line, told)
                if line is not None and self.rng.random() < 0.0005:
                    self.storm.drops += 1
                    return
        except (ConnectionError, ValueError):
            pass
        finally:
            if line is not None and line.writer is writer:
                line.writer = None
            writer.close()

    def _write(self, line: _Line, words: dict[str, Any]) -> None:
        if line.writer is not None and not line.writer.is_closing():
            line.writer.write(json.dumps(words).encode() + b"\n")

    def _deliver(self, line: _Line, message: dict[str, str]) -> None:
        self._write(line, message)
        if message["native"] in self.twice:
            self.storm.repeated += 1
            self._write(line, message)

    def feed(self, line: _Line) -> None:
        """Let people write on, a few messages ahead of the answers in each conversation."""
        flying = Counter(message["conversation"] for message in line.unconfirmed.values())
        for conversation, waiting in line.to_come.items():
            while waiting and flying[conversation] < _IN_FLIGHT:
                message = waiting.popleft()
                flying[conversation] += 1
                line.unconfirmed[message["native"]] = message
                self._deliver(line, message)

    def _taken(self, line: _Line, native: str) -> None:
        message = line.unconfirmed.pop(native, None)
        if message is not None:
            line.confirmed.append(message)
        if line.confirmed and self.rng.random() < 0.03:
            # Platforms deliver old messages again.
            self.storm.repeated += 1
            self._write(line, self.rng.choice(line.confirmed))

    def _sent(self, line: _Line, told: dict[str, Any]) -> None:
        key, luck = told["send"], self.rng.random()
        known = line.keys.get(key) if line.name == "keyed" else None
        if known is not None:
            self._write(line, {"key": key, "id": known})
            return
        if luck < 0.03:
            self.storm.refused_sends += 1
            more = {"retry_after_ms": 20} if luck < 0.02 else {}
            self._write(line, {"key": key, "failed": "not now", **more})
            return
        native = f"post-{len(line.posts)}"
        line.posts.append((told["conversation"], told["text"], key))
        line.keys[key] = native
        if luck > 0.995 and line.writer is not None:
            # It was taken, and the connection broke before we could say so.
            self.storm.lost_answers += 1
            line.writer.close()
            return
        self._write(line, {"key": key, "id": native})
        self.feed(line)


def storm(
    folder: Path,
    count: int,
    *,
    conversations: int,
    kill_every_s: float,
    seed: int,
    limit_s: float,
    kill_after: int = 20,
) -> Storm:
    """A daemon is killed after about so many seconds, and not before it has sent about `kill_after`
    answers.
    """
    return asyncio.run(
        _storm(folder, count, conversations, kill_every_s, kill_after, seed, limit_s)
    )


async def _storm(
    folder: Path,
    count: int,
    conversations: int,
    kill_every_s: float,
    kill_after: int,
    seed: int,
    limit_s: float,
) -> Storm:
    rng, found = random.Random(seed), Storm(count)
    platform = _Platform(found, rng)
    home, socket = folder / "home", folder / "s"
    home.mkdir()
    tables = "".join(_CHANNEL.format(name=name, socket=socket) for name in CHANNELS)
    (home / "config.toml").write_text(_SETTINGS + tables)
    for number in range(count):
        line = platform.lines[CHANNELS[number % 2]]
        conversation = f"c{number // 2 % conversations}"
        message = {"native": f"n{number}", "conversation": conversation, "text": f"m{number}"}
        line.to_come.setdefault(conversation, deque()).append(message)
    server = await asyncio.start_unix_server(platform.connected, path=str(socket), limit=1 << 20)
    began = time.monotonic()
    child, enough = await _spawn(folder), rng.randint(1, 2 * kill_after)
    next_kill = began + rng.uniform(0.5, 1.5) * kill_every_s
    while not _over(home / "journal.db", count):
        if time.monotonic() - began > limit_s:
            found.problems.append("it did not come to an end")
            break
        # Not before it has done something: a machine that is busy would never come to an end.
        if time.monotonic() >= next_kill and platform.said >= enough:
            child.send_signal(signal.SIGKILL)
            await child.wait()
            found.kills += 1
            child, enough = await _spawn(folder), platform.said + rng.randint(1, 2 * kill_after)
            next_kill = time.monotonic() + rng.uniform(0.5, 1.5) * kill_every_s
        for line in platform.lines.values():
            platform.feed(line)
        await asyncio.sleep(0.1)  # Another process: there is nothing to wait on but the clock.
    found.seconds = time.monotonic() - began
    child.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(child.wait(), 20)
    except TimeoutError:
        child.kill()
    server.close()
    _account(home / "journal.db", platform, found)
    return found


async def _spawn(folder: Path) -> asyncio.subprocess.Process:
    code = f"import asyncio, pathlib; from {__name__} import _daemon; asyncio.run(_daemon(pathlib.Path({str(folder)!r})))"
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}"}
    return await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=env, cwd=folder)


def _rows(journal: Path, sql: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{journal}?mode=ro", uri=True, timeout=30) as connection:
        return connection.execute(sql).fetchall()


def _over(journal: Path, count: int) -> bool:
    if not journal.exists():
        return False
    try:
        ((ended,),) = _rows(
            journal,
            "SELECT count(*) FROM channel_messages WHERE state IN ('answered', 'refused', 'failed')",
        )
        ((waiting,),) = _rows(
            journal, "SELECT count(*) FROM channel_outbox WHERE state IN ('waiting', 'sending')"
        )
    except sqlite3.OperationalError:
        return False
    return ended >= count and not waiting


def _account(journal: Path, platform: _Platform, found: Storm) -> None:
    """Every way in which a promise was broken."""
    rows = _rows(
        journal, "SELECT connector, native_id, conversation, state, reason FROM channel_messages"
    )
    found.states = dict(Counter(row[3] for row in rows))
    said = {(row[0], int(row[1][1:])): row for row in rows}
    if len(rows) != found.messages or len(said) != found.messages:
        found.problems.append(
            f"{len(rows)} messages are accounted for, and {found.messages} were sent"
        )
    doubtful = {
        f"{reply_id}-{part}"
        for reply_id, part in _rows(
            journal, "SELECT reply_id, part FROM channel_outbox WHERE doubtful = 1"
        )
    }
    found.marked = len(doubtful)
    for name, line in platform.lines.items():
        answers: Counter[int] = Counter()
        last: dict[str, int] = {}
        unknown = {
            int(each)
            for _, text, key in line.posts
            if key in doubtful
            for each in _NUMBER.findall(text)
        }
        for conversation, text, key in line.posts:
            numbers = [int(each) for each in _NUMBER.findall(text)]
            again = bool(numbers) and answers[numbers[0]] > 0
            if again and key not in doubtful:
                found.problems.append(f"{name} m{numbers[0]} was answered twice and nobody said so")
            answers.update(numbers)
            if numbers and not again:
                if numbers[0] < last.get(conversation, -1):
                    found.problems.append(
                        f"{name} {conversation}: m{numbers[0]} was answered after m{last[conversation]}"
                    )
                last[conversation] = max(numbers)
        for (of, number), row in said.items():
            # One that may have arrived, as far as anybody knows, and was given up is told to be so.
            unsure = row[3] == "failed" and number in unknown
            if of == name and (row[3] == "answered") != (answers[number] > 0) and not unsure:
                found.problems.append(
                    f"{name} m{number} is {row[3]} ({row[4]}) and was answered {answers[number]} times"
                )
