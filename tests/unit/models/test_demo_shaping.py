"""The demo model's answers in the form of a schema."""

import asyncio
import json

from palyra.core.messages import AnswerSchema, ModelRequest, Text, UserMessage
from palyra.models.demo import DemoModel
from palyra.tools.catalogue import compiled


def test_a_schema_gives_what_fits_it() -> None:
    inner = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "size": {"type": "integer", "minimum": 1}},
    }
    properties = {
        "kind": {"enum": ["place", "thing"]},
        "where": {"$ref": "#/$defs/Place"},
        "names": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "sure": {"type": ["boolean", "null"]},
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "$defs": {"Place": inner},
    }
    messages = (UserMessage((Text("thanks"),)),)
    request = ModelRequest(
        model="m", instructions="", messages=messages, json_schema=AnswerSchema("place", schema)
    )
    reply = asyncio.run(DemoModel(delay_ms=0).stream(request, lambda channel, piece: None))
    assert json.loads(reply.text) == {
        "kind": "place", "where": {"city": "You are welcome.", "size": 1}, "names": [""], "note": "", "sure": False,
    }  # fmt: skip
    compiled(schema).validate(json.loads(reply.text))
