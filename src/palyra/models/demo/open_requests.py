"""Work of the demo model: its open requests, and the results of the calls it has made for them.

It keeps nothing. Every turn works the requests out again from the beginning; a call whose result is
already in the conversation gives that result, the first one that has none ends the turn. So a crash
between two turns costs nothing.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from palyra.core.messages import (
    AssistantMessage,
    Message,
    ModelRequest,
    Text,
    ToolMessage,
    UserMessage,
)
from palyra.models.demo.results import ReadResult

Wanted = tuple[str, dict[str, Any]]

# What the daemon itself says in the user's place.
_FROM_THE_DAEMON = (
    "[note from the daemon]",
    "[summary of the conversation",
    "Continue exactly where you stopped",
    "What you remember from earlier, which may help",
    "<context_references>",
    "<attachments>",
    "[attached: ",
    "[image ",
)
# The text of an attached file, between its marks.
_ATTACHED = re.compile(r"^\[[^\n]*; ends at (\S+-A\d+)\]\n(.*?)\n\[\1\]$", re.DOTALL | re.MULTILINE)
# It reads for itself what was named.
_NAMED = re.compile(r"(?<![\w@])@(?:file|folder):(?=\S)")


class NotYet(Exception):
    """These calls must be made before there is an answer."""

    def __init__(self, calls: Sequence[Wanted]) -> None:
        super().__init__("calls have no result yet")
        self.calls = list(calls)


class NoSuchTool(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class OpenRequest:
    """One request with the results of the calls made for it. `asks` is what the person said, input
    by input.
    """

    def __init__(self, request: ModelRequest, begin: int, end: int) -> None:
        self._schemas = {tool.name: tool.parameters for tool in request.tools}
        self._results = list(results(request.messages[begin:end]))
        self._history = request.messages
        self.asks = _said(request.messages[begin]) if begin < end else [""]
        self.attached = _attached(request.messages[begin]) if begin < end else ""
        self.earlier = list(results(request.messages[:begin]))
        self.turns = sum(
            isinstance(message, AssistantMessage) for message in request.messages[begin:end]
        )
        self.went_well = bool(self._results) and not any(result.failed for result in self._results)

    @property
    def tools(self) -> list[str]:
        return list(self._schemas)

    @property
    def last_path(self) -> str:
        """File that "it" may mean: the one that was last used, before the open requests."""
        return next(
            (
                result.subject
                for result in reversed(self.earlier)
                if result.subject not in ("", ".")
            ),
            "",
        )

    @property
    def notes(self) -> list[str]:
        """Notes of the daemon on what happened to the work since."""
        said = (
            part.text
            for message in self._history
            if isinstance(message, UserMessage)
            for part in message.parts
            if isinstance(part, Text)
        )
        return [
            text.removeprefix(_FROM_THE_DAEMON[0]).strip()
            for text in said
            if text.startswith(_FROM_THE_DAEMON[0])
        ]

    def call(self, tool: str, **arguments: Any) -> ReadResult:
        """The result of this call, or NotYet."""
        return self.calls([(tool, arguments)])[0]

    def calls(self, wanted: Sequence[Wanted]) -> list[ReadResult]:
        """The results of calls that can be made together."""
        found, missing = list[ReadResult](), list[Wanted]()
        for tool, arguments in wanted:
            call = (tool, self._fitted(tool, arguments))
            result = self._take(call)
            if result is None:
                missing.append(call)
            else:
                found.append(result)
        if missing:
            raise NotYet(missing)
        return found

    def _fitted(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Only those arguments that the tool takes."""
        if tool not in self._schemas:
            raise NoSuchTool(tool)
        known = self._schemas[tool].get("properties", arguments)
        return {name: value for name, value in arguments.items() if name in known}

    def _take(self, call: Wanted) -> ReadResult | None:
        for at, result in enumerate(self._results):
            if (result.tool, result.arguments) == call:
                return self._results.pop(at)
        return None


def results(messages: Sequence[Message]) -> Iterator[ReadResult]:
    """Every call with its result, oldest first. Ids are only unique within a turn."""
    for at, message in enumerate(messages):
        if not isinstance(message, AssistantMessage):
            continue
        answers: dict[str, ToolMessage] = {}
        for later in messages[at + 1 :]:
            if not isinstance(later, ToolMessage):
                break
            answers[later.call_id] = later
        for call in message.calls:
            answer = answers.get(call.id)
            if answer is None:
                continue
            try:
                arguments = msgspec.json.decode(call.arguments or "{}", type=dict[str, Any])
            except msgspec.DecodeError:
                continue
            yield ReadResult(
                tool=call.name, arguments=arguments, text=answer.text, failed=answer.is_error
            )


def open_desks(request: ModelRequest) -> list[OpenRequest]:
    """Every request that has had no final answer, oldest first; the last one is the one to work
    on.
    """
    messages = request.messages
    begins: list[int] = []
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if isinstance(message, AssistantMessage) and not message.calls and begins:
            break
        if _said(message):
            begins.insert(0, at)
    ends = [*begins[1:], len(messages)]
    return [OpenRequest(request, begin, end) for begin, end in zip(begins, ends, strict=True)] or [
        OpenRequest(request, len(messages), len(messages))
    ]


def _said(message: Message) -> list[str]:
    """Return what a person said in a message, input by input."""
    if not isinstance(message, UserMessage):
        return []
    texts = [part.text.strip() for part in message.parts if isinstance(part, Text)]
    return [
        _NAMED.sub("", text) for text in texts if text and not text.startswith(_FROM_THE_DAEMON)
    ]


def _attached(message: Message) -> str:
    """Return the text of the attached files."""
    parts = message.parts if isinstance(message, UserMessage) else ()
    blocks = [
        part.text
        for part in parts
        if isinstance(part, Text) and part.text.startswith(_FROM_THE_DAEMON)
    ]
    return "\n".join(found[2] for block in blocks for found in _ATTACHED.finditer(block))
