"""Printing: colours and tables for people at a terminal, plain columns for pipes, JSON for
programs. What is shown is clean.
"""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from palyra.cli.safe_text import clean, width_of

_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_STYLES = {
    "bold": 1,
    "dim": 2,
    "italic": 3,
    "underline": 4,
    "red": 31,
    "green": 32,
    "yellow": 33,
    "blue": 34,
    "magenta": 35,
    "cyan": 36,
}


class Output:
    """`color` says whether colours are wanted; a stream that is not a terminal never gets any."""

    def __init__(self, *, as_json: bool, color: bool) -> None:
        self.as_json = as_json
        self._wanted = color and os.environ.get("TERM") != "dumb"

    @cached_property
    def is_terminal(self) -> bool:
        return sys.stdout.isatty()

    @cached_property
    def color(self) -> bool:
        return self._wanted and self.is_terminal

    @cached_property
    def error_color(self) -> bool:
        return self._wanted and sys.stderr.isatty()

    @property
    def width(self) -> int:
        """Columns of the terminal as it is now; what the environment says may be of another one."""
        try:
            return max(20, os.get_terminal_size(sys.stdout.fileno()).columns)
        except OSError:
            return max(20, shutil.get_terminal_size((100, 24)).columns)

    def style(self, text: str, *styles: str, color: bool | None = None) -> str:
        """The text in these styles. The text must be clean already."""
        if not text or not (self.color if color is None else color):
            return text
        return f"\x1b[{';'.join(str(_STYLES[each]) for each in styles)}m{text}\x1b[0m"

    def line(self, text: str = "") -> None:
        """A line of our own words: what comes from elsewhere in it must be clean."""
        sys.stdout.write(text + "\n")

    def note(self, text: str) -> None:
        """A line beside the result, for the person who looks on."""
        sys.stderr.write(self.style(text, "dim", color=self.error_color) + "\n")
        sys.stderr.flush()

    def json(self, value: Any) -> None:
        import msgspec

        sys.stdout.write(
            msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode() + "\n"
        )

    def result(self, value: Any, text: str) -> None:
        """Print the result of a command: for a program, or in words."""
        if self.as_json:
            self.json(value)
        else:
            self.line(text)

    def json_line(self, value: Any) -> None:
        import msgspec

        sys.stdout.write(msgspec.json.encode(value, enc_hook=str).decode() + "\n")
        sys.stdout.flush()

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
    ) -> None:
        cells = [[clean(cell) for cell in row] for row in rows]
        if self.color:
            self._rich_table(columns, cells, right)
            return
        widths = [max(map(width_of, column)) for column in zip(columns, *cells, strict=True)]
        for row in (list(columns), *cells):
            padded = [
                (
                    (" " * (size - width_of(cell)) + cell)
                    if name in right
                    else (cell + " " * (size - width_of(cell)))
                )
                for name, cell, size in zip(columns, row, widths, strict=True)
            ]
            self.line("  ".join(padded).rstrip())

    def _rich_table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]
    ) -> None:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for at, name in enumerate(columns):
            # An id that is broken in two cannot be copied.
            whole = any(_ID.fullmatch(row[at]) for row in rows)
            table.add_column(
                name, justify="right" if name in right else "left", overflow="fold", no_wrap=whole
            )
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        Console(width=self.width).print(table)
