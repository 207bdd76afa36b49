"""Commands that provably only read inside the workspace: a short list of programs, each with the options it may have.

The rule: everything not listed is not harmless. No path leads up, is absolute or names what file tools never touch; nothing is
redirected or expanded but file names, and a pattern can never turn into an option. Not listed on purpose: awk, less, and whatever
runs what a file of the workspace says. What is harmless here is also held to it: it runs where nothing can be written.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from palyra.tools import protected
from palyra.tools.shell.parse import Word, parse

_ALL = 1_000


class Rule(Struct, frozen=True, kw_only=True):
    """What one program may be told.

    `flags` are letters without a value, `valued` letters with one, `long` and `long_valued` the same for long options; `text`
    is how many of the leading arguments are not names of files, `most` how many arguments there may be.
    """

    flags: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    text: int = 0
    most: int = _ALL
    # Options that say what to look for, so that the first argument is a file like the others.
    instead_of_text: str = ""
    special: Callable[[Sequence[Word]], bool] | None = None


def harmless(command: str) -> bool:
    """Whether a command only reads, and only inside the folder it runs in."""
    stages = parse(command).pipeline
    return bool(stages) and all(_harmless_stage(stage) for stage in stages)


def _harmless_stage(stage: tuple[Word, ...]) -> bool:
    rule = RULES.get(stage[0].text)
    if rule is None or stage[0].quoted:
        return False
    if rule.special is not None:
        return rule.special(stage[1:])
    return _fits(rule, stage[1:])


def _fits(rule: Rule, words: Sequence[Word]) -> bool:
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
        taken = _long(rule, word.text, waiting) if word.text.startswith("--") else _short(rule, word.text, waiting)
        if taken is None:
            return False
        left = 0 if taken in rule.instead_of_text and taken else left
    if len(arguments) > rule.most:
        return False
    return all(not word.glob for word in arguments[:left]) and all(_inside(word) for word in arguments[left:])


def _long(rule: Rule, text: str, waiting: list[Word]) -> str | None:
    name, equals, value = text[2:].partition("=")
    if name in rule.long and not equals:
        return ""
    if name in rule.long_valued and equals:
        return "" if _inside(Word(value)) else None
    if name in rule.long_valued and waiting and _is_value(waiting[0]):
        return "" if _inside(waiting.pop(0)) else None
    return None


def _short(rule: Rule, text: str, waiting: list[Word]) -> str | None:
    """The last letter read, or None if one is not allowed. `-n5` and `-n 5` are the same, and so is `-5` where it is listed."""
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
        return letter if letter in rule.instead_of_text or _inside(value) else None
    return ""


def _is_value(word: Word) -> bool:
    """Some programs take a value only if it is attached, and would read a word that looks like an option as one."""
    return not word.text.startswith("-") or word.text[1:].isdecimal()


def _inside(word: Word) -> bool:
    """Whether a word, if it names a file, names one inside; and whether a pattern stays what it is."""
    if word.glob and (not word.lead or word.lead.startswith("-")):
        return False
    parts = word.text.split("/")
    return not word.text.startswith(("/", "~")) and ".." not in parts and protected.why(word.text) is None


# --- programs with a language of their own ----------------------------------------------------------------------------

_FIND_TESTS = frozenset(
    {
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-type",
        "-maxdepth",
        "-mindepth",
        "-size",
        "-mtime",
        "-mmin",
        "-newer",
        "-perm",
        "-regex",
    }
)
_FIND_WORDS = frozenset({"-empty", "-not", "!", "-o", "-or", "-a", "-and", "-print", "-print0", "-prune", "-ls"})
_SED_PRINT = re.compile(r"(\d+|\$)(,(\d+|\$))?p")
_TESTS = frozenset({"-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L"})


def _find(words: Sequence[Word]) -> bool:
    """Starting points, then tests that only look; nothing that runs, deletes or writes."""
    waiting = list(words)
    while waiting and not waiting[0].text.startswith(("-", "!", "(")):
        if not _inside(waiting.pop(0)):
            return False
    while waiting:
        word = waiting.pop(0)
        if word.glob:
            return False
        if word.text in _FIND_WORDS:
            continue
        if word.text not in _FIND_TESTS or not waiting or waiting[0].glob:
            return False
        value = waiting.pop(0)
        if word.text == "-newer" and not _inside(value):
            return False
    return True


def _sed(words: Sequence[Word]) -> bool:
    """`sed -n 10,20p file`: sed's language can write files and run programs, so only printing lines is let through."""
    if len(words) < 2 or words[0].text != "-n" or words[1].glob or not _SED_PRINT.fullmatch(words[1].text):
        return False
    return all(not word.text.startswith("-") and _inside(word) for word in words[2:])


def _test(words: Sequence[Word]) -> bool:
    """One question about one file; others make the shell compute, and computing can run commands."""
    return len(words) == 2 and words[0].text in _TESTS and not words[1].glob and _inside(words[1])


def _printf(words: Sequence[Word]) -> bool:
    return bool(words) and not words[0].text.startswith("-") and not any(word.glob for word in words)


def _jq(words: Sequence[Word]) -> bool:
    """Its language cannot write, but can name other files to read."""
    program = next((word.text for word in words if not word.text.startswith("-")), "")
    if any(word.text == "--" for word in words):
        return False  # Behind it the program may begin with a dash, and would be looked for in the wrong place.
    return not any(name in program for name in ("import", "include", "env", "ENV")) and _fits(_JQ, words)


def _command_v(words: Sequence[Word]) -> bool:
    return len(words) == 2 and words[0].text == "-v" and re.fullmatch(r"[\w.+-]+", words[1].text) is not None


def _date(words: Sequence[Word]) -> bool:
    return all(word.text in ("-u", "-I", "-R", "--utc") or word.text.startswith("+") for word in words)


def _version(words: Sequence[Word]) -> bool:
    return len(words) == 1 and words[0].text in ("--version", "-V")


def _git(words: Sequence[Word]) -> bool:
    """A verb that looks, with options that only choose what is shown.

    Git also does what a repository's configuration says, and that can name programs. `QUIET_GIT` switches off what has a switch;
    the rest runs where the command does: without network, and where nothing can be written.
    """
    if not words or words[0].glob or words[0].quoted:
        return False
    if any(protected.why(part) for word in words for part in word.text.split(":")):
        return False  # `HEAD:.env` is a file too: what was committed of it is still a secret.
    rule = _GIT.get(words[0].text)
    return _version(words) if rule is None else _fits(rule, words[1:])


def _names(*text: str) -> frozenset[str]:
    return frozenset(name for part in text for name in part.split())


_GREP = Rule(
    flags="aciEFGhHIlLnoPqrRsvVwxyz",
    valued="eABCm",
    long=_names(
        "count ignore-case extended-regexp fixed-strings recursive line-number files-with-matches only-matching invert-match"
    ),
    long_valued=_names("include exclude exclude-dir context after-context before-context max-count color"),
    text=1,
    instead_of_text="e",
)
_DIFF = _names(
    "stat numstat shortstat summary name-only name-status cached staged patch no-patch raw check color no-color word-diff minimal",
    "ignore-all-space ignore-space-change ignore-blank-lines exit-code quiet no-ext-diff no-textconv no-renames find-renames",
)
_DIFF_VALUED = _names("stat unified word-diff diff-filter color abbrev diff-algorithm find-renames")
_LOG = Rule(
    flags="pusbwzaiEFPqc0123456789",
    valued="nUSG",
    long=_DIFF
    | _names(
        "oneline graph decorate no-decorate all branches tags remotes merges no-merges first-parent reverse follow abbrev-commit",
        "date-order topo-order relative-date",
    ),
    long_valued=_DIFF_VALUED | _names("max-count skip since until after before author committer grep format pretty date decorate"),
    instead_of_text="SG",
)
_GIT: Mapping[str, Rule] = {
    "blame": Rule(flags="wlsfnetMC", valued="L", long=_names("porcelain line-porcelain show-email")),
    "branch": Rule(flags="arv", long=_names("all remotes verbose list show-current no-color"), most=0),
    "cat-file": Rule(flags="pte"),
    "describe": Rule(long=_names("tags all always long dirty"), long_valued=_names("abbrev match")),
    "diff": Rule(flags="pubwzaRW", valued="USG", long=_DIFF, long_valued=_DIFF_VALUED, instead_of_text="SG"),
    "grep": Rule(
        flags="naiIwEFPGlLcvhHqzpW",
        valued="eABCm",
        long=_names("line-number ignore-case word-regexp count files-with-matches cached untracked heading break show-function"),
        text=1,
        instead_of_text="e",
    ),
    "log": _LOG,
    "ls-files": Rule(flags="cdmosztu", long=_names("cached deleted modified others stage exclude-standard full-name")),
    "remote": Rule(flags="v", long=_names("verbose"), most=0),
    "rev-parse": Rule(
        long=_names("show-toplevel show-prefix show-cdup abbrev-ref short verify symbolic-full-name git-dir is-inside-work-tree"),
        long_valued=_names("short"),
    ),
    "show": _LOG,
    "status": Rule(
        flags="sbvz",
        long=_names("short branch porcelain long verbose show-stash ignored untracked-files no-renames ahead-behind"),
        long_valued=_names("porcelain untracked-files ignored"),
    ),
    "tag": Rule(flags="l", long=_names("list"), most=0),
    "version": Rule(most=0),
}
# For git, as it reads settings from the environment. The last keeps a folder that only looks like a repository from being one.
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "log.showSignature": "false",
    "safe.bareRepository": "explicit",
}
QUIET_GIT: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_SETTINGS.values())},
}
_JQ = Rule(flags="cCMrjaSsenR", long=_names("compact-output raw-output sort-keys slurp exit-status tab"), text=1)
_SUM = Rule(flags="bt")
_TEXT = Rule(text=_ALL)

RULES: Mapping[str, Rule] = {
    "arch": Rule(most=0),
    "b2sum": _SUM,
    "base64": Rule(flags="di", valued="w", most=1),
    "basename": Rule(flags="az", valued="s", text=_ALL),
    "cat": Rule(flags="AbEensTtuv", long=_names("number number-nonblank show-all squeeze-blank")),
    "cksum": Rule(),
    "cmp": Rule(flags="bls", valued="n", most=2),
    "column": Rule(flags="txne", valued="sc"),
    "comm": Rule(flags="123", most=2),
    "command": Rule(special=_command_v),
    "cut": Rule(flags="sz", valued="bcdf", long=_names("complement only-delimited"), long_valued=_names("output-delimiter")),
    "date": Rule(special=_date),
    "diff": Rule(
        flags="abBcdeEiNqrstuwyZ",
        valued="UCx",
        long=_names("brief recursive unified side-by-side ignore-all-space ignore-case minimal"),
        long_valued=_names("color exclude width"),
        most=2,
    ),
    "dirname": Rule(flags="z", text=_ALL),
    "du": Rule(
        flags="abcDhHkLmsSx0",
        valued="dt",
        long=_names("human-readable summarize all apparent-size"),
        long_valued=_names("max-depth exclude"),
    ),
    "echo": Rule(flags="neE", text=_ALL),
    "egrep": _GREP,
    "expand": Rule(flags="i", valued="t"),
    "expr": _TEXT,
    "false": Rule(most=0),
    "fgrep": _GREP,
    "file": Rule(flags="bikLnprs", long=_names("brief mime mime-type mime-encoding")),
    "find": Rule(special=_find),
    "fmt": Rule(flags="cstu", valued="wg"),
    "fold": Rule(flags="bs", valued="w"),
    "gcc": Rule(special=_version),
    "git": Rule(special=_git),
    "grep": _GREP,
    "head": Rule(flags="qvz0123456789", valued="nc", long=_names("quiet verbose"), long_valued=_names("lines bytes")),
    "hexdump": Rule(flags="bcCdovx", valued="ns"),
    "id": Rule(flags="ugnG", most=0),
    "join": Rule(flags="i", valued="12taeov", most=2),
    "jq": Rule(special=_jq),
    "ls": Rule(
        flags="1aAbBcCdFgGhHiklLmnNopqQrRsStuUvwxXZ",
        valued="I",
        long=_names("all almost-all human-readable recursive reverse directory inode size full-time group-directories-first"),
        long_valued=_names("color sort time time-style ignore hide format"),
    ),
    "make": Rule(special=_version),
    "md5sum": _SUM,
    "nl": Rule(flags="p", valued="bhfivnsw"),
    "node": Rule(special=_version),
    "nproc": Rule(most=0),
    "od": Rule(flags="abcdfiloxsv", valued="AjNtw"),
    "paste": Rule(flags="sz", valued="d"),
    "printf": Rule(special=_printf),
    "pwd": Rule(flags="LP", most=0),
    "python": Rule(special=_version),
    "python3": Rule(special=_version),
    "readlink": Rule(flags="efmnqsvz"),
    "realpath": Rule(flags="emLPqsz"),
    "rev": Rule(),
    "rg": Rule(
        flags="abcFHiIlLnNoPqsSUuvVwx0",
        valued="eABCgmtT",
        long=_names("count files-with-matches fixed-strings hidden ignore-case line-number no-heading only-matching json stats"),
        long_valued=_names("glob type type-not max-count max-depth context color sort"),
        text=1,
        instead_of_text="e",
    ),
    "sed": Rule(special=_sed),
    "seq": Rule(flags="w", valued="s", text=_ALL),
    "sha1sum": _SUM,
    "sha256sum": _SUM,
    "sha512sum": _SUM,
    "sleep": Rule(text=1, most=1),
    "sort": Rule(
        flags="bdfghiMnRrsuVz", valued="kt", long=_names("numeric-sort reverse unique human-numeric-sort version-sort ignore-case")
    ),
    "stat": Rule(flags="Lft", valued="c", long=_names("dereference terse"), long_valued=_names("format printf")),
    "strings": Rule(flags="af", valued="nt"),
    "tac": Rule(flags="br", valued="s"),
    "tail": Rule(flags="qvz0123456789", valued="nc", long=_names("quiet verbose"), long_valued=_names("lines bytes")),
    "test": Rule(special=_test),
    "tr": Rule(flags="cCdst", text=_ALL, most=2),
    "tree": Rule(flags="adfFhinpsugDrtvNQS", valued="LIP", long=_names("dirsfirst prune noreport gitignore")),
    "true": Rule(most=0),
    "type": Rule(flags="atpP", text=_ALL),
    "uname": Rule(flags="amnoprsv", most=0),
    # A second argument would be written to.
    "uniq": Rule(flags="cdDiuz", valued="fsw", most=1),
    "wc": Rule(flags="clLmw", long=_names("lines words bytes chars")),
    "which": Rule(flags="a", text=_ALL),
    "whoami": Rule(most=0),
    "xxd": Rule(flags="abeEiptu", valued="cglos", most=1),
}
