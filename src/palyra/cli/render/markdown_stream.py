"""Words of a model on a terminal while they stream: lines break between words, and Markdown is
shown instead of spelled: tables, links, quotes, lists and highlighted code.

Nothing is lost: a mark is taken away only when its other half has come and the text between is
shown in its style; where no colours are wanted, marks stay as they are. What comes in is cleaned,
so styles are the only sequences that go out. A line of code waits for its end, a table for its last
row; everything else is shown word by word.
"""

import re
from collections.abc import Callable

from palyra.cli.render import tables
from palyra.cli.render.code_highlight import CodeHighlighter
from palyra.cli.safe_text import clean, width_of

# How far a mark waits for its other half.
_REACH = 500
# How long a line of code or of a table may get before it is shown unfinished.
_LONGEST_LINE = 4_000
_MOST_ROWS = 500
_WORD = re.compile(r"[^ \t\n`*\[]+")
_PLAIN_WORD = re.compile(r"[^ \t\n]+")
_CLOSING = re.compile(r"\*\*(?<=[^ \t]\*\*)")
_CLOSING_ONE = re.compile(r"(?<=[^ \t*])\*(?![*\w])")
_TICKS = re.compile(r"`+")
_PREFIX = re.compile(
    r"([ \t]*)((?:>[ \t]?)*)"
    r"(?:(```+|~~~+)|(#{1,6})[ \t]+|([-*+])[ \t]+(?:\[([ x])\][ \t]+)?|(\d{1,3}[.)])[ \t]+)?"
)
_PERHAPS_PREFIX = re.compile(
    r"[ \t]*(?:>[ \t]?)*"
    r"(?:`{1,2}|~{1,2}|#{1,6}|[-*][-* \t]*|[-*+](?:[ \t]+\[[ x]?\]?)?|\d{1,3}[.)]?)?[ \t]*"
)
_RULE = re.compile(r"[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,})")
_ROW = re.compile(r"[ \t]*\|")
_CODE = re.compile(r"(`[^`\n]+`)")
_LINK = re.compile(r"\[([^\[\]\n]+)\]\(([^()\s]+)\)")
_PERHAPS_LINK = re.compile(r"\[(?:[^\[\]\n]*|[^\[\]\n]+\](?:\([^()\s]*)?)")
_LINE_ACROSS = 48
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
        # What stands before every row of a quote, and how wide that is.
        self._lead, self._lead_width = "", 0
        self._fence = ""
        self._code = CodeHighlighter("")
        self._table: list[str] = []

    def feed(self, text: str) -> str:
        """Return what can be shown now that this has come too."""
        self._raw = self._raw[self._at :] + clean(text)
        self._at = 0
        return self._take(last=False)

    def end(self) -> str:
        """Return what was still held back."""
        shown = self._take(last=True)
        self._begin()
        return shown

    def whole(self, text: str) -> str:
        return self.feed(text) + self.end()

    def broken(self) -> None:
        """Note that something else was said: we are at the beginning of a line."""
        self._column = 0

    def _take(self, *, last: bool) -> str:
        while self._at < len(self._raw) and (
            self._begin_line(last=last) if self._line_begins else self._step(last=last)
        ):
            pass
        if last:
            self._end_table(newline=self._line_begins and self._raw.endswith("\n"))
            self._flush()
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def _begin_line(self, *, last: bool) -> bool:
        """Look at how a line begins; False if that cannot be told yet."""
        if self._fence:
            return self._code_line(last=last)
        if self._markdown and _ROW.match(self._raw, self._at):
            return self._table_row(last=last)
        if not last and _PERHAPS_PREFIX.fullmatch(self._raw, self._at):
            return False
        self._end_table(newline=True)
        found = _PREFIX.match(self._raw, self._at)
        assert found is not None
        indent, quote, fence, heading, bullet, task, number = found.groups(default="")
        if self._markdown and fence:
            return self._open_code(fence, last=last)
        if self._markdown and self._line_across():
            return True
        self._line_begins = False
        self._print(indent.replace("\t", "    "))
        self._at += len(indent)
        if not self._markdown:
            if bullet or number:
                self._print(self._raw[self._at : found.end()].rstrip() + " ")
                self._at = found.end()
        else:
            self._begin_block(found, quote, heading, bullet, task, number)
        self._hang = min(self._column, self._width() // 2)
        return True

    def _begin_block(
        self, found: re.Match[str], quote: str, heading: str, bullet: str, task: str, number: str
    ) -> None:
        if quote:
            bars = "│ " * quote.count(">")
            self._lead, self._lead_width = self._style(bars, "dim"), len(bars)
            self._print(bars, "dim")
        if heading:
            self._line_style = ("bold",)
        elif bullet:
            self._print({"": "• ", " ": "☐ ", "x": "☑ "}[task])
        elif number:
            self._print(f"{number} ")
        self._at = found.end()

    def _line_across(self) -> bool:
        """Show a line of hyphens or stars as one line across."""
        end = self._raw.find("\n", self._at)
        end = len(self._raw) if end < 0 else end
        if not _RULE.fullmatch(self._raw, self._at, end):
            return False
        self._print("─" * min(_LINE_ACROSS, self._width()), "dim")
        self._line_begins = False
        self._at = end
        return True

    def _rest_of_line(self, *, last: bool) -> str | None:
        """Return the line from here; None if its end has not come yet."""
        end = self._raw.find("\n", self._at)
        if end < 0 and not last and len(self._raw) - self._at < _LONGEST_LINE:
            return None
        return self._raw[self._at : end if end >= 0 else len(self._raw)]

    def _open_code(self, fence: str, *, last: bool) -> bool:
        line = self._rest_of_line(last=last)
        if line is None:
            return False
        language = line.strip().lstrip("`~").strip()
        self._fence, self._code = fence, CodeHighlighter(language)
        label = f"── {language} " if language else ""
        room = min(_LINE_ACROSS, self._width()) - width_of(label)
        self._print(label + "─" * max(2, room), "dim")
        self._line_begins = False
        self._at += len(line)
        return True

    def _code_line(self, *, last: bool) -> bool:
        """A line of code, never broken by us, or the end of the code."""
        line = self._rest_of_line(last=last)
        if line is None:
            return False
        if line.strip().startswith(self._fence) and not line.strip().strip("`~"):
            self._fence = ""
            self._print("─" * min(_LINE_ACROSS, self._width()), "dim")
        else:
            for text, styles in self._code.line(line):
                self._print(text, *styles)
        self._line_begins = False
        self._at += len(line)
        return True

    def _table_row(self, *, last: bool) -> bool:
        line = self._rest_of_line(last=last)
        if line is None:
            return False
        self._table.append(line)
        self._at += len(line) + 1
        if len(self._table) >= _MOST_ROWS:
            self._end_table(newline=True)
        return True

    def _end_table(self, *, newline: bool) -> None:
        """Show the rows that were held back; rows that are no table, as they are."""
        rows, self._table = self._table, []
        if not rows:
            return
        lines = tables.table_lines(rows, self._width()) if tables.is_table(rows) else None
        for number, line in enumerate(lines or [tables.inline_runs(row) for row in rows]):
            if number:
                self._out.append("\n")
            for text, styles in line:
                self._print(text, *styles)
        if newline:
            self._out.append("\n")
            self._column = 0

    def _end_line(self) -> None:
        self._flush()
        self._out.append("\n")
        self._column = self._hang = 0
        self._line_style = ()
        self._lead, self._lead_width = "", 0
        self._line_begins = True

    def _step(self, *, last: bool) -> bool:
        """Take one thing off the beginning of what is left; False to wait for more."""
        char = self._raw[self._at]
        if char == "\n":
            self._end_line()
            self._at += 1
        elif self._fence:
            # The rest of a line of code that was too long to wait for.
            end = self._raw.find("\n", self._at)
            end = len(self._raw) if end < 0 else end
            self._print(self._raw[self._at : end], "cyan")
            self._at = end
        elif char in " \t":
            self._space()
            self._at += 1
        elif self._markdown and char == "`":
            return self._code_span(last=last)
        elif self._markdown and char == "*":
            return self._strong(last=last)
        elif self._markdown and char == "[":
            return self._link(last=last)
        else:
            found = (_WORD if self._markdown else _PLAIN_WORD).match(self._raw, self._at)
            assert found is not None
            self._add(found[0])
            self._at = found.end()
        return True

    def _window(self, start: int) -> tuple[int, bool]:
        """Return where looking for the other half of a mark ends, and whether that is all there
        will be.
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
            return self._emphasis(last=last)
        end, known = self._window(start)
        closing = _CLOSING.search(self._raw, start + 1, end)
        if closing is None and not (last or known):
            return False
        if closing is None:
            self._add("**")
            self._at = start
            return True
        self._add_styled(self._raw[start : closing.start()], "bold")
        self._at = closing.end()
        return True

    def _emphasis(self, *, last: bool) -> bool:
        start = self._at + 1
        follows = self._raw[start : start + 1]
        inside = bool(self._word) and self._word[-1][0][-1:].isalnum()
        if follows not in ("", " ", "\t", "\n", "*") and not inside:
            end, known = self._window(start)
            closing = _CLOSING_ONE.search(self._raw, start + 1, end)
            # What follows the mark decides whether it is one.
            unsure = closing is None or closing.end() == len(self._raw)
            if unsure and not (last or known):
                return False
            if closing is not None:
                self._add_styled(self._raw[start : closing.start()], "italic")
                self._at = closing.end()
                return True
        self._add("*")
        self._at += 1
        return True

    def _add_styled(self, text: str, style: str) -> None:
        for number, piece in enumerate(_CODE.split(text)):
            code = number % 2 == 1  # Every other one is what was found.
            self._add_words(
                piece[1:-1] if code else piece, *(("cyan", style) if code else (style,))
            )

    def _link(self, *, last: bool) -> bool:
        end, known = self._window(self._at + 1)
        found = _LINK.match(self._raw, self._at, end)
        if found is None and not (last or known) and _PERHAPS_LINK.fullmatch(self._raw, self._at):
            return False
        if found is None:
            self._add("[")
            self._at += 1
            return True
        for text, styles in tables.link_runs(found[1], found[2]):
            self._add_words(text, *styles)
        self._at = found.end()
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
                self._out.append("\n" + self._lead + " " * max(0, self._hang - self._lead_width))
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
