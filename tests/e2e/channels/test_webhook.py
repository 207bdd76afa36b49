"""The signed webhook over the daemon's own HTTP: what is forged, old or broken is refused, and what
is right is answered once.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from palyra.core.errors import InvalidInput
from palyra.features.channels.contract import ConnectionRefused, ConnectorSettings, HookAnswer
from palyra.features.channels.webhook import SIGNATURE, TIMESTAMP, Webhook
from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from tests.inprocess import daemon
from tests.webhook_world import SECRET, Program, program, signed

BODY = json.dumps(
    {"id": "1", "conversation": "c", "sender": {"id": "anna"}, "text": "hello", "direct": True}
).encode()


def play(
    folder: Path, scene: Callable[[Daemon, Program], Awaitable[None]], *, up: bool = True
) -> None:
    async def whole() -> None:
        async with program() as other:
            if not up:
                other.up.clear()
            (folder / "secret").write_text(SECRET)
            table = f"""[channels.hook]
kind = "webhook"
direct = "allow"
settings = ["url={other.url}", "secret=file:{folder}/secret"]
"""
            async with daemon(folder, [Turn(text="answer")] * 9, table) as opened:
                opened.channels.intake.holding.quiet_ms = 5
                if up:
                    await opened.channels.connections.ready("hook")
                await scene(opened, other)

    asyncio.run(asyncio.wait_for(whole(), 60))


async def post(opened: Daemon, headers: dict[str, str], body: bytes = BODY) -> HookAnswer:
    return await opened.channels.hook("hook", headers, body)


def test_a_signed_message_is_answered_once_however_often_it_is_posted(tmp_path: Path) -> None:
    async def scene(opened: Daemon, other: Program) -> None:
        answers = [json.loads((await post(opened, signed(BODY))).body) for _ in range(3)]
        assert [each["duplicate"] for each in answers] == [False, True, True]
        assert len({each["message_id"] for each in answers}) == 1
        while not other.posted:
            await opened.db.write(lambda tx: None)
        await opened.channels.outbox.idle.wait()
        assert [(each.conversation, each.text) for each in other.posted] == [("c", "answer")]
        assert other.forged == 0

    play(tmp_path, scene)


def test_a_message_that_comes_while_the_channel_connects_is_taken(tmp_path: Path) -> None:
    """After a restart the sender is not told to post again."""

    async def scene(opened: Daemon, other: Program) -> None:
        early = asyncio.create_task(post(opened, signed(BODY)))
        forged = await post(opened, {**signed(BODY), SIGNATURE: "sha256=0"})
        assert (forged.status, early.done()) == (401, False)
        other.up.set()
        assert (await early).status == 202

    play(tmp_path, scene, up=False)


def test_what_is_forged_old_or_broken_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async def scene(opened: Daemon, other: Program) -> None:
        good = signed(BODY)
        cases = [
            ({}, BODY, 401),
            ({**good, SIGNATURE: "sha256=" + "0" * 64}, BODY, 401),
            ({**good, SIGNATURE: "é"}, BODY, 401),
            (good, BODY + b" ", 401),
            (signed(BODY, secret="somebody else's secret"), BODY, 401),
            (signed(BODY, now_s=int(time.time()) - 301), BODY, 401),
            (signed(BODY, now_s=int(time.time()) + 301), BODY, 401),
            ({**good, TIMESTAMP: "²"}, BODY, 401),
            ({**good, TIMESTAMP: "9" * 5_000}, BODY, 401),
            (signed(b"{}"), b"{}", 400),
            (signed(b"\xff"), b"\xff", 400),
        ]
        for headers, body, status in cases:
            assert (await post(opened, headers, body)).status == status
        broken = json.dumps(
            {**json.loads(BODY), "files": [{"name": "a", "data": "not base64!"}]}
        ).encode()
        assert (await post(opened, signed(broken), broken)).status == 400
        assert await opened.channels.messages() == []

    play(tmp_path, scene)


def test_a_program_that_does_not_know_us_is_refused_with_what_to_do() -> None:
    async def scene() -> None:
        async with program() as other:
            other.refuses = True
            connector = Webhook(
                ConnectorSettings(
                    "hook",
                    {"url": other.url, "secret": SECRET},
                    lambda: time.time_ns() // 1_000_000,
                )
            )
            with pytest.raises(ConnectionRefused, match="check url and secret"):
                await connector.test()
            await connector.close()

    asyncio.run(asyncio.wait_for(scene(), 30))


@pytest.mark.parametrize(
    ("url", "secret"), [("ftp://x", SECRET), ("https://x.example", "short"), ("x", SECRET)]
)
def test_settings_that_cannot_work_are_refused_at_once(url: str, secret: str) -> None:
    with pytest.raises(InvalidInput):
        Webhook(ConnectorSettings("hook", {"url": url, "secret": secret}, lambda: 0))
