"""Programs that others wrote for OpenAI's API work against the daemon as they are: OpenAI's library
for Node, llm, ShellGPT.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts import openai_clients

from tests import daemon
from tests.daemon import DaemonProcess

LONGEST_S = 60
CONFIG = "[limits]\nrequests_per_second = 100000\n"
SCRIPT = {
    "*": [{"text": ["hello ", "there"]}],
    "weather": [
        {"text": "", "calls": [{"name": "get_weather", "arguments": {"city": "Brno"}}]},
        {"text": "sunny"},
    ],
    "what is my name?": [{"text": "You are Jo."}],
}
NODE = """
const OpenAI = (await import(process.env.SDK)).default;
const client = new OpenAI();
const models = [];
for await (const model of client.models.list()) models.push(model.id);
const stream = await client.chat.completions.create({model: "palyra", messages: [{role: "user", content: "hi"}], stream: true});
let said = "";
for await (const piece of stream) said += piece.choices[0]?.delta?.content ?? "";
const parameters = {type: "object", properties: {city: {type: "string"}}};
const runner = client.chat.completions.runTools({
  model: "palyra", messages: [{role: "user", content: "weather"}],
  tools: [{type: "function", function: {name: "get_weather", parse: JSON.parse, parameters, function: ({city}) => `sun: ${city}`}}],
});
const response = await client.responses.create({model: "palyra", input: "hi"});
const wanted = {model: "palyra", input: ["one", "two"]};
// The library asks for bytes unless it is told otherwise.
const packed = await client.embeddings.create(wanted);
const plain = await client.embeddings.create({...wanted, encoding_format: "float"});
const far = packed.data[1].embedding.map((each, at) => Math.abs(each - plain.data[1].embedding[at]));
let refused = {};
try { await client.chat.completions.create({model: "palyra", n: 2, messages: [{role: "user", content: "hi"}]}); }
catch (error) { refused = {status: error.status, type: error.type, param: error.param}; }
console.log(JSON.stringify({models, said, tools: await runner.finalContent(), response: response.output_text,
  vectors: [far.length, far.every((each) => each < 1e-6)], refused}));
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemon.start(tmp_path_factory.mktemp("programs"), config=CONFIG, script=SCRIPT) as process:
        yield process


def run(served: DaemonProcess, home: Path, *command: str, **more: str) -> str:
    """What a program prints, with a home folder of its own and the daemon as its OpenAI."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    known = {
        "OPENAI_API_KEY": served.token,
        "OPENAI_BASE_URL": f"{served.url}/v1",
        "HOME": str(home),
        "TERM": "dumb",
    }
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        env={**kept, **known, **more},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def said(served: DaemonProcess) -> list[dict[str, Any]]:
    """The inputs of the last session."""
    session_id = served.get("/v1/sessions?limit=1")["sessions"][0]["session_id"]
    entries = served.get(f"/v1/sessions/{session_id}/entries?limit=100")["entries"]
    return [each["event"] for each in entries if each["kind"] == "input.received"]


def test_openais_library_for_node(served: DaemonProcess, tmp_path: Path) -> None:
    program = tmp_path / "program.mjs"
    program.write_text(NODE)
    found = json.loads(
        run(
            served,
            tmp_path,
            openai_clients.node(),
            str(program),
            SDK=openai_clients.NODE_SDK.program.as_uri(),
        )
    )
    assert found == {
        "models": ["palyra", "scripted/s1", "demo/demo-1", "all-MiniLM-L6-v2-int8"],
        "said": "hello there",
        "tools": "sunny",
        "response": "hello there",
        "vectors": [384, True],
        "refused": {"status": 400, "type": "invalid_request_error", "param": "n"},
    }


def test_llm_asks(served: DaemonProcess, tmp_path: Path) -> None:
    models = [
        {
            "model_id": "agent",
            "model_name": "palyra",
            "api_base": f"{served.url}/v1",
            "api_key_name": "agent",
        }
    ]
    (tmp_path / "extra-openai-models.yaml").write_text(json.dumps(models))
    (tmp_path / "keys.json").write_text(json.dumps({"agent": served.token}))
    llm = str(Path(sys.executable).parent / "llm")
    own = {"LLM_USER_PATH": str(tmp_path)}
    answer = run(
        served, tmp_path, llm, "-m", "agent", "--system", "Be brief.", "my name is Jo", **own
    )
    assert answer.strip() == "hello there"
    (last,) = said(served)
    assert (last["text"], last["given"]) == ("my name is Jo", {"instructions": "Be brief."})


def test_a_chat_in_shell_gpt(served: DaemonProcess, tmp_path: Path) -> None:
    settings = {
        "DEFAULT_MODEL": "palyra", "API_BASE_URL": f"{served.url}/v1", "OPENAI_USE_FUNCTIONS": "false",
        "PRETTIFY_MARKDOWN": "false", "CHAT_CACHE_PATH": str(tmp_path / "chats"), "CACHE_PATH": str(tmp_path / "cache"),
    }  # fmt: skip
    program = str(openai_clients.SHELL_GPT)
    assert "hello there" in run(
        served, tmp_path, program, "--chat", "one", "my name is Jo", **settings
    )
    shown = run(served, tmp_path, program, "--chat", "one", "what is my name?", **settings)
    assert "You are Jo." in shown
    assert [each["text"] for each in said(served)] == ["my name is Jo", "what is my name?"]
