"""How the demo model writes: counts, sizes, lists and code, as markdown that no file content can
break out of.
"""

import re
from collections.abc import Sequence

_LANGUAGES = {
    "py": "python",
    "md": "markdown",
    "js": "javascript",
    "ts": "typescript",
    "rs": "rust",
    "sh": "bash",
    "yml": "yaml",
}


def plural(number: int, noun: str, nouns: str = "") -> str:
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def size(count: int) -> str:
    """A number of bytes as a person would say it."""
    if count < 1_000:
        return plural(count, "byte")
    amount, unit = (count / 1_000, "kB") if count < 1_000_000 else (count / 1_000_000, "MB")
    return f"{amount:,.1f} {unit}"


def listed(words: Sequence[str]) -> str:
    """a, b and c"""
    return (
        words[0]
        if len(words) == 1
        else f"{', '.join(words[:-1])} and {words[-1]}"
        if words
        else "nothing"
    )


def bullets(lines: Sequence[str], most: int = 40) -> str:
    shown = [f"- {line}" for line in lines[:most]]
    if len(lines) > most:
        shown.append(f"- … and {len(lines) - most:,} more")
    return "\n".join(shown)


def code(text: str) -> str:
    """One line of foreign text."""
    text = clip(re.sub(r"\s+", " ", text).strip(), 160)
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    gap = " " if "`" in text else ""
    return f"{ticks}{gap}{text}{gap}{ticks}" if text else "``"


def fence(text: str, path: str = "") -> str:
    """Lines of foreign text, in a fence longer than any they hold."""
    ticks = "`" * max(3, max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    ending = path.rpartition(".")[2].lower() if "." in path else ""
    language = _LANGUAGES.get(ending, ending if re.fullmatch(r"[a-z]{1,8}", ending) else "")
    return f"{ticks}{language}\n{text.rstrip(chr(10))}\n{ticks}"


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
