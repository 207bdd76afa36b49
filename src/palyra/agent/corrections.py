"""Corrections: what a model is told about an answer that leads nowhere, and people if it did not
help.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from palyra.agent import answer_format
from palyra.core.messages import ToolSchema
from palyra.core.run_progress import RunProgress

_LONGEST_SCHEMA: Final = 6_000
_DEEPEST_EXAMPLE: Final = 4

ENDINGS: Final = {
    "empty_answer": (
        "The model gave an empty answer twice. Ask again, or choose another model with --model"
    ),
    "loop": (
        "The model repeated the same tool call with the same result, also after it was told."
        " Rephrase the request, or choose another model with --model"
    ),
    "arguments": (
        "The model called tools with wrong names or arguments again and again, also after it was"
        " shown what is right. Choose another model with --model"
    ),
    "repetition": (
        "The model's answer repeated itself without end, twice. Rephrase the request, or choose"
        " another model with --model"
    ),
}


def words(run: RunProgress, tools: Sequence[ToolSchema]) -> str:
    """The note to the model about its last reply."""
    match run.flaw:
        case "form":
            return answer_format.again(run)
        case "empty":
            said = f"Your last reply had no text and no tool call ({run.refused}). Answer now,"
            said += " briefly, or call a tool."
        case "loop":
            said = (
                f"You are in a loop: {run.refused}. Do not repeat the call. Use what you know, try"
                " something else, or tell the user what is in the way."
            )
        case "arguments":
            said = _schema(run.refused, tools)
        case "repetition":
            said = (
                "Your last reply repeated itself and was stopped. Answer again, briefly, and stop"
                " when you are done."
            )
        case "stray_call":
            said = (
                "Your last reply holds a tool call with text behind it, so it was not run. To make"
                " the call, send it again with nothing behind it. If you only quoted it, give your"
                " answer again with the quote in a code fence."
            )
        case "described":
            said = (
                "Nothing was done: your last reply spoke of a tool but did not call it, and the"
                " user cannot call tools. Call it now yourself, in the form that your"
                " instructions show. If no tool is needed, give your answer again."
            )
    return f"[note from the daemon] {said}"


def _schema(name: str, tools: Sequence[ToolSchema]) -> str:
    tool = next((each for each in tools if each.name == name), None)
    if tool is None:
        known = ", ".join(each.name for each in tools)
        return f"There is no tool {name!r}. The tools are: {known}."
    schema = msgspec.json.encode(tool.parameters).decode()[:_LONGEST_SCHEMA]
    example = msgspec.json.encode(_example(tool.parameters, 0)).decode()
    return (
        f"The arguments of {name} were wrong several times. Its schema is:\n{schema}\nArguments"
        f" that fit look like this:\n{example}\nSend the call with arguments that fit, or do"
        " without it."
    )


def _example(schema: Any, depth: int) -> Any:
    """A value that fits a schema, with its required parts."""
    if not isinstance(schema, dict) or depth > _DEEPEST_EXAMPLE:
        return {}
    for key in ("example", "default", "const"):
        if schema.get(key) is not None:
            return schema[key]
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return _example(schema[key][0], depth + 1)
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "string":
            return "…"
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case "array":
            return [_example(schema.get("items"), depth + 1)]
        case "null":
            return None
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    required = schema.get("required")
    wanted = required if isinstance(required, list) and required else list(properties)[:1]
    return {key: _example(properties.get(key), depth + 1) for key in wanted}
