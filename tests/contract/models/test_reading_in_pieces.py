"""Answers that come in many small pieces: what reading them costs is counted, not timed."""

import asyncio

import msgspec
import pytest
from aiohttp.client_proto import ResponseHandler
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.messages import ModelFailure, Text, UserMessage
from palyra.models import openai_chat_stream
from palyra.models.dialects import open_provider
from palyra.models.http import HttpClient, ProviderEndpoint
from tests.fake_provider import Script, openai_chat
from tests.model_reading import asks, read

WORDS = tuple(f"word{number} " for number in range(200))


def in_chunks(body: bytes) -> bytes:
    """An HTTP response with a chunk for each event."""
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return head + b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in events) + b"0\r\n\r\n"


def test_the_connection_is_resumed_per_read_and_not_per_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resumed: list[bool] = []
    resume = ResponseHandler.resume_reading

    def counted(self: ResponseHandler, resume_parser: bool = True) -> None:
        resumed.append(resume_parser)
        resume(self, resume_parser)

    monkeypatch.setattr(ResponseHandler, "resume_reading", counted)
    answer = in_chunks(openai_chat(Script(text=WORDS)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def work() -> str:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        http = HttpClient()
        port = server.sockets[0].getsockname()[1]
        endpoint = ProviderEndpoint(name="small", base_url=f"http://127.0.0.1:{port}/v1")
        try:
            async with asyncio.timeout(20):
                reply = await open_provider("openai-chat", endpoint, http).stream(
                    asks(messages=(UserMessage((Text("hi"),)),)), lambda channel, text: None
                )
        finally:
            await http.close()
            server.close()
        return reply.text

    assert asyncio.run(work()) == "".join(WORDS)
    assert len(resumed) < 20


_EVENTS = st.sampled_from(
    [
        *(f'{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}' for text in ("a", "b ", ",", "é")),
        '{"choices":[{"delta":{},"finish_reason":"stop"}]}',
        '{"usage":{"prompt_tokens":3,"completion_tokens":2}}',
        '{"choices":[{"delta":{"content":"lone \\ud800"}}]}',
        '{"choices":[{"delta":{"content":"open',
        '"}}]}',
        '{"error":{"message":"overloaded","type":"overloaded_error"}}',
        "null",
        "[]",
        "keep-alive",
        "[DONE]",
        " [DONE] ",
    ]
)


@given(st.lists(_EVENTS, max_size=8))
def test_events_that_come_in_one_read_mean_what_they_mean_one_by_one(events: list[str]) -> None:
    body = b": begins\n\n" + b"".join(b"data: %b\n\n" % each.encode() for each in events)

    def seen(pieces: int) -> tuple[object, str]:
        heard: list[tuple[str, str]] = []
        try:
            result: object = read("openai-chat", body, pieces=pieces, heard=heard)
        except ModelFailure as failure:
            result = (failure.failure, failure.message)
        return result, "".join(text for channel, text in heard if channel == "text")

    # The first read finds out that it is a stream of events.
    assert seen(len(body)) == seen(1)


def test_a_read_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []

    class Counted:
        def __init__(self) -> None:
            self._inner = msgspec.json.Decoder(list[openai_chat_stream._Chunk])

        def decode(self, data: bytes) -> list[openai_chat_stream._Chunk]:
            found = self._inner.decode(data)
            decoded.append(len(found))
            return found

    monkeypatch.setattr(openai_chat_stream, "_list_decoder", Counted())
    assert read("openai-chat", openai_chat(Script(text=WORDS)), pieces=1 << 20).stop == "end"
    assert len(decoded) == 1
    assert decoded[0] > len(WORDS)
