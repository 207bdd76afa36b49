"""A line being written: keys in, lines and signals out. Knows no terminal, so that a test can type
into it.

Keys arrive in whatever pieces the system reads them; a sequence that is cut in two is held until
its rest comes.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from palyra.cli.safe_text import clean, width_of

# A whole escape sequence: CSI, SS3, or Alt with a key.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])", re.DOTALL)
_PASTE_END = "\x1b[201~"
_PLAIN = re.compile(r"[^\x00-\x1f\x7f]+")
_WORD_ON = re.compile(r"\s*\S+")
MOST_HISTORY = 1_000
# Characters without a width stand beside those that have one; more of them than this in a place are
# not shown.
_MOST_PER_COLUMN = 4


class FinishedLine(Struct, frozen=True):
    """A line was finished with Enter."""

    text: str


class Signal(Struct, frozen=True):
    name: Literal["interrupt", "end", "suspend", "redraw"]


Event = FinishedLine | Signal


class LineEditor:
    def __init__(
        self, history: Sequence[str] = (), complete: Callable[[str], list[str]] = lambda text: []
    ) -> None:
        self.text = ""
        self.cursor = 0
        self.history = list(history)
        self._complete = complete
        self._at = len(self.history)
        self._draft = ""
        self._waiting = ""
        self._pasting = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> Iterator[Event]:
        """Take what was typed, yield what it means."""
        keys, at = self._waiting + self._decoder.decode(data), 0
        self._waiting = ""
        while at < len(keys):
            if self._pasting:
                at = self._paste(keys, at)
            elif found := _PLAIN.match(keys, at):
                # All at once: a key at a time would copy a long line for every key.
                self.insert(found[0])
                at = found.end()
            elif keys[at] == "\x1b":
                found = _SEQUENCE.match(keys, at)
                if found is None:
                    self._waiting = keys[at:]
                    return
                at = found.end()
                self._sequence(found[0])
            else:
                event = self._key(keys[at])
                at += 1
                if event is not None:
                    yield event

    def _paste(self, keys: str, at: int) -> int:
        """Take in what was pasted; where the keys go on. An end mark that is cut in two is held
        like any sequence.
        """
        end = keys.find(_PASTE_END, at)
        pasted = keys[at:] if end < 0 else keys[at:end]
        self._pasting = end < 0
        if end < 0:
            held = next(
                (
                    size
                    for size in range(len(_PASTE_END) - 1, 0, -1)
                    if pasted.endswith(_PASTE_END[:size])
                ),
                0,
            )
            self._waiting = pasted[len(pasted) - held :]
            pasted = pasted[: len(pasted) - held]
        self.insert(pasted.replace("\r\n", "\n").replace("\r", "\n"))
        return len(keys) if end < 0 else end + len(_PASTE_END)

    def clear(self) -> None:
        self.text, self.cursor = "", 0
        self._at = len(self.history)

    def insert(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def remember(self, line: str) -> None:
        if line.strip() and self.history[-1:] != [line]:
            self.history.append(line)
            del self.history[:-MOST_HISTORY]
        self._at = len(self.history)

    def view(self, width: int) -> tuple[str, int]:
        """What to show in so many columns, and the column of the cursor: the part around it, on one
        line.

        Looks only at what can be on the screen, however long the line is.
        """
        near = width * _MOST_PER_COLUMN
        before = _last_columns(
            _shown(self.text[max(0, self.cursor - near) : self.cursor]), width - 1
        )
        column = width_of(before)
        after = _first_columns(_shown(self.text[self.cursor : self.cursor + near]), width - column)
        return before + after, column

    def _key(self, key: str) -> Event | None:
        match key:
            case "\r" | "\n":
                return self._enter()
            case "\x03":
                return Signal("interrupt")
            case "\x04":
                if not self.text:
                    return Signal("end")
                self._delete(self.cursor, self.cursor + 1)
            case "\x1a":
                return Signal("suspend")
            case "\x0c":
                return Signal("redraw")
            case "\x7f" | "\x08":
                self._delete(self.cursor - 1, self.cursor)
            case "\x01":
                self.cursor = 0
            case "\x05":
                self.cursor = len(self.text)
            case "\x02":
                self.cursor = max(0, self.cursor - 1)
            case "\x06":
                self.cursor = min(len(self.text), self.cursor + 1)
            case "\x0b":
                self._delete(self.cursor, len(self.text))
            case "\x15":
                self._delete(0, self.cursor)
            case "\x17":
                self._delete(self._word_start(), self.cursor)
            case "\x10":
                self._recall(-1)
            case "\x0e":
                self._recall(1)
            case "\t":
                self._tab()
        return None

    def _sequence(self, sequence: str) -> None:
        match sequence:
            case "\x1b[A" | "\x1bOA":
                self._recall(-1)
            case "\x1b[B" | "\x1bOB":
                self._recall(1)
            case "\x1b[C" | "\x1bOC":
                self.cursor = min(len(self.text), self.cursor + 1)
            case "\x1b[D" | "\x1bOD":
                self.cursor = max(0, self.cursor - 1)
            case "\x1b[H" | "\x1bOH" | "\x1b[1~":
                self.cursor = 0
            case "\x1b[F" | "\x1bOF" | "\x1b[4~":
                self.cursor = len(self.text)
            case "\x1b[3~":
                self._delete(self.cursor, self.cursor + 1)
            case "\x1b[1;5C" | "\x1bf":
                found = _WORD_ON.match(self.text, self.cursor)
                self.cursor = found.end() if found else len(self.text)
            case "\x1b[1;5D" | "\x1bb":
                self.cursor = self._word_start()
            case "\x1b\r" | "\x1b\n":
                self.insert("\n")
            case "\x1b[200~":
                self._pasting = True

    def _word_start(self) -> int:
        at = self.cursor
        while at and self.text[at - 1].isspace():
            at -= 1
        while at and not self.text[at - 1].isspace():
            at -= 1
        return at

    def _enter(self) -> Event | None:
        if self.text.endswith("\\") and self.cursor == len(self.text):
            # A backslash at the end: the message goes on in a new line.
            self.text = self.text[:-1] + "\n"
            self.cursor = len(self.text)
            return None
        line = self.text
        self.clear()
        return FinishedLine(line)

    def _delete(self, start: int, end: int) -> None:
        start = max(0, start)
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _recall(self, step: int) -> None:
        at = self._at + step
        if not 0 <= at <= len(self.history):
            return
        if self._at == len(self.history):
            self._draft = self.text
        self._at = at
        self.text = self._draft if at == len(self.history) else self.history[at]
        self.cursor = len(self.text)

    def _tab(self) -> None:
        choices = self._complete(self.text[: self.cursor])
        if not choices:
            return
        start = self.cursor
        common = choices[0]
        for choice in choices[1:]:
            while not choice.startswith(common):
                common = common[:-1]
        # What ends so wants to go on.
        done = len(choices) == 1 and not common.endswith(("/", ":"))
        self.insert(common[start:] + (" " if done else ""))


def _shown(text: str) -> str:
    return clean(text.replace("\n", "⏎").replace("\t", " "))


def _last_columns(text: str, width: int) -> str:
    return _first_columns(text[::-1], width)[::-1]


def _first_columns(text: str, width: int) -> str:
    used = 0
    for at, char in enumerate(text):
        used += width_of(char)
        if used > width:
            return text[:at]
    return text
