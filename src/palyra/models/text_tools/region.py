"""The end of a reply from its first call on: call behind call, and nothing else.

A region is read as a whole. If anything but a further call follows a call, the text only quotes
calls, and there are none in it.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

from palyra.models.text_tools import calls
from palyra.models.text_tools.calls import NoCall, Offered, TextCall
from palyra.models.text_tools.values import Incomplete, Unreadable, space, value_at

TOOL_CALL: Final = "<tool_call>"
FUNCTION: Final = "<function="
PYTHON_TAG: Final = "<|python_tag|>"
TOOL_CALLS: Final = "[TOOL_CALLS]"
ACTION: Final = "Action:"
HARMONY: Final = ("<|channel|>", "<|start|>assistant<|channel|>")
# The forms that only a call has. The others look like ordinary text.
UNAMBIGUOUS: Final = (TOOL_CALL, FUNCTION, PYTHON_TAG, TOOL_CALLS, *HARMONY)
# How templates end a turn.
_ENDS_OF_TURN: Final = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end|>",
    "<|call|>",
    "</s>",
)
_END_OF_TURN: Final = re.compile("|".join(map(re.escape, _ENDS_OF_TURN)))
_SPACE: Final = re.compile(r"\s*+")
_BETWEEN: Final = re.compile(r"[\s;,]*+")
_NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,128}+")
_FUNCTION_HEAD: Final = re.compile(r"<function=([^>\n]{1,128}+)>")
_PARAMETER_HEAD: Final = re.compile(r"<parameter=([^>\n]{1,128}+)>")
_FENCE: Final = re.compile(r"(`{3,}+|~{3,}+)[ \t]*+([A-Za-z_]*+)[ \t]*+\n")
_ACTION: Final = re.compile(r"Action:[ \t]*+([^\n]{1,200}+)\n\s*+Action Input:[ \t]*+\n?")
_HARMONY: Final = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>commentary to=functions\.([^\s<]{1,128}+)[^<\n]{0,40}+"
    r"(?:<\|constrain\|>json)?<\|message\|>"
)
_OBSERVATION: Final = re.compile(r"\s*+Observation:\s*+\Z")


class Region(Struct, frozen=True):
    """Reading of a region. `quoted`: it is plain text; `calls` are those with text behind them."""

    kind: Literal["calls", "quoted", "incomplete", "unreadable"]
    calls: tuple[TextCall, ...] = ()
    problem: str = ""


def read(text: str, offered: Offered, *, every: bool) -> Region:
    """Read a region that is complete. `every`: forms that look like ordinary text count too."""
    found: list[TextCall] = []
    at = 0
    try:
        while (at := _blank(text, at)) < len(text):
            more, at = _block(text, at, offered, every=every)
            found += more
    except NoCall:
        return Region("quoted", tuple(found))
    except Incomplete:
        return Region("incomplete", problem="the call was not finished")
    except Unreadable as problem:
        return Region("unreadable", problem=str(problem))
    return Region("calls", tuple(found))


def so_far(text: str, offered: Offered, *, every: bool) -> Region:
    """Read a region that is still growing. Only `quoted` is certain: it stays that."""
    found: list[TextCall] = []
    at = 0
    try:
        while (at := _blank(text, at)) < len(text):
            if at and _may_grow(text, at):
                break
            more, at = _block(text, at, offered, every=every, growing=True)
            found += more
    except NoCall:
        return Region("quoted", tuple(found))
    except (Incomplete, Unreadable):
        pass
    return Region("incomplete", tuple(found))


def _may_grow(text: str, at: int) -> bool:
    """Return whether what stands at the end of a text can become a call or the end of a turn."""
    rest = text[at : at + 32]
    return at + len(rest) == len(text) and any(
        marker.startswith(rest)
        for marker in (*UNAMBIGUOUS, ACTION, *_ENDS_OF_TURN, "```", "~~~", "Observation:", "{")
    )


def _blank(text: str, at: int) -> int:
    """Behind space and marks of the end of a turn."""
    while True:
        found = _SPACE.match(text, at)
        assert found is not None
        at = found.end()
        end = _END_OF_TURN.match(text, at)
        if end is None:
            return at
        at = end.end()


def _block(
    text: str, at: int, offered: Offered, *, every: bool, growing: bool = False
) -> tuple[list[TextCall], int]:
    """The calls of one block, and where it ends."""
    for marker, read_block in _BLOCKS if every else _BLOCKS[: len(UNAMBIGUOUS)]:
        # An object without any mark is a call only if the reply begins with it.
        if text.startswith(marker, at) and (marker != "{" or not at):
            found, end = read_block(text, at, offered, growing)
            return found, end
    raise NoCall


def _tool_call(text: str, at: int, offered: Offered, growing: bool) -> tuple[list[TextCall], int]:
    at = space(text, at + len(TOOL_CALL))
    found: list[TextCall] = []
    close = "</tool_call>"
    while not text.startswith(close, at):
        if text.startswith(FUNCTION, at):
            more, at = _function(text, at, offered, growing)
        elif at < len(text) and text[at] in "{[":
            more, at = _json(text, at, offered, (close,), growing, strict=False)
        elif found and space(text, at) == len(text):
            # The mark that ends a call is often a token that servers swallow; the object shows
            # by itself that it is whole. One that had to be repaired does not.
            if growing or any(call.repaired for call in found):
                raise Incomplete
            return found, at
        elif close.startswith(text[at:]) or FUNCTION.startswith(text[at:]):
            raise Incomplete
        else:
            raise NoCall
        found += more
        at = space(text, at)
    if not found:
        raise NoCall
    return found, at + len(close)


def _function(text: str, at: int, offered: Offered, growing: bool) -> tuple[list[TextCall], int]:
    head = _FUNCTION_HEAD.match(text, at)
    if head is None:
        raise NoCall if "\n" in text[at:] or len(text) - at > 150 else Incomplete
    name = offered.find_nearly(head.group(1))
    at = space(text, head.end())
    close = "</function>"
    if text.startswith("{", at):
        value, at, notes = value_at(text, at, (close,), growing)
        arguments: Any = value
    else:
        arguments, at = _parameters(text, at, offered, name)
        notes = ()
    at = space(text, at)
    if not text.startswith(close, at):
        raise Incomplete if close.startswith(text[at:]) else NoCall
    at += len(close)
    return [offered.call(head.group(1), arguments, notes)], at


def _parameters(text: str, at: int, offered: Offered, tool: str) -> tuple[dict[str, Any], int]:
    """Values between marks, as they are: text for a parameter that wants text, else JSON."""
    arguments: dict[str, Any] = {}
    while text.startswith("<parameter=", at):
        head = _PARAMETER_HEAD.match(text, at)
        if head is None:
            raise NoCall if "\n" in text[at:] else Incomplete
        end = text.find("</parameter>", head.end())
        if end < 0:
            raise Incomplete
        key, raw = head.group(1).strip(), text[head.end() : end]
        if key in arguments:
            raise Unreadable(f"the parameter {key!r} stands there twice")
        # One line break behind the mark and one before the next belong to the marks.
        raw = raw.removeprefix("\n").removesuffix("\n")
        arguments[key] = raw if offered.wants_text(tool, key) else _typed(raw)
        at = space(text, end + len("</parameter>"))
    if "<parameter=".startswith(text[at:]):
        raise Incomplete
    return arguments, at


def _typed(raw: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def _python_tag(text: str, at: int, offered: Offered, growing: bool) -> tuple[list[TextCall], int]:
    return _objects(text, space(text, at + len(PYTHON_TAG)), offered, growing, strict=False)


def _bare(text: str, at: int, offered: Offered, growing: bool) -> tuple[list[TextCall], int]:
    return _objects(text, at, offered, growing, strict=True)


def _objects(
    text: str, at: int, offered: Offered, growing: bool, *, strict: bool
) -> tuple[list[TextCall], int]:
    """Objects one behind the other, as Llama writes several calls."""
    found: list[TextCall] = []
    while at < len(text) and text[at] in "{[":
        more, at = _json(text, at, offered, _ENDS_OF_TURN, growing, strict=strict)
        found += more
        between = _BETWEEN.match(text, at)
        assert between is not None
        at = between.end()
    if not found:
        raise Incomplete if at >= len(text) else NoCall
    return found, at


def _mistral(text: str, at: int, offered: Offered, growing: bool) -> tuple[list[TextCall], int]:
    at = space(text, at + len(TOOL_CALLS))
    if at >= len(text):
        raise Incomplete
    ends = (*_ENDS_OF_TURN, TOOL_CALLS)
    if text[at] in "{[":
        return _json(text, at, offered, ends, growing, strict=False)
    head = _NAME.match(text, at)
    if head is None:
        raise NoCall
    written, at = head.group(), space(text, head.end())
    for mark in ("[CALL_ID]", "[ARGS]"):
        if text.startswith(mark, at):
            at += len(mark)
            if mark == "[CALL_ID]":
                given = _NAME.match(text, at)
                at = given.end() if given else at
        elif mark.startswith(text[at:]):
            raise Incomplete
    at = space(text, at)
    if at >= len(text):
        raise Incomplete
    if text[at] != "{":
        raise NoCall
    value, at, notes = value_at(text, at, ends, growing)
    return [offered.call(written, value, notes)], at


def _harmony(text: str, at: int, offered: Offered, growing: bool) -> tuple[list[TextCall], int]:
    head = _HARMONY.match(text, at)
    if head is None:
        raise Incomplete if len(text) - at < 200 and "\n" not in text[at:] else NoCall
    at = space(text, head.end())
    if at >= len(text):
        raise Incomplete
    if text[at] != "{":
        raise NoCall
    value, at, notes = value_at(text, at, _ENDS_OF_TURN, growing)
    return [offered.call(head.group(1), value, notes)], at


def _fenced(text: str, at: int, offered: Offered, growing: bool) -> tuple[list[TextCall], int]:
    """A fence with calls and nothing else between its marks."""
    head = _FENCE.match(text, at)
    if head is None:
        raise Incomplete if growing and "\n" not in text[at : at + 64] else NoCall
    fence = head.group(1)
    close = text.find(f"\n{fence}", head.end() - 1)
    line = text.find("\n", close + 1) if close >= 0 else -1
    if close < 0 or (line < 0 and growing):
        raise Incomplete
    line = line if line >= 0 else len(text)
    if text[close + 1 + len(fence) : line].strip():
        raise NoCall
    inner = text[head.end() : close]
    found: list[TextCall] = []
    at = space(inner, 0)
    while at < len(inner):
        if inner[at] not in "{[":
            raise NoCall
        try:
            # The fence shows that the model came to its end.
            more, at = _json(
                f"{inner}\n{fence}", at, offered, (f"\n{fence}", fence), False, strict=True
            )
        except (Unreadable, Incomplete):
            if offered.named_in(inner):
                raise Unreadable("the call is not valid JSON") from None
            raise NoCall from None
        found += more
        at = space(inner, at)
    if not found:
        raise NoCall
    return found, line


def _react(text: str, at: int, offered: Offered, growing: bool) -> tuple[list[TextCall], int]:
    head = _ACTION.match(text, at)
    if head is None:
        raise Incomplete
    name = offered.find(head.group(1).strip("` \t\r"))
    if not name:
        raise NoCall
    at = head.end()
    fence = _FENCE.match(text, at)
    if fence is not None:
        at = fence.end()
    at = space(text, at)
    ends = ("Observation:", *([fence.group(1)] if fence else []))
    if at >= len(text):
        raise Incomplete
    if text[at] != "{":
        raise Unreadable("the action input must be a JSON object")
    value, at, notes = value_at(text, at, ends, growing)
    if fence is not None:
        at = space(text, at)
        if not text.startswith(fence.group(1), at):
            raise Incomplete
        at += len(fence.group(1))
    # The word that asks for the result. What a model writes behind it, it has made up.
    if observed := _OBSERVATION.match(text, at):
        at = observed.end()
    return [offered.call(name, value, notes)], at


def _json(
    text: str, at: int, offered: Offered, ends: tuple[str, ...], growing: bool, *, strict: bool
) -> tuple[list[TextCall], int]:
    value, end, notes = value_at(text, at, ends, growing)
    return calls.of_object(value, offered, notes, strict=strict), end


_Read = Callable[[str, int, Offered, bool], tuple[list[TextCall], int]]
_BLOCKS: Final[tuple[tuple[str, _Read], ...]] = (
    (TOOL_CALL, _tool_call),
    (FUNCTION, _function),
    (PYTHON_TAG, _python_tag),
    (TOOL_CALLS, _mistral),
    *((marker, _harmony) for marker in HARMONY),
    ("```", _fenced),
    ("~~~", _fenced),
    (ACTION, _react),
    ("{", _bare),
)
