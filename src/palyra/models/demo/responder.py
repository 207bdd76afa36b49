"""From a request to a reply: understand what is asked, answer what can be answered, ask for the
calls that are missing.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.messages import AssistantMessage, ModelCall, ModelRequest
from palyra.models.demo import edit_answers, formatting, read_answers, talk
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
            text=_announced(missing),
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
    """What it is about to do, in a sentence."""
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
