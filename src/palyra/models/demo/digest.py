"""A summary made of a text's own words: headings, first sentences, names and counts. It never says
what is not there.
"""

import re
from collections.abc import Iterator

from palyra.models.demo import formatting
from palyra.models.demo.results import FilePage

_MOST_HEADINGS = 12
_MOST_SENTENCES = 4
_MARKUP = re.compile(r"!\[[^\]]*\]\([^)]*\)|\[!\[.*?\)\]\([^)]*\)|<[^>]+>")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_SENTENCE = re.compile(r"(.+?[.!?])(?=\s|$)", re.DOTALL)
_CODE = {
    "py": re.compile(r"^(?:async\s+)?(def|class)\s+(\w+)", re.MULTILINE),
    "js": re.compile(
        r"^(?:export\s+)?(?:default\s+)?(?:async\s+)?(function|class)\s+(\w+)", re.MULTILINE
    ),
    "rs": re.compile(r"^(?:pub(?:\([^)]*\))?\s+)?(fn|struct|enum|trait)\s+(\w+)", re.MULTILINE),
    "go": re.compile(r"^(func|type)\s+(?:\([^)]*\)\s*)?(\w+)", re.MULTILINE),
}
_CODE["ts"] = _CODE["tsx"] = _CODE["jsx"] = _CODE["js"]


def summary(page: FilePage) -> str:
    """The digest of what is on the page, and how much of the file that is."""
    ending = page.path.rpartition(".")[2].lower()
    if not page.body.strip():
        return f"**{formatting.code(page.path)}** is empty."
    if ending in _CODE:
        parts = _code(page, _CODE[ending])
    elif ending in ("csv", "tsv"):
        parts = _table(page, "," if ending == "csv" else "\t")
    elif ending in ("json", "toml", "yaml", "yml", "ini", "cfg"):
        parts = _data(page)
    else:
        parts = _prose(page)
    return "\n\n".join(
        [f"**Summary of {formatting.code(page.path)}** ({measure(page)})", *parts, *_part(page)]
    )


def measure(page: FilePage) -> str:
    lines = (
        formatting.plural(page.total, "line")
        if page.exact
        else f"more than {formatting.plural(page.total, 'line')}"
    )
    if not page.complete:
        return f"{lines}, {formatting.size(page.size)}"
    return (
        f"{lines}, {formatting.plural(len(page.body.split()), 'word')},"
        f" {formatting.size(page.size)}"
    )


def _part(page: FilePage) -> Iterator[str]:
    if not page.complete:
        yield (
            f"I looked at lines {page.first:,} to {page.first + len(page.lines) - 1:,} only; the"
            " file is long."
        )


def headings(lines: list[str]) -> list[tuple[int, int, str]]:
    """Every markdown heading outside code: its line index, its level, its text."""
    found, fenced = list[tuple[int, int, str]](), False
    for at, line in enumerate(lines):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if fenced:
            continue
        if hashes := re.match(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*$", line):
            found.append((at, len(hashes[1]), hashes[2]))
        elif line.strip() and at + 1 < len(lines) and re.fullmatch(r" {0,3}=+\s*", lines[at + 1]):
            found.append((at, 1, line.strip()))
    return found


def _prose(page: FilePage) -> list[str]:
    lines = page.lines
    found = headings(lines)
    parts = []
    sentences = list(_first_sentences(lines, {at for at, _, _ in found}))
    if sentences:
        parts.append("\n>\n".join(f"> {sentence}" for sentence in sentences[:_MOST_SENTENCES]))
    top = min((level for _, level, _ in found), default=0)
    titles = [
        f"{'  ' * min(level - top, 2)}- {formatting.clip(title, 80)}" for _, level, title in found
    ]
    if titles:
        more = (
            f"\n- … and {len(titles) - _MOST_HEADINGS} more" if len(titles) > _MOST_HEADINGS else ""
        )
        parts.append(
            f"It has {formatting.plural(len(titles), 'heading')}:\n\n"
            + "\n".join(titles[:_MOST_HEADINGS])
            + more
        )
    counts = [
        formatting.plural(count, noun)
        for noun, count in (
            ("code block", page.body.count("\n```") // 2 + page.body.startswith("```")),
            ("link", len(_LINK.findall(page.body))),
            ("open task", len(re.findall(r"^\s*[-*] \[ \]", page.body, re.MULTILINE))),
            ("TODO", len(re.findall(r"\bTODO\b", page.body))),
        )
        if count
    ]
    if counts:
        parts.append(
            f"There {'is' if counts[0].startswith('1 ') and len(counts) == 1 else 'are'} also"
            f" {formatting.listed(counts)}."
        )
    return parts


def _first_sentences(lines: list[str], skip: set[int]) -> Iterator[str]:
    """The first sentence of each paragraph of plain text."""
    paragraph, fenced = list[str](), False
    for at, line in enumerate([*lines, ""]):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            line = ""
        plain = not fenced and at not in skip and not re.match(r"\s*([-*+|>=]|\d+\.|---)", line)
        text = _LINK.sub(r"\1", _MARKUP.sub("", line)).strip() if plain else ""
        if text:
            paragraph.append(text)
        elif paragraph:
            whole = " ".join(paragraph)
            sentence = _SENTENCE.match(whole)
            paragraph = []
            yield formatting.clip(sentence[1] if sentence else whole, 240)


def _code(page: FilePage, names: re.Pattern[str]) -> list[str]:
    parts = []
    opening = re.match(
        r"(?:#!.*\n|#.*\n|\s)*(?:\"\"\"|'''|/\*\*?|//+!?)\s*(.+?)(?:\"\"\"|'''|\*/|\n)",
        page.body,
        re.DOTALL,
    )
    if opening:
        parts.append(f"> {formatting.clip(' '.join(opening[1].split()), 240)}")
    found = [(kind, name) for kind, name in names.findall(page.body)]
    if found:
        parts.append(
            f"It defines {formatting.plural(len(found), 'name')}:\n\n"
            + formatting.bullets([f"{kind} `{name}`" for kind, name in found], 15)
        )
    return parts


def _table(page: FilePage, separator: str) -> list[str]:
    columns = [column.strip(' "') for column in page.lines[0].split(separator)]
    return [
        (
            f"A table with {formatting.plural(len(columns), 'column')} and"
            f" {formatting.plural(max(page.total - 1, 0), 'row')}:"
        ),
        formatting.bullets([formatting.code(column) for column in columns], 15),
    ]


def _data(page: FilePage) -> list[str]:
    keys = re.findall(
        r"^(?:\s{0,2}\"([^\"]+)\"\s*:|\[+([^\]]+)\]+|([A-Za-z_][\w.-]*)\s*[:=])",
        page.body,
        re.MULTILINE,
    )
    named = list(dict.fromkeys(next(filter(None, key)) for key in keys))
    return (
        [
            f"It sets {formatting.plural(len(named), 'name')}:\n\n"
            + formatting.bullets([formatting.code(name) for name in named], 15)
        ]
        if named
        else []
    )
