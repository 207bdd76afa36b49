"""The Slack connector against a Slack that others wrote: the npm package emulate, which
scripts/slack_emulator.py installs.

It has the Web API and no Socket Mode. So the socket is the fake's, and every call but those about
the socket goes to the emulator: what is posted, edited, marked, uploaded and read back is by its
lights.
"""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from scripts import slack_emulator
from slack_sdk.web.async_client import AsyncWebClient

from palyra.features.channels.contract import OutFile, OutgoingMessage
from tests import ports
from tests.connectors import RecordingDoor
from tests.slack_fake import TOKEN, FakeSlack, asked_of, open_at
from tests.slack_world import heard, serving

ANNA = "token-of-anna"
# What belongs to the socket, and what the emulator does not have.
_OWN = ("apps.connections.open", "users.conversations")
Scene = Callable[["Fronted", RecordingDoor, AsyncWebClient], Awaitable[None]]


class Fronted(FakeSlack):
    """The fake's socket before the emulator's Web API."""

    def __init__(self, emulator: str) -> None:
        super().__init__()
        self._emulator = emulator

    async def call(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["method"] in _OWN:
            return await super().call(request)
        # The library puts some calls into the address, which Slack reads and the emulator does not.
        asked = await asked_of(request)
        headers = {"Authorization": request.headers["Authorization"]}
        address = f"{self._emulator}{request.path}"
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(address, json=asked) as answer,
        ):
            return web.json_response(await answer.json(), status=answer.status)


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not slack_emulator.PROGRAM.exists():
        pytest.fail(
            "the Slack emulator is not installed: run `python scripts/slack_emulator.py`, and see what it says"
        )
    folder: Path = tmp_path_factory.mktemp("emulate")
    users = [{"name": "palyra", "real_name": "Palyra"}, {"name": "anna", "real_name": "Anna"}]
    channels = [{"name": name} for name in ("said-once", "missed", "the-rest")]
    tokens = {TOKEN: {"login": "palyra", "scopes": []}, ANNA: {"login": "anna", "scopes": []}}
    (folder / "seed.json").write_text(
        json.dumps({"tokens": tokens, "slack": {"users": users, "channels": channels}})
    )
    port = ports.free()
    url = f"http://127.0.0.1:{port}"
    asked = [
        "start",
        "--service",
        "slack",
        "--port",
        str(port),
        "--base-url",
        url,
        "--seed",
        str(folder / "seed.json"),
    ]
    command = [slack_emulator.node(), str(slack_emulator.PROGRAM), *asked]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            said = []
            for line in process.stdout:
                said.append(line)
                if "Ready" in line:
                    break
            else:
                pytest.fail(f"the emulator did not start: {''.join(said)}")
            yield url
        finally:
            process.kill()


def play(emulator: str, scene: Scene) -> None:
    async def whole() -> None:
        fake = Fronted(emulator)
        async with open_at(fake), aiohttp.ClientSession() as session:
            anna = AsyncWebClient(ANNA, base_url=f"{fake.url}/api/", session=session)
            await scene(fake, RecordingDoor(), anna)

    asyncio.run(asyncio.wait_for(whole(), 60))


async def _channel(fake: Fronted, anna: AsyncWebClient, name: str) -> str:
    """A channel where both of them are."""
    found = (await anna.conversations_list())["channels"]
    channel = next(str(each["id"]) for each in found if each["name"] == name)
    async with aiohttp.ClientSession() as session:
        for web_client in (anna, AsyncWebClient(TOKEN, base_url=anna.base_url, session=session)):
            await web_client.conversations_join(channel=channel)
    fake.channels = {channel: {"id": channel, "is_im": False}}
    return channel


async def _said(anna: AsyncWebClient, channel: str) -> list[dict[str, Any]]:
    found = await anna.conversations_history(channel=channel, include_all_metadata=True)
    return [
        each
        for each in found["messages"][::-1]
        if not each.get("subtype", "").startswith("channel_")
    ]


def test_an_answer_is_said_once_also_by_a_daemon_that_was_killed_after_it(emulator: str) -> None:
    async def scene(fake: Fronted, door: RecordingDoor, anna: AsyncWebClient) -> None:
        channel = await _channel(fake, anna, "said-once")
        out = OutgoingMessage(key="k-0", conversation=channel, text="**once** & <only>")
        async with serving(fake, door) as (connector, _):
            first = await connector.send(out)
        async with serving(fake, door) as (connector, _):
            again = await connector.send(out)
            thread = first.native_id.rpartition("/")[2]
            await connector.send(
                OutgoingMessage(
                    key="k-1", conversation=channel, thread=thread, text="in its thread"
                )
            )
        assert (again.native_id, again.duplicate) == (first.native_id, True)
        async with serving(fake, door) as (connector, _):
            assert (
                await connector.send(
                    OutgoingMessage(
                        key="k-1", conversation=channel, thread=thread, text="in its thread"
                    )
                )
            ).duplicate
        (said,) = await _said(anna, channel)
        assert said["text"] == "*once* &amp; &lt;only&gt;"
        assert said["blocks"][0] == {"type": "markdown", "text": "**once** & <only>"}
        replies = (await anna.conversations_replies(channel=channel, ts=thread))["messages"]
        assert [each["text"] for each in replies[1:]] == ["in its thread"]

    play(emulator, scene)


def test_what_was_said_while_nobody_listened_is_read_from_its_histories(emulator: str) -> None:
    async def scene(fake: Fronted, door: RecordingDoor, anna: AsyncWebClient) -> None:
        channel = await _channel(fake, anna, "missed")
        async with serving(fake, door):
            pass
        parent = (await anna.chat_postMessage(channel=channel, text="one &amp; only"))["ts"]
        await anna.chat_postMessage(channel=channel, text="a reply", thread_ts=parent)
        await anna.chat_postMessage(channel=channel, text="two")
        async with serving(fake, door):
            assert sorted(await heard(door, 3)) == ["a reply", "one & only", "two"]
        found = {each.text: each for each in door.messages}
        assert (found["a reply"].thread, found["two"].thread) == (parent, "")
        assert found["two"].sender.display

    play(emulator, scene)


def test_an_answer_is_replaced_a_message_is_marked_and_files_arrive(emulator: str) -> None:
    async def scene(fake: Fronted, door: RecordingDoor, anna: AsyncWebClient) -> None:
        channel = await _channel(fake, anna, "the-rest")
        question = (await anna.chat_postMessage(channel=channel, text="question"))["ts"]
        async with serving(fake, door) as (connector, _):
            sent = await connector.send(
                OutgoingMessage(key="k-0", conversation=channel, text="asking")
            )
            await connector.edit(channel, sent.native_id, "answered")
            for mark in ("seen", "done", "done"):
                await connector.acknowledge(channel, f"{channel}/{question}", mark)
            file = OutFile("b.txt", b"contents", "text/plain")
            await connector.send(
                OutgoingMessage(key="k-1", conversation=channel, text="a file", files=(file,))
            )
        said = await _said(anna, channel)
        assert [each["text"] for each in said[:3]] == ["question", "answered", "a file"]
        assert [each["name"] for each in said[3]["files"]] == ["b.txt"]
        marks = (await anna.reactions_get(channel=channel, timestamp=question))["message"][
            "reactions"
        ]
        assert [each["name"] for each in marks] == ["white_check_mark"]

    play(emulator, scene)
