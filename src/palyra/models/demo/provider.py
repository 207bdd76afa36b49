"""The demo model as a provider: it streams word by word, like a real one, and says that it is not
one.

An answer in the form of a JSON Schema: what is said stands in the first text that the schema
asks for, the rest is empty.

From a request to a reply: understand what is asked, answer what can be answered, ask for the
calls that are missing.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.messages import (
    AssistantMessage,
    Channel,
    Emit,
    ModelCall,
    ModelReply,
    ModelRequest,
)
from palyra.models import usage_estimate
from palyra.models.demo import edit_answers, read_answers, talk
from palyra.models.demo import intents as formatting
from palyra.models.demo.intents import (
    Append,
    Arithmetic,
    Count,
    CountFiles,
    Create,
    Delegate,
    FindFiles,
    Intent,
    ListFolder,
    NoTool,
    Overview,
    Pasted,
    QuestionIntent,
    ReadIntent,
    RenameHeading,
    Replace,
    SearchIntent,
    Summarise,
    Talk,
    TypedCommand,
    UndoIntent,
    Unknown,
    UseTool,
    WhatChanged,
)
from palyra.models.demo.open_requests import NoSuchTool, NotYet, OpenRequest, Wanted, open_desks
from palyra.models.demo.parser import understand

_MOST_TURNS = 12
_CHANGING = frozenset({"fs.write", "fs.patch"})

_ANSWERS: dict[type[Intent], Callable[[Any, OpenRequest], str]] = {
    Talk: talk.talk,
    ListFolder: read_answers.list_folder,
    Overview: read_answers.overview,
    ReadIntent: read_answers.read,
    Summarise: read_answers.summarise,
    Count: read_answers.count,
    Pasted: read_answers.pasted,
    CountFiles: read_answers.count_files,
    SearchIntent: read_answers.search,
    FindFiles: read_answers.find_files,
    Create: edit_answers.create,
    Append: edit_answers.append,
    Replace: edit_answers.replace,
    RenameHeading: edit_answers.rename_heading,
    UseTool: talk.use_tool,
    TypedCommand: talk.shell_command,
    Delegate: talk.delegate,
    WhatChanged: lambda intent, desk: talk.what_changed(desk),
    UndoIntent: lambda intent, desk: talk.undo(desk),
    Arithmetic: talk.arithmetic,
    NoTool: talk.no_tool,
    QuestionIntent: lambda intent, desk: intent.question,
    Unknown: talk.unknown,
}


class Thought(Struct, frozen=True, kw_only=True):
    reasoning: str
    text: str
    calls: tuple[ModelCall, ...] = ()


def think(request: ModelRequest) -> Thought:
    """The whole reply, worked out from the request alone."""
    *overtaken, desk = open_desks(request)
    answers = [
        answer for each in overtaken if each.went_well and (answer := _answered_already(each))
    ]
    intents = _intents(desk)
    rules = formatting.listed(list(dict.fromkeys(f"“{intent.rule}”" for intent in intents)))
    if desk.turns >= _MOST_TURNS:
        return Thought(
            reasoning="This takes too many steps.",
            text="I stopped: this took more steps than I should take for one request.",
        )
    missing: list[Wanted] = []
    for intent in intents:
        try:
            answers.append(_ANSWERS[type(intent)](intent, desk))
        except NotYet as not_yet:
            missing += not_yet.calls
            if intent.changes:
                # What comes after must see what this one did.
                break
        except NoSuchTool as absent:
            answers.append(
                f"That needs the tool `{absent.name}`, which is not available in this session."
            )
    if missing:
        tools = formatting.listed(list(dict.fromkeys(tool for tool, _ in missing)))
        return Thought(
            reasoning=f"The request fits the rule {rules}, so I call {tools}.",
            # Who typed a command knows what it does.
            text="" if isinstance(intents[0], TypedCommand) else _announced(missing),
            calls=_calls(request, missing),
        )
    looked = " and the results are here" if desk.turns else ""
    return Thought(
        reasoning=f"The request fits the rule {rules}{looked}, so I can answer.",
        text="\n\n".join(answers),
    )


def _intents(desk: OpenRequest) -> list[Intent]:
    return [
        intent for text in desk.asks for intent in understand(text, desk.last_path, desk.attached)
    ]


def _answered_already(desk: OpenRequest) -> str:
    """The answer to a request that another one overtook, if its results are all there. It never
    starts anything again.
    """
    try:
        return "\n\n".join(_ANSWERS[type(intent)](intent, desk) for intent in _intents(desk))
    except (NotYet, NoSuchTool):
        return ""


def _calls(request: ModelRequest, wanted: list[Wanted]) -> tuple[ModelCall, ...]:
    turn = sum(isinstance(message, AssistantMessage) for message in request.messages)
    return tuple(
        ModelCall(
            id=f"demo_{turn}_{at}", name=tool, arguments=msgspec.json.encode(arguments).decode()
        )
        for at, (tool, arguments) in enumerate(wanted)
    )


def _announced(wanted: list[Wanted]) -> str:
    """Announce the next calls in a sentence."""
    phrases = list(dict.fromkeys(_doing(tool, arguments) for tool, arguments in wanted))
    permission = (
        " You may be asked to allow it." if any(tool in _CHANGING for tool, _ in wanted) else ""
    )
    return f"Let me {formatting.listed(phrases)}.{permission}"


def _doing(tool: str, arguments: dict[str, Any]) -> str:
    path = arguments.get("path", ".")
    match tool:
        case "fs.read":
            return f"read {formatting.code(str(path))}"
        case "fs.list":
            return (
                "look at this folder" if path == "." else f"look into {formatting.code(str(path))}"
            )
        case "fs.search":
            return "search the files"
        case "fs.write":
            return f"write {formatting.code(str(path))}"
        case "fs.patch":
            files = list(
                dict.fromkeys(
                    str(edit["path"])
                    for edit in arguments.get("edits", ())
                    if isinstance(edit, dict)
                )
            )
            return (
                "change"
                f" {formatting.listed([formatting.code(file) for file in files]) if len(files) < 4 else f'{len(files)} files'}"  # noqa: E501
            )
        case "agent.spawn":
            return "give that to a helper, who works in a session of its own"
        case _:
            return f"call `{tool}`"


_DEEPEST = 12
_EMPTY: dict[str, Any] = {"integer": 0, "number": 0, "boolean": False, "null": None}


def fitting(schema: dict[str, Any], text: str) -> Any:
    """A value that fits most schemas. One with rules about what is in a text is beyond it, and its
    answer is refused.
    """
    return _Shaper(schema, text).value(schema, 0)


class _Shaper:
    def __init__(self, root: dict[str, Any], text: str) -> None:
        self._root = root
        self._text: str | None = text

    def value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return None
        for key in ("const", "default"):
            if key in schema:
                return schema[key]
        match schema:
            case {"enum": [first, *_]}:
                return first
            case {"$ref": str() as name}:
                return self.value(self._named(name), depth + 1)
            case {"anyOf": [first, *_]} | {"oneOf": [first, *_]} | {"allOf": [first, *_]}:
                return self.value(first, depth + 1)
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if kind == "string":
            said, self._text = self._text or "", None
            return said
        if kind == "array":
            wanted = schema.get("minItems", 0)
            return [self.value(schema.get("items"), depth + 1)] if wanted else []
        if kind in _EMPTY:
            return (
                max(_EMPTY[kind], schema.get("minimum", 0))
                if kind in ("integer", "number")
                else _EMPTY[kind]
            )
        inside = schema.get("properties")
        return (
            {name: self.value(each, depth + 1) for name, each in inside.items()}
            if isinstance(inside, dict)
            else {}
        )

    def _named(self, name: str) -> Any:
        """Return what a reference inside of the schema leads to."""
        found: Any = self._root
        for part in name.removeprefix("#/").split("/"):
            found = found.get(part) if isinstance(found, dict) else None
        return found


NAME = "demo"
MODEL = "demo-1"
# However long an answer is, it is on the screen in a second or two.
_MOST_PIECES = 200
_WORD = re.compile(r"\s*\S+\s*")


class DemoModel:
    """Rule based, offline, without memory of its own. `delay_ms` is the pause after each word."""

    def __init__(self, *, delay_ms: int = 8) -> None:
        self._delay_s = delay_ms / 1000

    @property
    def name(self) -> str:
        return NAME

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        thought = think(request)
        text = thought.text
        if request.json_mode and not thought.calls:
            text = msgspec.json.encode({"answer": text}).decode()
        elif request.json_schema is not None and not thought.calls:
            text = msgspec.json.encode(fitting(request.json_schema.schema, text)).decode()
        await self._say("reasoning", thought.reasoning, emit)
        await self._say("text", text, emit)
        for call in thought.calls:
            emit("call", call.name)
        arguments = "".join(call.arguments for call in thought.calls)
        return ModelReply(
            text=text,
            reasoning=thought.reasoning,
            calls=thought.calls,
            stop="tool_calls" if thought.calls else "end",
            usage=usage_estimate.usage(
                request, text=text, reasoning=thought.reasoning, arguments=arguments
            ),
            model=MODEL,
        )

    async def _say(self, channel: Channel, text: str, emit: Emit) -> None:
        pieces = _WORD.findall(text)
        step = -(-len(pieces) // _MOST_PIECES) or 1
        for at in range(0, len(pieces), step):
            emit(channel, "".join(pieces[at : at + step]))
            await asyncio.sleep(self._delay_s)
