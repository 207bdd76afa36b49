"""Session rules: a small set of sentences that a person can lay down for one session, and the Cedar
they mean.

The rule: what does not fit a form is refused with the list of forms, never guessed at. `words` and
`parse` are each other's inverse, so the words on the tape are the rule.
"""

import posixpath
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Literal

from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.verdicts import SessionRule
from palyra.policy.grants import pattern, quote

Counted = Literal["files", "calls", "commands"]
Kind = Literal[
    "nothing",
    "ask",
    "ask_changes",
    "read_only",
    "no_commands",
    "no_network",
    "never_touch",
    "never_change",
    "only_in",
    "never_use",
    "only_use",
    "never_contact",
    "only_contact",
    "files",
    "calls",
    "commands",
]

# Shown to whoever wrote something that fits none of them; each parses.
FORMS: tuple[str, ...] = (
    "do nothing until I say so",
    "ask before anything",
    "ask before every change",
    "read only",
    "never touch PATH",
    "never change PATH",
    "only work in PATH",
    "never use TOOL",
    "only use TOOL, TOOL",
    "never run commands",
    "no network",
    "never contact HOST",
    "only contact HOST",
    "max N files",
    "max N calls",
    "max N commands",
)
LONGEST = 1_000
_MOST_VALUES = 32
_MOST_COUNT = 1_000_000
PREFIX = "rule-"


class Form(Struct, frozen=True):
    """Form of a rule's sentence. `values` are paths, tools or hosts; `most` is the number of a
    counting rule.
    """

    kind: Kind
    values: tuple[str, ...] = ()
    most: int = 0


class CountRule(Struct, frozen=True):
    """A rule that counts. Cedar does not count; whoever runs calls does."""

    counted: Counted
    most: int


_NEVER = r"(?:never|don't|do not|you must not|you must never)"
_ONLY = r"(?:only {0}|{0} only|just {0})"
_ANY = r"(?: (?:until|unless|before) i (?:say so|say otherwise|say|allow it|tell you(?: to)?))?"
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_AT_MOST = r"(?:max|max\.|maximum|at most|no more than|not more than|up to)"


def _only(*verbs: str) -> str:
    return "(?:" + "|".join(_ONLY.format(verb) for verb in verbs) + ")"


# The first that fits the whole sentence is meant. `v` is a list of values, `n` a number.
_SPELLED: tuple[tuple[Kind, str], ...] = (
    ("nothing", rf"(?:do nothing|{_NEVER} do anything|{_NEVER} act|do not act){_ANY}"),
    ("nothing", r"wait until i (?:say so|tell you(?: to)?)"),
    (
        "ask",
        (
            r"(?:always )?ask(?: me)?(?: first)? before (?:anything|everything|doing anything|every"
            r" call|each call|any call)"
        ),
    ),
    ("ask", r"always ask(?: me)?(?: first)?"),
    (
        "ask_changes",
        (
            r"(?:always )?ask(?: me)?(?: first)? before (?:(?:every|each|any|making any)"
            r" changes?|changes)"
        ),
    ),
    ("ask_changes", r"(?:always )?ask(?: me)?(?: first)? before (?:you )?chang(?:e|ing) anything"),
    (
        "read_only",
        (
            rf"read[- ]only|only read|change nothing|make no changes|{_NEVER} (?:change"
            r" anything|make (?:any )?changes)"
        ),
    ),
    (
        "no_commands",
        (
            rf"no commands|no shell|{_NEVER} run (?:any )?commands?|{_NEVER} use the"
            r" (?:shell|terminal)"
        ),
    ),
    (
        "no_network",
        (
            rf"no (?:network|internet)|(?:stay |work )?offline|{_NEVER} (?:use|access) the"
            r" (?:network|internet|web)"
        ),
    ),
    ("no_network", rf"{_NEVER} go online"),
    (
        "never_touch",
        rf"(?:{_NEVER} (?:touch|access|open)|(?:stay|keep) (?:out of|away from)) (?P<v>.+)",
    ),
    ("never_change", rf"{_NEVER} (?:change|edit|modify|write to) (?P<v>.+)"),
    (
        "only_in",
        (
            rf"(?:{_only('work', 'operate', 'stay')} (?:in|inside|within)|stay"
            r" (?:in|inside|within)|only touch) (?P<v>.+)"
        ),
    ),
    ("never_use", rf"{_NEVER} (?:use|call) (?P<v>.+)"),
    ("only_use", rf"{_only('use', 'call')} (?P<v>.+)"),
    ("never_contact", rf"{_NEVER} (?:contact|talk to|connect to|fetch from|visit) (?P<v>.+)"),
    (
        "only_contact",
        rf"{_only('contact', 'talk to', 'connect to', 'fetch from', 'visit')} (?P<v>.+)",
    ),
    ("files", rf"(?:change |touch |write |edit )?{_AT_MOST} (?P<n>\w+) files?"),
    ("calls", rf"(?:make |use )?{_AT_MOST} (?P<n>\w+) (?:tool )?calls?"),
    ("commands", rf"(?:run )?{_AT_MOST} (?P<n>\w+) commands?"),
)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|`([^`]*)`', re.DOTALL)
_STRAIGHT = str.maketrans({"“": '"', "”": '"', "„": '"'})
# A value that needs no quotes: one word that cannot be mistaken for one of ours.
_BARE = re.compile(r"[\w/.@%+=:~\[\]-]*[\w/~\]]")
_VAGUE = frozenset(
    (
        "a",
        "all",
        "and",
        "any",
        "anybody",
        "anyone",
        "anything",
        "everybody",
        "everyone",
        "everything",
        "file",
        "files",
        "folder",
        "folders",
        "i",
        "it",
        "me",
        "my",
        "nothing",
        "or",
        "other",
        "others",
        "our",
        "people",
        "please",
        "that",
        "the",
        "them",
        "there",
        "these",
        "things",
        "this",
        "those",
        "us",
        "with",
        "without",
        "your",
    )
)
_PATHS: frozenset[Kind] = frozenset({"never_touch", "never_change", "only_in"})
_TOOLS: frozenset[Kind] = frozenset({"never_use", "only_use"})
_HOSTS: frozenset[Kind] = frozenset({"never_contact", "only_contact"})


@cache
def _sentences() -> tuple[tuple[Kind, re.Pattern[str]], ...]:
    """Compiled when a rule is first read: most daemons start without any."""
    return tuple((kind, re.compile(text, re.IGNORECASE)) for kind, text in _SPELLED)


def parse(text: str) -> Form:
    """The form of a sentence; InvalidInput with all forms if it has none."""
    if len(text) > LONGEST:
        raise InvalidInput(f"a rule may have {LONGEST} characters")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidInput("a rule is written in text: this is none")
    values: list[str] = []

    def put_aside(found: re.Match[str]) -> str:
        values.append(
            re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL) if found[1] is not None else found[2]
        )
        return f"\0{len(values) - 1}\0"

    # Curly quotes are quotes where there are no straight ones; else they are part of a name.
    straight = text if '"' in text else text.translate(_STRAIGHT)
    sentence = " ".join(_QUOTED.sub(put_aside, straight).replace("’", "'").split())
    sentence = re.sub(r"^please |,? please$", "", sentence.rstrip(".! "), flags=re.IGNORECASE)
    for kind, form in _sentences():
        found = form.fullmatch(sentence)
        if found is None:
            continue
        groups = found.groupdict()
        if "n" in groups:
            return Form(kind, most=_number(groups["n"]))
        return Form(kind, _values(groups["v"], values) if "v" in groups else ())
    raise _refused("this is not one of the rules that can be kept exactly")


def _values(text: str, quoted: list[str]) -> tuple[str, ...]:
    found = []
    for piece in re.split(r"\s*,\s*(?:(?:and|or)\s+)?|\s+(?:and|or)\s+", text):
        aside = re.fullmatch("\0([0-9]+)\0", piece)
        if aside:
            found.append(quoted[int(aside[1])])
        elif not _BARE.fullmatch(piece) or piece.lower() in _VAGUE:
            raise _refused(f"{piece[:60]!r} cannot be read as one name".replace("\\x00", '"'))
        else:
            found.append(piece)
    if not all(found) or len(found) > _MOST_VALUES:
        raise _refused(f"a rule names 1 to {_MOST_VALUES} things, none of them empty")
    return tuple(dict.fromkeys(found))


def _number(text: str) -> int:
    lowered = text.lower()
    if lowered in _NUMBERS:
        return _NUMBERS.index(lowered)
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or int(text) > _MOST_COUNT:
        raise _refused(f"{text[:20]!r} is not a whole number up to {_MOST_COUNT:,}")
    return int(text)


def _refused(why: str) -> InvalidInput:
    return InvalidInput(
        f"{why}; a rule is one of these: {'; '.join(FORMS)}. A name with spaces is put in double"
        " quotes",
        forms=list(FORMS),
    )


class Names(Struct, frozen=True):
    """Resolvers that make the values of a rule exact; each raises InvalidInput for what it does not
    know.
    """

    path: Callable[[str], str]
    tool: Callable[[str], str]
    host: Callable[[str], str]


def exact(form: Form, names: Names) -> Form:
    """The form with absolute paths, known tools and hosts in their one spelling."""
    if form.kind in _PATHS:
        make = names.path
    elif form.kind in _TOOLS:
        make = names.tool
    elif form.kind in _HOSTS:
        make = names.host
    else:
        return form
    return Form(form.kind, tuple(dict.fromkeys(map(make, form.values))), form.most)


_WORDS: dict[Kind, str] = {
    "nothing": "do nothing until I say so",
    "ask": "ask before anything",
    "ask_changes": "ask before every change",
    "read_only": "read only",
    "no_commands": "never run commands",
    "no_network": "no network",
    "never_touch": "never touch {}",
    "never_change": "never change {}",
    "only_in": "only work in {}",
    "never_use": "never use {}",
    "only_use": "only use {}",
    "never_contact": "never contact {}",
    "only_contact": "only contact {}",
    "files": "max {} files",
    "calls": "max {} calls",
    "commands": "max {} commands",
}
_COMMANDS_ASK = "commands ask each time, because what they touch cannot be known before"
_MEANS: dict[Kind, str] = {
    "nothing": "every call is denied until the rule is removed",
    "ask": "every call needs approval, also what was allowed before",
    "ask_changes": (
        "everything that is not only reading needs approval, also what was allowed before"
    ),
    "read_only": "only tools that change nothing run; commands do not",
    "no_commands": "nothing that starts a program runs",
    "no_network": "nothing that reaches the network, a browser or other people runs",
    "never_touch": (
        f"calls on this or below it are denied, calls on a folder around it ask; {_COMMANDS_ASK}"
    ),
    "never_change": f"calls that may change this or what lies below it are denied; {_COMMANDS_ASK}",
    "only_in": f"calls on other paths are denied; {_COMMANDS_ASK}",
    "never_use": "calls of these tools are denied",
    "only_use": "calls of all other tools are denied",
    "never_contact": "calls that reach these hosts or their subdomains are denied",
    "only_contact": "calls that reach anything but exactly these hosts are denied",
    "files": f"a call that would change one file more is denied; {_COMMANDS_ASK}",
    "calls": "further tool calls of this session are denied",
    "commands": "further commands of this session are denied",
}


def words(form: Form) -> str:
    """The one sentence for a form."""
    shown = (
        str(form.most)
        if form.kind in ("files", "calls", "commands")
        else ", ".join(map(_spelled, form.values))
    )
    return _WORDS[form.kind].format(shown)


def means(form: Form) -> str:
    """Explain the rule's effect to the person who set it."""
    return _MEANS[form.kind]


def _spelled(value: str) -> str:
    if _BARE.fullmatch(value) and value.lower() not in _VAGUE:
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_RUN = 'action == Action::"run"'
_UNATTENDED = 'action == Action::"run_unattended"'
_PROCESS = 'context.capabilities.contains("process")'
_OUT = (
    'context.capabilities.containsAny(["network", "browser", "message"]) ||'
    " !context.hosts.isEmpty()"
)


def cedar(rule: SessionRule) -> str:
    """The policies of one rule. A rule only ever forbids."""
    form = parse(rule.words)
    reason = f"session rule: {rule.words}"
    texts = []
    for number, (action, condition) in enumerate(_forbids(form)):
        name = f"{PREFIX}{rule.rule_id}" + (f"-{number + 1}" if number else "")
        when = f" when {{\n  {condition}\n}}" if condition else ""
        texts.append(
            f"@id({quote(name)})\n@reason({quote(reason)})\nforbid (\n  principal,\n  {action},\n "
            f" resource\n){when};\n"
        )
    return "\n".join(texts)


def _forbids(form: Form) -> Iterable[tuple[str, str]]:
    match form.kind:
        case "nothing":
            yield _RUN, ""
        case "ask":
            yield _UNATTENDED, ""
        case "ask_changes":
            yield _UNATTENDED, 'context.effect != "pure"'
        case "read_only":
            yield _RUN, 'context.effect != "pure"'
        case "no_commands":
            yield _RUN, _PROCESS
        case "no_network":
            yield _RUN, _OUT
        case "never_touch":
            yield _RUN, f"context.touches.containsAny({_set(form.values)})"
            yield _UNATTENDED, " || ".join([_PROCESS, *_around(form.values)])
        case "never_change":
            wide = f"context.touches.containsAny({_set(form.values)})"
            yield (
                _RUN,
                (
                    f'context.effect != "pure" && ({" || ".join([wide, *_around(form.values)])}) &&'
                    f" !({_PROCESS})"
                ),
            )
            yield _UNATTENDED, _PROCESS
        case "only_in":
            inside = " || ".join(
                f'context.path == {quote(path)} || context.path like "{_below(path)}"'
                for path in form.values
            )
            yield _RUN, f'context.path != "" && !({inside})'
            yield _UNATTENDED, _PROCESS
        case "never_use":
            yield _RUN, f"resource in {_tools(form.values)}"
        case "only_use":
            yield _RUN, f"!(resource in {_tools(form.values)})"
        case "never_contact":
            yield _RUN, f"context.domains.containsAny({_set(form.values)})"
        case "only_contact":
            yield (
                _RUN,
                (
                    f"({_OUT}) && (context.hosts.isEmpty() ||"
                    f" !{_set(form.values)}.containsAll(context.hosts))"
                ),
            )
        case "files":
            yield _UNATTENDED, _PROCESS
        case "calls" | "commands":
            return


def _set(values: Iterable[str]) -> str:
    return f"[{', '.join(map(quote, values))}]"


def _tools(values: Iterable[str]) -> str:
    return f"[{', '.join(f'Tool::{quote(each)}' for each in values)}]"


def _below(path: str) -> str:
    return f"{pattern(path.rstrip('/'))}/*"


def _around(paths: Iterable[str]) -> list[str]:
    """A tool that is given a folder may go through everything in it, so a folder around the path is
    not harmless.
    """
    above = set[str]()
    for path in paths:
        while path not in ("/", ""):
            path = posixpath.dirname(path)
            above.add(path)
    return [f"context.paths.containsAny({_set(sorted(above))})"] if above else []


def limit(rule: SessionRule) -> CountRule | None:
    form = parse(rule.words)
    match form.kind:
        case "files" | "calls" | "commands":
            return CountRule(form.kind, form.most)
        case _:
            return None
