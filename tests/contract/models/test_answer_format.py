"""The form of an answer and the choice of a tool, as each dialect says them, and to servers that
refuse to hear of them.
"""

from typing import Any

import msgspec
import pytest

from palyra.core.messages import ANY_CALL, NO_CALL, AnswerSchema
from palyra.models.dialects import Dialect
from tests.contract.models.test_http import EVERY, HELLO, SCHEMA, SCRIPT, ask, run, sent
from tests.fake_provider import WRITERS, Answer, FakeProvider, Request
from tests.model_reading import asks

PLACE = AnswerSchema("place", SCHEMA, strict=True)
OF_CHAT = {
    "type": "json_schema",
    "json_schema": {"name": "place", "schema": SCHEMA, "strict": True},
}
OF_RESPONSES = {
    "format": {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}
}
FIELDS = {
    "openai-chat": ("response_format", OF_CHAT),
    "openai-responses": ("text", OF_RESPONSES),
    "anthropic": ("none", None),
    # An object without properties is nothing that it can be told.
    "gemini": ("generationConfig", {"responseMimeType": "application/json"}),
}


@EVERY
def test_a_schema_goes_to_the_server_unless_it_would_keep_the_model_from_calling_tools(
    dialect: Dialect,
) -> None:
    field, wanted = FIELDS[dialect]
    alone = sent(dialect, asks(messages=HELLO, json_schema=PLACE)).json()
    beside = sent(dialect, asks("fs.read", messages=HELLO, json_schema=PLACE)).json()
    last = sent(
        dialect, asks("fs.read", messages=HELLO, json_schema=PLACE, tool_choice=NO_CALL)
    ).json()
    assert [each.get(field) for each in (alone, beside, last)] == [wanted, None, wanted]


@pytest.mark.parametrize(
    ("dialect", "refusal"),
    [
        (
            "openai-chat",
            "Invalid schema for response_format 'place': 'required' is required to be supplied",
        ),
        ("openai-chat", "json mode cannot be combined with tool/function calling"),
        (
            "openai-responses",
            "Unsupported parameter: 'text.format' is not supported with this model.",
        ),
    ],
)
def test_a_server_that_refuses_the_schema_is_asked_without_it(
    dialect: Dialect, refusal: str
) -> None:
    field, wanted = FIELDS[dialect]

    def refuses(request: Request) -> Answer:
        refused = field in request.json()
        return (
            Answer(msgspec.json.encode({"error": {"message": refusal}}), 400)
            if refused
            else Answer(WRITERS[dialect](SCRIPT))
        )

    async def work() -> list[Any]:
        async with FakeProvider(refuses) as server:
            assert (
                await ask(dialect, server.url, asks(messages=HELLO, json_schema=PLACE))
            ).text == "Hello"
            return [request.json().get(field) for request in server.requests]

    assert run(work) == [wanted, None]


@pytest.mark.parametrize(
    ("dialect", "choices"),
    [
        (
            "openai-chat",
            ["required", "none", {"type": "function", "function": {"name": "fs_read"}}, None],
        ),
        ("openai-responses", ["required", "none", {"type": "function", "name": "fs_read"}, None]),
        (
            "anthropic",
            [{"type": "any"}, {"type": "none"}, {"type": "tool", "name": "fs_read"}, None],
        ),
    ],
)
def test_which_tool_is_to_be_called_is_said_in_each_dialect(
    dialect: Dialect, choices: list[Any]
) -> None:
    bodies = [
        sent(dialect, asks("fs.read", messages=HELLO, tool_choice=each)).json()
        for each in (ANY_CALL, NO_CALL, "fs.read", "")
    ]
    assert [body.get("tool_choice") for body in bodies] == choices
