"""Secrets planted in every door, in every spelling, are found nowhere afterwards."""

import asyncio
import base64
import json
import logging
import os
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from palyra.core.ids import OWNER
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from palyra.serve.wiring.daemon import Daemon
from tests.inprocess import TERMINAL, daemon, finished, say, session
from tests.journals import run as run_loop


def fake(prefix: str, alphabet: str, length: int) -> str:
    """A secret of a known form that never was one; made at run time so that no scanner finds it in
    the repository.
    """
    return prefix + "".join(alphabet[(7 * n + 3) % len(alphabet)] for n in range(length))


LETTERS = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0x"
SECRETS = {
    "aws": fake("AKIA", "QWERTYUIOPASDFGH2345", 16),
    "github": fake("ghp_", LETTERS, 36),
    "openai": fake("sk-proj-", LETTERS, 48),
    "anthropic": fake("sk-ant-api03-", LETTERS, 93) + "AA",
    "slack": fake("xoxb-", "1234567890", 12)
    + "-"
    + fake("", "0987654321", 12)
    + "-"
    + fake("", LETTERS, 24),
    "password": "postgres://app:" + fake("", LETTERS, 20) + "@db.internal:5432/main",
}
CORE = {
    name: value.split(":")[2].split("@")[0] if name == "password" else value
    for name, value in SECRETS.items()
}


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


SPELLINGS = {
    "plain": lambda text: text,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "url": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "json": lambda text: json.dumps({"value": text}),
    "json-escaped": lambda text: '{"value": "' + escaped(text) + '"}',
}


def traces(secret: str) -> list[bytes]:
    """Everything that would give the secret away, whoever wrote it."""
    raw = secret.encode()
    found = [
        raw,
        quote(secret, safe="").encode(),
        "".join(f"%{byte:02X}" for byte in raw).encode(),
        escaped(secret).encode(),
        raw.hex().encode(),
    ]
    for shift in range(3):
        # Base64 of the secret inside anything: the part that does not depend on its neighbours.
        encoded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        found.append(encoded[4 if shift else 0 : -4])
    return found


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_planted_secret_is_found_nowhere_afterwards(
    tmp_path: Path, spelling: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    spell = SPELLINGS[spelling]
    work = tmp_path / "work"
    work.mkdir()
    planted = "\n".join(f"{name} credentials: {spell(secret)}" for name, secret in SECRETS.items())
    (work / "notes.txt").write_text(planted)
    chunks = tuple(planted[at : at + 5] for at in range(0, len(planted), 5))
    model = ScriptedModel(
        [
            Turn(
                text=chunks,
                reasoning=chunks,
                calls=(
                    ScriptedCall(name="fs.read", arguments={"path": "notes.txt"}),
                    ScriptedCall(name="fs.search", arguments={"pattern": "credentials"}),
                    ScriptedCall(
                        name="fs.write", arguments={"path": "out.txt", "content": planted}
                    ),
                    ScriptedCall(name="no.tool", arguments={"x": planted}),
                ),
            ),
            Turn(text=("done",)),
        ]
    )
    seen: list[bytes] = []

    async def scenario(d: Daemon) -> None:
        where = await session(d, title=planted[:190], label=" ".join(planted[:150].split()))
        watching = asyncio.create_task(watch(d, where.session_id, seen))
        run = await say(d, where, f"keep these\n{planted}")
        assert (await finished(d, run)).kind == "run.completed"
        await asyncio.wait_for(watching, 20)
        assert not (work / "out.txt").exists(), "a placeholder must not be written into a file"

    async def inside() -> None:
        async with daemon(tmp_path, model, '[policy]\npreset = "coding"\n') as opened:
            await scenario(opened)
            home_of_running = everything_below(tmp_path / "home")
        places = {
            "the home folder while running": home_of_running,
            "the home folder afterwards": everything_below(tmp_path / "home"),
            "the model's requests": b"".join(map(msgspec.json.encode, model.requests)),
            "the watchers": b"".join(seen),
            "the log": "\n".join(record.getMessage() for record in caplog.records).encode(),
        }
        for name, secret in CORE.items():
            for trace in traces(secret):
                for place, content in places.items():
                    assert trace not in content, f"{name} ({spelling}) is in {place}: {trace!r}"

    run_loop(inside())


async def watch(d: Daemon, session_id: str, seen: list[bytes]) -> None:
    async for batch in d.gateway.watch(OWNER, session_id, 0):
        seen.extend(wire for _, wire in batch)
        if any(seq and msgspec.json.decode(wire)["kind"] in TERMINAL for seq, wire in batch):
            return


def everything_below(folder: Path) -> bytes:
    """The bytes of every file: database, WAL, keys, config, logs."""
    content = b""
    for root, _, names in os.walk(folder):
        for name in names:
            content += Path(root, name).read_bytes()
    assert len(content) > 10_000
    return content


def test_a_checkpoint_keeps_a_secret_file_sealed_and_gives_it_back_exactly(tmp_path: Path) -> None:
    from palyra.features.time_travel.undo import Undo

    work = tmp_path / "work"
    work.mkdir()
    before = f"token = {SECRETS['github']}\nname = old\n"
    (work / "settings.ini").write_text(before)
    patch = {"edits": [{"path": "settings.ini", "search": "old", "replace": "new"}]}
    turns = [Turn(calls=(ScriptedCall(name="fs.patch", arguments=patch),)), Turn(text=("ok",))]

    async def inside() -> None:
        async with daemon(tmp_path, turns, '[policy]\npreset = "coding"\n') as d:
            where = await session(d)
            assert (await finished(d, await say(d, where, "go"))).kind == "run.completed"
            assert (work / "settings.ini").read_text() == before.replace("old", "new")
            assert SECRETS["github"].encode() not in everything_below(tmp_path / "home")
            await d.undoing.undo(OWNER, where.session_id, Undo())
            assert (work / "settings.ini").read_text() == before

    run_loop(inside())
