"""What tools answered, read back from the text that a model gets. A text in another form is taken
as it is, never refused.
"""

import re
from typing import Any

from msgspec import Struct

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
        """Whether it failed because there is no such file."""
        return self.failed and not self.denied and _MISSING.search(self.text) is not None

    @property
    def reason(self) -> str:
        """Why it failed, without the word for it."""
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
    """What `fs.read` returned."""
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
    """What `fs.list` returned."""
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
    """What `fs.search` returned."""
    cut = _CUT.search(result.text)
    header, *lines = (result.text[: cut.start()] if cut else result.text).split("\n")
    counted = re.match(r"(\d+) matching", header)
    found: list[Match] = []
    path = ""
    for line in lines:
        hit = re.match(r"  (\d+): ?(.*)", line)
        if hit:
            found.append(Match(path, int(hit[1]), hit[2]))
        elif line and not line.startswith("  "):
            path = line
    notes = [note.strip() for note in header.split(";")[1:]]
    return Matches(matches=found, total=int(counted[1]) if counted else len(found), notes=notes)
