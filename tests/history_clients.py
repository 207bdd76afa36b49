"""Programs that send their whole conversation with each request and name no session, and a model
server that keeps the bytes of every prompt. The tests and `python -m bench history` use both.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
from asyncio import new_event_loop
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

from openai import OpenAI

from tests import prompt_prefix
from tests.daemon import DaemonProcess
from tests.fake_provider import Answer, FakeProvider, Request, Script, openai_chat

CONFIG = """
[models]
default = "fake/recorded"
[providers.fake]
kind = "openai-chat"
base_url = "{url}"
models = ["recorded"]
context_tokens = 200000
[limits]
requests_per_second = 100000
[memory]
embeddings = false
"""
WEATHER = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
SYSTEM = "You answer questions about ships. Be brief."
_LONGEST_S = 600
NODE = """
const OpenAI = (await import(process.env.SDK)).default;
const client = new OpenAI();
const messages = [{role: "system", content: process.env.SYSTEM}];
const turns = Number(process.env.TURNS);
for (let turn = 0; turn < turns; turn++) {
  messages.push({role: "user", content: `question ${turn}`});
  const done = await client.chat.completions.create({model: "palyra", messages});
  messages.push(done.choices[0].message);
}
"""


def _reply(request: Request) -> Answer:
    """An answer that says what it answers, after a call where the program has a tool for it."""
    messages = request.json()["messages"]
    last = messages[-1]
    asked = next(each for each in reversed(messages) if each["role"] == "user")["content"]
    text = asked if isinstance(asked, str) else asked[-1]["text"]
    text = text.rpartition("\n")[2]
    offered = {each["function"]["name"] for each in request.json().get("tools") or ()}
    number = sum(each["role"] == "assistant" for each in messages)
    if "weather" in text and "get_weather" in offered and last["role"] != "tool":
        call = (f"c{number}", "get_weather", ('{"city":', ' "Brno"}'))
        return Answer(openai_chat(Script(text=(f"I look ({number}). ",), calls=(call,))))
    return Answer(openai_chat(Script(text=(f"It is *{number}*:\n\n", f"- {text}\n"))))


@contextmanager
def recording(reply: Callable[[Request], Answer] = _reply) -> Iterator[FakeProvider]:
    """A model server in a thread of its own."""
    provider, loop, ready = FakeProvider(reply), new_event_loop(), threading.Event()

    async def serve() -> None:
        await provider.listen(0)
        ready.set()

    def work() -> None:
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield provider
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def reaching(served: DaemonProcess, token: str = "") -> OpenAI:
    return OpenAI(base_url=f"{served.url}/v1", api_key=token or served.token, timeout=60)


def openai_python(served: DaemonProcess, turns: int) -> None:
    client = reaching(served)
    messages: Any = [{"role": "system", "content": SYSTEM}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn}"})
        done = client.chat.completions.create(model="palyra", messages=messages)
        messages.append(done.choices[0].message)


def openai_python_tools(served: DaemonProcess, turns: int) -> None:
    """Every second question is answered by a tool of the program; its arguments are written anew,
    as many libraries do.
    """
    client = reaching(served)
    messages: Any = [{"role": "system", "content": SYSTEM}]
    tools: Any = [{"type": "function", "function": WEATHER}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{'weather' if turn % 2 else 'ship'} {turn}"})
        while True:
            done = client.chat.completions.create(model="palyra", messages=messages, tools=tools)
            message = done.choices[0].message.model_dump(exclude_none=True)
            messages.append(message)
            if not message.get("tool_calls"):
                break
            for call in message["tool_calls"]:
                call["function"]["arguments"] = json.dumps(
                    json.loads(call["function"]["arguments"]), indent=1
                )
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": "sun"})


def openai_python_responses(served: DaemonProcess, turns: int) -> None:
    client = reaching(served)
    items: Any = []
    for turn in range(turns):
        items.append({"role": "user", "content": f"question {turn}"})
        done = client.responses.create(model="palyra", input=items, instructions=SYSTEM)
        items += [each.model_dump(exclude_none=True) for each in done.output]


def plain_http(served: DaemonProcess, turns: int) -> None:
    """A page that streams, joins the pieces and forgets the white space at both ends."""
    messages = [{"role": "system", "content": SYSTEM}]
    headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn}"})
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        body = json.dumps({"messages": messages, "stream": True}).encode()
        connection.request("POST", "/v1/chat/completions", body, headers)
        said = []
        for line in connection.getresponse().read().decode().splitlines():
            if line.startswith("data: {"):
                choices = json.loads(line[6:])["choices"]
                said.append((choices[0]["delta"].get("content") or "") if choices else "")
        connection.close()
        messages.append({"role": "assistant", "content": "".join(said).strip()})


def openai_node(served: DaemonProcess, turns: int) -> None:
    from scripts import openai_clients

    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.mjs"
        program.write_text(NODE)
        own = {
            "SDK": openai_clients.NODE_SDK.program.as_uri(),
            "SYSTEM": SYSTEM,
            "TURNS": str(turns),
        }
        _run(served, folder, [openai_clients.node(), str(program)], **own)


def llm(served: DaemonProcess, turns: int) -> None:
    """A chat in a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        models = {
            "model_id": "agent",
            "model_name": "palyra",
            "api_base": f"{served.url}/v1",
            "api_key_name": "agent",
        }
        (Path(folder) / "extra-openai-models.yaml").write_text(json.dumps([models]))
        (Path(folder) / "keys.json").write_text(json.dumps({"agent": served.token}))
        command = [str(Path(sys.executable).parent / "llm"), "chat", "-m", "agent"]
        said = "".join(f"question {turn}\n" for turn in range(turns)) + "exit\n"
        _run(served, folder, [*command, "--system", SYSTEM], said, LLM_USER_PATH=folder)


def _run(
    served: DaemonProcess, folder: str, command: Sequence[str], said: str = "", **own: str
) -> None:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    known = {
        "OPENAI_API_KEY": served.token,
        "OPENAI_BASE_URL": f"{served.url}/v1",
        "HOME": folder,
        "TERM": "dumb",
    }
    done = subprocess.run(
        command,
        input=said,
        env={**kept, **known, **own},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


CLIENTS: dict[str, Callable[[DaemonProcess, int], None]] = {
    "openai for Python, chat": openai_python,
    "openai for Python, chat with tools": openai_python_tools,
    "openai for Python, responses": openai_python_responses,
    "openai for Node": openai_node,
    "llm": llm,
    "plain HTTP, streamed": plain_http,
}


def stability(requests: Sequence[Request]) -> float:
    """The share of each prompt that the next one begins with, by bytes, over all of them."""
    prompts = [
        "\n".join(prompt_prefix.blocks("openai-chat", each.json())).encode() for each in requests
    ]
    same = sum(_common(*pair) for pair in pairwise(prompts))
    return same / max(1, sum(map(len, prompts[:-1])))


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    if other.startswith(one):
        return len(one)
    return next(at for at, pair in enumerate(zip_longest(one, other)) if pair[0] != pair[1])


def sessions(served: DaemonProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = served.get("/v1/sessions?limit=500")["sessions"]
    return found
