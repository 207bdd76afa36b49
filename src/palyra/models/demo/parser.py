"""From plain English to intents, by rules that are tried in order. What no rule fits is Unknown,
never a guess.
"""

import re
from collections.abc import Callable

import msgspec

from palyra.models.demo import edit_rules, read_rules
from palyra.models.demo.intents import (
    Arithmetic,
    Count,
    Intent,
    NoTool,
    Pasted,
    Phrase,
    QuestionIntent,
    ReadIntent,
    SearchIntent,
    SmallTalk,
    Summarise,
    Talk,
    TypedCommand,
    UndoIntent,
    Unknown,
    UseTool,
    WhatChanged,
    clauses,
)

MOST_CHARACTERS = 20_000
_MOST_REQUESTS = 10
# What a newcomer can type, as it stands.
EXAMPLES = (
    "what is in this folder?",
    "read README.md and summarise it",
    "find every TODO",
    "create hello.txt with the text hi",
    "replace hi with hello in hello.txt",
    "rename the heading in notes.md to My notes",
    "what changed?",
    "run wc -l README.md",
    "remember that I like green tea",
    "what do you remember about tea?",
    "fetch https://example.org/",
    "every day at 9, list the files",
    "ask a helper to count the lines of README.md",
)

_FENCED = re.compile(r"([^`]{1,2000}?)\n\n(`{3,})\w*\n(.*)\n\2\s*", re.DOTALL)

Rule = Callable[[Phrase], Intent | None]


def understand(text: str, last_path: str = "", attached: str = "") -> tuple[Intent, ...]:
    """Every request in a message, in its order. `last_path` is what "it" means if the message
    itself does not say; before that, it is the text in a fence behind the request, or the one that
    is `attached`.
    """
    if text.startswith("!") and text[1:].strip():
        return (TypedCommand(command=text[1:].strip()),)
    request, given = _parts(text)
    if given := given or attached:
        asked = [_first(Phrase(clause)) for clause in clauses(request)]
        about = asked[0] if len(asked) == 1 else None
        if isinstance(about, Summarise | Count) and not about.paths:
            return (Pasted(text=given, what=about.what if isinstance(about, Count) else ""),)
        if not any(intent.changes and not isinstance(intent, UseTool) for intent in asked):
            # The text is for reading: what it says are no requests. Only what is written into a
            # file may hold it.
            return understand(request, last_path)
    if len(text) > MOST_CHARACTERS:
        return (Unknown(text=text[:200]),)
    found: list[Intent] = []
    for clause in clauses(text):
        if len(found) == _MOST_REQUESTS:
            found.append(
                QuestionIntent(
                    question=f"I take {_MOST_REQUESTS} requests at a time and left the others out."
                )
            )
            break
        phrase = Phrase(clause, last_path)
        intent = _first(phrase)
        if found and (joined := _join(found[-1], intent, phrase)):
            found[-1] = joined
            continue
        if isinstance(intent, Summarise | Count) and not intent.paths:
            intent = QuestionIntent(
                question="Which file do you mean? Say its name, for example `README.md`."
            )
        if isinstance(intent, Unknown) and any(isinstance(each, Unknown) for each in found):
            # Said once, not for each line of a long text.
            continue
        found.append(intent)
        last_path = _subject(intent) or last_path
    # A greeting beside a request is politeness.
    return (
        tuple(intent for intent in found if not isinstance(intent, Talk))
        or tuple(found[:1])
        or (Talk(about="greeting"),)
    )


def _parts(text: str) -> tuple[str, str]:
    """The request, and the text in a fence behind it, if there is one."""
    found = _FENCED.fullmatch(text)
    return (found[1], found[3]) if found else (text, "")


def _join(before: Intent, intent: Intent, phrase: Phrase) -> Intent | None:
    """Two clauses that are one wish: "read README.md and summarise it", "find every TODO and count
    them".
    """
    if (
        isinstance(before, ReadIntent)
        and isinstance(intent, Summarise | Count)
        and (phrase.pronoun or not intent.paths)
    ):
        return msgspec.structs.replace(intent, paths=before.paths)
    if isinstance(before, SearchIntent) and phrase.says("count (them|these|those|it)"):
        return msgspec.structs.replace(before, only_count=True)
    return None


def _first(phrase: Phrase) -> Intent:
    return next((intent for rule in _RULES if (intent := rule(phrase))), Unknown(text=phrase.text))


def _subject(intent: Intent) -> str:
    paths = getattr(intent, "paths", ())
    return str(paths[-1] if paths else getattr(intent, "path", ""))


def _talk(phrase: Phrase) -> Intent | None:
    return next((Talk(about=about) for about, sentences in _TALK if phrase.says(*sentences)), None)


_TALK: tuple[tuple[SmallTalk, tuple[str, ...]], ...] = (
    (
        "greeting",
        (
            "(hi|hello|hey|hallo|howdy|greetings|yo) [there|palyra|you|all|everyone]",
            "good (morning|afternoon|evening|day) [palyra]",
            "(how are you|how are you doing|what's up|nice to meet you) [today]",
        ),
    ),
    (
        "thanks",
        (
            "[many] (thanks|thank you|thx|cheers) [a lot|so much|very much|palyra]",
            (
                "(great|perfect|nice|cool|awesome|good|ok|okay|well done|good job|nice work)"
                " [thanks|then|job|work]"
            ),
            "(bye|goodbye|see you|good night) [later|then]",
        ),
    ),
    (
        "who",
        (
            "(who|what) are you [exactly]",
            "(who is|what is|what's) (palyra|this)",
            "(what|which) (model|ai|llm) (are you|is this|do you use|am i talking to)",
            (
                "are you [a|an|real|language|human]*"
                " [person|model|ai|bot|robot|llm|human|chatgpt|gpt|claude]"
            ),
            "(introduce yourself|tell me about yourself)",
        ),
    ),
    (
        "help",
        (
            "(help|/help|help me|commands|usage|examples|show me examples|show me some examples)",
            "what can (you|i) (do|say|ask|type) [here|for me]",
            "what (do you|are you able to) (do|understand)",
            "how (do i|does|can i|do you) (use|this|start|work|begin) [you|this|it|work]",
        ),
    ),
)


def _undo(phrase: Phrase) -> Intent | None:
    return (
        UndoIntent()
        if phrase.says(
            "(undo|/undo|revert|rollback|roll back|take back|take it back|take that back) [<rest>]"
        )
        else None
    )


def _what_changed(phrase: Phrase) -> Intent | None:
    asked = phrase.says(
        "(what|what's|which files|what files) [has|have|did|is|was|were|been|you|we|i|just]* "
        "(change|changed|modified|edited|written|created) [<rest>]",
        "what (did|have) (you|we) (change|do|done|write|create|edit) [<rest>]",
        "(show|show me|list|tell me) [all|the|your|what]* (changes|changed|you changed) [<rest>]",
    )
    return WhatChanged() if asked else None


def _use_tool(phrase: Phrase) -> Intent | None:
    found = re.fullmatch(
        r"(?:use|call|run)\s+(?:the\s+)?(?:tool\s+)?`?([a-z]+\.[\w.]+|(?:skill|mcp):[\w.-]+/[\w.-]+)`?\s*(?:with)?\s*(\{.*\})?",
        phrase.raw,
        re.DOTALL,
    )
    return UseTool(tool=found[1], arguments=found[2] or "{}") if found else None


def _arithmetic(phrase: Phrase) -> Intent | None:
    said = phrase.says(
        "(what is|what's|how much is|calculate|compute|work out|solve) <rest>", "<rest>"
    )
    sum_ = said["rest"].rstrip("= ") if said else ""
    if re.fullmatch(r"[-+*/%^().\d\s×÷]{3,200}", sum_) and re.search(
        r"[\d)]\s*[-+*/%^×÷]+\s*[-(.\d]", sum_
    ):
        return Arithmetic(expression=sum_)
    return None


def _impossible(phrase: Phrase) -> Intent | None:
    return next(
        (
            NoTool(wish=wish, instead=instead)
            for wish, instead, sentences in _IMPOSSIBLE
            if phrase.says(*sentences)
        ),
        None,
    )


_FILES_ONLY = "I work with the files of this folder."
_IMPOSSIBLE = (
    (
        "delete files",
        "I can empty one instead, which can be undone: `overwrite FILE with ''`.",
        ("(delete|remove|erase|rm|trash|unlink|get rid of) [<rest>]",),
    ),
    (
        "make empty folders",
        (
            "Write a file into it and the folder is made too: `create notes/first.md with the text"
            " hello`."
        ),
        (
            "(create|make|add|mkdir) [a|an|the|new|empty]* (folder|directory) [<rest>]",
            "mkdir <rest>",
        ),
    ),
    (
        "move, copy or rename files",
        "I can create a new file, or rename the heading inside one.",
        ("(move|mv|rename|copy|cp) [<rest>]",),
    ),
    (
        "tell which command that is",
        "Say the command itself: `run wc -l README.md`.",
        (
            (
                "(run|execute|start|launch|install|build|compile|test|deploy|pip|npm|git|python|bash|sudo)"
                " [<rest>]"
            ),
        ),
    ),
    (
        "search the web",
        "I can read a page whose address you give: `fetch https://example.org/`.",
        (
            (
                "(fetch|download|visit|google|look up|go to|search the web|search online|browse the"
                " web) [<rest>]"
            ),
        ),
    ),
    (
        "send messages",
        _FILES_ONLY,
        ("(send|mail|email|e-mail|message|post|tweet|notify) [<rest>]",),
    ),
    (
        "keep reminders",
        "I can do something later or regularly: `every day at 9, list the files`.",
        ("(remind|schedule) [<rest>]",),
    ),
)


_RULES: tuple[Rule, ...] = (
    _use_tool,
    edit_rules.helper,
    _talk,
    _undo,
    _arithmetic,
    edit_rules.rename_heading,
    edit_rules.replace,
    edit_rules.append,
    edit_rules.create,
    edit_rules.remember,
    edit_rules.later,
    edit_rules.recall,
    edit_rules.command,
    edit_rules.address,
    _what_changed,
    read_rules.overview,
    read_rules.count,
    read_rules.list_folder,
    read_rules.find,
    read_rules.summary,
    read_rules.read,
    _impossible,
)
