"""The rules for requests that need more than files: a command, a page, memory. Each is one call of
the tool that does it.

What is behind the verb is the user's own text and goes to the tool as it was typed.
"""

import re

import msgspec

from palyra.models.demo.intents import Delegate, Intent, QuestionIntent, UseTool
from palyra.models.demo.phrases import Phrase, unquoted

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
