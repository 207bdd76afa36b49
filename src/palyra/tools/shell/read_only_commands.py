"""Commands that provably only read inside the workspace: a short list of programs, each with the options it may have.

The rule: everything not listed is not harmless. No path leads up, is absolute or names what file tools never touch; nothing is
redirected or expanded but file names, and a pattern can never turn into an option. Not listed on purpose: awk, less, and whatever
runs what a file of the workspace says. What is harmless here is also held to it: it runs where nothing can be written.
"""

import re
from collections.abc import Mapping, Sequence

from palyra.tools.shell import read_only_git
from palyra.tools.shell.options import ALL, Rule, fits, inside, names
from palyra.tools.shell.parse import Word, parse


def harmless(command: str) -> bool:
    """Whether a command only reads, and only inside the folder it runs in."""
    stages = parse(command).pipeline
    return bool(stages) and all(_harmless_stage(stage) for stage in stages)


def confined(command: str) -> str:
    """Return a harmless command as it is run: the same, but git leaves out what file tools never touch."""
    stages = parse(command).pipeline
    return " | ".join(read_only_git.confined(stage) if stage[0].text == "git" else _written(stage) for stage in stages)


def _written(stage: Sequence[Word]) -> str:
    return " ".join(word.written for word in stage)


def _harmless_stage(stage: tuple[Word, ...]) -> bool:
    rule = RULES.get(stage[0].text)
    if rule is None or stage[0].quoted:
        return False
    if rule.special is not None:
        return rule.special(stage[1:])
    return fits(rule, stage[1:])


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
    """`sed -n 10,20p file`: sed's language can write files and run programs, so only printing lines is let through."""
    if len(words) < 2 or words[0].text != "-n" or words[1].glob or not _SED_PRINT.fullmatch(words[1].text):
        return False
    return all(not word.text.startswith("-") and inside(word) for word in words[2:])


def _test(words: Sequence[Word]) -> bool:
    """One question about one file; others make the shell compute, and computing can run commands."""
    return len(words) == 2 and words[0].text in _TESTS and not words[1].glob and inside(words[1])


def _printf(words: Sequence[Word]) -> bool:
    return bool(words) and not words[0].text.startswith("-") and not any(word.glob for word in words)


def _jq(words: Sequence[Word]) -> bool:
    """Its language cannot write, but can name other files to read."""
    program = next((word.text for word in words if not word.text.startswith("-")), "")
    if any(word.text == "--" for word in words):
        return False  # Behind it the program may begin with a dash, and would be looked for in the wrong place.
    return not any(name in program for name in ("import", "include", "env", "ENV")) and fits(_JQ, words)


def _command_v(words: Sequence[Word]) -> bool:
    return len(words) == 2 and words[0].text == "-v" and re.fullmatch(r"[\w.+-]+", words[1].text) is not None


def _date(words: Sequence[Word]) -> bool:
    return all(word.text in ("-u", "-I", "-R", "--utc") or word.text.startswith("+") for word in words)


def _version(words: Sequence[Word]) -> bool:
    return len(words) == 1 and words[0].text in ("--version", "-V")


_GREP = Rule(
    flags="aciEFGhHIlLnoPqrRsvVwxyz",
    valued="eABCm",
    long=names(
        "count ignore-case extended-regexp fixed-strings recursive line-number files-with-matches only-matching invert-match"
    ),
    long_valued=names("include exclude exclude-dir context after-context before-context max-count color"),
    text=1,
    instead_of_text="e",
)
_JQ = Rule(flags="cCMrjaSsenR", long=names("compact-output raw-output sort-keys slurp exit-status tab"), text=1)
_SUM = Rule(flags="bt")
_TEXT = Rule(text=ALL)

RULES: Mapping[str, Rule] = {
    "arch": Rule(most=0),
    "b2sum": _SUM,
    "base64": Rule(flags="di", valued="w", most=1),
    "basename": Rule(flags="az", valued="s", text=ALL),
    "cat": Rule(flags="AbEensTtuv", long=names("number number-nonblank show-all squeeze-blank")),
    "cksum": Rule(),
    "cmp": Rule(flags="bls", valued="n", most=2),
    "column": Rule(flags="txne", valued="sc"),
    "comm": Rule(flags="123", most=2),
    "command": Rule(special=_command_v),
    "cut": Rule(flags="sz", valued="bcdf", long=names("complement only-delimited"), long_valued=names("output-delimiter")),
    "date": Rule(special=_date),
    "diff": Rule(
        flags="abBcdeEiNqrstuwyZ",
        valued="UCx",
        long=names("brief recursive unified side-by-side ignore-all-space ignore-case minimal"),
        long_valued=names("color exclude width"),
        most=2,
    ),
    "dirname": Rule(flags="z", text=ALL),
    "du": Rule(
        flags="abcDhHkLmsSx0",
        valued="dt",
        long=names("human-readable summarize all apparent-size"),
        long_valued=names("max-depth exclude"),
    ),
    "echo": Rule(flags="neE", text=ALL),
    "egrep": _GREP,
    "expand": Rule(flags="i", valued="t"),
    "expr": _TEXT,
    "false": Rule(most=0),
    "fgrep": _GREP,
    "file": Rule(flags="bikLnprs", long=names("brief mime mime-type mime-encoding")),
    "find": Rule(special=_find),
    "fmt": Rule(flags="cstu", valued="wg"),
    "fold": Rule(flags="bs", valued="w"),
    "gcc": Rule(special=_version),
    "git": Rule(special=read_only_git.reads),
    "grep": _GREP,
    "head": Rule(flags="qvz0123456789", valued="nc", long=names("quiet verbose"), long_valued=names("lines bytes")),
    "hexdump": Rule(flags="bcCdovx", valued="ns"),
    "id": Rule(flags="ugnG", most=0),
    "join": Rule(flags="i", valued="12taeov", most=2),
    "jq": Rule(special=_jq),
    "ls": Rule(
        flags="1aAbBcCdFgGhHiklLmnNopqQrRsStuUvwxXZ",
        valued="I",
        long=names("all almost-all human-readable recursive reverse directory inode size full-time group-directories-first"),
        long_valued=names("color sort time time-style ignore hide format"),
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
        long=names("count files-with-matches fixed-strings hidden ignore-case line-number no-heading only-matching json stats"),
        long_valued=names("glob type type-not max-count max-depth context color sort"),
        text=1,
        instead_of_text="e",
    ),
    "sed": Rule(special=_sed),
    "seq": Rule(flags="w", valued="s", text=ALL),
    "sha1sum": _SUM,
    "sha256sum": _SUM,
    "sha512sum": _SUM,
    "sleep": Rule(text=1, most=1),
    "sort": Rule(
        flags="bdfghiMnRrsuVz", valued="kt", long=names("numeric-sort reverse unique human-numeric-sort version-sort ignore-case")
    ),
    "stat": Rule(flags="Lft", valued="c", long=names("dereference terse"), long_valued=names("format printf")),
    "strings": Rule(flags="af", valued="nt"),
    "tac": Rule(flags="br", valued="s"),
    "tail": Rule(flags="qvz0123456789", valued="nc", long=names("quiet verbose"), long_valued=names("lines bytes")),
    "test": Rule(special=_test),
    "tr": Rule(flags="cCdst", text=ALL, most=2),
    "tree": Rule(flags="adfFhinpsugDrtvNQS", valued="LIP", long=names("dirsfirst prune noreport gitignore")),
    "true": Rule(most=0),
    "type": Rule(flags="atpP", text=ALL),
    "uname": Rule(flags="amnoprsv", most=0),
    # A second argument would be written to.
    "uniq": Rule(flags="cdDiuz", valued="fsw", most=1),
    "wc": Rule(flags="clLmw", long=names("lines words bytes chars")),
    "which": Rule(flags="a", text=ALL),
    "whoami": Rule(most=0),
    "xxd": Rule(flags="abeEiptu", valued="cglos", most=1),
}
