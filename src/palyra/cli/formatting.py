"""Formats of values for a person: times, durations, sizes, money, tool calls. Cleaned, and short
enough for a line.

Bars for tables on a terminal.
"""

import re
import time
from collections.abc import Mapping
from typing import Any

from palyra.cli.safe_text import one_line
from palyra.core.errors import InvalidInput

_EIGHTHS = " ▏▎▍▌▋▊▉█"


_BAR = 20


def bar(value: int, most: int) -> str:
    """A bar as long as its share of the greatest one, to an eighth of a character."""
    eighths = round(value / most * _BAR * 8) if most else 0
    return (_EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8]).strip() or ("▏" if value else "")


_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_DURATION = re.compile(
    r"(\d{1,6})\s*(?:s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)",
    re.ASCII,
)
_FILE = re.compile(r"^\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE)
_NOISE = re.compile(r" ssl:\w+")
# What a call is about, of the arguments that tools have.
_ABOUT = ("path", "paths", "file", "command", "url", "query", "pattern", "name", "text")


def duration(ms: int) -> str:
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(ms // 1000, 60)
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def parse_duration(text: str) -> int:
    """Milliseconds for `30s`, `10m`, `10 minutes`, `2h`, `1d` or `1w`."""
    found = _DURATION.fullmatch(text.strip().lower())
    if not found or not int(found[1]):
        raise InvalidInput(f"{text!r} is not a time: write 30s, 10m, 2h, 1d or 1w")
    return int(found[1]) * _UNITS[found[0][len(found[1]) :].strip()[0]]


def when(ms: int) -> str:
    """A moment, in the reader's own time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(ms / 1000)) if ms else ""


def clock(ms: int, now_ms: int | None = None) -> str:
    """A moment of today as its time, any other with its day."""
    now = time.time() if now_ms is None else now_ms / 1000
    today = time.localtime(ms / 1000)[:3] == time.localtime(now)[:3]
    return time.strftime("%H:%M", time.localtime(ms / 1000)) if ms and today else when(ms)


def failure(message: str) -> str:
    return one_line(without_noise(message), 300)


def without_noise(message: str) -> str:
    """Return a provider's failure without what only its library understands."""
    return _NOISE.sub("", message)


def ago(ms: int, now_ms: int | None = None) -> str:
    now = int(time.time() * 1000) if now_ms is None else now_ms
    seconds = max(0, now - ms) // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"


def money(microusd: int) -> str:
    return f"${microusd / 1_000_000:.4f}" if microusd else "-"


def count(number: int) -> str:
    return f"{number:,}"


def counted(number: int, one: str, more: str) -> str:
    return f"{count(number)} {one if number == 1 else more}"


def size(number: int) -> str:
    value = float(number)
    for unit in ("bytes", "KB", "MB", "GB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TB"


def about(arguments: Mapping[str, Any], width: int = 60) -> str:
    """Return what a call is about, in a few words."""
    for name in _ABOUT:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return one_line(value, width)
        if isinstance(value, list) and value:
            return one_line(", ".join(map(str, value)), width)
    return one_line(", ".join(_changed(arguments)), width)


def _changed(arguments: Mapping[str, Any]) -> list[str]:
    """The files that a patch names, each once."""
    edits, diff = arguments.get("edits"), arguments.get("diff")
    named = (
        [each.get("path") for each in edits if isinstance(each, dict)]
        if isinstance(edits, list)
        else []
    )
    if isinstance(diff, str):
        named += _FILE.findall(diff)
    return list(dict.fromkeys(str(each) for each in named if each))
