"""Words of a model on a terminal while they stream: lines break between words, and light Markdown
is shown instead of spelled.

Nothing is lost: a mark is taken away only when its other half has come and the text between is
shown in its style; where no colours are wanted, marks stay as they are. What comes in is cleaned,
so styles are the only sequences that go out.
"""

import re
from collections.abc import Callable

from palyra.cli.safe_text import clean, width_of

# How far a mark waits for its other half.
_REACH = 500
_WORD = re.compile(r"[^ \t\n`*]+")
_PLAIN_WORD = re.compile(r"[^ \t\n]+")
_CLOSING = re.compile(r"\*\*(?<=[^ \t]\*\*)")
_TICKS = re.compile(r"`+")
_PREFIX = re.compile(r"([ \t]*)(?:(```+|~~~+)|(#{1,6})[ \t]+|([-*+])[ \t]+|(\d{1,3}[.)])[ \t]+)?")
_PERHAPS_PREFIX = re.compile(r"[ \t]*(?:`{1,2}|~{1,2}|#{1,6}|[-*+]|\d{1,3}[.)]?)?[ \t]*")
_CODE = re.compile(r"(`[^`\n]+`)")
# A line may break after each of these: their scripts do not put spaces between words.
_WIDE = re.compile("([\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60\U00020000-\U0003fffd])")

Styles = tuple[str, ...]


class Prose:
    """`style` puts a clean text into styles; `width` is that of the terminal as it is now."""

    def __init__(
        self,
        style: Callable[..., str],
        width: Callable[[], int],
        *,
        base: Styles = (),
        markdown: bool = True,
        indent: int = 0,
    ) -> None:
        self._style = style
        self._width = width
        self._base = base
        self._markdown = markdown
        self._indent = indent
        self._begin()

    def _begin(self) -> None:
        self._raw, self._at = "", 0
        self._out: list[str] = []
        self._word: list[tuple[str, Styles]] = []
        self._word_width = 0
        self._long = False
        self._column = self._indent
        self._hang = self._indent
        self._line_begins = True
        self._line_style: Styles = ()
        self._verbatim = False
        self._fence = ""

    def feed(self, text: str) -> str:
        """What can be shown now that this has come too."""
        self._raw = self._raw[self._at :] + clean(text)
        self._at = 0
        return self._take(last=False)

    def end(self) -> str:
        """What was still held back."""
        shown = self._take(last=True)
        self._begin()
        return shown

    def whole(self, text: str) -> str:
        return self.feed(text) + self.end()

    def broken(self) -> None:
        """Something else was said: we are at the beginning of a line."""
        self._column = 0

    def _take(self, *, last: bool) -> str:
        while self._at < len(self._raw) and (
            self._begin_line(last=last) if self._line_begins else self._step(last=last)
        ):
            pass
        if last:
            self._flush()
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def _begin_line(self, *, last: bool) -> bool:
        """Look at how a line begins; False if that cannot be told yet."""
        if not last and _PERHAPS_PREFIX.fullmatch(self._raw, self._at):
            return False
        self._line_begins = False
        found = _PREFIX.match(self._raw, self._at)
        assert found is not None
        indent, fence, heading, bullet, number = found.groups(default="")
        if self._markdown and (fence or self._fence):
            return self._begin_code(fence)
        self._print(indent.replace("\t", "    "))
        self._at += len(indent)
        if self._markdown and heading:
            self._line_style = ("bold",)
            self._at = found.end()
        elif self._markdown and bullet:
            self._print("• ")
            self._at = found.end()
        elif bullet or number:
            self._print(f"{bullet or number} ")
            self._at = found.end()
        self._hang = min(self._column, self._width() // 2)
        return True

    def _begin_code(self, fence: str) -> bool:
        """A line of code, or one that begins or ends it: as it is, and never broken by us."""
        self._verbatim = True
        self._line_style = ("cyan",)
        if fence and (not self._fence or fence.startswith(self._fence)):
            self._fence = "" if self._fence else fence
            self._line_style = ("dim",)
        return True

    def _end_line(self) -> None:
        self._flush()
        self._out.append("\n")
        self._column = self._hang = 0
        self._line_style = ()
        self._line_begins, self._verbatim = True, False

    def _step(self, *, last: bool) -> bool:
        """Take one thing off the beginning of what is left; False to wait for more."""
        char = self._raw[self._at]
        if char == "\n":
            self._end_line()
            self._at += 1
        elif self._verbatim:
            end = self._raw.find("\n", self._at)
            end = len(self._raw) if end < 0 else end
            self._print(self._raw[self._at : end], *self._line_style)
            self._at = end
        elif char in " \t":
            self._space()
            self._at += 1
        elif self._markdown and char == "`":
            return self._code_span(last=last)
        elif self._markdown and char == "*":
            return self._strong(last=last)
        else:
            found = (_WORD if self._markdown else _PLAIN_WORD).match(self._raw, self._at)
            assert found is not None
            self._add(found[0])
            self._at = found.end()
        return True

    def _window(self, start: int) -> tuple[int, bool]:
        """Where looking for the other half of a mark ends, and whether that is all there will
        be.
        """
        newline = self._raw.find("\n", start, start + _REACH)
        end = newline if newline >= 0 else min(len(self._raw), start + _REACH)
        return end, newline >= 0 or end == start + _REACH

    def _code_span(self, *, last: bool) -> bool:
        ticks = _TICKS.match(self._raw, self._at)
        assert ticks is not None
        start = ticks.end()
        end, known = self._window(start)
        closing = next(
            (
                each
                for each in _TICKS.finditer(self._raw, start, end)
                if len(each[0]) == len(ticks[0])
            ),
            None,
        )
        # Marks at the very end may become more of them.
        unsure = not (last or known) and (closing is None or closing.end() == len(self._raw))
        if unsure or (start == len(self._raw) and not last):
            return False
        if closing is None:
            self._add(ticks[0])
            self._at = start
        else:
            self._add_words(self._raw[start : closing.start()], "cyan")
            self._at = closing.end()
        return True

    def _strong(self, *, last: bool) -> bool:
        start = self._at + 2
        if start >= len(self._raw) and not last and "\n" not in self._raw[self._at :]:
            return False
        if self._raw[self._at : start] != "**" or self._raw[start : start + 1] in (
            "",
            " ",
            "\t",
            "\n",
            "*",
        ):
            self._add("*")
            self._at += 1
            return True
        end, known = self._window(start)
        closing = _CLOSING.search(self._raw, start + 1, end)
        if closing is None and not (last or known):
            return False
        if closing is None:
            self._add("**")
            self._at = start
            return True
        for number, piece in enumerate(_CODE.split(self._raw[start : closing.start()])):
            code = number % 2 == 1  # Every other one is what was found.
            self._add_words(
                piece[1:-1] if code else piece, *(("cyan", "bold") if code else ("bold",))
            )
        self._at = closing.end()
        return True

    def _add_words(self, text: str, *styles: str) -> None:
        for piece in re.split(r"([ \t])", text):
            if piece in (" ", "\t"):
                self._space()
            else:
                self._add(piece, *styles)

    def _add(self, text: str, *styles: str) -> None:
        """Add to the word that is being held until it ends."""
        for piece in filter(None, _WIDE.split(text)):
            self._word.append((piece, (*self._line_style, *styles)))
            self._word_width += width_of(piece)
            if _WIDE.match(piece) or self._long or self._word_width > self._width():
                self._emit()

    def _flush(self) -> None:
        """The word has ended."""
        self._emit()
        self._long = False

    def _emit(self) -> None:
        if not self._word:
            return
        width = self._width()
        if not self._long and self._column + self._word_width > width:
            if self._column > self._hang:
                self._out.append("\n" + " " * self._hang)
                self._column = self._hang
            # Too long for any line: the terminal breaks it, so that it can be copied whole.
            self._long = self._word_width > width
        for text, styles in self._word:
            self._print(text, *styles)
        # A line that is exactly full is not left yet: a terminal breaks it only before the next
        # character.
        self._column = (self._column - 1) % width + 1 if self._column else 0
        self._word.clear()
        self._word_width = 0

    def _space(self) -> None:
        self._flush()
        if 0 < self._column < self._width():
            self._print(" ")

    def _print(self, text: str, *styles: str) -> None:
        if text:
            self._out.append(
                self._style(text, *dict.fromkeys((*self._base, *styles)))
                if styles or self._base
                else text
            )
            self._column += width_of(text)
