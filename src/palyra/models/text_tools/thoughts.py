"""Reasoning that a model writes into its answer, at the beginning and between marks.

Only the very beginning of a reply counts: further down such marks are what the reply is about.
"""

import re
from typing import Final

# Each mark with the one that ends it.
_MARKS: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "[THINK]": "[/THINK]",
}
# A header of gpt-oss: the channel, and to whom it speaks.
_HEADER: Final = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(analysis|commentary|final)([^<\n]{0,160})"
    r"(?:<\|constrain\|>json)?<\|message\|>"
)
_HEADER_BEGINS: Final = ("<|start|>assistant<|channel|>", "<|channel|>")
_LONGEST_HEADER: Final = 300
_CHANNEL_ENDS: Final = ("<|end|>", "<|start|>", "<|channel|>")
_FINAL_ENDS: Final = ("<|return|>", "<|end|>")
_SPACE: Final = " \t\r\n"


class Thoughts:
    """Takes the reasoning off the beginning of a reply. What is left is handed on.

    `take` returns what belongs to the reasoning and what to the answer; what can be either is kept
    until more has come, which is never more than a mark.
    """

    def __init__(self) -> None:
        self._kept = ""
        # The marks of which any ends the thought; none: the reply is looked at for its first.
        self._ends: tuple[str, ...] = ()
        self._begun = False
        self.found = False
        self.harmony = False
        self._over = False

    def is_over(self) -> bool:
        """Return whether the reply is past its thoughts: everything is answer."""
        return self._over

    def take(self, piece: str) -> tuple[str, str]:
        if self.is_over():
            return "", piece
        thoughts: list[str] = []
        text = self._kept + piece
        self._kept = ""
        while not self.is_over():
            if self._ends:
                thought, text = self._inside(text)
                thoughts.append(thought)
                if self._ends:
                    break
            elif not self._opens(text):
                break
            else:
                text = self._kept
                self._kept = ""
        if not self.is_over():
            return "".join(thoughts), ""
        return "".join(thoughts), text

    def end(self) -> tuple[str, str]:
        """Return the kept text: of a thought that did not end, or an answer that began like one."""
        kept, self._kept = self._kept, ""
        if self._ends:
            return kept, ""
        return "", "" if self.found and not kept.strip() else kept

    def _inside(self, text: str) -> tuple[str, str]:
        """Return the part of a text that belongs to the thought, and the rest once it has ended."""
        if not self._begun:
            text = text.lstrip(_SPACE)
            if not text:
                return "", ""
            self._begun = True
        places = [(at, end) for end in self._ends if (at := text.find(end)) >= 0]
        if places:
            at, end = min(places)
            self._ends = ()
            # The header of the next channel begins with the mark that ends this one.
            rest = text[at:] if end in ("<|start|>", "<|channel|>") else text[at + len(end) :]
            return text[:at], rest
        keep = max(_overlap(text, end) for end in self._ends)
        self._kept = text[len(text) - keep :]
        return text[: len(text) - keep], ""

    def _opens(self, text: str) -> bool:
        """Return whether a thought begins here; then what follows its mark is kept. Else it is
        over, or too early to say.
        """
        start = text.lstrip(_SPACE)
        for mark, end in _MARKS.items():
            if start.startswith(mark):
                self._enter((end,), start[len(mark) :])
                return True
        header = _HEADER.match(start)
        if header is not None and "to=" not in header.group(2):
            self.harmony = True
            if header.group(1) == "final":
                self.found = True
                self._over = True
                self._kept = start[header.end() :]
            else:
                self._enter(_CHANNEL_ENDS, start[header.end() :])
            return True
        unsure = any(mark.startswith(start) for mark in (*_MARKS, *_HEADER_BEGINS)) or (
            start.startswith(_HEADER_BEGINS)
            and len(start) < _LONGEST_HEADER
            and header is None
            and "\n" not in start
        )
        if unsure and len(text) < _LONGEST_HEADER:
            self._kept = text
            return False
        self._over = True
        # The blank lines between thoughts and answer belong to neither.
        self._kept = start if self.found else text
        return True

    def _enter(self, ends: tuple[str, ...], rest: str) -> None:
        self.found = True
        self._begun = False
        self._ends = ends
        self._kept = rest


class FinalChannel:
    """The answer of gpt-oss without the mark that ends it, and without anything behind that."""

    def __init__(self) -> None:
        self._kept = ""
        self._over = False

    def take(self, piece: str) -> str:
        if self._over:
            return ""
        text = self._kept + piece
        places = [at for end in _FINAL_ENDS if (at := text.find(end)) >= 0]
        if places:
            self._over, self._kept = True, ""
            return text[: min(places)]
        keep = max(_overlap(text, end) for end in _FINAL_ENDS)
        self._kept = text[len(text) - keep :]
        return text[: len(text) - keep]

    def end(self) -> str:
        kept, self._kept = self._kept, ""
        return kept


def _overlap(text: str, mark: str) -> int:
    """Return how much of the end of a text can be the beginning of a mark."""
    for size in range(min(len(mark) - 1, len(text)), 0, -1):
        if text.endswith(mark[:size]):
            return size
    return 0
