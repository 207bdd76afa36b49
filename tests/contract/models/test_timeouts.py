"""Time-outs of a model call, against servers that are slow in every part of it. Each message names
the setting that sets how long to wait.
"""

import asyncio
import socket
from pathlib import Path

import pytest

from palyra.core.messages import ModelFailure, ModelReply, Text, UserMessage
from palyra.models.call_limits import CallLimits, is_local
from palyra.models.dialects import Dialect, open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.serve import config
from palyra.serve.config import call_limits
from palyra.serve.config.sections import Provider
from palyra.serve.wiring import settings as settings_wiring
from tests.fake_provider import WRITERS, Answer, FakeProvider, Request, Script, openai_chat
from tests.model_reading import asks

EVERY: tuple[Dialect, ...] = ("openai-chat", "openai-responses", "anthropic")
BODY = openai_chat(Script(text=("Hello",)))
# Up to a first chunk that says nothing, and up to one that does.
EMPTY = BODY.index(b"\n\n") + 2
SPOKEN = BODY.index(b"\n\n", EMPTY) + 2
NEVER = CallLimits(silence_s=None, first_token_s=None, stall_s=None)


async def ask(url: str, limits: CallLimits, dialect: Dialect = "openai-chat") -> ModelReply:
    http = HttpClient()
    endpoint = ProviderEndpoint(name="slow", base_url=url, limits=limits)
    try:
        async with asyncio.timeout(20):
            return await open_provider(dialect, endpoint, http).stream(
                asks(messages=(UserMessage((Text("hi"),)),)), lambda channel, text: None
            )
    finally:
        await http.close()


def failure(answer: Answer, limits: CallLimits, dialect: Dialect = "openai-chat") -> ModelFailure:
    async def work() -> ModelFailure:
        async with FakeProvider(answer) as server:
            with pytest.raises(ModelFailure) as failed:
                await ask(server.url, limits, dialect)
            return failed.value

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("hang", "limits", "setting"),
    [
        (0, CallLimits(silence_s=0.05), "first_token_ms"),
        (EMPTY, CallLimits(silence_s=0.05), "first_token_ms"),
        (EMPTY, CallLimits(first_token_s=0.05), "first_token_ms"),
        (SPOKEN, CallLimits(stall_s=0.05), "stall_ms"),
        (SPOKEN, CallLimits(call_s=0.05), "call_ms"),
        (0, CallLimits(call_s=0.05), "call_ms"),
    ],
)
def test_each_part_of_a_call_has_its_limit_and_its_setting(
    hang: int, limits: CallLimits, setting: str
) -> None:
    failed = failure(Answer(BODY, hang=hang), limits)
    assert (failed.failure, failed.sent) == ("timeout", True)
    assert f"providers.slow.{setting} sets how long" in failed.message


@pytest.mark.parametrize("dialect", EVERY)
def test_silence_before_the_first_token_is_told_apart_in_every_dialect(dialect: Dialect) -> None:
    body = WRITERS[dialect](Script(text=("Hello", "there")))
    limits = CallLimits(silence_s=0.05, stall_s=30)
    assert "first_token_ms" in failure(Answer(body, hang=10), limits, dialect).message
    spoken = body.index(b"\n\n", body.index(b"Hello")) + 2
    limits = CallLimits(silence_s=30, stall_s=0.05)
    assert "stall_ms" in failure(Answer(body, hang=spoken), limits, dialect).message


def test_keep_alives_are_no_token_and_the_limit_of_the_first_token_ends_them() -> None:
    """Bytes come all the time, so that no silence is ever long enough."""

    async def work() -> ModelFailure:
        async def keep_alive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            while not writer.is_closing():
                writer.write(b": keep-alive\n\n")
                await asyncio.sleep(0.01)

        server = await asyncio.start_server(keep_alive, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            with pytest.raises(ModelFailure) as failed:
                await ask(
                    f"http://127.0.0.1:{port}/v1", CallLimits(silence_s=10, first_token_s=0.2)
                )
        return failed.value

    failed = asyncio.run(work())
    assert (failed.failure, "first_token_ms" in failed.message) == ("timeout", True)


def test_a_server_that_takes_no_connection_is_named_with_its_setting() -> None:
    # A full backlog: nobody is let in, and nobody is turned away.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        try:
            with pytest.raises(ModelFailure) as failed:
                asyncio.run(ask(f"http://127.0.0.1:{port}/v1", CallLimits(connect_s=0.1)))
        finally:
            for each in waiting:
                each.close()
    assert (failed.value.failure, failed.value.sent) == ("timeout", False)
    assert "providers.slow.connect_ms" in failed.value.message


def test_without_a_limit_the_first_token_is_waited_for_as_long_as_it_takes() -> None:
    async def work() -> ModelReply:
        go, asked = asyncio.Event(), asyncio.Event()

        def answering(request: Request) -> Answer:
            asked.set()
            return Answer(BODY, late=(EMPTY, go))

        async with FakeProvider(answering) as server:
            asking = asyncio.ensure_future(ask(server.url, NEVER))
            await asyncio.wait_for(asked.wait(), 20)
            go.set()
            return await asking

    assert asyncio.run(work()).text == "Hello"


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://localhost:1234/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://192.168.1.20:8000/v1", True),
        ("http://10.0.0.7/v1", True),
        ("http://ollama:11434/v1", True),
        ("http://gpu.local/v1", True),
        ("https://api.openai.com/v1", False),
        ("https://8.8.8.8/v1", False),
        ("https://[broken", False),
        ("", False),
    ],
)
def test_what_is_local_is_told_by_the_address(url: str, local: bool) -> None:
    assert is_local(url) is local


def limits_of(**settings: object) -> tuple[float | None, ...]:
    given = call_limits.of(Provider(kind="openai-chat", **settings))  # type: ignore[arg-type]
    return given.silence_s, given.first_token_s, given.stall_s, given.call_s


LOCAL = "http://127.0.0.1:11434/v1"


def test_defaults_go_by_the_place_and_what_is_set_wins() -> None:
    assert limits_of(base_url=LOCAL) == (None, None, 600.0, None)
    assert limits_of() == (120.0, 900.0, 120.0, None)
    assert limits_of(first_token_ms=3_000) == (None, 3.0, 120.0, None)
    assert limits_of(base_url=LOCAL, stall_ms="never", call_ms=9_000) == (None, None, None, 9.0)
    responses = call_limits.of(Provider(kind="openai-responses"))
    assert (responses.silence_s, responses.stall_s) == (600.0, 120.0)


def test_timeout_ms_of_an_older_file_is_the_longest_silence_as_before() -> None:
    assert limits_of(timeout_ms=5_000) == (5.0, 900.0, 5.0, None)
    assert limits_of(base_url=LOCAL, timeout_ms=5_000)[::2] == (5.0, 5.0)


def test_the_watchdog_waits_as_long_as_the_most_patient_provider(tmp_path: Path) -> None:
    def call_ms(text: str) -> int:
        (tmp_path / "config.toml").write_text(text)
        loaded = config.load(tmp_path, {})
        return settings_wiring.healing(loaded.config, config.choose(loaded.config, [])).call_ms

    remote = '[providers.a]\nkind = "anthropic"\nmodels = ["m"]\ntimeout_ms = 60000\n'
    local = f'[providers.b]\nkind = "openai-chat"\nbase_url = "{LOCAL}"\n'
    assert call_ms(remote) == 90_000
    assert call_ms(remote + local) > 365 * 24 * 3_600_000
