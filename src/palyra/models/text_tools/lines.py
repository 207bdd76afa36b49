"""The lines of an answer: which of them can begin a call, and which stand in a fence or a quote."""

import re
from functools import cache
from typing import Final, Literal

from palyra.models.text_tools.calls import Offered
from palyra.models.text_tools.region import ACTION, UNAMBIGUOUS

Wanted = Literal["none", "unambiguous", "every"]
_Verdict = Literal["plain", "unsure", "call"]
# A line that begins a fence is not longer, if it begins one with a call.
_LONGEST_INFO: Final = 32
_LONGEST_ACTION: Final = 256
_LONGEST_BLANK: Final = 64
_HEAD: Final = 64
_CALL_FENCES: Final = frozenset(
    {"", "json", "tool_call", "tool_calls", "tool", "function", "function_call"}
)
_KEYS_OF_A_CALL: Final = re.compile(
    r"""\{\s*["']?(?:name|tool|tool_name|function|type|id|arguments|parameters|action)["']?\s*:"""
)
_ACTION_INPUT: Final = "Action Input:"


@cache
def _marks(wanted: Wanted) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """The marks that begin a call, and the pattern of a line that has to be looked at."""
    markers = (*UNAMBIGUOUS, *((ACTION,) if wanted == "every" else ()))
    begins = "|".join(re.escape(marker) for marker in (*markers, "```", "~~~"))
    return markers, re.compile(rf"\n(?:{begins})")


class Lines:
    """Reads an answer line by line, but looks only at lines that begin with a mark."""

    def __init__(self, wanted: Wanted, *, bare: bool) -> None:
        self._bare = bare
        self._markers, self._looked_at = _marks(wanted)
        # The beginning of a line that can become a marker.
        self._line = ""
        self._begun = False
        # In the middle of a line that begins no call.
        self.in_line = False
        self._in_quote = False
        self._fence = ""

    def take(self, piece: str) -> tuple[str, str]:
        """Return what is ordinary text, and what follows from where a call may begin. What is not
        certain is kept.
        """
        text = self._line + piece
        self._line = ""
        at = 0
        while at < len(text):
            if self.in_line:
                at = self._next_line(text, at)
                continue
            match self._line_start(text, at):
                case "unsure":
                    self._line = text[at:]
                    return text[:at], ""
                case "call":
                    return text[:at], text[at:]
            self.in_line = True
        return text, ""

    def rest(self) -> str:
        """Return the kept text, now that nothing follows."""
        kept, self._line = self._line, ""
        return kept

    def pass_over(self, text: str) -> None:
        """The line that a text begins with is no call: the text comes again, to be read on."""
        self._begun = True
        head = text.lstrip()
        if head.startswith(("```", "~~~")):
            self._fence = head[0] * (len(head) - len(head.lstrip(head[0])))
        self.in_line = True

    def _next_line(self, text: str, at: int) -> int:
        """The beginning of the next line that matters."""
        if self._fence:
            found = text.find(f"\n{self._fence}", at)
        else:
            following = self._looked_at.search(text, at)
            found = following.start() if following else -1
        if found < 0:
            # Only the last line can still grow into one that matters.
            found = text.rfind("\n", at)
        end = found + 1 if found >= 0 else len(text)
        if not self._fence:
            self._note(text[at:end])
        if found >= 0:
            self.in_line = False
        return end

    def _note(self, passed: str) -> None:
        """Keep in mind whether the paragraph that is under way is a block quote."""
        blank = passed.rfind("\n\n")
        if blank >= 0:
            self._in_quote = False
            passed = passed[blank + 1 :]
        if "\n>" in passed:
            self._in_quote = True

    def _line_start(self, text: str, at: int) -> _Verdict:
        if self._fence:
            return self._in_fence(text, at)
        if not self._begun:
            # The reply may begin with blanks.
            place = len(text) - len(text[at:].lstrip())
            if place == len(text) and place - at < _LONGEST_BLANK:
                return "unsure"
            at = min(place, len(text) - 1)
        head = text[at : at + _HEAD]
        verdict = self._verdict(text, at, head)
        if verdict == "plain":
            self._begun = True
        return verdict

    def _verdict(self, text: str, at: int, head: str) -> _Verdict:
        if head[0] == "\n":
            self._in_quote = False
            return "plain"
        if head[0] == ">":
            self._in_quote = True
        if head[0] in "`~":
            return self._fence_begins(text, at)
        if self._in_quote:
            return "plain"
        if head.startswith(self._markers) or (self._bare and not self._begun and head[0] == "{"):
            return "call"
        grows = at + len(head) == len(text) and any(each.startswith(head) for each in self._markers)
        return "unsure" if grows else "plain"

    def _fence_begins(self, text: str, at: int) -> _Verdict:
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        mark = line[0]
        size = len(line) - len(line.lstrip(mark))
        if end < 0 and len(line) < _LONGEST_INFO and (size >= 3 or size == len(line)):
            return "unsure"
        if size < 3:
            return "plain"
        short = len(line) < _LONGEST_INFO and line[size:].strip().lower() in _CALL_FENCES
        if self._bare and not self._in_quote and short:
            return "call"
        self._fence = mark * size
        return "plain"

    def _in_fence(self, text: str, at: int) -> _Verdict:
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)].rstrip()
        closes = line.startswith(self._fence) and not line.strip(self._fence[0])
        if end < 0 and (closes or self._fence.startswith(line)):
            return "unsure"
        if closes:
            self._fence = ""
            self._in_quote = False
        return "plain"


def is_ordinary(text: str, offered: Offered, *, over: bool = False) -> bool:
    """Return whether text that began like an object, a fence or an action is certainly not a
    call.
    """
    head = text.lstrip()
    if head.startswith("{"):
        begins = head[:_HEAD]
        return (over or len(begins) == _HEAD) and _KEYS_OF_A_CALL.match(begins) is None
    if head.startswith(("`", "~")):
        _, broke, body = head.partition("\n")
        body = body.lstrip()
        return (over or bool(broke and body)) and not body.startswith(("{", "["))
    if head.startswith(ACTION):
        return _is_no_action(head, offered, over=over)
    return False


def _is_no_action(head: str, offered: Offered, *, over: bool) -> bool:
    line, broke, rest = head.partition("\n")
    if len(line) > _LONGEST_ACTION:
        return True
    if not broke and not over:
        return False
    if not offered.find(line[len(ACTION) :].strip("` \t\r")):
        return True
    rest = rest.lstrip()
    return not rest.startswith(_ACTION_INPUT) and (over or not _ACTION_INPUT.startswith(rest))
