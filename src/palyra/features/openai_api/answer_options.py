"""Answer options of a program: the form of the answer, and which of its tools comes first.
Everything else is refused.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from palyra.core.errors import InvalidInput
from palyra.core.events import ClientTool, Wanted
from palyra.core.messages import ANY_CALL

_LONGEST_NAME = 64


def of_chat(
    form: dict[str, Any] | None, choice: Any, tools: Sequence[ClientTool]
) -> tuple[tuple[ClientTool, ...], Wanted | None]:
    """The tools on offer, and the wish, if there is one."""
    form = form or {}
    described = form.get("json_schema") if form.get("type") == "json_schema" else form
    return _of("response_format", form.get("type", "text"), described, choice, tools)


def of_response(
    text: dict[str, Any] | None, choice: Any, tools: Sequence[ClientTool]
) -> tuple[tuple[ClientTool, ...], Wanted | None]:
    form = (text or {}).get("format") or {}
    if not isinstance(form, dict):
        refuse("text.format", "text.format must be an object with a type")
    return _of("text.format", form.get("type", "text"), form, choice, tools)


def _of(
    param: str, kind: Any, described: Any, choice: Any, tools: Sequence[ClientTool]
) -> tuple[tuple[ClientTool, ...], Wanted | None]:
    offered, call = _chosen(choice, tools)
    match kind:
        case "text":
            return offered, Wanted(call=call) if call else None
        case "json_object":
            return offered, Wanted(form="object", call=call)
        case "json_schema" if isinstance(described, dict) and isinstance(
            described.get("schema"), dict
        ):
            name, strict = described.get("name"), described.get("strict")
            named = name[:_LONGEST_NAME] if isinstance(name, str) else ""
            return offered, Wanted(
                form="schema",
                name=named,
                schema=described["schema"],
                strict=strict is True,
                call=call,
            )
        case "json_schema":
            refuse(
                param,
                "a json_schema needs a name and, as `schema`, the JSON Schema that the answer is"
                " to fit",
            )
    return refuse(
        param,
        "answers are text, json_object or json_schema: say one of these as the type, or nothing",
    )


def _chosen(choice: Any, tools: Sequence[ClientTool]) -> tuple[tuple[ClientTool, ...], str]:
    """Return which tools are offered, and which one must be called."""
    match choice:
        case None | "auto":
            return tuple(tools), ""
        case "none":
            return (), ""
        case "required" if tools:
            return tuple(tools), ANY_CALL
        case {"type": "function", "function": {"name": str() as name}} | {
            "type": "function",
            "name": str() as name,
        }:
            return tuple(tools), _known(name, tools)
        case {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [*named]}}:
            return _allowed(mode, named, tools)
        case {"type": "allowed_tools", "mode": mode, "tools": [*named]}:
            return _allowed(mode, named, tools)
    return refuse(
        "tool_choice",
        "say auto, none, required or name one of your functions; required needs tools to choose"
        " from",
    )


def _allowed(
    mode: Any, named: Sequence[Any], tools: Sequence[ClientTool]
) -> tuple[tuple[ClientTool, ...], str]:
    chosen = {_chosen(each, tools)[1] for each in named}
    return tuple(each for each in tools if each.name in chosen), (
        ANY_CALL if mode == "required" else ""
    )


def _known(name: str, tools: Sequence[ClientTool]) -> str:
    if not any(each.name == name for each in tools):
        refuse(
            "tool_choice",
            f"no tool of this request is named {name[:80]!r}: the agent's own are for the agent to"
            " choose",
        )
    return name


def refuse(param: str, message: str) -> NoReturn:
    raise InvalidInput(message, path=f"$.{param}")
