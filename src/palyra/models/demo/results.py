"""Results of tools, read back from the text that a model gets. A text in another form is taken as
it is, never refused.

A summary made of a text's own words: headings, first sentences, names and counts. It never says
what is not there.
"""

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from palyra.models.demo import intents

_READ = re.compile(
    r"(?P<path>.*): (?:lines (?P<first>\d+)-(?P<last>\d+) of (?P<least>more than"
    r" )?(?P<total>\d+)|empty), (?P<size>[\d,]+) bytes"
)
_CUT = re.compile(
    r"\n… \[(?P<size>\d+) bytes, \d+ lines in all; read the rest with artifact\.read, id"
    r" (?P<id>\S+)\]\s*\Z"
)
_DENIED = re.compile(
    r"denied(?P<by> by [^:]{1,40})?: ?(?P<reason>.*)|.{1,300} is refused: .*",
    re.IGNORECASE | re.DOTALL,
)
_MISSING = re.compile(r"no such file|does not exist|not found", re.IGNORECASE)


class ReadResult(Struct, frozen=True, kw_only=True):
    """The answer to one call."""

    tool: str
    arguments: dict[str, Any]
    text: str
    failed: bool = False

    @property
    def denied(self) -> bool:
        return self.failed and _DENIED.match(self.text) is not None

    @property
    def missing(self) -> bool:
        """Return whether the read failed because there is no such file."""
        return self.failed and not self.denied and _MISSING.search(self.text) is not None

    @property
    def reason(self) -> str:
        """Reason of the failure, without the prefix of a denial."""
        found = _DENIED.match(self.text)
        said = (found["reason"] or self.text if found else self.text).strip().rstrip(".")
        who = found["by"] if found and found["by"] else ""
        return f"{said} (denied{who})" if who else said

    @property
    def subject(self) -> str:
        """The file or folder that the call was about."""
        edits = self.arguments.get("edits")
        if isinstance(edits, list) and edits and isinstance(edits[0], dict):
            return str(edits[0].get("path", ""))
        return str(self.arguments.get("path", ""))


class FilePage(Struct, frozen=True, kw_only=True):
    """Part of a file. `complete` if nothing of it is missing here."""

    path: str
    body: str
    first: int
    total: int
    size: int
    complete: bool
    exact: bool = True
    crlf: bool = False

    @property
    def lines(self) -> list[str]:
        return self.body.splitlines()


def page(result: ReadResult) -> FilePage:
    """Return what `fs.read` returned."""
    cut = _CUT.search(result.text)
    text = result.text[: cut.start()] if cut else result.text
    header, _, body = text.partition("\n")
    found = _READ.match(header)
    if not found:
        count = text.count("\n") + (not text.endswith("\n"))
        return FilePage(
            path=result.subject,
            body=text,
            first=1,
            total=count,
            size=len(text.encode()),
            complete=cut is None,
        )
    first, last, total = (int(found[name] or 0) for name in ("first", "last", "total"))
    return FilePage(
        path=found["path"],
        body=body,
        first=first or 1,
        total=total,
        size=int(found["size"].replace(",", "")),
        complete=cut is None and first <= 1 and last == total and not found["least"],
        exact=not found["least"],
        crlf="CRLF" in header,
    )


class ListedItem(Struct, frozen=True):
    """One line of a listing; `size` is None for what is not a file."""

    name: str
    size: int | None = None
    note: str = ""


class Listing(Struct, frozen=True, kw_only=True):
    items: list[ListedItem]
    notes: list[str]

    @property
    def folders(self) -> list[ListedItem]:
        return [item for item in self.items if item.name.endswith("/")]

    @property
    def files(self) -> list[ListedItem]:
        return [item for item in self.items if not item.name.endswith("/")]


_ITEM = re.compile(r"(?P<name>.+?)(?:  (?P<size>[\d,]+))?(?P<note>  \(.*\)| -> .*)?")


def listing(result: ReadResult) -> Listing:
    """Return what `fs.list` returned."""
    cut = _CUT.search(result.text)
    header, *lines = (result.text[: cut.start()] if cut else result.text).split("\n")
    notes = [note.strip() for note in header.split(";")[1:]]
    if cut:
        notes.append("the list is long and is shown in part")
    items = []
    for line in filter(None, lines):
        found = _ITEM.fullmatch(line)
        if found:
            size = int(found["size"].replace(",", "")) if found["size"] else None
            items.append(ListedItem(found["name"], size, (found["note"] or "").strip()))
    return Listing(items=items, notes=notes)


class Match(Struct, frozen=True):
    path: str
    line: int
    text: str


class Matches(Struct, frozen=True, kw_only=True):
    matches: list[Match]
    total: int
    notes: list[str]


def matches(result: ReadResult) -> Matches:
    """Return what `fs.search` returned."""
    cut = _CUT.search(result.text)
    header, *lines = (result.text[: cut.start()] if cut else result.text).split("\n")
    counted = re.match(r"(\d+) match", header)
    found: list[Match] = []
    path = ""
    for line in lines:
        hit = re.match(r"  (?:line )?(\d+): ?(.*)", line)
        if hit:
            found.append(Match(path, int(hit[1]), hit[2]))
        elif line and not line.startswith("  "):
            path = line
    notes = [note.strip() for note in header.split(";")[1:]]
    return Matches(matches=found, total=int(counted[1]) if counted else len(found), notes=notes)


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
        return f"**{intents.code(page.path)}** is empty."
    if ending in _CODE:
        parts = _code(page, _CODE[ending])
    elif ending in ("csv", "tsv"):
        parts = _table(page, "," if ending == "csv" else "\t")
    elif ending in ("json", "toml", "yaml", "yml", "ini", "cfg"):
        parts = _data(page)
    else:
        parts = _prose(page)
    return "\n\n".join(
        [f"**Summary of {intents.code(page.path)}** ({measure(page)})", *parts, *_part(page)]
    )


def measure(page: FilePage) -> str:
    lines = (
        intents.plural(page.total, "line")
        if page.exact
        else f"more than {intents.plural(page.total, 'line')}"
    )
    if not page.complete:
        return f"{lines}, {intents.size(page.size)}"
    return f"{lines}, {intents.plural(len(page.body.split()), 'word')}, {intents.size(page.size)}"


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
        f"{'  ' * min(level - top, 2)}- {intents.clip(title, 80)}" for _, level, title in found
    ]
    if titles:
        more = (
            f"\n- … and {len(titles) - _MOST_HEADINGS} more" if len(titles) > _MOST_HEADINGS else ""
        )
        parts.append(
            f"It has {intents.plural(len(titles), 'heading')}:\n\n"
            + "\n".join(titles[:_MOST_HEADINGS])
            + more
        )
    counts = [
        intents.plural(count, noun)
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
            f" {intents.listed(counts)}."
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
            yield intents.clip(sentence[1] if sentence else whole, 240)


def _code(page: FilePage, names: re.Pattern[str]) -> list[str]:
    parts = []
    opening = re.match(
        r"(?:#!.*\n|#.*\n|\s)*(?:\"\"\"|'''|/\*\*?|//+!?)\s*(.+?)(?:\"\"\"|'''|\*/|\n)",
        page.body,
        re.DOTALL,
    )
    if opening:
        parts.append(f"> {intents.clip(' '.join(opening[1].split()), 240)}")
    found = [(kind, name) for kind, name in names.findall(page.body)]
    if found:
        parts.append(
            f"It defines {intents.plural(len(found), 'name')}:\n\n"
            + intents.bullets([f"{kind} `{name}`" for kind, name in found], 15)
        )
    return parts


def _table(page: FilePage, separator: str) -> list[str]:
    columns = [column.strip(' "') for column in page.lines[0].split(separator)]
    return [
        (
            f"A table with {intents.plural(len(columns), 'column')} and"
            f" {intents.plural(max(page.total - 1, 0), 'row')}:"
        ),
        intents.bullets([intents.code(column) for column in columns], 15),
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
            f"It sets {intents.plural(len(named), 'name')}:\n\n"
            + intents.bullets([intents.code(name) for name in named], 15)
        ]
        if named
        else []
    )
