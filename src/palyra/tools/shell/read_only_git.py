"""Git commands that only look: which verbs and options need no question, and how they are kept from
showing committed secrets.

The rule is an allow-list. What a file tool never touches is not shown from history either: verbs
that print what files hold run with these names left out, and an object that is named only by its
digest is not printed, because nobody can tell what it is.
"""

import re
import shlex
from collections.abc import Mapping, Sequence

from palyra.tools import protected_names
from palyra.tools.shell.parse import ProgramRule, Word, fits, names

# A file of a commit or of the index, by its name: `HEAD:src/a.py`, `:0:a.py`. Not `:/text`, which
# searches for a commit.
_NAMED_FILE = re.compile(r"(?!:/)[^:]*:(?:[0-3]:)?[^/:][^:]*")
_REVISION = re.compile(
    r"(?:HEAD|@|[0-9a-f]{7,64})(?:[~^]\d*)*(?:\.{2,3}(?:HEAD|@|[0-9a-f]{7,64})?(?:[~^]\d*)*)?"
)
# Options of `git log` that print, or search, what files hold; the others show messages, names and
# numbers.
_PRINTING = re.compile(r"-(?!-)\w*[puUcSG].*|--(?:patch|unified|word-diff|check)\b.*")
# Options by which `git show` shows something else than a patch.
_OTHER_FORMAT = re.compile(
    r"-(?!-)[a-z]*s[a-z]*|--(?:stat|numstat|shortstat|summary|name-only|name-status|no-patch|raw|check|quiet)\b.*"
)
_DIFF = names(
    "stat numstat shortstat summary name-only name-status cached staged patch no-patch raw check"
    " color no-color word-diff minimal",
    "ignore-all-space ignore-space-change ignore-blank-lines exit-code quiet no-ext-diff"
    " no-textconv no-renames find-renames",
)
_DIFF_VALUED = names("stat unified word-diff diff-filter color abbrev diff-algorithm find-renames")
_LOG = ProgramRule(
    flags="pusbwzaiEFPqc0123456789",
    valued="nUSG",
    long=_DIFF
    | names(
        "oneline graph decorate no-decorate all branches tags remotes merges no-merges first-parent"
        " reverse follow abbrev-commit",
        "date-order topo-order relative-date",
    ),
    long_valued=_DIFF_VALUED
    | names(
        "max-count skip since until after before author committer grep format pretty date decorate"
    ),
    instead_of_text="SG",
)
_VERBS: Mapping[str, ProgramRule] = {
    "blame": ProgramRule(
        flags="wlsfnetMC", valued="L", long=names("porcelain line-porcelain show-email")
    ),
    "branch": ProgramRule(
        flags="arv", long=names("all remotes verbose list show-current no-color"), most=0
    ),
    "cat-file": ProgramRule(flags="ptes"),
    "describe": ProgramRule(
        long=names("tags all always long dirty"), long_valued=names("abbrev match")
    ),
    "diff": ProgramRule(
        flags="pubwzaRW", valued="USG", long=_DIFF, long_valued=_DIFF_VALUED, instead_of_text="SG"
    ),
    "grep": ProgramRule(
        flags="naiIwEFPGlLcvhHqzpW",
        valued="eABCm",
        long=names(
            "line-number ignore-case word-regexp count files-with-matches cached untracked heading"
            " break show-function"
        ),
        text=1,
        instead_of_text="e",
    ),
    "log": _LOG,
    "ls-files": ProgramRule(
        flags="cdmosztu",
        long=names("cached deleted modified others stage exclude-standard full-name"),
    ),
    "remote": ProgramRule(flags="v", long=names("verbose"), most=0),
    "rev-parse": ProgramRule(
        long=names(
            "show-toplevel show-prefix show-cdup abbrev-ref short verify symbolic-full-name git-dir"
            " is-inside-work-tree"
        ),
        long_valued=names("short"),
    ),
    "show": _LOG,
    # Not -v: it prints what is staged.
    "status": ProgramRule(
        flags="sbz",
        long=names(
            "short branch porcelain long show-stash ignored untracked-files no-renames ahead-behind"
        ),
        long_valued=names("porcelain untracked-files ignored"),
    ),
    "tag": ProgramRule(flags="l", long=names("list"), most=0),
    "version": ProgramRule(most=0),
}
# For git, as it reads settings from the environment. The last keeps a folder that only looks like a
# repository from being one.
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "log.showSignature": "false",
    "safe.bareRepository": "explicit",
}
QUIET: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_SETTINGS.values())},
}


def reads(words: Sequence[Word]) -> bool:
    """Return whether a verb only looks, with options that only choose what is shown.

    Git also does what a repository's configuration says, and that can name programs. `QUIET`
    switches off what has a switch; the rest runs where the command does: without network, and where
    nothing can be written.
    """
    if not words or words[0].glob or words[0].quoted:
        return False
    if any(protected_names.why(part) for word in words for part in word.text.split(":")):
        return False  # `HEAD:.env` is a file too: what was committed of it is still a secret.
    verb, rest = words[0].text, words[1:]
    rule = _VERBS.get(verb)
    if rule is None:
        return len(words) == 1 and verb in ("--version", "-V")
    if verb == "cat-file" and any("p" in word.text for word in rest if word.text.startswith("-")):
        # A digest alone could be that of any file.
        return fits(rule, rest) and all(
            _NAMED_FILE.fullmatch(word.text) for word in _arguments(rest)
        )
    if verb == "show" and any(":" in word.text for word in _arguments(rest)):
        return fits(rule, rest) and all(
            _NAMED_FILE.fullmatch(word.text) for word in _arguments(rest)
        )
    if verb == "log" and any(word.text == "--follow" for word in rest) and _prints(rest):
        return False  # It follows one file and takes no other names.
    return fits(rule, rest)


def confined(stage: Sequence[Word]) -> str:
    """Return a command that `reads` as it is run: with the names left out that are never shown."""
    program, verb, rest = stage[0].written, stage[1].text if len(stage) > 1 else "", stage[2:]
    given = [word.written for word in rest]
    match verb:
        case "diff" | "grep":
            return " ".join([program, verb, *given, _left_out()])
        case "log" if _prints(rest):
            return " ".join([program, verb, *_whole_history(rest), *given, _left_out()])
        case "show" if not any(":" in word.text for word in _arguments(rest)):
            # As `git log`, which shows commits and never a file that is named by its digest.
            patch = (
                []
                if any(_OTHER_FORMAT.fullmatch(word.text) for word in _options(rest))
                else ["--cc"]
            )
            return " ".join(
                [program, "log --no-walk --full-history --sparse", *patch, *given, _left_out()]
            )
        case _:
            return " ".join(word.written for word in stage)


def _left_out() -> str:
    """The names that are never shown, as pathspecs. They may follow arguments of any kind, also
    without `--`.
    """
    return " ".join(map(shlex.quote, protected_names.pathspecs()))


def _whole_history(words: Sequence[Word]) -> list[str]:
    """With a pathspec git leaves commits out that touch nothing of it; where no path was given, all
    are wanted.
    """
    given = _arguments(words)
    plain = not any(word.text == "--" for word in words) and all(
        _REVISION.fullmatch(word.text) for word in given
    )
    return ["--full-history", "--sparse"] if plain else []


def _prints(words: Sequence[Word]) -> bool:
    return any(_PRINTING.fullmatch(word.text) for word in _options(words))


def _options(words: Sequence[Word]) -> list[Word]:
    end = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
    return [word for word in words[:end] if word.text.startswith("-")]


def _arguments(words: Sequence[Word]) -> list[Word]:
    """Everything that is no option; the value of an option, too, if it stands by itself."""
    end = next((at for at, word in enumerate(words) if word.text == "--"), len(words))
    return [*(word for word in words[:end] if not word.text.startswith("-")), *words[end + 1 :]]
