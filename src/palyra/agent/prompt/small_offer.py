"""The tools that a small window has room for: all of them, all in short form, or the relevant ones.

The rule: a run keeps the tools that it began with, and a session's tools grow as long as there is
room, so that a prompt's beginning stays the same.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.conversation import Conversation
from palyra.core.messages import ToolSchema
from palyra.core.run_progress import ModelTurn, RunProgress, UserTurn
from palyra.models import usage_estimate

# Of the budget, what tools may take.
_TOOLS = 0.4
# Always offered: with these the files and the commands of a workspace are at hand.
CORE = ("fs.read", "fs.list", "fs.search", "fs.write", "fs.patch", "shell.run")
# Offered once there is something to read with it: until then weak models take it for `fs.read`.
_STORED = "artifact.read"
_MOST_PROSE = 120
# The values of an optional parameter, in characters, that are worth their tokens.
_MOST_CHOICES = 60
_PROSE = ("description", "title", "examples", "$comment")
_MOST_NAMES = 12
_WORD = re.compile(r"[a-z]{3,}")
_COMMON = frozenset(
    """all and any are but can file for from has have how into its not one out text that the then
    there this was what when where which who why will with you your""".split()  # noqa: SIM905
)
_SHORT = "short schemas"
_ALSO = "; also takes "
_encode = msgspec.json.encode


class OfferedTools(Struct, frozen=True):
    """The tools of a request. `names` is empty where all of them are offered."""

    tools: tuple[ToolSchema, ...]
    text: str
    names: tuple[str, ...] = ()
    note: str = ""


def offer(
    tools: tuple[ToolSchema, ...],
    conversation: Conversation,
    run: RunProgress,
    budget: int,
) -> OfferedTools:
    """Everything if it fits; else everything in short; else the relevant ones in short."""
    share = int(budget * _TOOLS)
    text = _encode(tools).decode()
    if usage_estimate.tokens(text) <= share:
        return OfferedTools(tools, text)
    brief = tuple(map(short, tools))
    text = _encode(brief).decode()
    if usage_estimate.tokens(text) <= share:
        return OfferedTools(brief, text, note=_SHORT)
    names = _relevant(brief, conversation, run, share)
    kept = tuple(tool for tool in brief if tool.name in names)
    missing = [tool.name for tool in brief if tool.name not in names]
    note = f"{_SHORT}; {len(missing)} left out: {', '.join(missing[:_MOST_NAMES])}"
    more = ", …" if len(missing) > _MOST_NAMES else ""
    return OfferedTools(
        kept, _encode(kept).decode(), tuple(tool.name for tool in kept), note + more
    )


def offered_again(tools: tuple[ToolSchema, ...], names: tuple[str, ...], note: str) -> OfferedTools:
    """The tools of a recorded request, in the form that its note names."""
    if note.startswith(_SHORT):
        tools = tuple(map(short, tools))
    return OfferedTools(tools, _encode(tools).decode(), names, note)


def short(tool: ToolSchema) -> ToolSchema:
    """The tool with one sentence of description, and with the parameters that it needs. Weak models
    copy every parameter that they see into every call, so optional ones are only named.
    """
    parameters = _slim(tool.parameters)
    properties, required = parameters.get("properties"), parameters.get("required")
    head, _, also = tool.description.partition(_ALSO)
    more = [also.rstrip(".")] if also else []
    if isinstance(properties, dict) and isinstance(required, list) and required:
        more += [
            _named(name, schema) for name, schema in properties.items() if name not in required
        ]
        parameters["properties"] = {
            name: schema for name, schema in properties.items() if name in required
        }
    said = _sentence(head)
    if more:
        said = f"{said.rstrip('.')}{_ALSO}{', '.join(more)}."
    return ToolSchema(tool.name, said, parameters)


def _named(name: str, schema: Any) -> str:
    """An optional parameter, with its values where there are few: a weak model makes others up."""
    choices = schema.get("enum") if isinstance(schema, dict) else None
    if not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
        return name
    listed = "|".join(choices)
    return f"{name} ({listed})" if len(listed) <= _MOST_CHOICES else name


def _sentence(text: str) -> str:
    first = re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0]
    return first if len(first) <= _MOST_PROSE else first[: _MOST_PROSE - 1].rsplit(" ", 1)[0] + "…"


def _slim(schema: Any, *, needed: bool = False) -> Any:
    if isinstance(schema, list):
        return [_slim(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    slim: dict[str, Any] = {}
    if needed and isinstance(schema.get("description"), str):
        slim["description"] = _sentence(schema["description"])
    required = schema.get("required")
    for key, value in schema.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            # Names of parameters, not keywords: one may be called "description".
            slim[key] = {
                name: _slim(each, needed=isinstance(required, list) and name in required)
                for name, each in value.items()
            }
        elif key in ("enum", "const", "default", "required"):
            slim[key] = value
        elif key not in _PROSE:
            slim[key] = _slim(value)
    return slim


def _relevant(
    tools: Sequence[ToolSchema], conversation: Conversation, run: RunProgress, share: int
) -> frozenset[str]:
    """The tools for a run: its own set as it began, else what the session has and what its words
    ask for.
    """
    sizes = {tool.name: usage_estimate.tokens(_encode(tool).decode()) for tool in tools}
    stored = (_STORED,) if _has_artifacts(run, conversation) else ()
    always = (*(each.name for each in run.accepted.offered), *CORE, *stored)
    used = _used(conversation)
    kept = conversation.offered
    wanted = (
        used
        if conversation.offered_in == run.run_id
        else [*used, *_asked(tools, _said(run, conversation))]
    )
    if kept and not {name for name in (*always, *wanted) if name in sizes} - set(kept):
        wanted = list(kept)
    chosen = {name: None for name in always if name in sizes}
    left = share - sum(sizes[name] for name in chosen)
    order = (*kept, *wanted) if conversation.offered_in == run.run_id else (*wanted, *kept)
    for name in order:
        if name in sizes and name not in chosen and sizes[name] <= left:
            chosen[name] = None
            left -= sizes[name]
    return frozenset(chosen)


def _has_artifacts(run: RunProgress, conversation: Conversation) -> bool:
    """Return whether a result, an attachment or a reference was stored apart."""
    said = [event for _, event in run.inputs]
    for turn in conversation.turns:
        if isinstance(turn, UserTurn):
            said += turn.inputs
        elif isinstance(turn, ModelTurn) and any(
            call.finished is not None and call.finished.artifact for call in turn.calls
        ):
            return True
    return any(
        any(each.text_artifact for each in event.attachments)
        or any(each.artifact for each in event.references)
        for event in said
    )


def _said(run: RunProgress, conversation: Conversation) -> str:
    before = (
        event.text
        for turn in conversation.turns
        if isinstance(turn, UserTurn) and turn.run_id == run.run_id
        for event in turn.inputs
    )
    return "\n".join((*before, *(event.text for _, event in run.inputs)))


def _used(conversation: Conversation) -> list[str]:
    return list(
        dict.fromkeys(
            call.call.tool
            for turn in conversation.turns
            if isinstance(turn, ModelTurn)
            for call in turn.calls
        )
    )


def _asked(tools: Sequence[ToolSchema], said: str) -> list[str]:
    """The tools whose names and descriptions share words with a message, best first."""
    asked = _words(said)
    scored = [
        (-4 * len(asked & _words(tool.name)) - len(asked & _words(tool.description)), place)
        for place, tool in enumerate(tools)
    ]
    return [tools[place].name for score, place in sorted(scored) if score]


def _words(text: str) -> frozenset[str]:
    found = (word for word in _WORD.findall(text.lower()) if word not in _COMMON)
    return frozenset(word[:-1] if word.endswith("s") and len(word) > 3 else word for word in found)
