"""Reading a whole shell command without running it, to tell what it is about.

The rule: what is not understood counts as the worst. A word is plain only if the shell would take
it exactly as it is written here.

What one program may be told: a rule with its options, and whether the words of a command fit
it.
"""

import re
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct, field

from palyra.tools import protected_names

Kind = Literal["word", "operator"]

_OPERATORS = (
    "&>>",
    "<<<",
    "<<-",
    "&&",
    "||",
    ";;",
    "|&",
    "&>",
    ">>",
    ">&",
    "<&",
    "<>",
    ">|",
    "<<",
    "|",
    "&",
    ";",
    "<",
    ">",
    "(",
    ")",
    "\n",
)
_REDIRECTS = frozenset({"&>>", "<<<", "<<-", "&>", ">>", ">&", "<&", "<>", ">|", "<<", "<", ">"})
_WRITING = frozenset({"&>>", "&>", ">>", ">&", "<>", ">|", ">"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_RESERVED = _words(
    "if then elif else fi for while until do done case esac in function select time coproc { } ! [["
    " ]] eval exec source . trap"
)
# Programs that start whatever they are told to.
_SPAWNING = _words(
    "sh bash dash zsh ksh csh fish busybox env xargs find sudo su doas nohup setsid timeout nice"
    " ionice stdbuf time watch script ssh parallel strace ltrace gdb python python3 perl ruby node"
    " php lua make npm npx yarn pip git tar vi vim ex less more man"
)
_NETWORK = _words(
    "curl wget nc ncat netcat socat ssh scp sftp rsync ftp telnet dig host nslookup ping git pip"
    " npm npx yarn cargo go apt apt-get docker whois openssl"
)


class Word(Struct, frozen=True):
    """One word. `plain`: no part of it is expanded; `glob`: only file name patterns are, and `lead`
    is what stands before them.

    `written` is how it stands in the command, quotes and all.
    """

    text: str
    plain: bool = True
    glob: bool = False
    lead: str = ""
    quoted: bool = False
    written: str = ""


class Parsed(Struct, frozen=True, kw_only=True):
    """Parts of a command. Lists name what was found; an empty list means there is none of it, not
    that nobody looked.
    """

    # One command with plain words and nothing else. Only then are `program` and `arguments` known.
    simple: bool = False
    program: str = ""
    arguments: tuple[str, ...] = ()
    # The commands between pipes, if there is nothing but words (plain or with patterns) and pipes.
    pipeline: tuple[tuple[Word, ...], ...] = ()
    operators: tuple[str, ...] = ()
    redirects: tuple[str, ...] = ()
    substitutions: bool = False
    globs: bool = False
    writes: bool = False
    spawns: bool = False
    network: bool = False
    # It may delete or overwrite what nothing brings back.
    destroys: bool = False
    # Why it is not simple, in words; empty if it is.
    odd: str = ""


class _Reading(Struct):
    tokens: list[tuple[Kind, Word]] = field(default_factory=list)
    expands: bool = False
    odd: str = ""


def parse(command: str) -> Parsed:
    """Never raises: a command that cannot be read is one that is not simple."""
    reading = _read(command)
    operators = tuple(word.text for kind, word in reading.tokens if kind == "operator")
    words = [word for kind, word in reading.tokens if kind == "word"]
    redirects = tuple(one for one in operators if one in _REDIRECTS)
    stages = (
        _stages(reading)
        if not reading.odd and not reading.expands and all(one == "|" for one in operators)
        else ()
    )
    odd = reading.odd or _reserved(stages)
    stages = () if odd else stages
    first = stages[0] if len(stages) == 1 else ()
    simple = bool(first) and all(word.plain and not word.glob for word in first)
    programs = {word.text.rsplit("/", 1)[-1] for word in words}
    return Parsed(
        simple=simple,
        program=first[0].text if simple else "",
        arguments=tuple(word.text for word in first[1:]) if simple else (),
        pipeline=stages,
        operators=operators,
        redirects=redirects,
        substitutions=reading.expands,
        globs=any(word.glob for word in words),
        writes=not stages or any(one in _WRITING for one in redirects),
        spawns=not stages or not _SPAWNING.isdisjoint(programs),
        network="/dev/tcp/" in command
        or "/dev/udp/" in command
        or not _NETWORK.isdisjoint(programs),
        destroys=_destroys(command, reading),
        odd=odd or ("" if simple else _why_not_simple(reading, operators)),
    )


# Programs that delete or overwrite, and what others are told to do so.
_DELETING = _words(
    "rm rmdir unlink shred srm wipe truncate dd mkfs wipefs blkdiscard mkswap fdisk parted"
)
_DELETING_WHEN = {
    "find": _words("-delete -exec -execdir -ok -okdir"),
    "git": _words(
        "clean reset checkout restore rm push branch stash gc prune filter-branch filter-repo"
        " update-ref reflog"
    ),
    "rsync": _words(
        "--delete --delete-before --delete-after --delete-during --delete-excluded"
        " --remove-source-files"
    ),
    "sed": _words("-i --in-place"),
    "tar": _words("--remove-files"),
}
_MENTIONED = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(_DELETING))})(?![\w-])")


def _destroys(command: str, reading: _Reading) -> bool:
    """Return whether a command may delete for good. What cannot be read counts if it as much as
    names such a program.
    """
    started = _started(reading)
    if not _DELETING.isdisjoint(started) or any(each.startswith("mkfs.") for each in started):
        return True
    given = {word.text for kind, word in reading.tokens if kind == "word"}
    if any(
        program in started and not given.isdisjoint(told)
        for program, told in _DELETING_WHEN.items()
    ):
        return True
    # Shells and the like are told what to do by their arguments.
    hidden = bool(reading.odd) or reading.expands or not (_SPAWNING | _RESERVED).isdisjoint(started)
    return hidden and _MENTIONED.search(command) is not None


def _started(reading: _Reading) -> set[str]:
    """Return the programs that stand where a command begins."""
    found: set[str] = set()
    begins, target = True, False
    for kind, word in reading.tokens:
        if kind == "operator":
            target = word.text in _REDIRECTS
            begins = begins if target else True
        elif target:
            target = False
        elif begins and "=" not in word.text:
            found.add(word.text.rsplit("/", 1)[-1])
            begins = False
    return found


def _why_not_simple(reading: _Reading, operators: tuple[str, ...]) -> str:
    if reading.expands:
        return "it has variables or substitutions"
    if operators:
        return f"it has {', '.join(sorted({one.strip() or 'a new line' for one in operators}))}"
    return "it has file name patterns" if reading.tokens else "it is empty"


def _stages(reading: _Reading) -> tuple[tuple[Word, ...], ...]:
    stages: list[list[Word]] = [[]]
    for kind, word in reading.tokens:
        if kind == "operator":
            stages.append([])
        else:
            stages[-1].append(word)
    return tuple(tuple(stage) for stage in stages) if all(stages) else ()


def _reserved(stages: tuple[tuple[Word, ...], ...]) -> str:
    for stage in stages:
        name = stage[0].text
        if name in _RESERVED:
            return f"{name} is part of the shell's own language"
        if "=" in name:
            return "it sets a variable"
        if stage[0].glob or not name:
            return "its program is not named plainly"
    return ""


def _read(command: str) -> _Reading:
    reading = _Reading()
    if any((ord(char) < 32 and char not in "\t\n") or ord(char) == 127 for char in command):
        reading.odd = "it has a control character"
        return reading
    at = 0
    while at < len(command) and not reading.odd:
        char = command[at]
        if char in " \t":
            at += 1
            continue
        operator = next((one for one in _OPERATORS if command.startswith(one, at)), None)
        if operator:
            # A new line at the very end ends nothing that was not over.
            if operator != "\n" or command[at:].strip():
                reading.tokens.append(("operator", Word(operator)))
            at += len(operator)
        elif char == "#":
            reading.odd = "it has a comment"
        else:
            at = _word(command, at, reading)
    return reading


def _word(command: str, at: int, reading: _Reading) -> int:
    """Read one word from `at` on; returns where it ends."""
    text, lead = "", ""
    glob = quoted = False
    start = at
    while at < len(command) and not reading.odd:
        char = command[at]
        if char in " \t" or any(command.startswith(one, at) for one in _OPERATORS):
            break
        if char == "'":
            end = command.find("'", at + 1)
            if end < 0:
                reading.odd = "a quote is not closed"
                break
            text, at, quoted = text + command[at + 1 : end], end + 1, True
        elif char == '"':
            inner, at = _double_quoted(command, at + 1, reading)
            text, quoted = text + inner, True
        elif char == "\\":
            if at + 1 >= len(command) or command[at + 1] == "\n":
                reading.odd = "it goes on in the next line"
                break
            text, at, quoted = text + command[at + 1], at + 2, True
        elif char in "$`":
            reading.expands = True
            text, at = text + char, at + 1
        elif char in "{}":
            reading.odd = "it has braces that the shell may expand"
        elif char == "~" and (at == start or command[at - 1] in "=:"):
            reading.odd = "it has a ~ that stands for a home folder"
        elif char in "*?[":
            lead = lead if glob else text
            glob, text, at = True, text + char, at + 1
        elif ord(char) > 127 and char.isspace():
            reading.odd = "it has a blank that is not a space"
        else:
            text, at = text + char, at + 1
    reading.tokens.append(
        ("word", Word(text, not reading.expands, glob, lead, quoted, command[start:at]))
    )
    return at


def _double_quoted(command: str, at: int, reading: _Reading) -> tuple[str, int]:
    text = ""
    while at < len(command):
        char = command[at]
        if char == '"':
            return text, at + 1
        if char in "$`":
            reading.expands = True
        if char == "\\" and at + 1 < len(command) and command[at + 1] in '$`"\\\n':
            text, at = text + command[at + 1], at + 2
            continue
        text, at = text + char, at + 1
    reading.odd = "a quote is not closed"
    return text, at


ALL = 1_000


class ProgramRule(Struct, frozen=True, kw_only=True):
    """Rule for the arguments of one program.

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
    """Return whether a word, if it names a file, names one inside; and whether a pattern stays what
    it is.
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
