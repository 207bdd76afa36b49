"""One call out of what a model wrote: which object is a call, and of which tool.

Only tools that the request offered can be called.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from palyra.models import json_repair
from palyra.models.json_repair import NotRepairable
from palyra.models.text_tools import nearly

_NAMES: Final = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS: Final = (
    "arguments",
    "parameters",
    "args",
    "params",
    "input",
    "tool_input",
    "action_input",
)
# What may stand beside name and arguments without meaning anything to us.
_BESIDE: Final = frozenset({"id", "type", "call_id", "tool_call_id"})
_SAID_NAME: Final = re.compile(
    r"""["']?(?:name|tool|tool_name|function|action)["']?\s*:\s*["']([^"'\n]{1,128})["']"""
)
# What a model that was asked for an object in any case gives as the name, to answer in words.
ANSWER: Final = "answer"
_LONGEST_NAME: Final = 128
_MOST_NAMED: Final = 40


class TextCall(Struct, frozen=True, kw_only=True):
    """A call as it was written. `malformed` says why it cannot be done; then there are no
    arguments.
    """

    name: str
    arguments: dict[str, Any] = {}
    repaired: tuple[str, ...] = ()
    malformed: str = ""


class Offered:
    """The tools of one request, by every name that a model may write for them."""

    def __init__(
        self,
        names: Mapping[str, str],
        schemas: Mapping[str, dict[str, Any]],
        *,
        asked: bool = False,
    ) -> None:
        """`names` maps what a model may write to our own name, `schemas` our name to its
        parameters. `asked`: the model was asked for an object with a name and arguments.
        """
        self.asked = asked
        self._names = {**names, ANSWER: ANSWER} if asked else names
        self._schemas = schemas

    def __bool__(self) -> bool:
        return bool(self._names)

    def find(self, written: str) -> str:
        """Our name of a tool that was offered, or nothing."""
        written = written.strip()
        return self._names.get(written) or self._names.get(written.removeprefix("functions."), "")

    def spellings(self) -> Iterable[str]:
        """Everything that a model may write for any tool."""
        return (name for name in self._names if name != ANSWER or not self.asked)

    def answer_in(self, call: TextCall) -> str | None:
        """The answer that a model gave in the form of a call; None if it is a call."""
        if not self.asked or call.name != ANSWER:
            return None
        said = (value for value in call.arguments.values() if isinstance(value, str))
        return next(said, "")

    def needs(self, parameter: str) -> bool:
        """Return whether a tool cannot do without a parameter of this name."""
        return any(parameter in each.get("required", ()) for each in self._schemas.values())

    def find_nearly(self, written: str) -> str:
        """Our name of the one offered tool that a name can mean, or nothing."""
        return self.find(written) or nearly.tool(written, self._schemas)

    def unknown(self, written: str) -> TextCall:
        """A call of a tool that was not offered. The model is told which were."""
        written = written[:_LONGEST_NAME]
        known = ", ".join(list(self._schemas)[:_MOST_NAMED])
        problem = f"no tool named {written!r} was offered; the tools are: {known}"
        return TextCall(name=written, malformed=problem)

    def call(self, written: str, arguments: dict[str, Any], notes: tuple[str, ...]) -> TextCall:
        """A call, with the names of its tool and arguments put right where that is certain."""
        name = self.find_nearly(written)
        if not name:
            return self.unknown(written)
        said = () if self.find(written) else (f"read {written[:_LONGEST_NAME]!r} as {name}",)
        arguments, renamed = nearly.arguments(arguments, self._schemas.get(name, {}))
        return TextCall(name=name, arguments=arguments, repaired=(*notes, *said, *renamed))

    def names_of(self, tool: str) -> list[str]:
        """Everything that a model may write for this tool."""
        return [written for written, own in self._names.items() if own == tool]

    def named_in(self, text: str) -> str:
        """The offered tool that a piece of text calls, as far as can be told without reading it."""
        found = _SAID_NAME.search(text[:4096])
        return self.find(found.group(1)) if found else ""

    def wants_text(self, tool: str, parameter: str) -> bool:
        """Return whether a parameter is text, so that a value that looks like JSON is still
        text.
        """
        properties = self._schemas.get(tool, {}).get("properties")
        schema = properties.get(parameter) if isinstance(properties, dict) else None
        return isinstance(schema, dict) and schema.get("type") == "string"


class NoCall(Exception):
    """The object is not a call."""


def of_object(
    value: Any, offered: Offered, notes: tuple[str, ...], *, strict: bool
) -> list[TextCall]:
    """The calls that an object, or an array of objects, stands for. Raise NoCall if it is none.

    `strict`: nothing around the object says that it is a call, so it has to say so itself: by the
    name of an offered tool, and arguments.
    """
    if isinstance(value, list):
        if strict and not value:
            raise NoCall
        return [call for each in value for call in of_object(each, offered, notes, strict=strict)]
    if not isinstance(value, dict):
        return _not_one(strict=strict)
    inner = value.get("function")
    if isinstance(inner, dict) and set(value) <= _BESIDE | {"function"}:
        return of_object(inner, offered, notes, strict=strict)
    try:
        return [_call(value, offered, notes, strict=strict)]
    except NoCall:
        return _not_one(strict=strict)


def _not_one(*, strict: bool) -> list[TextCall]:
    """An object that is no call. Where marks around it say that it is one, the model is told."""
    if strict:
        raise NoCall
    return [
        TextCall(name="tool_call", malformed='a call has "name" and "arguments", and nothing else')
    ]


def _call(
    value: dict[str, Any], offered: Offered, notes: tuple[str, ...], *, strict: bool
) -> TextCall:
    names = [key for key in _NAMES if isinstance(value.get(key), str)]
    given = [key for key in _ARGUMENTS if key in value]
    if len(names) != 1 or len(given) > 1:
        raise NoCall
    exact = strict and not offered.asked
    if set(value) - {names[0], *given} - _BESIDE or (exact and not given):
        raise NoCall
    written = value[names[0]]
    name = offered.find(written) if exact else offered.find_nearly(written)
    if not name:
        if exact:
            raise NoCall
        return offered.unknown(written)
    arguments = value[given[0]] if given else {}
    if isinstance(arguments, str):
        arguments, more = _inner(arguments)
        notes = tuple(dict.fromkeys((*notes, *more)))
    if arguments is None:
        arguments = {}
    if name == ANSWER and offered.asked and isinstance(arguments, str):
        arguments = {"text": arguments}
    if not isinstance(arguments, dict):
        return TextCall(name=name, malformed="the arguments must be a JSON object")
    return offered.call(written, arguments, notes)


def _inner(text: str) -> tuple[Any, tuple[str, ...]]:
    """Arguments that were written as text once more, as the native protocols do."""
    if not text.strip():
        return {}, ()
    try:
        return json.loads(text), ()
    except (ValueError, RecursionError):
        pass
    try:
        found = json_repair.repair(text)
    except NotRepairable:
        return text, ()
    return found.value, found.notes
