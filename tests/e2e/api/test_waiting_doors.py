"""Who asks by a chat channel or the OpenAI API while no provider can answer, and what they hear."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from palyra.core import wait_words
from palyra.core.events import AnyEvent, RunResumed, decode
from palyra.core.ids import OWNER
from palyra.core.messages import FailureClass
from palyra.features.channels.contract import Abilities
from palyra.models.scripted import ScriptedFailure, Turn
from palyra.store import run_waits
from tests import daemon as daemons
from tests.chatting import Chat, chat
from tests.daemon import DaemonProcess
from tests.inprocess import entries

SECRET_PLACE = "cannot connect to the model server at 10.1.2.3:11434"
AWAY = {"failure": "overloaded", "message": SECRET_PLACE, "retry_after_ms": 65_000}
ASKED = {"model": "palyra", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    config = "[limits]\nrequests_per_second = 100000\n[memory]\nembeddings = false\n"
    with daemons.start(
        tmp_path_factory.mktemp("away"), config=config, script={"*": [{"fail": AWAY}]}
    ) as process:
        yield process


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_a_caller_gets_503_with_retry_after_at_once_if_the_next_try_is_too_late_for_it(
    served: DaemonProcess, path: str
) -> None:
    began = time.monotonic()
    asked = ASKED if "chat" in path else {"model": "palyra", "input": "hello"}
    answer = served.request("POST", path, asked, headers={"Prefer": "wait=20"})
    assert answer.status == 503
    assert time.monotonic() - began < 18
    assert 1 <= int(answer.headers["retry-after"]) <= 66
    assert answer.json["error"]["retryable"] is True
    assert "10.1.2.3" not in answer.body.decode()
    run = served.get(f"/v1/runs/{answer.json['error']['details']['run_id']}")
    assert run["state"] == "cancelled"


def test_a_caller_that_names_its_request_finds_its_run_again(served: DaemonProcess) -> None:
    runs = set()
    for _ in range(2):
        answer = served.request(
            "POST",
            "/v1/chat/completions",
            ASKED,
            headers={"Prefer": "wait=1", "Idempotency-Key": "the-same"},
        )
        assert answer.status == 503
        runs.add(answer.json["error"]["details"]["run_id"])
    (run_id,) = runs
    assert served.get(f"/v1/runs/{run_id}")["state"] == "waiting"
    served.post(f"/v1/runs/{run_id}/cancel")


def test_openais_own_program_is_told_by_its_own_timeout(served: DaemonProcess) -> None:
    from openai import InternalServerError

    client = OpenAI(base_url=f"{served.url}/v1", api_key=served.token, timeout=3, max_retries=0)
    messages: Any = ASKED["messages"]
    with pytest.raises(InternalServerError) as refused:
        client.chat.completions.create(model="palyra", messages=messages)
    assert refused.value.status_code == 503


def test_a_stream_ends_with_an_error_and_its_run_with_it(served: DaemonProcess) -> None:
    answer = served.request(
        "POST",
        "/v1/chat/completions",
        {**ASKED, "stream": True},
        headers={"Prefer": "wait=1"},
    )
    assert answer.status == 200
    last = answer.body.decode().strip().splitlines()[-1]
    error = json.loads(last.removeprefix("data: "))["error"]
    assert error["code"] == "unavailable"
    assert served.get(f"/v1/runs/{error['details']['run_id']}")["state"] == "cancelled"


def _away(cause: FailureClass = "overloaded", **more: Any) -> Turn:
    failure = ScriptedFailure(failure=cause, message=SECRET_PLACE, retry_after_ms=65_000, **more)
    return Turn(text="answered", fail=failure)


@pytest.mark.parametrize("cause", ["overloaded", "auth", "quota"])
@pytest.mark.parametrize(("who", "inside"), [("anna", False), ("boss", True)])
def test_whoever_wrote_in_a_chat_is_told_once_that_it_takes_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str, inside: bool, cause: FailureClass
) -> None:
    monkeypatch.setattr("palyra.features.channels.wait_notes.AFTER_MS", 200)

    async def scene() -> None:
        async with chat(tmp_path, [_away(cause)]) as talk:
            talk.platform.abilities = Abilities()
            await talk.pair("anna")
            await talk.link("boss")
            talk.direct(who, "hello")
            (told,) = await talk.answers(f"dm-{who}")
            assert "10.1.2.3" not in told
            if inside:
                assert told.startswith(f"{wait_words.cause(cause)}; next try in ")
                assert wait_words.action(cause) in told
                assert "!retry" in told
            else:
                assert told == "I am not available at the moment. I will answer as soon as I can."
        # A restart says nothing twice.
        async with chat(tmp_path, [Turn(text="answered")], fresh=False) as talk:
            talk.daemon.gateway.waits.try_now()
            assert await talk.answers(f"dm-{who}", 2) == [told, "answered"]

    asyncio.run(asyncio.wait_for(scene(), 60))


def test_a_guest_learns_nothing_of_providers_from_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palyra.features.channels.wait_notes.AFTER_MS", 200)

    async def scene() -> None:
        async with chat(tmp_path, [_away("quota")]) as talk:
            await talk.pair("anna")
            talk.direct("anna", "hello")
            await talk.answers("dm-anna")
            for number, words in enumerate(["status", "model", "/retry", "/cancel"]):
                talk.direct("anna", words)
                await talk.answers("dm-anna", 2 + number)
            told = " ".join(talk.texts("dm-anna")).lower()
            for secret in ("scripted", "provider", "quota", "credit", "10.1.2.3"):
                assert secret not in told
            # Who may not have the model asked again may end what they asked for.
            assert not await talk.daemon.db.read(run_waits.everybody)

    asyncio.run(asyncio.wait_for(scene(), 60))


@pytest.mark.parametrize("press", ["Try now", "Switch model", "Cancel"])
def test_a_user_of_the_daemon_acts_by_the_buttons_of_the_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, press: str
) -> None:
    monkeypatch.setattr("palyra.features.channels.wait_notes.AFTER_MS", 200)

    async def scene() -> None:
        async with chat(tmp_path, [_away(times=1)]) as talk:
            await talk.link("boss")
            talk.direct("boss", "hello")
            await talk.answers("dm-boss")
            (note,) = talk.posted("dm-boss")
            buttons = {each.label: each.value for each in note.out.buttons}
            assert list(buttons) == ["Try now", "Switch model", "Cancel"]
            assert "!retry" not in note.text
            talk.direct("boss", "status")
            assert "Model overloaded; next try in" in (await talk.answers("dm-boss", 2))[-1]
            talk.direct("boss", buttons[press], pressed=True)
            match press:
                case "Try now":
                    assert await _two_more(talk) == {"Trying again now.", "answered"}
                case "Switch model":
                    listed = (await talk.answers("dm-boss", 3))[-1]
                    number = next(
                        line.partition(".")[0] for line in listed.splitlines() if "demo/" in line
                    )
                    talk.direct("boss", f"model {number}")
                    await talk.answers("dm-boss", 5)
                    assert "From now on this conversation uses demo/demo-1." in talk.texts()
                    assert await _resumed(talk) == [
                        RunResumed(after="provider", model="demo/demo-1")
                    ]
                case _:
                    await _two_more(talk)
                    assert "Cancelled." in talk.texts("dm-boss")
            assert not await talk.daemon.db.read(run_waits.everybody)

    asyncio.run(asyncio.wait_for(scene(), 60))


async def _two_more(talk: Chat) -> set[str]:
    return set((await talk.answers("dm-boss", 4))[2:])


async def _resumed(talk: Chat) -> list[AnyEvent]:
    (where,) = await talk.daemon.sessions.listing(OWNER, archived=False, before="", limit=10)
    told = await entries(talk.daemon, where.session_id)
    return [decode(bytes(each.event)) for each in told if each.kind == "run.resumed"]
