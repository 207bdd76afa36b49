"""Text from models, tools and files, made harmless for a terminal.

Nothing that could move the cursor, change a title, write to the clipboard or turn the reading
direction gets through: it is shown as an escape instead, so that a person also sees that it was
there. One character at a time, so that a sequence that is split over two pieces of a stream is
caught as well.
"""

import re
from unicodedata import combining, east_asian_width

# C0 but tab and newline, DEL and C1 (ESC and CSI among them), direction marks and overrides,
# invisible separators and tags, lone surrogates.
_HOSTILE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def clean(text: str) -> str:
    """The text with every character that a terminal would obey written out."""
    return _HOSTILE.sub(_escape, text.replace("\r\n", "\n")) if text else text


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] == "\r":
        return "\\r"
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )


def one_line(text: str, width: int = 0) -> str:
    """The text on one line, cut to a width in columns if one is given."""
    line = clean(" ".join(text.split()))
    return cut(line, width) if width else line


def width_of(text: str) -> int:
    """Columns a clean text takes on a terminal."""
    return sum(
        0 if combining(char) or char == "\u200d" else 2 if east_asian_width(char) in "WF" else 1
        for char in text
    )


def cut(text: str, width: int) -> str:
    if width_of(text) <= width:
        return text
    taken, used = [], 0
    for char in text:
        used += width_of(char)
        if used > width - 1:
            break
        taken.append(char)
    return "".join(taken) + "…"
