"""The rules for requests that change files. They keep the user's own words as they are, to the last
character.

The rules for requests that need more than files: a command, a page, memory. Each is one call of
the tool that does it.

What is behind the verb is the user's own text and goes to the tool as it was typed.
"""

import re

import msgspec

from palyra.models.demo.intents import (
    Append,
    Create,
    Delegate,
    Intent,
    Phrase,
    QuestionIntent,
    RenameHeading,
    Replace,
    UseTool,
    paths_in,
    unquoted,
)

_HELPER = re.compile(
    r"(?:ask|let|have|get|tell)\s+(?:a|an|another|your|some)\s+(?:helper|sub-?agent|agent|assistant|colleague)(?:\s+to|\s*:)?\s+(\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_ADDRESS = re.compile(r"\bhttps?://[^\s<>`\"']+[^\s<>`\"'.,;:!?)]")
_REMEMBER = re.compile(
    r"(?:remember|memori[sz]e|keep in mind)(?:\s+that|\s+this\s*:|\s*:)?\s+(\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_LATER = re.compile(
    r"((?:(?:every|each)\s+(?:\d|day|week|hour|minute|morning|evening|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
    r"|daily\s+at|weekdays\s+at|in\s+\d+\s*[a-z])(?:[^,:\n]|:\d\d){0,60}?)\s*[,:]\s+(\S.*)",
    re.IGNORECASE | re.DOTALL,
)
# "run the tests" names no command, and guessing one would run something that nobody said.
_NO_COMMAND = re.compile(r"(?:the|a|an|my|all|this|that|these|some|it|tests?)\b", re.IGNORECASE)


def helper(phrase: Phrase) -> Intent | None:
    """ask a helper to count the lines of README.md"""
    said = _HELPER.fullmatch(phrase.raw)
    return Delegate(task=unquoted(said[1])) if said else None


def command(phrase: Phrase) -> Intent | None:
    """run wc -l README.md · git log -3"""
    said = phrase.says("(run|execute) [the] [shell] [command] <rest>", raw=True)
    if said is None:
        return (
            _use("shell.run", command=phrase.raw) if phrase.says("git <rest>", raw=True) else None
        )
    line = unquoted(said["rest"])
    if not line or _NO_COMMAND.match(line):
        return QuestionIntent(question="Which command? For example: `run wc -l README.md`.")
    return _use("shell.run", command=line)


def address(phrase: Phrase) -> Intent | None:
    """fetch https://example.org/ · https://example.org/"""
    found = _ADDRESS.search(phrase.raw)
    if not found:
        return None
    asked = found[0] == unquoted(phrase.text) or phrase.says(
        "(fetch|get|read|open|load|download|visit|browse|show|show me|go to|look"
        " at|summarise|summarize|curl) <rest>",
        "(what is|what's) (at|on|in) <rest>",
        "what does <rest> say",
    )
    return (
        _use("http.fetch", url=found[0])
        if asked
        else QuestionIntent(question=f"Should I read that page? Say `fetch {found[0]}`.")
    )


def remember(phrase: Phrase) -> Intent | None:
    """remember that I like tea · remember: tea at five"""
    said = _REMEMBER.fullmatch(phrase.raw)
    return _use("memory.write", text=unquoted(said[1])) if said else None


def later(phrase: Phrase) -> Intent | None:
    """every day at 9, list the files · in 20 minutes: say hello"""
    said = _LATER.fullmatch(phrase.raw)
    return _use("schedule.create", when=said[1].strip(), text=unquoted(said[2])) if said else None


def recall(phrase: Phrase) -> Intent | None:
    """what do you remember about tea?"""
    said = phrase.says(
        "what (do|did|can) you (remember|know|recall) [about|of] <rest>",
        "do you (remember|recall) <rest>",
        "(recall|search memory for|search your memory for) <rest>",
    )
    if said:
        return _use("memory.search", query=said["rest"])
    if phrase.says("what do you (remember|recall)"):
        return QuestionIntent(
            question=(
                "About what? For example: `what do you remember about tea?` `palyra memory list`"
                " shows everything."
            )
        )
    return None


def _use(tool: str, **arguments: str) -> UseTool:
    return UseTool(tool=tool, arguments=msgspec.json.encode(arguments).decode())


_FILE = "[the|a|an|my|new|empty|text|markdown]* [file|document|note] [called|named] <path>"
_SAYING = (
    "(with|containing|that says|that contains|that reads|which says|saying|reading) "
    "[the|this|following]* [text|texts|content|contents|word|words|line|lines] [:]"
)
_HEADING = "[the|its|that|this|first|main|top|document]* (heading|title|headline|header)"
# Words before a text that are about it and not of it.
_ABOUT = re.compile(
    r"^(?:(?:a|an|the|another|this|one|some|new|following)\s+)*(?:(?:lines?|texts?|sentence|words?|entry|item|note)\b\s*)"
    r"(?:(?:saying|that says|with the text|with|reading|containing)\s+|:\s*)?",
    re.IGNORECASE,
)
_ALL_OF = re.compile(
    r"^(?:(?:all|every|each|the|any)\s+)*(?:(?:words?|texts?|strings?|phrases?|(?:occurrences?|instances?)"
    r" of)\s+)?",
    re.IGNORECASE,
)


def create(phrase: Phrase) -> Intent | None:
    """create hello.txt with the text hi · write hi to hello.txt · overwrite hello.txt with hi"""
    for verbs, overwrite in (
        ("(create|make|new|touch|start|generate)", False),
        ("(overwrite|write|fill)", True),
    ):
        said = phrase.says(
            f"{verbs} {_FILE} {_SAYING} [<rest>]", f"{verbs} {_FILE} : [<rest>]", raw=True
        )
        if said and (path := phrase.path(said["path"])):
            return Create(path=path, content=_lines(said["rest"]), overwrite=overwrite)
    said = phrase.says(f"(write|put|save|store) <text> (to|into|in|as|inside) {_FILE}")
    if said and (path := phrase.path(said["path"])):
        return Create(path=path, content=_lines(_ABOUT.sub("", said["text"])), overwrite=True)
    said = phrase.says(f"(create|make|new|touch|start) {_FILE}")
    if said and (path := phrase.path(said["path"])) and not path.endswith("/"):
        return Create(path=path)
    if phrase.says(
        "(create|make|write|start) [me] (a|an|some|another) [new|text|markdown]*"
        " (file|document|note)"
    ):
        return QuestionIntent(
            question=(
                "What should the file be called, and what should be in it? For example: `create"
                " hello.txt with the text hi`."
            )
        )
    return None


def append(phrase: Phrase) -> Intent | None:
    """append a line to notes.md: buy milk · add "buy milk" to notes.md"""
    begins = f"(append|add|insert) <text> (to|at|in|into|on) [the|very|end|bottom|of|to]* {_FILE}"
    said = phrase.says(f"{begins} {_SAYING} <rest>", f"{begins} : <rest>", raw=True) or phrase.says(
        begins
    )
    if not said or not (path := phrase.path(said["path"])):
        return None
    text = _lines(said.get("rest", "")) or _lines(_ABOUT.sub("", said["text"]))
    if not text:
        return QuestionIntent(
            question=(
                f"What should I append to `{path}`? For example: `append a line to {path}: buy"
                " milk`."
            )
        )
    return Append(path=path, text=text)


def replace(phrase: Phrase) -> Intent | None:
    """replace A with B in FILE · in FILE, change A to B · replace A with B in *.py"""
    change = "(replace|change|substitute|swap|turn|correct|fix) <text1> (with|by|to|into) <text2>"
    said = phrase.says(
        f"{change} (in|inside|within|across|throughout) <rest>",
        f"in <path> {change}",
        f"{change} everywhere",
    )
    if not said:
        return None
    old, new = unquoted(_ALL_OF.sub("", said["text1"])), unquoted(said["text2"])
    if not old:
        return QuestionIntent(question="Which text should I replace?")
    where = (said.get("rest") or said.get("path") or "everywhere").strip(" `'\"")
    if "*" in where:
        return Replace(old=old, new=new, glob=where)
    if re.fullmatch(
        r"(?:all|every|the|any)?\s*(?:the\s+)?files?|everywhere|here|this folder|the project",
        where,
        re.IGNORECASE,
    ):
        return Replace(old=old, new=new, glob="*")
    path = (
        next(iter(paths_in(where)), "")
        or phrase.path(where)
        or (phrase.last_path if "file" in where else "")
    )
    return Replace(old=old, new=new, path=path or where) if path or " " not in where else None


def rename_heading(phrase: Phrase) -> Intent | None:
    """rename the heading in notes.md · rename the heading "Old" in notes.md to New · call it New"""
    begins = f"(rename|change|update|edit|fix|improve|replace|set|rewrite) {_HEADING}"
    place = "(in|of|from|inside) [the] [file] <path>"
    ends = "[(to|into|as|with|by) [be] <rest>|: <rest2>]"
    said = phrase.says(
        f"{begins} {place} {ends}", f"{begins} <text> {place} {ends}", f"{begins} {ends}"
    )
    if said:
        path = phrase.path(said["path"]) if said.get("path") else phrase.last_path
        if not path:
            return QuestionIntent(
                question="In which file? For example: `rename the heading in notes.md to My notes`."
            )
        return RenameHeading(
            path=path,
            new=unquoted(said["rest"] or said["rest2"]),
            old=unquoted(said.get("text", "")),
        )
    said = phrase.says(
        f"(give|retitle) <path> [a|an] [new|better|nicer|different]* [heading|title] {ends}"
    )
    if said and (path := phrase.path(said["path"])):
        return RenameHeading(path=path, new=unquoted(said["rest"] or said["rest2"]))
    said = phrase.says("(call|name|title) it <rest>")
    return (
        RenameHeading(path=phrase.last_path, new=unquoted(said["rest"]))
        if said and phrase.last_path
        else None
    )


def _lines(text: str) -> str:
    """The user's words as whole lines: a file of text ends with a line end."""
    text = unquoted(text)
    return text if not text or text.endswith("\n") else text + "\n"
