"""A model provider on loopback: recorded bytes, scripted replies in four dialects, and every way
to fail.

Used in-process by tests, and as `python -m tests.fake_provider --port P` by benchmarks, where it
spends next to nothing.
"""

import argparse
import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

SSE = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send. `pieces` cuts the body into writes of so many bytes; after `cut` bytes the
    connection is dropped; after `hang` bytes nothing more comes until the client leaves.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = SSE
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: int = 0
    cut: int | None = None
    hang: int | None = None
    # What comes behind so many bytes comes only when this is set.
    late: "tuple[int, asyncio.Event] | None" = None


Answering = Callable[[Request], Answer]


class FakeProvider:
    """A server that answers with what it was given: answers in turn (the last one for ever), or a
    function of the request.
    """

    def __init__(self, answers: Answer | Iterable[Answer] | Answering) -> None:
        if callable(answers):
            self._answer = answers
        else:
            waiting = deque([answers] if isinstance(answers, Answer) else answers)
            self._answer = lambda request: waiting.popleft() if len(waiting) > 1 else waiting[0]
        self.requests: list[Request] = []
        self.connections = 0
        self.open: set[asyncio.Transport] = set()
        self.client_left = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.listen(0)
        return self

    async def listen(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port)

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for transport in tuple(self.open):
            transport.abort()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        return self._answer(request)


class _Connection(asyncio.Protocol):
    def __init__(self, provider: FakeProvider) -> None:
        self._provider = provider
        self._received = bytearray()
        self._sending: asyncio.Task[None] | None = None
        self._gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._provider.connections += 1
        self._provider.open.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._provider.open.discard(self._transport)
        if self._sending is not None and not self._sending.done():
            self._provider.client_left.set()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, rest = bytes(self._received).partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self._received = bytearray(rest[length:])
        answer = self._provider.answer(Request(first.split(" ")[1], headers, rest[:length]))
        self._sending = asyncio.get_running_loop().create_task(self._send(answer))

    async def _send(self, answer: Answer) -> None:
        headers = {"content-type": answer.content_type, "transfer-encoding": "chunked"} | dict(
            answer.headers
        )
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._transport.write(f"HTTP/1.1 {answer.status} X\r\n{lines}\r\n".encode())
        end = min(
            len(answer.body),
            *(limit for limit in (answer.cut, answer.hang, len(answer.body)) if limit is not None),
        )
        if answer.late is not None:
            first, go = answer.late
            self._transport.write(b"%x\r\n%b\r\n" % (first, answer.body[:first]))
            await go.wait()
        for at in range(answer.late[0] if answer.late else 0, end, answer.pieces or max(end, 1)):
            piece = answer.body[at : min(end, at + (answer.pieces or end))]
            self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await asyncio.sleep(0)
        if answer.hang is not None:
            await self._gone.wait()
        elif answer.cut is not None:
            self._transport.close()
        else:
            self._transport.write(b"0\r\n\r\n")


@dataclass(frozen=True, slots=True)
class Script:
    """One reply: pieces of text, then calls as (id, name, pieces of arguments)."""

    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    calls: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    input_tokens: int = 11
    output_tokens: int = 7
    stop: str = ""


def sse(*events: Any, named: bool = False) -> bytes:
    """Events as bytes; strings go out as they are."""
    lines = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        lines.append(f"event: {event['type']}\ndata: {data}\n\n" if named else f"data: {data}\n\n")
    return "".join(lines).encode()


def chat_chunk(**delta: Any) -> dict[str, Any]:
    finish = delta.pop("finish_reason", None)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "fake-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def openai_chat(script: Script) -> bytes:
    events: list[Any] = [chat_chunk(role="assistant", content="")]
    events += [chat_chunk(reasoning_content=piece) for piece in script.reasoning]
    events += [chat_chunk(content=piece) for piece in script.text]
    for index, (id, name, pieces) in enumerate(script.calls):
        start = {
            "index": index,
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }
        events.append(chat_chunk(tool_calls=[start]))
        events += [
            chat_chunk(tool_calls=[{"index": index, "function": {"arguments": piece}}])
            for piece in pieces
        ]
    events.append(
        chat_chunk(finish_reason=script.stop or ("tool_calls" if script.calls else "stop"))
    )
    used = {"prompt_tokens": script.input_tokens, "completion_tokens": script.output_tokens}
    events.append(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "model": "fake-1",
            "choices": [],
            "usage": used,
        }
    )
    return sse(*events, "[DONE]")


def openai_responses(script: Script) -> bytes:
    items: list[dict[str, Any]] = []
    events: list[Any] = [
        {
            "type": "response.created",
            "response": {"id": "resp_1", "model": "fake-1", "status": "in_progress"},
        }
    ]

    def item(start: dict[str, Any], deltas: list[dict[str, Any]], done: dict[str, Any]) -> None:
        at = {"output_index": len(items)}
        events.append({"type": "response.output_item.added", "item": start} | at)
        events.extend(delta | at for delta in deltas)
        events.append({"type": "response.output_item.done", "item": start | done} | at)
        items.append(start | done)

    if script.reasoning:
        parts = [{"type": "reasoning_text", "text": "".join(script.reasoning)}]
        deltas = [
            {"type": "response.reasoning_text.delta", "delta": piece} for piece in script.reasoning
        ]
        item(
            {"type": "reasoning", "id": "rs_1", "summary": []},
            deltas,
            {"content": parts, "encrypted_content": "sealed"},
        )
    if script.text:
        deltas = [{"type": "response.output_text.delta", "delta": piece} for piece in script.text]
        item(
            {"type": "message", "role": "assistant"},
            deltas,
            {"content": [{"type": "output_text", "text": "".join(script.text)}]},
        )
    for id, name, pieces in script.calls:
        deltas = [
            {"type": "response.function_call_arguments.delta", "delta": piece} for piece in pieces
        ]
        item(
            {"type": "function_call", "call_id": id, "name": name, "arguments": ""},
            deltas,
            {"arguments": "".join(pieces)},
        )
    used = {"input_tokens": script.input_tokens, "output_tokens": script.output_tokens}
    response: dict[str, Any] = {
        "id": "resp_1",
        "model": "fake-1",
        "status": "completed",
        "output": items,
        "usage": used,
    }
    if script.stop == "length":
        response |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    events.append({"type": f"response.{response['status']}", "response": response})
    return sse(*events, named=True)


def anthropic(script: Script) -> bytes:
    used = {"input_tokens": script.input_tokens, "output_tokens": 1}
    events: list[Any] = [
        {
            "type": "message_start",
            "message": {"id": "msg_1", "model": "fake-1", "content": [], "usage": used},
        }
    ]
    blocks = 0

    def block(start: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
        nonlocal blocks
        events.append({"type": "content_block_start", "index": blocks, "content_block": start})
        events.extend(
            {"type": "content_block_delta", "index": blocks, "delta": delta} for delta in deltas
        )
        events.append({"type": "content_block_stop", "index": blocks})
        blocks += 1

    if script.reasoning:
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in script.reasoning]
        block(
            {"type": "thinking", "thinking": "", "signature": ""},
            [*thoughts, {"type": "signature_delta", "signature": "signed"}],
        )
    if script.text:
        block(
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": piece} for piece in script.text],
        )
    for id, name, pieces in script.calls:
        start = {"type": "tool_use", "id": id, "name": name, "input": {}}
        block(start, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces])
    stop = {"length": "max_tokens"}.get(script.stop, "tool_use" if script.calls else "end_turn")
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop},
            "usage": {"output_tokens": script.output_tokens},
        }
    )
    events.append({"type": "message_stop"})
    return sse(*events, named=True)


def gemini(script: Script) -> bytes:
    def chunk(part: dict[str, Any], **more: Any) -> dict[str, Any]:
        candidate = {"content": {"parts": [part], "role": "model"}, "index": 0}
        used = {"promptTokenCount": script.input_tokens}
        return {
            "candidates": [candidate | more],
            "usageMetadata": used,
            "modelVersion": "fake-1",
        }

    events = [chunk({"text": piece, "thought": True}) for piece in script.reasoning]
    events += [chunk({"text": piece}) for piece in script.text]
    sealed = {"thoughtSignature": "signed"} if script.reasoning else {}
    for id, name, pieces in script.calls:
        arguments = {"args": json.loads("".join(pieces))} if pieces else {}
        events.append(chunk({"functionCall": {"id": id, "name": name, **arguments}, **sealed}))
        sealed = {}
    last = chunk({"text": "", **sealed})
    last["candidates"][0]["finishReason"] = {"length": "MAX_TOKENS"}.get(script.stop, "STOP")
    last["usageMetadata"] = {
        "promptTokenCount": script.input_tokens,
        "candidatesTokenCount": script.output_tokens,
    }
    return sse(*events, last)


WRITERS: dict[str, Callable[[Script], bytes]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
}


TOOL_TURNS = 3
DELTAS = 100


class BenchConnection(asyncio.Protocol):
    """Answers from ready-made bytes: a call of fs_list until there are three tool results, then a
    hundred words.
    """

    # Each another one: a model that repeats itself is stopped.
    calls: tuple[bytes, ...] = ()
    words: tuple[bytes, ...] = ()
    every_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not say that they are ones.
        self._transport = cast("asyncio.Transport", transport)
        self._received = b""

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        end = received.find(b"\r\n\r\n")
        if end >= 0:
            head = received[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(received) >= end + 4 + length:
                self._received = b""
                # Only what has come since the user last spoke counts, so that every run of a
                # session does the same.
                since = received[received.rfind(b'"role":"user"') :]
                results = TOOL_TURNS if b"just talk" in since else since.count(b'"role":"tool"')
                self._reply(results)
                return
        self._received = received

    def _reply(self, results: int) -> None:
        if results < TOOL_TURNS:
            self._transport.write(self.calls[results])
        elif not self.every_s:
            self._transport.writelines(self.words)
        else:
            self._next(0)

    def _next(self, at: int) -> None:
        if not self._transport.is_closing():
            self._transport.write(self.words[at])
            if at + 1 < len(self.words):
                asyncio.get_running_loop().call_later(self.every_s, self._next, at + 1)


def _ready(body: bytes) -> list[bytes]:
    """A chunked response, one chunk per event."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {SSE}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    events = [event + b"\n\n" for event in body.split(b"\n\n") if event]
    return [head, *(b"%x\r\n%b\r\n" % (len(event), event) for event in events), b"0\r\n\r\n"]


def bench_replies(deltas: int = DELTAS) -> tuple[list[bytes], list[bytes]]:
    calls = [
        openai_chat(Script(calls=(("call_0", "fs_list", (f'{{"path": ".", "limit": {most}}}',)),)))
        for most in range(200, 200 - TOOL_TURNS, -1)
    ]
    words = openai_chat(
        Script(text=tuple(f"word{n} " for n in range(deltas)), output_tokens=deltas)
    )
    return [b"".join(_ready(call)) for call in calls], _ready(words)


async def serve(port: int, every_ms: float) -> None:
    calls, words = bench_replies()
    BenchConnection.calls = tuple(calls)
    BenchConnection.words = tuple(words)
    BenchConnection.every_s = every_ms / 1000
    server = await asyncio.get_running_loop().create_server(
        BenchConnection, "127.0.0.1", port, backlog=1024
    )
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description="a chat completions server for benchmarks")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--every-ms",
        type=float,
        default=0.0,
        help="time between two deltas; 0 sends them all at once",
    )
    arguments = parser.parse_args()
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(arguments.port, arguments.every_ms))
    else:
        uvloop.run(serve(arguments.port, arguments.every_ms))


if __name__ == "__main__":
    main()
