"""What one program may be told: a rule with its options, and whether the words of a command fit
it.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from palyra.tools import protected_names
from palyra.tools.shell.parse import Word

ALL = 1_000


class ProgramRule(Struct, frozen=True, kw_only=True):
    """What one program may be told.

    `flags` are letters without a value, `valued` letters with one, `long` and `long_valued` the
    same for long options; `text` is how many of the leading arguments are not names of files,
    `most` how many arguments there may be.
    """

    flags: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    text: int = 0
    most: int = ALL
    # Options that say what to look for, so that the first argument is a file like the others.
    instead_of_text: str = ""
    special: Callable[[Sequence[Word]], bool] | None = None


def fits(rule: ProgramRule, words: Sequence[Word]) -> bool:
    arguments: list[Word] = []
    left = rule.text
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word.text == "--":
            arguments += waiting
            break
        if not word.text.startswith("-") or word.text == "-":
            arguments.append(word)
            continue
        if word.glob:
            return False
        taken = (
            _long(rule, word.text, waiting)
            if word.text.startswith("--")
            else _short(rule, word.text, waiting)
        )
        if taken is None:
            return False
        left = 0 if taken in rule.instead_of_text and taken else left
    if len(arguments) > rule.most:
        return False
    return all(not word.glob for word in arguments[:left]) and all(
        inside(word) for word in arguments[left:]
    )


def _long(rule: ProgramRule, text: str, waiting: list[Word]) -> str | None:
    name, equals, value = text[2:].partition("=")
    if name in rule.long and not equals:
        return ""
    if name in rule.long_valued and equals:
        return "" if inside(Word(value)) else None
    if name in rule.long_valued and waiting and _is_value(waiting[0]):
        return "" if inside(waiting.pop(0)) else None
    return None


def _short(rule: ProgramRule, text: str, waiting: list[Word]) -> str | None:
    """The last letter read, or None if one is not allowed. `-n5` and `-n 5` are the same, and so is
    `-5` where it is listed.
    """
    for index, letter in enumerate(text[1:], 1):
        if letter in rule.flags:
            continue
        if letter not in rule.valued:
            return None
        rest = text[index + 1 :]
        if not rest and not (waiting and _is_value(waiting[0])):
            return None
        value = Word(rest) if rest else waiting.pop(0)
        # The value of a pattern option may hold anything; of others it may be a file.
        return letter if letter in rule.instead_of_text or inside(value) else None
    return ""


def _is_value(word: Word) -> bool:
    """Some programs take a value only if it is attached, and would read a word that looks like an
    option as one.
    """
    return not word.text.startswith("-") or word.text[1:].isdecimal()


def inside(word: Word) -> bool:
    """Whether a word, if it names a file, names one inside; and whether a pattern stays what it
    is.
    """
    if word.glob and (not word.lead or word.lead.startswith("-")):
        return False
    parts = word.text.split("/")
    return (
        not word.text.startswith(("/", "~"))
        and ".." not in parts
        and protected_names.why(word.text) is None
    )


def names(*text: str) -> frozenset[str]:
    return frozenset(name for part in text for name in part.split())
