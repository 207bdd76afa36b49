"""The agent behind OpenAI's API, as OpenAI's own Python library sees it: sessions, tools of the
program, approvals, going away.
"""

import base64
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from tests import daemon
from tests.daemon import DaemonProcess
from tests.e2e.agent.test_images import png

CONFIG = "[limits]\nrequests_per_second = 100000\nstreams = 6\n[memory]\nembeddings = false\n"
WRITE = {"name": "fs.write", "arguments": {"path": "note.txt", "content": "first\n"}}
CITIES = [{"name": "get_weather", "arguments": {"city": each}} for each in ("Brno", "Wien")]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("openai")
    script = {
        # What a program tells of has turns of the assistant, too.
        "*": [{"text": ["hello ", "there"], "reasoning": "as asked"}] * 2,
        "look": [
            {"text": "I look.", "calls": [{"name": "fs.list", "arguments": {}}]},
            {"text": ["an empty ", "folder"]},
        ],
        "weather": [
            {"text": "I ask you.", "calls": CITIES},
            {"text": "sunny in both"},
            {"text": "sunny"},
        ],
        "write": [{"text": "I write it.", "calls": [WRITE]}, {"text": "written"}],
        "json": [
            {"text": "I look.", "calls": [{"name": "fs.list", "arguments": {}}]},
            {"text": '```json\n{"city": "Brno"}\n```'},
        ],
        "fail": [{"fail": {"failure": "auth", "message": "no such key"}}],
        "hold place": [{"text": ["so ", "far"], "hold": str(folder / "never"), "hold_after": 1}],
        "hold": [{"text": ["so ", "far"], "hold": str(folder / "never"), "hold_after": 1}],
    }
    with daemon.start(folder, config=CONFIG + daemon.IMPATIENT, script=script) as process:
        yield process


@pytest.fixture
def client(served: DaemonProcess) -> OpenAI:
    return reaching(served)


def reaching(served: DaemonProcess) -> OpenAI:
    return OpenAI(base_url=f"{served.url}/v1", api_key=served.token, timeout=60)


def user(text: Any) -> Any:
    return [{"role": "user", "content": text}]


def session_of(answer: Any) -> str:
    return str(answer.palyra_session)


def tape(served: DaemonProcess, session_id: str, kind: str) -> list[dict[str, Any]]:
    page = served.get(f"/v1/sessions/{session_id}/entries?limit=500")
    return [each["event"] for each in page["entries"] if each["kind"] == kind]


def ended(served: DaemonProcess, session_id: str, run_id: str) -> str:
    """How a run ended, once it has."""
    kinds: list[str] = [
        data["kind"]
        for _, _, data in served.events(f"/v1/sessions/{session_id}/events?until={run_id}")
        if "kind" in data
    ]
    return kinds[-1]


def test_a_stream_and_a_whole_answer_say_the_same_and_what_was_used(client: OpenAI) -> None:
    whole = client.chat.completions.create(model="palyra", messages=user("look"))
    pieces = list(
        client.chat.completions.create(
            model="palyra",
            messages=user("look"),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    said = "".join(each.choices[0].delta.content or "" for each in pieces if each.choices)
    assert whole.choices[0].message.content == said == "I look.\n\nan empty folder"
    assert (
        [each.choices[0].finish_reason for each in pieces if each.choices][-1]
        == whole.choices[0].finish_reason
        == "stop"
    )
    assert whole.usage is not None
    assert pieces[-1].usage is not None
    assert pieces[-1].usage.completion_tokens == whole.usage.completion_tokens > 0
    assert whole.model == "scripted/s1"


class Place(BaseModel):
    city: str


def test_an_answer_in_json_is_the_json_alone_streamed_or_whole(client: OpenAI) -> None:
    whole = client.chat.completions.parse(
        model="palyra", messages=user("json"), response_format=Place
    )
    assert whole.choices[0].message.parsed == Place(city="Brno")
    pieces = client.chat.completions.create(
        model="palyra", messages=user("json"), response_format={"type": "json_object"}, stream=True
    )
    assert (
        "".join(each.choices[0].delta.content or "" for each in pieces)
        == whole.choices[0].message.content
    )
    assert client.responses.parse(
        model="palyra", input="json", text_format=Place
    ).output_parsed == Place(city="Brno")
    with client.responses.stream(model="palyra", input="json", text_format=Place) as stream:
        assert stream.until_done().get_final_response().output_parsed == Place(city="Brno")


def test_an_answer_that_never_has_the_form_is_an_error_that_says_so(client: OpenAI) -> None:
    more: Any = {
        "model": "palyra",
        "messages": user("weather"),
        "response_format": Place,
        "tools": [WEATHER],
        "tool_choice": "required",
    }
    message = (
        client.chat.completions.create(**{**more, "response_format": {"type": "json_object"}})
        .choices[0]
        .message
    )
    assert (message.content, len(message.tool_calls or ())) == (None, 2)
    results = [
        {"role": "tool", "tool_call_id": each.id, "content": "sun"}
        for each in message.tool_calls or ()
    ]
    with pytest.raises(openai.InternalServerError, match="not the form") as told:
        client.chat.completions.create(
            model="palyra",
            messages=[*user("weather"), message, *results],
            response_format={"type": "json_object"},
        )
    assert told.value.body["details"]["reason"] == "answer_form"  # type: ignore[index]


def test_only_what_is_new_counts_in_a_named_session(served: DaemonProcess, client: OpenAI) -> None:
    first = client.chat.completions.create(model="palyra", messages=user("hi"), user="jo")
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        *user("hi"),
        first.choices[0].message,
        *user("look"),
    ]
    second = client.chat.completions.create(model="palyra", messages=messages, user="jo")
    third = client.chat.completions.create(
        model="palyra",
        messages=user("weather"),
        extra_headers={"X-Palyra-Session": session_of(first)},
    )
    assert len({session_of(each) for each in (first, second, third)}) == 1
    inputs = tape(served, session_of(first), "input.received")
    assert [each["text"] for each in inputs] == ["hi", "look", "weather"]
    assert [each.get("given") for each in inputs] == [None, {"instructions": "Be brief."}, None]


def test_a_request_without_a_session_gets_its_own_with_what_the_program_remembers(
    served: DaemonProcess, client: OpenAI
) -> None:
    messages: Any = [
        *user("my name is Jo"),
        {"role": "assistant", "content": "hello Jo"},
        *user("hi"),
    ]
    answer = client.chat.completions.create(model="scripted/s1", messages=messages)
    (said,) = tape(served, session_of(answer), "input.received")
    turns = [{"role": "user", "text": "my name is Jo"}, {"role": "assistant", "text": "hello Jo"}]
    assert (said["text"], said["given"]) == ("hi", {"turns": turns})


def calling(client: OpenAI) -> tuple[ChatCompletion, Any]:
    asked = client.chat.completions.create(
        model="palyra", messages=user("weather"), tools=[WEATHER]
    )  # type: ignore[list-item]
    message = asked.choices[0].message
    assert asked.choices[0].finish_reason == "tool_calls"
    assert message.content == "I ask you."
    assert message.tool_calls is not None
    assert [json.loads(each.function.arguments) for each in message.tool_calls] == [
        {"city": "Brno"},
        {"city": "Wien"},
    ]  # type: ignore[union-attr]
    results = [
        {"role": "tool", "tool_call_id": each.id, "content": "sun"} for each in message.tool_calls
    ]
    return asked, [*user("weather"), message, *results]


def test_a_program_brings_what_its_tools_gave_after_a_crash_too(
    served: DaemonProcess, client: OpenAI
) -> None:
    asked, messages = calling(client)
    served.kill()
    # On another port: the one it had may be somebody else's by now.
    served.restart()
    client = reaching(served)
    for _ in range(2):
        answer = client.chat.completions.create(model="palyra", messages=messages, tools=[WEATHER])  # type: ignore[list-item]
        assert answer.choices[0].message.content == "sunny in both"
        assert session_of(answer) == session_of(asked)
    assert len(tape(served, session_of(asked), "model.replied")) == 2


def test_results_that_are_missing_other_or_nobodys_are_refused(client: OpenAI) -> None:
    _, messages = calling(client)
    with pytest.raises(openai.BadRequestError, match="all calls"):
        client.chat.completions.create(model="palyra", messages=messages[:-1])
    assert (
        client.chat.completions.create(model="palyra", messages=messages).choices[0].message.content
        == "sunny in both"
    )
    with pytest.raises(openai.ConflictError, match="first ones count"):
        client.chat.completions.create(model="palyra", messages=changed(messages, content="rain"))
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(
            model="palyra", messages=changed(messages, tool_call_id="call_1")
        )


def changed(messages: Any, **more: str) -> Any:
    """With another last message."""
    return [*messages[:-1], {**messages[-1], **more}]


def test_an_approval_is_answered_elsewhere_while_a_stream_waits(
    served: DaemonProcess, client: OpenAI
) -> None:
    said: list[str] = []
    with client.chat.completions.create(
        model="palyra", messages=user("write"), stream=True
    ) as stream:
        for piece in stream:
            said.append(piece.choices[0].delta.content or "")
            if "".join(said) == "I write it.":
                session_id = stream.response.headers["x-palyra-session"]
                served.post(
                    f"/v1/approvals/{approval(served, session_id)}/answer", {"decision": "allow"}
                )
    assert "".join(said) == "I write it.\n\nwritten"


def approval(served: DaemonProcess, session_id: str) -> str:
    for _, _, data in served.events(f"/v1/sessions/{session_id}/events"):
        if data["kind"] == "approval.requested":
            return str(data["event"]["approval_id"])
    raise AssertionError("nobody asked")


def test_who_does_not_stream_is_told_what_is_waited_for_and_gets_the_answer_later(
    served: DaemonProcess, client: OpenAI
) -> None:
    def ask(text: str = "write", **headers: str) -> ChatCompletion:
        return client.chat.completions.create(
            model="palyra", messages=user(text), extra_headers=headers
        )

    # A write that changes nothing does not ask.
    (served.workspace / "note.txt").unlink(missing_ok=True)
    with pytest.raises(openai.ConflictError) as told:
        ask(Prefer="wait=1")
    where = told.value.body["details"]  # type: ignore[index]
    asked = approval(served, where["session_id"])
    again = {"Idempotency-Key": where["run_id"]}
    with pytest.raises(openai.ConflictError) as told:
        ask(Prefer="wait=0", **again)
    assert told.value.body["details"]["approvals"] == [asked]  # type: ignore[index]
    assert f"Idempotency-Key: {where['run_id']}" in told.value.message
    served.post(f"/v1/approvals/{asked}/answer", {"decision": "allow"})
    answer = ask(**again)
    assert (answer.choices[0].message.content, session_of(answer)) == (
        "I write it.\n\nwritten",
        where["session_id"],
    )
    with pytest.raises(openai.ConflictError, match="another payload"):
        ask("look", **again)


def test_the_same_key_is_the_same_run(client: OpenAI) -> None:
    key = {"Idempotency-Key": "order-66"}
    messages: Any = [
        *user("my name is Jo"),
        {"role": "assistant", "content": "hello Jo"},
        *user("hi"),
    ]
    answers = [
        client.chat.completions.create(
            model="palyra", messages=messages, user="key", extra_headers=key
        )
        for _ in range(2)
    ]
    assert len({each.id for each in answers}) == 1


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_going_away_ends_the_run_unless_somebody_can_come_back_to_it(
    served: DaemonProcess, stream: bool, named: bool
) -> None:
    key = f"away-{stream}"
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}
    body = {"messages": user("hold"), "stream": stream, **({"user": key} if named else {})}
    seen = served.get("/v1/status")["entries"]
    connection.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)
    run_id = session_id = ""
    for _, _, data in served.events(f"/v1/events?after={seen}"):
        if data["kind"] == "route.planned":
            run_id, session_id = data["run_id"], data["tape"]
            break
    connection.close()
    if named:
        # It is still at work until somebody ends it.
        assert served.get(f"/v1/runs/{run_id}")["state"] == "in_progress"
        served.post(f"/v1/runs/{run_id}/cancel", {"reason": "by hand"})
    assert ended(served, session_id, run_id) == "run.cancelled"
    reason = tape(served, session_id, "run.cancelled")[0]["reason"]
    assert reason == ("by hand" if named else "the program that asked went away")


def test_who_gets_no_place_has_started_nothing(served: DaemonProcess) -> None:
    asking = [asked_to_hold(served) for _ in range(9)]
    try:
        statuses = sorted(each.getresponse().status for each in asking)
    finally:
        for each in asking:
            each.close()
    assert statuses == [200] * 6 + [429] * 3
    runs = [
        each
        for each in served.get("/v1/sessions?limit=500")["sessions"]
        if each["title"] == "hold place"
    ]
    assert len(runs) == 6


def asked_to_hold(served: DaemonProcess) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    headers = {"Authorization": f"Bearer {served.token}", "Content-Type": "application/json"}
    body = {"messages": user("hold place"), "stream": True}
    connection.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)
    return connection


def test_images_come_along(served: DaemonProcess, client: OpenAI) -> None:
    url = "data:image/png;base64," + base64.b64encode(png(2)).decode()
    parts = [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    answer = client.chat.completions.create(model="palyra", messages=user(parts))
    (said,) = tape(served, session_of(answer), "input.received")
    assert [(each["media_type"], each["width"]) for each in said["attachments"]] == [
        ("image/png", 77)
    ]
    response = client.responses.create(
        model="palyra",
        input=[
            {
                "role": "user",
                "content": [{"type": "input_image", "image_url": url, "detail": "auto"}],
            }
        ],
    )
    (said,) = tape(served, session_of(response), "input.received")
    assert len(said["attachments"]) == 1


def test_a_response_goes_on_from_another_and_can_be_gone_on_from_twice(
    served: DaemonProcess, client: OpenAI
) -> None:
    first = client.responses.create(model="palyra", input="hi", instructions="Be brief.")
    second = client.responses.create(model="palyra", input="look", previous_response_id=first.id)
    assert second.output_text == "I look.\n\nan empty folder"
    assert session_of(second) == session_of(first)
    other = client.responses.create(model="palyra", input="look", previous_response_id=first.id)
    assert other.output_text == second.output_text
    assert session_of(other) != session_of(first)
    assert [each["parent"] for each in tape(served, session_of(other), "session.branched")] == [
        session_of(first)
    ]
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="palyra", input="hi", previous_response_id="resp_1")


def test_a_response_streams_words_and_calls_and_takes_their_results(client: OpenAI) -> None:
    tool: Any = {"type": "function", "strict": False, **WEATHER["function"]}  # type: ignore[dict-item]
    with client.responses.stream(model="palyra", input="weather", tools=[tool]) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert final.output_text == "I ask you."
    calls = [each for each in final.output if each.type == "function_call"]
    assert [json.loads(each.arguments)["city"] for each in calls] == ["Brno", "Wien"]
    results: Any = [
        {"type": "function_call_output", "call_id": each.call_id, "output": "sun"} for each in calls
    ]
    answer = client.responses.create(
        model="palyra", input=results, previous_response_id=final.id, tools=[tool]
    )
    assert answer.output_text == "sunny in both"
    assert answer.usage is not None
    assert answer.usage.output_tokens > 0


def test_a_response_can_be_had_again_with_what_it_answered_and_be_put_away(
    served: DaemonProcess, client: OpenAI
) -> None:
    tool: Any = {"type": "function", "strict": False, **WEATHER["function"]}  # type: ignore[dict-item]
    more: Any = {
        "model": "palyra",
        "instructions": "Be brief.",
        "tools": [tool],
        "tool_choice": "required",
    }
    asked = client.responses.create(input="weather", **more)
    results: Any = [
        {"type": "function_call_output", "call_id": each.call_id, "output": "sun"}
        for each in asked.output
        if each.type == "function_call"
    ]
    answered = client.responses.create(model="palyra", input=results, previous_response_id=asked.id)
    form: Any = {
        "format": {
            "type": "json_schema",
            "name": "place",
            "schema": Place.model_json_schema(),
            "strict": False,
        }
    }
    formed = client.responses.create(model="palyra", input="json", text=form)
    for given in (asked, answered, formed):
        again = client.responses.retrieve(given.id)
        shown = {
            "id",
            "model",
            "status",
            "output",
            "usage",
            "instructions",
            "tools",
            "tool_choice",
            "text",
        }
        unlike = {"instructions", "tools"} if given is answered else set()
        assert again.model_dump(include=shown - unlike) == given.model_dump(include=shown - unlike)
    (said,) = client.responses.input_items.list(asked.id)
    assert said.content[0].text == "weather"  # type: ignore[union-attr]
    brought = list(client.responses.input_items.list(answered.id, order="asc"))
    assert [(each.call_id, each.output) for each in brought] == [
        (each["call_id"], "sun") for each in results
    ]  # type: ignore[union-attr]
    client.responses.delete(formed.id)
    assert served.get(f"/v1/sessions/{session_of(formed)}")["archived"]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(formed.id)
    client.responses.create(model="palyra", input="hi", previous_response_id=answered.id)
    with pytest.raises(openai.ConflictError, match="archive the session"):
        client.responses.delete(asked.id)
    for wrong in ("resp_1", f"resp_{formed.id[5:31]}ff"):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(wrong)


def test_a_run_that_fails_is_an_error_that_nobody_repeats_unasked(
    served: DaemonProcess, client: OpenAI
) -> None:
    before = len(served.get("/v1/sessions?limit=500")["sessions"])
    with pytest.raises(openai.InternalServerError, match="no such key"):
        client.chat.completions.create(model="palyra", messages=user("fail"))
    assert len(served.get("/v1/sessions?limit=500")["sessions"]) == before + 1
    with pytest.raises(openai.APIError, match="no such key"):
        list(client.chat.completions.create(model="palyra", messages=user("fail"), stream=True))
    with pytest.raises(openai.APIStatusError, match=r"memory\.embeddings is off"):
        client.with_options(max_retries=0).embeddings.create(model="palyra", input="x")
    with pytest.raises(openai.AuthenticationError) as told:
        OpenAI(base_url=f"{served.url}/v1", api_key="plr_wrong").models.list()
    assert told.value.type == "authentication_error"


@pytest.mark.parametrize(
    ("param", "more"),
    [
        ("n", {"n": 2}),
        ("logprobs", {"logprobs": True}),
        ("response_format", {"response_format": {"type": "xml"}}),
        (
            "response_format",
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
        ),
        (
            None,
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "city"}},
                }
            },
        ),
        ("modalities", {"modalities": ["text", "audio"]}),
        ("tool_choice", {"tool_choice": "required"}),
        (
            "tool_choice",
            {
                "tool_choice": {"type": "function", "function": {"name": "fs.list"}},
                "tools": [WEATHER],
            },
        ),
        (None, {"messages": [{"role": "assistant", "content": "me"}]}),
        (
            None,
            {
                "messages": user(
                    [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}]
                )
            },
        ),
        (
            None,
            {
                "messages": user(
                    [{"type": "image_url", "image_url": {"url": "data:image/png;base64,###"}}]
                )
            },
        ),
        (
            None,
            {
                "messages": user(
                    [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]
                )
            },
        ),
        (None, {"model": "no-such-model"}),
        (None, {"extra_headers": {"X-Palyra-Session": "two words"}}),
        ("messages[0].role", {"messages": [{"role": "nobody", "content": "x"}]}),
    ],
)
def test_what_cannot_be_is_refused_in_openais_shape(
    client: OpenAI, param: str | None, more: dict[str, Any]
) -> None:
    with pytest.raises(openai.BadRequestError) as told:
        client.chat.completions.create(**{"model": "palyra", "messages": user("hi"), **more})
    assert (told.value.type, told.value.code, told.value.param) == (
        "invalid_request_error",
        "invalid_input",
        param,
    )
