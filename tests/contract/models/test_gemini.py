"""Gemini's dialect: what is sent, and what is read. The recorded streams of the material are read
too (`test_recordings_cut_at_many_bytes…` cuts them at every byte); the samples here that have
thoughts, signatures, caches and blocks were written from Google's public API reference, because no
recording has them.
"""

from typing import Any

import pytest

from palyra.core.call_options import CallOptions
from palyra.core.messages import (
    ANY_CALL,
    NO_CALL,
    AnswerSchema,
    AssistantMessage,
    Image,
    ModelCall,
    ModelFailure,
    Text,
    ToolMessage,
    Usage,
    UserMessage,
)
from palyra.models import gemini_schema
from tests.contract.models.test_http import CONVERSATION, HELLO, KEY, ask, run, sent
from tests.elsewhere import sent_to
from tests.fake_provider import WRITERS, Answer, FakeProvider, Request, Script, sse
from tests.material import material
from tests.model_reading import asks, read, recordings


def candidate(*parts: dict[str, Any], finish: str = "", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {"candidates": [made | ({"finishReason": finish} if finish else {})], **more}


THINKING = sse(
    candidate({"text": "I should ", "thought": True}),
    candidate({"text": "look.", "thought": True}),
    candidate({"text": "Let me "}),
    candidate({"text": "look."}),
    candidate(
        {
            "functionCall": {"name": "fs_list", "args": {"path": "."}},
            "thoughtSignature": "c2lnbmVk",
        },
        {"functionCall": {"name": "fs_list", "args": {"path": "b"}}},
    ),
    candidate(
        {"text": "", "thoughtSignature": "bGFzdA=="},
        finish="STOP",
        usageMetadata={
            "promptTokenCount": 900,
            "cachedContentTokenCount": 512,
            "candidatesTokenCount": 12,
            "thoughtsTokenCount": 30,
            "totalTokenCount": 942,
        },
        modelVersion="gemini-3-flash-preview",
    ),
)


def test_a_recorded_stream_is_read() -> None:
    found = [each for each in recordings(material("cassettes")) if each.dialect == "gemini"]
    replies = [read("gemini", each.body) for each in found]
    assert [[(call.name, call.arguments) for call in each.calls] for each in replies] == [
        [("get_capital", '{"country":"France"}')],
        [("get_temperature", '{"city":"Paris"}')],
        [],
    ]
    assert [each.stop for each in replies] == ["tool_calls", "tool_calls", "end"]
    assert replies[0].usage == Usage(52, 5)
    assert replies[0].model == "gemini-2.0-flash"
    assert "Paris" in replies[2].text


@pytest.mark.parametrize("pieces", [1, 7, 1 << 20])
def test_thoughts_calls_and_counts_are_read_however_the_bytes_come(pieces: int) -> None:
    heard: list[Any] = []
    reply = read("gemini", THINKING, tools=("fs.list",), heard=heard, pieces=pieces)
    assert (reply.reasoning, reply.text, reply.stop) == (
        "I should look.",
        "Let me look.",
        "tool_calls",
    )
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
        ("call_0", "fs.list", '{"path":"."}'),
        ("call_1", "fs.list", '{"path":"b"}'),
    ]
    assert reply.usage == Usage(900, 42, cached_tokens=512, reasoning_tokens=30)
    assert [channel for channel, _ in heard] == [
        "reasoning",
        "reasoning",
        "text",
        "text",
        "call",
        "call",
    ]


def test_signatures_go_back_on_the_parts_that_they_came_with() -> None:
    async def work() -> Any:
        async with FakeProvider(Answer(THINKING)) as server:
            reply = await ask("gemini", server.url, asks("fs.list", messages=HELLO))
            turn = AssistantMessage(text=reply.text, calls=reply.calls, native=reply.native)
            results = [ToolMessage(call.id, call.name, "ok") for call in reply.calls]
            again = asks("fs.list", messages=(*HELLO, turn, *results))
            await ask("gemini", server.url, again)
            return server.requests[-1].json()["contents"]

    contents = run(work)
    assert contents[1] == {
        "role": "model",
        "parts": [
            {"text": "Let me look."},
            {
                "functionCall": {"id": "call_0", "name": "fs_list", "args": {"path": "."}},
                "thoughtSignature": "c2lnbmVk",
            },
            {"functionCall": {"id": "call_1", "name": "fs_list", "args": {"path": "b"}}},
            {"text": "", "thoughtSignature": "bGFzdA=="},
        ],
    }
    assert contents[2] == {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": id, "name": "fs_list", "response": {"output": "ok"}}}
            for id in ("call_0", "call_1")
        ],
    }


@pytest.mark.parametrize(
    ("model", "signature"),
    [
        ("gemini-3-pro-preview", {"thoughtSignature": "skip_thought_signature_validator"}),
        ("gemini-2.5-flash", {}),
    ],
)
def test_a_call_that_another_model_made_is_taken(model: str, signature: dict[str, str]) -> None:
    turn = AssistantMessage(calls=(ModelCall("a", "f", "{}"), ModelCall("b", "f", "{}")))
    results = (ToolMessage("a", "f", "1"), ToolMessage("b", "f", "2"))
    body = sent("gemini", asks("f", messages=(*HELLO, turn, *results), model=model)).json()
    first, second = body["contents"][1]["parts"]
    assert {key: first[key] for key in first if key != "functionCall"} == signature
    assert list(second) == ["functionCall"]


def test_a_conversation_in_geminis_dialect() -> None:
    request = sent("gemini", CONVERSATION)
    assert request.path == "/v1/models/m:streamGenerateContent?alt=sse"
    assert request.headers["x-goog-api-key"] == KEY
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
    body = request.json()
    assert body["systemInstruction"]["parts"][0]["text"].startswith("be brief")
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "look"}, image]},
        {"role": "user", "parts": [{"text": "closely"}]},
        {
            "role": "model",
            "parts": [
                {"text": "I will"},
                {"functionCall": {"id": "a", "name": "fs_read", "args": {"x": 1}}},
                {
                    "functionCall": {
                        "id": "b",
                        "name": "fs_read",
                        "args": {"malformed_arguments": "{broken"},
                    }
                },
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "a",
                        "name": "fs_read",
                        "response": {"error": "gone"},
                    }
                },
                {
                    "functionResponse": {
                        "id": "b",
                        "name": "fs_read",
                        "response": {"output": "(no output)"},
                    }
                },
            ],
        },
        {"role": "user", "parts": [{"text": "Images from fs_read:"}, image]},
        {"role": "user", "parts": [{"text": "go on"}]},
    ]


def test_which_tool_is_to_be_called() -> None:
    modes = [
        sent("gemini", asks("fs.read", messages=HELLO, tool_choice=each))
        .json()
        .get("toolConfig", {})
        .get("functionCallingConfig")
        for each in (ANY_CALL, NO_CALL, "fs.read", "")
    ]
    assert modes == [
        {"mode": "ANY"},
        {"mode": "NONE"},
        {"mode": "ANY", "allowedFunctionNames": ["fs_read"]},
        None,
    ]


@pytest.mark.parametrize(
    ("model", "effort", "config"),
    [
        ("gemini-2.5-pro", "", {"includeThoughts": True}),
        ("gemini-2.5-pro", "low", {"includeThoughts": True, "thinkingBudget": 1024}),
        ("gemini-3-pro-preview", "max", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-2.0-flash", "", None),
        ("gemma-4", "", None),
    ],
)
def test_effort_is_a_budget_or_a_level(model: str, effort: Any, config: Any) -> None:
    asked = asks(messages=HELLO, model=model, options=CallOptions(effort=effort))
    body = sent("gemini", asked).json()
    assert body.get("generationConfig", {}).get("thinkingConfig") == config


def test_the_address_is_googles_own_and_the_key_is_no_part_of_it() -> None:
    async def work() -> Request:
        answer = Answer(WRITERS["gemini"](Script(text=("hi",))))
        return await sent_to("gemini", "", asks(messages=HELLO, model="gemini-2.5-pro"), answer)

    request = run(work)
    assert request.path == "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"


@pytest.mark.parametrize(
    ("event", "failure"),
    [
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "content_blocked"),
        (candidate(finish="MALFORMED_FUNCTION_CALL"), "malformed"),
        (candidate(finish="MISSING_THOUGHT_SIGNATURE"), "malformed"),
        (
            {
                "error": {
                    "code": 503,
                    "message": "The model is overloaded.",
                    "status": "UNAVAILABLE",
                }
            },
            "overloaded",
        ),
        (
            {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}},
            "rate_limited",
        ),
    ],
)
def test_what_goes_wrong_in_a_stream_has_its_class(event: Any, failure: str) -> None:
    with pytest.raises(ModelFailure) as caught:
        read("gemini", sse(candidate({"text": "so"}), event))
    assert caught.value.failure == failure


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("STOP", "end"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("SPII", "content_filter"),
        ("OTHER", "end"),
    ],
)
def test_finish_reasons(finish: str, stop: str) -> None:
    assert read("gemini", sse(candidate({"text": "so"}, finish=finish))).stop == stop


def test_a_finish_reason_with_every_chunk_is_no_end() -> None:
    first = candidate({"text": "so"}, finish="STOP")
    assert read("gemini", sse(first, candidate({"text": " far"}, finish="STOP"))).text == "so far"
    with pytest.raises(ModelFailure):
        read("gemini", sse(first, candidate({"text": " far"})))


SCHEMAS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "object", "properties": {}}, {}),
    (
        {
            "$schema": "x",
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "mode": {"type": "string", "enum": ["a", 1], "default": "a"},
                "kind": {"const": "one"},
                "deep": {"type": ["integer", "null"], "exclusiveMinimum": 1, "format": "int64"},
                "list": {"type": "array"},
                "free": {"type": "object", "properties": {}},
                "when": {"type": "string", "format": "uri"},
            },
            "required": ["mode", "nothing"],
        },
        {
            "type": "OBJECT",
            "properties": {
                "mode": {"type": "STRING", "enum": ["a"]},
                "kind": {"type": "STRING", "enum": ["one"]},
                "deep": {"type": "INTEGER", "format": "int64", "nullable": True},
                "list": {"type": "ARRAY", "items": {"type": "STRING"}},
                "free": {"type": "OBJECT"},
                "when": {"type": "STRING"},
            },
            "required": ["mode"],
        },
    ),
    (
        {
            "type": "object",
            "properties": {
                "at": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]},
                "any": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                "all": {"allOf": [{"$ref": "#/$defs/Place"}], "description": "where"},
            },
            "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}}},
        },
        {
            "type": "OBJECT",
            "properties": {
                "at": {
                    "type": "OBJECT",
                    "properties": {"x": {"type": "NUMBER"}},
                    "nullable": True,
                },
                "any": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
                "all": {
                    "description": "where",
                    "type": "OBJECT",
                    "properties": {"x": {"type": "NUMBER"}},
                },
            },
        },
    ),
]


@pytest.mark.parametrize(("given", "taken"), SCHEMAS)
def test_a_schema_is_what_gemini_takes_of_it(given: dict[str, Any], taken: dict[str, Any]) -> None:
    assert gemini_schema.cleaned(given) == taken


def test_a_schema_that_goes_in_circles_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    made = gemini_schema.cleaned(
        {**node, "$defs": {"Node": node, "Self": {"$ref": "#/$defs/Self"}}}
    )
    depth = 0
    while "properties" in made:
        made, depth = made["properties"]["next"], depth + 1
    assert 1 < depth < 20
    assert gemini_schema.cleaned({"$ref": "#/$defs/S", "$defs": {"S": {"$ref": "#/$defs/S"}}})


def test_an_answer_that_fits_a_schema_is_asked_for_where_no_tool_is_offered() -> None:
    schema = AnswerSchema("place", {"type": "object", "properties": {"x": {"type": "integer"}}})
    alone = sent("gemini", asks(messages=HELLO, json_schema=schema)).json()
    beside = sent("gemini", asks("f", messages=HELLO, json_schema=schema)).json()
    assert alone["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseSchema": {"type": "OBJECT", "properties": {"x": {"type": "INTEGER"}}},
    }
    assert "generationConfig" not in beside


def test_images_of_the_user_go_inline() -> None:
    picture = Image("image/png", b"x")
    body = sent("gemini", asks(messages=(UserMessage((Text("see"), picture)),))).json()
    assert body["contents"][0]["parts"][1]["inlineData"]["mimeType"] == "image/png"
