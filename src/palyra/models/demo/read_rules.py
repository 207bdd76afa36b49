"""The rules for requests that only look: listing, reading, counting and searching."""

import re

from palyra.models.demo.intents import (
    Count,
    CountFiles,
    FindFiles,
    Intent,
    ListFolder,
    Measure,
    Overview,
    Phrase,
    QuestionIntent,
    ReadIntent,
    SearchIntent,
    Summarise,
    UseTool,
    is_file_name,
    unquoted,
)

_HERE = re.compile(
    r"folder|directory|dir|root|place|project|workspace|repo|repository|code|codebase|here|there|files|everything|everywhere|\.",
    re.IGNORECASE,
)
_KINDS = {
    "python": "*.py",
    "markdown": "*.md",
    "text": "*.txt",
    "json": "*.json",
    "toml": "*.toml",
    "yaml": "*.y*ml",
    "html": "*.html",
    "css": "*.css",
    "javascript": "*.js",
    "typescript": "*.ts",
    "rust": "*.rs",
    "go": "*.go",
    "java": "*.java",
    "shell": "*.sh",
}
_MEASURES: dict[str, Measure] = {
    "lines": "lines",
    "words": "words",
    "characters": "characters",
    "letters": "characters",
    "bytes": "bytes",
}
_MARK = re.compile(r"(TODO|FIXME|XXX|HACK|BUG)s?", re.IGNORECASE)
_ALL = "[all|every|each|the|my|your|any|this|current|root|whole|of]*"
_IN = "(in|inside|under|below|within|at|into)"
_FILLER = (
    "[all|every|the|my|this|current|root|whole|files|folders|subfolders|contents|content|names|entries"
    "|and|of|in|inside|under|folder|directory]*"
)
_SHOW = "(list|show|show me|display|see|browse|explore|give me|tell me|look)"
_ENDING = "[folder|directory] [recursively]"


def list_folder(phrase: Phrase) -> Intent | None:
    """list src · what is in this folder? · show me all the files"""
    if any(is_file_name(path) for path in phrase.paths):
        return None
    said = phrase.says(
        "(ls|dir|tree) [<path>]",
        "(list|look around|browse|explore) [everything|recursively]",
        f"(list|browse|explore) {_FILLER} <path> {_ENDING}",
        f"{_SHOW} {_ALL} (files|folders|contents|content|everything|what is|what's) {_FILLER}"
        f" [{_IN}] [<path>] {_ENDING}",
        f"{_SHOW} {_ALL} (folder|directory) <path>",
        f"{_SHOW} {_ALL} <path> (folder|directory)",
        f"look {_IN} {_FILLER} <path> {_ENDING}",
        f"(what is|what's|what are|what do you see|what do we have) {_FILLER} {_IN} {_FILLER}"
        f" <path> {_ENDING}",
        f"(what is|what's|what are) [the] (content|contents) of {_FILLER} <path> {_ENDING}",
        "(what is|what's|what do you see|what do we have) [in] (here|there)",
        f"(what|which) (files|folders) [are|do|there|here|we have|you see|you have|exist]* [{_IN}"
        f" {_FILLER} <path>] {_ENDING}",
    )
    if said is None:
        return None
    name = unquoted(said.get("path", ""))
    if _MARK.fullmatch(name):
        return search_for(name, "")
    if "*" in name:
        return FindFiles(name=name)
    deep = re.search(
        r"\b(?:recursive(?:ly)?|tree|all (?:the )?files|everything|whole|subfolders)\b",
        phrase.text,
        re.IGNORECASE,
    )
    return ListFolder(path=folder(name), depth=3 if deep else 1)


def overview(phrase: Phrase) -> Intent | None:
    """what is this project about? · explain what this project does"""
    place = "(this|the) (project|repo|repository|folder|workspace|code|codebase)"
    if phrase.says(
        f"(what is|what's|what does) {place} [about|for|do]",
        f"(summarise|summarize|give me an overview of|overview of) {place}",
        f"[explain|describe|summarise|summarize|tell me|show me|explain to me] what {place}"
        " (does|is) [all] [about|for]",
        f"(explain|describe|tell me about|explain to me|introduce me to) {place}",
        "(what is|what's) this [all] about",
    ):
        return Overview()
    return None


def count(phrase: Phrase) -> Intent | None:
    """count the lines in X · how long is X? · how many TODOs are there?"""
    many = "(count|how many|number of)"
    there = "[are there|are|is there|is|there|do we have|do you see|does|exist]*"
    if said := phrase.says(
        f"{many} {_ALL} (files|folders|entries) {there} [{_IN}|of] {_FILLER} [<path>] {_ENDING}"
    ):
        return CountFiles(path=folder(unquoted(said["path"])))
    if said := phrase.says(f"{many} {_ALL} <word> [<rest>]"):
        measure = _MEASURES.get(said["word"].lower())
        if measure:
            return Count(paths=phrase.targets, what=measure)
    sizes = (
        "how (long|big|large) (is|are) <rest>",
        "[what is|what's] [the] (size|length|word count) of <rest>",
        "(wc|wordcount) <rest>",
    )
    if phrase.targets and phrase.says(*sizes):
        return Count(paths=phrase.targets)
    if said := phrase.says(
        f"{many} [times] <text> {there} [{_IN} <rest>]",
        f"{many} times (does|is) <text> (occur|appear|used) [{_IN} <rest>]",
    ):
        return search_for(said["text"], said["rest"], only_count=True)
    return None


def summary(phrase: Phrase) -> Intent | None:
    """summarise README.md · what does README.md say? · what is notes.md about?"""
    asked = phrase.says(
        "(summarise|summarize|sum up|condense|tldr|tl;dr) [<rest>]",
        "[give me|write|show me] [a|an|the] [short|brief|quick]* (summary|overview|gist|digest)"
        " [of] [<rest>]",
    )
    about = phrase.targets and phrase.says(
        "(explain|describe) <rest>",
        "(what is|what's|what are) <text> [about]",
        "what (does|do) <text> (say|contain|do|tell us)",
    )
    return Summarise(paths=phrase.targets) if asked or about else None


def read(phrase: Phrase) -> Intent | None:
    """read a.md and b.md · show me lines 10-20 of x.py · notes.md"""
    if said := phrase.says("[show|show me|read] artifact <word>"):
        return UseTool(tool="artifact.read", arguments=f'{{"id": "{said["word"]}"}}')
    if phrase.says("(read|open|cat|view) [a|the|some|that] [file]") and not phrase.targets:
        return QuestionIntent(question="Which file should I read?")
    asked = phrase.says(
        "(read|reread|show|show me|open|cat|print|display|view|see|look at|check|get|head|tail|give"
        " me|lines|line) <rest>",
        "(what is|what's|what are) [written] in <rest>",
        "[the] (content of|contents of|first|last) <rest>",
    )
    if not phrase.targets or not (asked or unquoted(phrase.text) == phrase.targets[0]):
        return None
    if not is_file_name(phrase.targets[0]) and phrase.targets[0].endswith("/"):
        return ListFolder(path=folder(phrase.targets[0]))
    first, last = _lines(phrase.text)
    return ReadIntent(paths=phrase.targets, first=first, last=last)


def _lines(text: str) -> tuple[int, int]:
    """The lines asked for; a negative first line counts from the end, and 0 is all of them."""
    if found := re.search(
        r"\blines?\s+(\d{1,7})(?:\s*(?:-|–|to|through|until|and)\s*(\d{1,7}))?", text, re.IGNORECASE
    ):
        return int(found[1]), int(found[2] or found[1])
    found = re.search(
        r"\b(first|top|last|bottom)\s+(\d{1,5}|few|lines?)\b|^(head|tail)\b(?:\s+-n?\s*(\d{1,5}))?",
        text,
        re.IGNORECASE,
    )
    if not found:
        return 0, 0
    where, digits = (found[1] or found[3]).lower(), found[2] or found[4] or ""
    number = int(digits) if digits.isdigit() else 1 if digits == "line" else 10
    return (1, number) if where in ("first", "top", "head") else (-number, 0)


def find(phrase: Phrase) -> Intent | None:
    """find every TODO · search for 'foo' in *.py · find all python files · where is foo defined?"""
    files = (
        f"(find|list|show|show me|search for|locate|which|what|where are) {_ALL} [<word>]"
        " (files|file)"
    )
    said = phrase.says(
        f"{files} [(named|called|matching|like|ending in|ending with) <path>] [are"
        f" there|are|there]* [{_IN} <rest>]"
    )
    if said and (said["path"] or said["word"].lower() in _KINDS):
        return FindFiles(
            name=unquoted(said["path"]) or _KINDS[said["word"].lower()],
            path=_place(said["rest"])[0],
        )
    said = phrase.says(
        f"(find|list|locate|where is|where's) {_ALL} [file|files] <path> [file|files] [{_IN}"
        " <rest>]"
    )
    if (
        said
        and said["path"] == unquoted(said["path"])
        and ("*" in said["path"] or is_file_name(said["path"]))
    ):
        return FindFiles(name=said["path"], path=_place(said["rest"])[0])
    verbs = (
        "(find|search for|search|grep for|grep|look for|scan for|locate|where is|where"
        " are|where's|where do we|is there [a|an|any]|are there [any])"
    )
    which = (
        "(which|what) (file|files) [do|does]*"
        " (mention|mentions|contain|contains|use|uses|have|has|include|includes)"
    )
    said = phrase.says(
        f"search {_IN} <path> for <text>", "(search|scan|look) through <path> for <text>"
    )
    if said:
        return search_for(said["text"], said["path"])
    said = phrase.says(
        f"{verbs} [me] <text> {_IN} <rest>",
        f"{which} <text> {_IN} <rest>",
        f"{verbs} [me] <text>",
        f"{which} <text>",
    )
    return search_for(said["text"], said.get("rest", "")) if said else None


def search_for(words: str, where: str, *, only_count: bool = False) -> Intent:
    if words == unquoted(words):
        words = _AFTER.sub("", _BEFORE.sub("", words))
    regex = re.fullmatch(r"/(.+)/", words)
    if mark := _MARK.fullmatch(words):
        words = mark[1].upper()
    words = regex[1] if regex else unquoted(words)
    if not words:
        return QuestionIntent(question="What should I search for?")
    path, glob = _place(where)
    return SearchIntent(words=words, path=path, glob=glob, regex=bool(regex), only_count=only_count)


_BEFORE = re.compile(
    r"^(?:(?:every|all|any|each|the|a|an|of|for|to|with|containing|occurrences?|lines?|mentions?|uses?|usages?|references?|instances?"
    r"|word|text|string|phrase|term|regex|pattern)\s+)+(?=.)",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\s+(?:is |are"
    r" )?(?:used|defined|mentioned|called|imported|declared|comments?|markers?|there|left)$",
    re.IGNORECASE,
)


def folder(name: str) -> str:
    """The folder that a word names; "here" in all its forms is the workspace."""
    name = name.strip(" ?,")
    return (
        "."
        if not name or name.startswith("-") or _HERE.fullmatch(name)
        else name.rstrip("/") or "/"
    )


def _place(where: str) -> tuple[str, str]:
    """The folder or file, and the glob, that these words mean."""
    words = [
        word
        for word in unquoted(where).split()
        if word.lower() not in ("the", "this", "all", "every", "any", "my", "of")
    ]
    if len(words) == 2 and words[1].lower() in ("file", "files") and words[0].lower() in _KINDS:
        return ".", _KINDS[words[0].lower()]
    words = [word for word in words if not _HERE.fullmatch(word)]
    if len(words) != 1:
        return ".", ""
    name = unquoted(words[0].strip(","))
    return (".", name) if "*" in name else (name.rstrip("/"), "")
