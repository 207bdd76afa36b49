"""One approval being answered, line by line. Knows no terminal.

Only a bare word is an answer: a sentence that begins with yes may go on with but, so it is asked
about again. Enter alone decides nothing, and what a wider yes covers is chosen by its number, never
by default.
"""

from typing import Any

from msgspec import Struct

from palyra.cli import formatting
from palyra.cli.safe_text import clean, one_line
from palyra.core.errors import InvalidInput
from palyra.core.events import ApprovalRequested, Decision, GrantScope
from palyra.core.tools import Subject

_TOOL = "[y]es once · [s]ession · [t]imed · [a]lways · [e]dit · [n]o · [q]uit"
_HIDDEN = "[v]iew all · [e]dit · [n]o · [q]uit"
_DOUBT = "[h]appened · [r]un again · [s]kip · [q]uit"
_SCOPES: dict[str, GrantScope] = {
    "s": "session",
    "session": "session",
    "t": "timed",
    "timed": "timed",
    "a": "always",
    "always": "always",
}
_HOW = "answer with one letter and Enter; to tell the agent what to do instead: n and your words"


class ApprovalDecision(Struct, frozen=True, kw_only=True):
    """What to answer."""

    decision: Decision
    scope: GrantScope = "once"
    subject: Subject | None = None
    for_ms: int = 0
    arguments: dict[str, Any] | None = None
    reason: str = ""
    # The digest of what was shown whole.
    seen: str = ""


class Say(Struct, frozen=True):
    """Nothing is decided yet; tell the person this, and show the prompt again."""

    text: str = ""


class EditRequested(Struct, frozen=True):
    """The person wants to change the arguments."""


class ViewRequested(Struct, frozen=True):
    """The person wants to see all of what would run."""


class Leave(Struct, frozen=True):
    """Leave it pending."""


Step = ApprovalDecision | Say | EditRequested | ViewRequested | Leave


class ApprovalPrompt:
    def __init__(self, request: ApprovalRequested, *, hidden: bool = False) -> None:
        """`hidden`: only a part of what would run was shown, so a yes needs a look at the rest
        first.
        """
        self.request = request
        self._hidden = hidden
        self._seen = ""
        self._doubt = request.about == "in_doubt"
        self._step = "choice"
        self._scope: GrantScope = "once"
        self._for_ms = 0
        self._arguments: dict[str, Any] | None = None

    @property
    def prompt(self) -> str:
        match self._step:
            case "for":
                return "for how long? (10m, 2h, 1d) "
            case "subject":
                return f"which? ({_numbers(len(self.request.subjects))}; anything else: none) "
            case "reason":
                return "reason for the agent (Enter for none) "
            case "edited":
                return "allow with these arguments? [y/N] "
            case _:
                return f"{_DOUBT if self._doubt else _HIDDEN if self._hidden else _TOOL} > "

    def enter(self, line: str) -> Step:
        given = line.strip()
        match self._step:
            case "for":
                return self._timed(given)
            case "subject":
                return self._chosen(given)
            case "reason":
                return ApprovalDecision(decision="deny", reason=given)
            case "edited":
                return self._confirmed(given)
            case _:
                return self._in_doubt(given.lower()) if self._doubt else self._choice(given)

    def edited(self, arguments: dict[str, Any]) -> Step:
        """The arguments came back from the editor."""
        self._arguments = arguments
        self._step = "edited"
        return Say()

    def viewed(self, digest: str) -> None:
        """Take note that all of it was shown."""
        self._hidden = False
        self._seen = digest

    def _choice(self, given: str) -> Step:
        head, _, rest = given.partition(" ")
        word, rest = head.lower(), rest.strip()
        if word in ("n", "no", "deny"):
            # Whatever follows a no is its reason: a sentence can only make it clearer.
            return self._denied(rest)
        if self._hidden and (word in ("y", "yes") or word in _SCOPES):
            return Say("nothing was decided: only a part of it was shown; v shows all of it")
        if word in ("t", "timed") and rest:
            return self._wider("timed", rest)
        if rest:
            return Say(
                f"nothing was decided: {one_line(given, 60)!r} says more than one of the answers"
                f" does; {_HOW}"
            )
        match word:
            case "y" | "yes":
                return ApprovalDecision(decision="allow", seen=self._seen)
            case "v" | "view":
                return ViewRequested()
            case "e" | "edit":
                return EditRequested()
            case "q" | "quit":
                return Leave()
            case "":
                return Say(f"nothing was decided; {_HOW}")
            case _ if word in _SCOPES:
                return self._wider(_SCOPES[word], "")
            case _:
                return Say(f"nothing was decided: {one_line(word, 20)!r} is no answer; {_HOW}")

    def _denied(self, reason: str) -> Step:
        if reason:
            return ApprovalDecision(decision="deny", reason=reason)
        self._step = "reason"
        return Say()

    def _in_doubt(self, word: str) -> Step:
        match word:
            case "h" | "happened":
                return ApprovalDecision(decision="happened")
            case "r" | "run" | "again" | "run again":
                return ApprovalDecision(decision="again")
            case "s" | "skip":
                return ApprovalDecision(decision="skip")
            case "q" | "quit":
                return Leave()
            case _:
                return Say(
                    "nothing was decided; did it happen, should it run again, or be skipped?"
                )

    def _wider(self, scope: GrantScope, rest: str) -> Step:
        if not self.request.subjects:
            return Say("only yes once or no is possible here")
        self._scope = scope
        if scope == "timed":
            self._step = "for"
            return self._timed(rest) if rest else Say()
        return self._ask_subject()

    def _timed(self, given: str) -> Step:
        try:
            self._for_ms = formatting.parse_duration(given)
        except InvalidInput as error:
            self._step = "choice"
            return Say(f"nothing was decided: {error.message}")
        return self._ask_subject()

    def _ask_subject(self) -> Step:
        subjects = self.request.subjects
        self._step = "subject"
        return Say(
            "\n".join(
                f"  {number}. {subject_words(each)}" for number, each in enumerate(subjects, 1)
            )
        )

    def _chosen(self, given: str) -> Step:
        subjects = self.request.subjects
        self._step = "choice"
        if given.isdecimal() and 1 <= int(given) <= len(subjects):
            return self._allow(subjects[int(given) - 1])
        return Say(
            "nothing was decided:"
            f" {f'{one_line(given, 20)!r} is not one of the numbers' if given else 'no number was given'}"  # noqa: E501
        )

    def _allow(self, subject: Subject) -> ApprovalDecision:
        return ApprovalDecision(
            decision="allow",
            scope=self._scope,
            subject=subject,
            for_ms=self._for_ms,
            seen=self._seen,
        )

    def _confirmed(self, given: str) -> Step:
        self._step = "choice"
        if given.lower() in ("y", "yes"):
            return ApprovalDecision(decision="allow", arguments=self._arguments)
        return Say("nothing was decided")


def _numbers(count: int) -> str:
    return "1" if count == 1 else f"1-{count}"


def subject_words(subject: Subject) -> str:
    """What a wider yes covers, in words."""
    tool, value = clean(subject.tool), one_line(subject.value, 200)
    match subject.kind:
        case "path_prefix":
            return f"{tool} on {value} and below it"
        case "program":
            return f"{tool} running {value}"
        case "command":
            return f"{tool} running exactly: {value}"
        case "host":
            return f"{tool} to {value}"
        case "recipient":
            return f"{tool} to {value}, whatever it says"
        case "tool":
            return f"{tool} with any arguments"
