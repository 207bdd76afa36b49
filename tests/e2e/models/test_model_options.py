"""Effort, temperature and their like from the door to the provider, by settings and by request."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI

from palyra.core.call_options import CallOptions
from palyra.core.errors import ConfigInvalid, Conflict
from palyra.core.ids import OWNER
from palyra.models.scripted import Script as ModelScript
from palyra.models.scripted import ScriptedModel, StreamPause, Turn
from palyra.serve import config
from tests import daemon, inprocess
from tests.cli_terminal import palyra
from tests.daemon import DaemonProcess
from tests.elsewhere import beside
from tests.fake_provider import WRITERS, Answer, FakeProvider, Request, Script

SETTINGS = """[memory]
embeddings = false
[providers.chat]
kind = "openai-chat"
base_url = "{url}"
models = ["m", "slow"]
temperature = 0.5
[providers.claude]
kind = "anthropic"
base_url = "{url}"
models = ["c"]
[model_options.slow]
models = ["chat/slow"]
effort = "high"
seed = 0
"""
ASKED = ("temperature", "top_p", "seed", "stop", "max_tokens", "reasoning_effort", "service_tier")


def answer(request: Request) -> Answer:
    dialect = "anthropic" if request.path.endswith("/messages") else "openai-chat"
    if request.json().get("service_tier") == "unheard-of":
        refusal = b'{"error": {"message": "Invalid service_tier argument"}}'
        return Answer(refusal, status=400, content_type="application/json")
    cut = request.json().get("max_tokens") == 5
    return Answer(WRITERS[dialect](Script(text=("hello",), stop="length" if cut else "")))


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with beside(answer) as server:
        yield server


@pytest.fixture(scope="module")
def served(
    provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("options")
    settings = SETTINGS.format(url=provider.url)
    with daemon.start(folder, config=settings, script={"*": [{"text": "hi"}]}) as process:
        yield process


@pytest.fixture
def client(served: DaemonProcess) -> OpenAI:
    return OpenAI(base_url=f"{served.url}/v1", api_key=served.token, timeout=60, max_retries=0)


def told(provider: FakeProvider) -> dict[str, Any]:
    """What the last request says besides the prompt."""
    body = provider.requests[-1].json()
    return {name: body[name] for name in ASKED if name in body}


def test_what_a_program_says_reaches_the_provider(client: OpenAI, provider: FakeProvider) -> None:
    client.chat.completions.create(
        model="chat/m",
        messages=[{"role": "user", "content": "hi"}],
        temperature=0,
        top_p=0.9,
        seed=42,
        stop="END",
        max_completion_tokens=77,
        reasoning_effort="low",
        service_tier="flex",
    )
    assert told(provider) == {
        "temperature": 0,
        "top_p": 0.9,
        "seed": 42,
        "stop": ["END"],
        "max_tokens": 77,
        "reasoning_effort": "low",
        "service_tier": "flex",
    }
    response = client.responses.create(
        model="chat/m", input="hi", max_output_tokens=33, reasoning={"effort": "high"}
    )
    for each in (response, client.responses.retrieve(response.id)):
        assert each.reasoning is not None
        assert (each.max_output_tokens, each.reasoning.effort) == (33, "high")
    assert told(provider) == {"temperature": 0.5, "max_tokens": 33, "reasoning_effort": "high"}


def test_settings_hold_for_whoever_says_nothing(client: OpenAI, provider: FakeProvider) -> None:
    for model, expected in (
        ("chat/m", {"temperature": 0.5}),
        ("chat/slow", {"temperature": 0.5, "reasoning_effort": "high", "seed": 0}),
        ("claude/c", {"max_tokens": 8192}),
    ):
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])
        assert told(provider) == expected


@pytest.mark.parametrize(
    ("model", "said", "param"),
    [
        ("claude/c", {"seed": 1}, "seed"),
        ("chat/m", {"temperature": 9}, "temperature"),
        ("chat/m", {"reasoning_effort": "enormous"}, "reasoning_effort"),
        ("claude/c", {"frequency_penalty": 1}, "frequency_penalty"),
        ("chat/m", {"frequency_penalty": 3}, "frequency_penalty"),
        ("chat/m", {"logit_bias": {"5": 1}}, "logit_bias"),
        ("chat/m", {"max_tokens": 0}, "max_tokens"),
    ],
)
def test_what_cannot_be_said_is_refused_by_name(
    client: OpenAI, provider: FakeProvider, model: str, said: dict[str, Any], param: str
) -> None:
    before = len(provider.requests)
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "hi"}], extra_body=said
        )
    assert (caught.value.param, param in caught.value.message) == (param, True)
    assert len(provider.requests) == before


def test_defaults_that_programs_send_are_no_wish(client: OpenAI, provider: FakeProvider) -> None:
    client.chat.completions.create(
        model="claude/c",
        messages=[{"role": "user", "content": "hi"}],
        frequency_penalty=0,
        presence_penalty=0,
        logit_bias={},
        service_tier="auto",
    )
    assert told(provider) == {"max_tokens": 8192}


def test_a_reply_that_may_be_so_long_is_not_continued(
    client: OpenAI, provider: FakeProvider
) -> None:
    before = len(provider.requests)
    answered = client.chat.completions.create(
        model="chat/m", messages=[{"role": "user", "content": "hi"}], max_tokens=5
    )
    assert answered.choices[0].finish_reason == "length"
    assert len(provider.requests) == before + 1


def test_what_the_model_itself_refuses_is_the_callers_to_know(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="service_tier"):
        client.chat.completions.create(
            model="chat/m",
            messages=[{"role": "user", "content": "hi"}],
            service_tier="unheard-of",  # type: ignore[arg-type]
        )


def test_our_own_door_takes_them_and_the_tape_says_what_was_sent(
    served: DaemonProcess, provider: FakeProvider
) -> None:
    session_id = served.post("/v1/sessions", {})["session_id"]
    path = f"/v1/sessions/{session_id}/messages"
    options = {"effort": "low", "seed": 9}
    run_id = served.post(path, {"text": "hi", "model": "chat/m", "options": options})["run_id"]
    kinds = [
        data["kind"]
        for _, _, data in served.events(f"/v1/sessions/{session_id}/events?until={run_id}")
        if "kind" in data
    ]
    assert kinds[-1] == "run.completed"
    assert told(provider) == {"temperature": 0.5, "reasoning_effort": "low", "seed": 9}
    page = served.get(f"/v1/sessions/{session_id}/entries?limit=500")
    events = {each["kind"]: each["event"] for each in page["entries"]}
    assert events["run.accepted"]["wanted"] == {"options": options}
    assert events["input.assembled"]["options"] == {**options, "temperature": 0.5}
    refused = served.request("POST", path, {"text": "x", "model": "claude/c", "options": options})
    assert (refused.status, refused.code) == (400, "invalid_input")
    misspelt = served.request("POST", path, {"text": "x", "options": {"efort": "low"}})
    assert misspelt.status == 400


def test_the_command_line_says_them_too(served: DaemonProcess, provider: FakeProvider) -> None:
    asked = ("ask", "hi", "--model", "chat/m", "--effort", "high", "--temperature", "0.2")
    done = palyra(served.home, *asked, "--max-tokens", "99", cwd=served.workspace)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert told(provider) == {"temperature": 0.2, "max_tokens": 99, "reasoning_effort": "high"}


def test_what_joins_a_run_has_no_options_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        pause = StreamPause()
        script = ModelScript.of([Turn(text="so far", hold="here")])
        async with inprocess.daemon(tmp_path, ScriptedModel(script, holds={"here": pause})) as d:
            where = await inprocess.session(d)
            run = await inprocess.say(d, where, "begin")
            async with asyncio.timeout(20):
                await pause.reached.wait()
            with pytest.raises(Conflict, match="options"):
                await inprocess.say(
                    d, where, "more", mode="steer", options=CallOptions(effort="low")
                )
            await d.gateway.cancel(OWNER, run.run_id)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ('[providers.a]\nkind = "anthropic"\nseed = 4\n', "providers.a.seed"),
        ('[providers.a]\nkind = "openai-responses"\nstop = ["x"]\n', "providers.a.stop"),
        ('[providers.a]\nkind = "anthropic"\nprompt_cache = "24h"\n', "prompt_cache"),
        ("[model_options.x]\nseed = 4\n", "model_options.x.models"),
        ('[providers.a]\nkind = "anthropic"\ntemperature = -0.5\n', "providers.a.temperature"),
        (
            '[providers.a]\nkind = "anthropic"\n[model_options.x]\nmodels = ["a/b"]\nseed = 4\n',
            "model_options.x.seed",
        ),
    ],
)
def test_a_setting_that_a_provider_cannot_be_told_is_an_error_at_the_start(
    tmp_path: Path, settings: str, key: str
) -> None:
    (tmp_path / "config.toml").write_text(settings)
    with pytest.raises(ConfigInvalid, match=key):
        config.load(tmp_path, {})
