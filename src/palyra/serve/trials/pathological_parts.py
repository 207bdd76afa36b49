"""Readers of other texts that others wrote: Markdown, splitting, diffs, pages, documents, policies,
search.
"""

import io
import random
import zipfile
from collections.abc import Callable
from functools import cache
from itertools import islice
from zoneinfo import ZoneInfo

from palyra.cli.render.markdown_stream import Prose
from palyra.core import labels
from palyra.core.errors import PalyraError
from palyra.core.labels import Label
from palyra.core.sentences import is_telling, sentences
from palyra.core.shown_index import ShownIndex, ShownSpan
from palyra.core.tools import Scope, ToolSpec
from palyra.core.verdicts import Question
from palyra.features.channels.matrix import contents
from palyra.features.channels.message_splitter import LengthLimit, split
from palyra.features.channels.slack import messages
from palyra.features.channels.telegram import messages as formatting
from palyra.features.learning import rules
from palyra.features.learning.own_words import own_words
from palyra.features.schedules import cron
from palyra.policy.judge import judge
from palyra.policy.policy_set import PolicySet
from palyra.policy.store import load
from palyra.tools import office, previews
from palyra.tools.files import diffs, hunks
from palyra.tools.files import search as files_search
from palyra.tools.files.content import Content, ContentChange
from palyra.tools.net.urls import parse
from palyra.tools.paths import WorkspacePath
from palyra.tools.web import page_text

_URL = parse("https://host.example/a/b")
_WORDS = "xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'"
_SHELL = ToolSpec(
    name="shell.run", description="", parameters={}, effect="once", capabilities=("process",)
)


def _refusing(read: Callable[[str], object]) -> Callable[[str], object]:
    """A refusal is an answer."""

    def tried(text: str) -> object:
        try:
            return read(text)
        except PalyraError as error:
            return error

    return tried


def _terminal(text: str) -> None:
    prose = Prose(lambda text, *styles: text, lambda: 80)
    for at in range(0, len(text), 512):
        prose.feed(text[at : at + 512])
    prose.end()


def _patch(text: str) -> None:
    lines = text.split("\n")
    for body in (text, "@@ -1 +1 @@\n-" + "\n-".join(lines)):
        diffs.parse(f"--- a/x\n+++ b/x\n{body}")


def _fit(text: str) -> None:
    """A hunk of half the lines with another last one, which fits nowhere."""
    lines = text.split("\n")
    hunk = diffs.Hunk(
        number=1, start=None, ops=[("-", line) for line in [*lines[: len(lines) // 2], "another"]]
    )
    hunks.apply_hunks(hunks.FileLines.of(text), [hunk], "x")


def _preview(text: str) -> None:
    lines = text.split("\n")
    random.Random(1).shuffle(lines)
    changed = "\n".join(lines)
    previews.of_changes(
        [
            ContentChange(
                WorkspacePath("/w", "a.txt"), Content(text.encode(), 0o644), changed.encode()
            )
        ]
    )


def _document(text: str) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(
            "word/document.xml", f"<w:document {_WORDS}><w:body>{text}</w:body></w:document>"
        )
    office.text_of(made.getvalue())


@cache
def _policies() -> PolicySet:
    return load(None, "default")


def _policy(text: str) -> None:
    scope = Scope(paths=("/w",), workspace="/w", program="git", command=text)
    judge(
        _policies(),
        Question(
            principal="user:owner",
            session_id="01J00000000000000000000000",
            tool=_SHELL,
            scope=scope,
            origin="interactive",
            now_ms=1_700_000_000_000,
            label=Label(integrity="untrusted", sources=("web:host.example",)),
        ),
    )


def _schedule(text: str) -> None:
    cron.next_after(cron.parse(text), 1_700_000_000_000, ZoneInfo("UTC"))


PATTERNS = (
    "(a*)*b",
    "(x+x+)+y",
    "(.*)(.*)(.*)=(.*)",
    "(?:a|aa)+$",
    r"\w+\s*=\s*\w+;",
    "a.{0,200}b",
)


def _values(text: str) -> None:
    """Index what a page or a file showed, by which the values of later calls are judged."""
    index = ShownIndex()
    index.add([ShownSpan(1, "untrusted", ("page",), text)])
    index.read()


def _orders(text: str) -> None:
    for by_a_person in (True, False):
        labels.commands(text, by_a_person=by_a_person)


def _wishes(text: str) -> None:
    """Read what a person said for what is worth keeping."""
    for sentence in sentences(own_words(text)):
        is_telling(sentence)
        rules.of_sentence(sentence, Label())
    is_telling(text)
    rules.about(text)


def _search(text: str) -> None:
    data = text.encode()
    for pattern in PATTERNS:
        regex = files_search.compile_pattern(files_search.SearchArguments(pattern=pattern))
        searching = files_search.Searching(regex=regex, limit=10, context=0, goes_on=lambda: True)
        list(islice(files_search.matching_lines(searching, data), 20))


_READERS: dict[str, Callable[[str], object]] = {
    "terminal": _terminal,
    "telegram": formatting.marked,
    "slack": messages.written,
    "matrix": lambda text: contents.replacement("x", text),
    "splitting": lambda text: split(text, LengthLimit(4096)),
    "patch": _patch,
    "fitting": _fit,
    "preview": _preview,
    "page": lambda text: page_text.prose(text, _URL),
    "document": _document,
    "policy": _policy,
    "schedule": _schedule,
    "search": _search,
    "values": _values,
    "orders": _orders,
    "wishes": _wishes,
}
READERS = {name: _refusing(read) for name, read in _READERS.items()}

# What is read line by line is compared with a list of words, one a line.
PARAGRAPH = (  # what a document is compared with
    "<w:p><w:r><w:t>some words of a document</w:t></w:r></w:p>"
)
LINES = frozenset({"splitting", "patch", "fitting", "preview"})

_MARKS = {
    "stars": "*",
    "pairs of stars": "**a",
    "stars and blanks": "** ",
    "ticks": "`",
    "ticks and letters": "`a",
    "growing fences": "```\n````\n",
    "brackets": "[",
    "links": "[a](",
    "broken links": "[a](<b",
    "quotes": "> ",
    "lists": "- ",
    "nested lists": "  - a\n    ",
    "underscores": "_a_",
    "tables": "|a|\n|-|\n",
    "pipes": "|",
    "entities": "&amp",
    "backslashes": "\\",
    "autolinks": "<a",
    "blanks": " ",
    "empty lines": "\n",
    "titles": "# ",
    "marks over letters": "a\u0301\u0302",
}
_DIFFS = {
    "one line": "a\n",
    "two lines": "a\nb\n",
    "headers": "@@ -1,1 +1,1 @@\n",
    "files": "--- a/x\n+++ b/x\n",
    "blank lines": " \n",
    "changed lines": "-a\n+b\n",
    "names": "diff --git a/x b/x\n",
}
_PAGES = {
    "open tags": "<div>",
    "closed tags": "</div>",
    "beginnings of tags": "<",
    "attributes": "<a b=",
    "quotes": "<a href='",
    "comments": "<!--",
    "declarations": "<![CDATA[",
    "scripts": "<script>",
    "entities": "&lt;&#x41;&",
    "cells": "<td>a",
    "tables": "<table><tr><td>",
    "lists": "<ul><li>",
    "links": "<a href=//a>b</a>",
    "preformatted": "<pre>",
    "templates": "<template><p>",
}
_PARTS_OF_DOCUMENTS = {
    "paragraphs": "<w:p/>",
    "runs": "<w:p><w:r><w:t>a</w:t></w:r></w:p>",
    "tables": "<w:tbl><w:tr><w:tc/></w:tr></w:tbl>",
    "entities": "<w:t>&amp;&lt;</w:t>",
}
_COMMANDS = {
    "one letter": "a",
    "stars": "*",
    "operators": "&&",
    "quotes": "'",
    "paths": "../",
    "blanks": " a",
}
_SCHEDULES = {"lists": "1,", "steps": "*/1,", "fields": "* ", "ranges": "1-5,"}
_SEARCHED = {
    "one letter": "a",
    "another letter": "x",
    "assignments": "a = b",
    "lines": "a\n",
    "equals signs": "=",
}
# What values, orders and wishes are looked for in.
_SAID = {
    "labels of a host": "a.",
    "hosts": "a.b.",
    "numbers and points": "1.",
    "dashes": "a-",
    "one letter": "a",
    "tildes": "~",
    "signs": "+-",
    "mail addresses": "a@b.",
    "paths": "/a/b",
    "amounts": "1,",
    "days": "2026-01-",
    "lines": "\n",
    "blanks": " ",
    "hashes": "#",
    "roles": "system ",
    "words of orders": "ignore all previous ",
    "salutations": "Dear Ann,\n",
    "signatures": "Kind regards,\n",
    "headers of mail": "From: a\n",
    "speakers": "Ann: a\n",
    "wishes": "prefer ",
    "things to remember": "remember that ",
    "colons": "translate this: ",
    "backticks": "`a",
}
PIECES: dict[str, dict[str, str]] = {
    **dict.fromkeys(("terminal", "telegram", "slack", "matrix", "splitting"), _MARKS),
    **dict.fromkeys(("patch", "fitting", "preview"), _DIFFS),
    "page": _PAGES,
    "document": _PARTS_OF_DOCUMENTS,
    "policy": _COMMANDS,
    "schedule": _SCHEDULES,
    "search": _SEARCHED,
    **dict.fromkeys(("values", "orders", "wishes"), _SAID),
}
