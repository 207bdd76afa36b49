"""The least that could do the work of `bench.runs`: uvicorn, aiohttp, a group commit; no policy,
redaction, chain or resume.

It is the yardstick. What Palyra costs is told as a multiple of this, because a multiple survives a
slower machine.
"""

import asyncio
import json
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import apsw
import msgspec
import uvicorn
import uvloop

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class Writer:
    """One thread that commits everything that waits, with fsync, then says so."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop) -> None:
        self._db = apsw.Connection(path)
        for pragma in ("journal_mode=wal", "synchronous=full"):
            self._db.execute(f"pragma {pragma}")
        self._db.execute(
            "create table entries (position integer primary key, tape text, body blob)"
        )
        self._loop = loop
        self._waiting: list[tuple[str, list[bytes], asyncio.Future[None]]] = []
        self._work = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    async def append(self, tape: str, *events: bytes) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        with self._work:
            self._waiting.append((tape, list(events), done))
            self._work.notify()
        await done

    def _run(self) -> None:
        while True:
            with self._work:
                while not self._waiting:
                    self._work.wait()
                batch, self._waiting = self._waiting, []
            with self._db:
                self._db.executemany(
                    "insert into entries (tape, body) values (?, ?)",
                    [(tape, body) for tape, events, _ in batch for body in events],
                )
            self._loop.call_soon_threadsafe(_settle, batch)


def _settle(batch: list[tuple[str, list[bytes], "asyncio.Future[None]"]]) -> None:
    for _, _, done in batch:
        done.set_result(None)


class App:
    def __init__(self, provider: str, folder: str) -> None:
        self._provider = provider
        self._folder = folder
        self._runs: dict[str, asyncio.Queue[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["method"] == "POST":
            await self._post(scope, receive, send)
        else:
            await self._events(scope, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._writer = Writer(
                    os.path.join(self._folder, "bare.db"), asyncio.get_running_loop()
                )
                self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1024))
            else:
                await self._http.close()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _post(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        run = os.urandom(8).hex()
        if scope["path"].endswith("/messages"):
            await self._writer.append(run, body, b'{"type":"run.accepted"}')
            self._runs[run] = asyncio.Queue()
            task = asyncio.create_task(self._work(run, json.loads(body)["text"]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        answer = msgspec.json.encode({"session_id": run, "run_id": run, "seq": 0})
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-length", str(len(answer)).encode())],
            }
        )
        await send({"type": "http.response.body", "body": answer})

    async def _work(self, run: str, text: str) -> None:
        queue = self._runs[run]
        messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
        while True:
            reply, calls = await self._turn(messages, queue)
            await self._tell(run, queue, {"type": "model.replied", "text": reply, "calls": calls})
            if not calls:
                break
            messages.append({"role": "assistant", "content": reply, "tool_calls": calls})
            await self._tell(
                run, queue, *({"type": "tool.started", "call": call["id"]} for call in calls)
            )
            for call in calls:
                found = "\n".join(await asyncio.to_thread(os.listdir, self._folder))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": found})
                await self._tell(
                    run, queue, {"type": "tool.finished", "call": call["id"], "text": found}
                )
        await self._tell(run, queue, {"type": "run.completed"})
        queue.put_nowait(b"")

    async def _tell(self, run: str, queue: "asyncio.Queue[bytes]", *events: dict[str, Any]) -> None:
        encoded = [msgspec.json.encode(event) for event in events]
        await self._writer.append(run, *encoded)
        for each in encoded:
            queue.put_nowait(b"event: entry\ndata: " + each + b"\n\n")

    async def _turn(
        self, messages: list[dict[str, Any]], queue: "asyncio.Queue[bytes]"
    ) -> tuple[str, list[dict[str, Any]]]:
        text: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        body = msgspec.json.encode({"model": "bench", "stream": True, "messages": messages})
        async with self._http.post(f"{self._provider}/chat/completions", data=body) as response:
            left = b""
            async for data in response.content.iter_any():
                *lines, left = (left + data).split(b"\n\n")
                fresh = []
                for line in lines:
                    if line == b"data: [DONE]":
                        continue
                    for choice in msgspec.json.decode(line[6:]).get("choices", ()):
                        delta = choice["delta"]
                        if delta.get("content"):
                            fresh.append(delta["content"])
                        for part in delta.get("tool_calls", ()):
                            call = calls.setdefault(
                                part["index"], {"id": "", "function": {"name": "", "arguments": ""}}
                            )
                            call["id"] += part.get("id", "")
                            call["function"]["name"] += part["function"].get("name", "")
                            call["function"]["arguments"] += part["function"].get("arguments", "")
                if fresh:
                    text += fresh
                    delta_event = msgspec.json.encode(
                        {"type": "model.delta", "text": "".join(fresh)}
                    )
                    queue.put_nowait(b"event: live\ndata: " + delta_event + b"\n\n")
        return "".join(text), list(calls.values())

    async def _events(self, scope: dict[str, Any], send: Send) -> None:
        run = scope["query_string"].decode().rpartition("until=")[2]
        queue = self._runs[run]
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream")],
            }
        )
        while True:
            pieces = [await queue.get()]
            while not queue.empty():
                pieces.append(queue.get_nowait())
            ended = pieces[-1] == b""
            await send(
                {"type": "http.response.body", "body": b"".join(pieces), "more_body": not ended}
            )
            if ended:
                del self._runs[run]
                return


async def _main(provider: str, folder: str) -> None:
    config = uvicorn.Config(
        App(provider, folder), log_level="critical", access_log=False, http="httptools"
    )  # type: ignore[arg-type]
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1], sys.argv[2]))
