"""Model servers on loopback that answer as Ollama, LM Studio, llama.cpp and vLLM do: what they are,
which models they have, and a chat with or without tool calls.

`python -m tests.model_servers ollama --port 11434` runs one by hand.
"""

import argparse
import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.fake_provider import Answer, Answering, FakeProvider, Request, Script, openai_chat

JSON = "application/json"
TEXT_CALL = '<tool_call>\n{"name": "report.ready", "arguments": {"word": "ready"}}\n</tool_call>'
OBJECT_CALL = '{"name": "report.ready", "arguments": {"word": "ready"}}'
NOT_FOUND = Answer(b'{"error": "not found"}', status=404, content_type=JSON)


def said(value: Any, status: int = 200) -> Answer:
    return Answer(json.dumps(value).encode(), status=status, content_type=JSON)


def chat(request: Request, tools: str, text: str = "Hello from the server.") -> Answer:
    """`tools`: `calls` them, `ignores` them, `refuses` a request that has any, or calls them only as
    `text`, or only as an `object` that is asked for.
    """
    body = request.json()
    offered = body.get("tools") or []
    if offered and tools == "refuses":
        name = body["model"]
        return said({"error": {"message": f"{name} does not support tools"}}, 400)
    asked = json.dumps(body["messages"])
    if offered and tools == "calls" and "Call the tool now" in asked:
        name = offered[0]["function"]["name"]
        return Answer(openai_chat(Script(calls=(("c1", name, ('{"word": "ready"}',)),))))
    if not offered and tools == "object" and "one JSON object" in asked:
        return Answer(openai_chat(Script(text=(OBJECT_CALL,))))
    if not offered and tools == "text" and "# Tools" in asked:
        if "Call the tool now" in asked:
            return Answer(openai_chat(Script(text=(TEXT_CALL,))))
        text = "Tools as text."
    return Answer(openai_chat(Script(text=(text,))))


def ollama(
    models: Sequence[str] = ("qwen3:8b", "llama3.2:latest"),
    *,
    tools: str = "calls",
    loaded: int = 0,
    able: Sequence[str] = ("completion", "tools"),
) -> Answering:
    def answer(request: Request) -> Answer:
        match request.path:
            case "/api/tags":
                return said({"models": [{"name": name, "model": name} for name in models]})
            case "/api/show":
                if request.json()["model"].startswith("embed"):
                    return said({"capabilities": ["embedding"], "model_info": {}})
                return said(
                    {
                        "capabilities": list(able),
                        "model_info": {"qwen3.context_length": 40_960, "qwen3.block_count": 36},
                        "parameters": "stop  <|im_end|>\ntemperature 0.6",
                    }
                )
            case "/api/ps":
                shown = [{"name": models[0], "context_length": loaded}] if loaded else []
                return said({"models": shown})
            case "/v1/models":
                return said({"object": "list", "data": [{"id": name} for name in models]})
            case "/v1/chat/completions":
                return chat(request, tools)
        return NOT_FOUND

    return answer


def lmstudio(*, tools: str = "calls") -> Answering:
    rows = [
        {
            "id": "qwen2.5-7b-instruct",
            "type": "llm",
            "state": "loaded",
            "max_context_length": 32_768,
            "loaded_context_length": 16_384,
            "capabilities": ["tool_use"],
        },
        {"id": "llava-7b", "type": "vlm", "state": "not-loaded", "max_context_length": 4_096},
        {"id": "nomic-embed", "type": "embeddings", "max_context_length": 2_048},
    ]

    def answer(request: Request) -> Answer:
        match request.path:
            case "/api/v0/models":
                return said({"object": "list", "data": rows})
            case "/v1/models":
                return said({"object": "list", "data": [{"id": each["id"]} for each in rows]})
            case "/v1/chat/completions":
                return chat(request, tools)
        # It answers whatever it does not know with 200.
        return said({"error": f"Unexpected endpoint or method. (GET {request.path})"})

    return answer


def llamacpp(*, tools: str = "calls") -> Answering:
    def answer(request: Request) -> Answer:
        match request.path:
            case "/props":
                return said(
                    {
                        "default_generation_settings": {"n_ctx": 12_288, "params": {}},
                        "total_slots": 1,
                        "model_path": "/models/qwen2.5-3b.gguf",
                        "modalities": {"vision": False, "audio": False},
                    }
                )
            case "/v1/models" | "/api/tags":
                # Newer ones put a list in Ollama's words beside the other.
                row = {"id": "qwen2.5-3b", "owned_by": "llamacpp", "meta": {"n_ctx_train": 32_768}}
                return said({"object": "list", "data": [row], "models": [{"name": "qwen2.5-3b"}]})
            case "/v1/chat/completions":
                return chat(request, tools)
        return NOT_FOUND

    return answer


def loading(answering: Answering, times: int) -> Answering:
    """A server as llama.cpp is while it reads its model: so many requests are refused."""
    left = iter(range(times))
    error = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}

    def answer(request: Request) -> Answer:
        return answering(request) if next(left, None) is None else said(error, 503)

    return answer


def vllm(*, tools: str = "calls") -> Answering:
    def answer(request: Request) -> Answer:
        match request.path:
            case "/v1/models":
                row = {"id": "Qwen/Qwen3-4B", "owned_by": "vllm", "max_model_len": 20_480}
                return said({"object": "list", "data": [row]})
            case "/v1/chat/completions":
                return chat(request, tools)
        return said({"detail": "Not Found"}, 404)

    return answer


@contextmanager
def serving(answering: Answering) -> Iterator[FakeProvider]:
    """A server in a thread of its own, for a daemon in another process."""
    loop = asyncio.new_event_loop()
    server = FakeProvider(answering)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(30)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def host_of(server: FakeProvider) -> str:
    """As OLLAMA_HOST says it."""
    return server.url.removeprefix("http://").removesuffix("/v1")


KINDS = {"ollama": ollama, "lmstudio": lmstudio, "llamacpp": llamacpp, "vllm": vllm}


async def _forever(kind: str, port: int) -> None:
    server = FakeProvider(KINDS[kind]())
    await server.listen(port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--port", type=int, default=11434)
    given = parser.parse_args()
    asyncio.run(_forever(given.kind, given.port))
