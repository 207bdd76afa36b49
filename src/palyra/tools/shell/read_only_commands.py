"""Commands that provably only read inside the workspace: a short list of programs, each with the
options it may have.

The rule: everything not listed is not harmless. No path leads up, is absolute or names what file
tools never touch; nothing is redirected or expanded but file names, and a pattern can never turn
into an option. Not listed on purpose: awk, less, and whatever runs what a file of the workspace
says. What is harmless here is also held to it: it runs where nothing can be written.
"""

import re
from collections.abc import Mapping, Sequence

from palyra.tools.shell import read_only_git
from palyra.tools.shell.parse import ALL, ProgramRule, Word, fits, inside, names, parse


def harmless(command: str) -> bool:
    """Return whether a command only reads, and only inside the folder it runs in."""
    stages = parse(command).pipeline
    return bool(stages) and all(_harmless_stage(stage) for stage in stages)


def confined(command: str) -> str:
    """Return a harmless command as it is run: the same, but git leaves out what file tools never
    touch.
    """
    stages = parse(command).pipeline
    return " | ".join(
        read_only_git.confined(stage) if stage[0].text == "git" else _written(stage)
        for stage in stages
    )


def _written(stage: Sequence[Word]) -> str:
    return " ".join(word.written for word in stage)


def _harmless_stage(stage: tuple[Word, ...]) -> bool:
    rule = RULES.get(stage[0].text)
    if rule is None or stage[0].quoted:
        return False
    if rule.special is not None:
        return rule.special(stage[1:])
    return fits(rule, stage[1:])


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
_FIND_WORDS = frozenset(
    {"-empty", "-not", "!", "-o", "-or", "-a", "-and", "-print", "-print0", "-prune", "-ls"}
)
_SED_PRINT = re.compile(r"(\d+|\$)(,(\d+|\$))?p")
_TESTS = frozenset({"-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L"})


def _find(words: Sequence[Word]) -> bool:
    """Starting points, then tests that only look; nothing that runs, deletes or writes."""
    waiting = list(words)
    while waiting and not waiting[0].text.startswith(("-", "!", "(")):
        if not inside(waiting.pop(0)):
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
        if word.text == "-newer" and not inside(value):
            return False
    return True


def _sed(words: Sequence[Word]) -> bool:
    """`sed -n 10,20p file`: sed's language can write files and run programs, so only printing lines
    is let through.
    """
    if (
        len(words) < 2
        or words[0].text != "-n"
        or words[1].glob
        or not _SED_PRINT.fullmatch(words[1].text)
    ):
        return False
    return all(not word.text.startswith("-") and inside(word) for word in words[2:])


def _test(words: Sequence[Word]) -> bool:
    """One question about one file; others make the shell compute, and computing can run
    commands.
    """
    return len(words) == 2 and words[0].text in _TESTS and not words[1].glob and inside(words[1])


def _printf(words: Sequence[Word]) -> bool:
    return (
        bool(words) and not words[0].text.startswith("-") and not any(word.glob for word in words)
    )


def _jq(words: Sequence[Word]) -> bool:
    """Return whether jq reads no other files; its language cannot write."""
    program = next((word.text for word in words if not word.text.startswith("-")), "")
    if any(word.text == "--" for word in words):
        # Behind it the program may begin with a dash, and would be looked for in the wrong place.
        return False
    return not any(name in program for name in ("import", "include", "env", "ENV")) and fits(
        _JQ, words
    )


def _command_v(words: Sequence[Word]) -> bool:
    return (
        len(words) == 2
        and words[0].text == "-v"
        and re.fullmatch(r"[\w.+-]+", words[1].text) is not None
    )


def _date(words: Sequence[Word]) -> bool:
    return all(
        word.text in ("-u", "-I", "-R", "--utc") or word.text.startswith("+") for word in words
    )


def _version(words: Sequence[Word]) -> bool:
    return len(words) == 1 and words[0].text in ("--version", "-V")


_GREP = ProgramRule(
    flags="aciEFGhHIlLnoPqrRsvVwxyz",
    valued="eABCm",
    long=names(
        "count ignore-case extended-regexp fixed-strings recursive line-number files-with-matches"
        " only-matching invert-match"
    ),
    long_valued=names(
        "include exclude exclude-dir context after-context before-context max-count color"
    ),
    text=1,
    instead_of_text="e",
)
_JQ = ProgramRule(
    flags="cCMrjaSsenR",
    long=names("compact-output raw-output sort-keys slurp exit-status tab"),
    text=1,
)
_SUM = ProgramRule(flags="bt")
_TEXT = ProgramRule(text=ALL)

RULES: Mapping[str, ProgramRule] = {
    "arch": ProgramRule(most=0),
    "b2sum": _SUM,
    "base64": ProgramRule(flags="di", valued="w", most=1),
    "basename": ProgramRule(flags="az", valued="s", text=ALL),
    "cat": ProgramRule(
        flags="AbEensTtuv", long=names("number number-nonblank show-all squeeze-blank")
    ),
    "cksum": ProgramRule(),
    "cmp": ProgramRule(flags="bls", valued="n", most=2),
    "column": ProgramRule(flags="txne", valued="sc"),
    "comm": ProgramRule(flags="123", most=2),
    "command": ProgramRule(special=_command_v),
    "cut": ProgramRule(
        flags="sz",
        valued="bcdf",
        long=names("complement only-delimited"),
        long_valued=names("output-delimiter"),
    ),
    "date": ProgramRule(special=_date),
    "diff": ProgramRule(
        flags="abBcdeEiNqrstuwyZ",
        valued="UCx",
        long=names("brief recursive unified side-by-side ignore-all-space ignore-case minimal"),
        long_valued=names("color exclude width"),
        most=2,
    ),
    "dirname": ProgramRule(flags="z", text=ALL),
    "du": ProgramRule(
        flags="abcDhHkLmsSx0",
        valued="dt",
        long=names("human-readable summarize all apparent-size"),
        long_valued=names("max-depth exclude"),
    ),
    "echo": ProgramRule(flags="neE", text=ALL),
    "egrep": _GREP,
    "expand": ProgramRule(flags="i", valued="t"),
    "expr": _TEXT,
    "false": ProgramRule(most=0),
    "fgrep": _GREP,
    "file": ProgramRule(flags="bikLnprs", long=names("brief mime mime-type mime-encoding")),
    "find": ProgramRule(special=_find),
    "fmt": ProgramRule(flags="cstu", valued="wg"),
    "fold": ProgramRule(flags="bs", valued="w"),
    "gcc": ProgramRule(special=_version),
    "git": ProgramRule(special=read_only_git.reads),
    "grep": _GREP,
    "head": ProgramRule(
        flags="qvz0123456789",
        valued="nc",
        long=names("quiet verbose"),
        long_valued=names("lines bytes"),
    ),
    "hexdump": ProgramRule(flags="bcCdovx", valued="ns"),
    "id": ProgramRule(flags="ugnG", most=0),
    "join": ProgramRule(flags="i", valued="12taeov", most=2),
    "jq": ProgramRule(special=_jq),
    "ls": ProgramRule(
        flags="1aAbBcCdFgGhHiklLmnNopqQrRsStuUvwxXZ",
        valued="I",
        long=names(
            "all almost-all human-readable recursive reverse directory inode size full-time"
            " group-directories-first"
        ),
        long_valued=names("color sort time time-style ignore hide format"),
    ),
    "make": ProgramRule(special=_version),
    "md5sum": _SUM,
    "nl": ProgramRule(flags="p", valued="bhfivnsw"),
    "node": ProgramRule(special=_version),
    "nproc": ProgramRule(most=0),
    "od": ProgramRule(flags="abcdfiloxsv", valued="AjNtw"),
    "paste": ProgramRule(flags="sz", valued="d"),
    "printf": ProgramRule(special=_printf),
    "pwd": ProgramRule(flags="LP", most=0),
    "python": ProgramRule(special=_version),
    "python3": ProgramRule(special=_version),
    "readlink": ProgramRule(flags="efmnqsvz"),
    "realpath": ProgramRule(flags="emLPqsz"),
    "rev": ProgramRule(),
    "rg": ProgramRule(
        flags="abcFHiIlLnNoPqsSUuvVwx0",
        valued="eABCgmtT",
        long=names(
            "count files-with-matches fixed-strings hidden ignore-case line-number no-heading"
            " only-matching json stats"
        ),
        long_valued=names("glob type type-not max-count max-depth context color sort"),
        text=1,
        instead_of_text="e",
    ),
    "sed": ProgramRule(special=_sed),
    "seq": ProgramRule(flags="w", valued="s", text=ALL),
    "sha1sum": _SUM,
    "sha256sum": _SUM,
    "sha512sum": _SUM,
    "sleep": ProgramRule(text=1, most=1),
    "sort": ProgramRule(
        flags="bdfghiMnRrsuVz",
        valued="kt",
        long=names("numeric-sort reverse unique human-numeric-sort version-sort ignore-case"),
    ),
    "stat": ProgramRule(
        flags="Lft", valued="c", long=names("dereference terse"), long_valued=names("format printf")
    ),
    "strings": ProgramRule(flags="af", valued="nt"),
    "tac": ProgramRule(flags="br", valued="s"),
    "tail": ProgramRule(
        flags="qvz0123456789",
        valued="nc",
        long=names("quiet verbose"),
        long_valued=names("lines bytes"),
    ),
    "test": ProgramRule(special=_test),
    "tr": ProgramRule(flags="cCdst", text=ALL, most=2),
    "tree": ProgramRule(
        flags="adfFhinpsugDrtvNQS", valued="LIP", long=names("dirsfirst prune noreport gitignore")
    ),
    "true": ProgramRule(most=0),
    "type": ProgramRule(flags="atpP", text=ALL),
    "uname": ProgramRule(flags="amnoprsv", most=0),
    # A second argument would be written to.
    "uniq": ProgramRule(flags="cdDiuz", valued="fsw", most=1),
    "wc": ProgramRule(flags="clLmw", long=names("lines words bytes chars")),
    "which": ProgramRule(flags="a", text=ALL),
    "whoami": ProgramRule(most=0),
    "xxd": ProgramRule(flags="abeEiptu", valued="cglos", most=1),
}
