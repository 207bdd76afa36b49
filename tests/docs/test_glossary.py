"""The words of the glossary: what it says not to say is said nowhere that a person reads: commands,
messages, the console, the documentation.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|([^|]*)\|$", re.MULTILINE)
# A term's other forms.
_FORMS = {
    "anew": r"anew",
    "mend": r"mend(?:s|ed|ing)?",
    "cage": r"cages?",
    "put away": r"put(?:s|ting)? (?:\w+ ){0,2}away",
    "take back": r"tak(?:e|es|en|ing) (?:\w+ )?back",
    "take it back": r"tak(?:e|es|en|ing) it back",
    "lay down": r"(?:laid|lays?|laying) (?:\w+ ){0,2}down",
    "looks on": r"looks? on(?= *[,.;:)]|$)",
    "waits for an answer": r"waits? for an answer",
    "waits for a yes": r"waits? for a yes",
    "waits for a look": r"waits? for a look",
    "say yes": r"sa(?:y|ys|id) yes",
    "go on with": r"go(?:es)? on with",
}
# Where a word means something else: the file, and what stands around it.
EXCEPTIONS = {
    # What the demo model understands when a person types it.
    "src/palyra/models/demo/parser.py": {"take back", "take it back"},
    # A prompt: models are told in the words that were measured.
    "src/palyra/features/learning/extract.py": {"for good"},
}


def _terms() -> list[tuple[str, str]]:
    found = [
        (term, word.strip())
        for term, _, words in _ROW.findall(GLOSSARY.read_text())
        for word in words.split(",")
        if word.strip() and term not in ("term", "---")
    ]
    assert len(found) > 20
    return found


def _strings(path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a Python file, without its docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        wanted = isinstance(node, ast.Constant) and id(node) not in docstrings
        if wanted and isinstance(node.value, str):
            yield node.lineno, node.value


def _python() -> Iterator[tuple[Path, int, str]]:
    package = ROOT / "src" / "palyra"
    for path in sorted(package.rglob("*.py")):
        if "_pb2" not in path.name:
            for line, text in _strings(path):
                yield path, line, text


_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\w])//[^\n]*", re.DOTALL)


def _console() -> Iterator[tuple[Path, int, str]]:
    for path in sorted((ROOT / "console" / "src").rglob("*.ts*")):
        text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), path.read_text())
        for line, shown in enumerate(text.splitlines(), 1):
            yield path, line, shown


def _pages() -> Iterator[tuple[Path, int, str]]:
    docs = ROOT / "docs"
    named = [ROOT / "README.md", docs / "README.md", docs / "guide.md", docs / "security.md"]
    for path in (*named, *sorted((docs / "reference").glob("*.md"))):
        for line, text in enumerate(path.read_text().splitlines(), 1):
            yield path, line, text


@pytest.mark.parametrize("texts", [_python, _console, _pages], ids=["python", "console", "pages"])
def test_no_word_that_the_glossary_replaces_is_used(texts: object) -> None:
    assert callable(texts)
    unwanted = {
        word: (term, re.compile(rf"\b(?:{_FORMS.get(word, re.escape(word))})\b", re.IGNORECASE))
        for term, word in _terms()
    }
    found = [
        f"{path.relative_to(ROOT)}:{line}: say “{term}”, not “{word}”: {text.strip()[:120]}"
        for path, line, text in texts()
        for word, (term, pattern) in unwanted.items()
        if pattern.search(text)
        and word not in EXCEPTIONS.get(path.relative_to(ROOT).as_posix(), ())
    ]
    assert not found, "\n".join(found)


def test_every_term_is_listed_once_and_in_order() -> None:
    terms = [term for term, _, _ in _ROW.findall(GLOSSARY.read_text())][1:]
    terms = [term for term in terms if term != "---"]
    assert len(terms) == len(set(terms))
    assert terms == sorted(terms, key=str.casefold)


def test_every_exception_is_needed() -> None:
    for name, words in EXCEPTIONS.items():
        said = "\n".join(text for _, text in _strings(ROOT / name))
        for word in words:
            assert re.search(rf"\b(?:{_FORMS.get(word, re.escape(word))})\b", said), (name, word)
