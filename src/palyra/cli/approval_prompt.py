"""One approval being answered, by a key or line by line. Knows no terminal.

One key is an answer, unless the risk is high: then it needs Enter. In a line only a bare word is an
answer: a sentence that begins with yes may go on with but, so it is asked about again. Enter alone
decides nothing, and what a wider yes covers is chosen by its number, never by default.

Arguments of a call in the person's own editor. What is not changed, or not valid, decides
nothing.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from palyra.cli import formatting, lookup
from palyra.cli.safe_text import clean, one_line
from palyra.client import Client
from palyra.core import events
from palyra.core.call_values import limits_in_words
from palyra.core.errors import InvalidInput, NotFound
from palyra.core.events import ApprovalRequested, Decision, GrantScope, ToolProposed
from palyra.core.tools import Subject


def edit(arguments: dict[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """The arguments as the person saved them; InvalidInput if nothing usable came back."""
    editor = env.get("VISUAL") or env.get("EDITOR") or "vi"
    before = msgspec.json.format(msgspec.json.encode(arguments), indent=2)
    descriptor, name = tempfile.mkstemp(prefix="palyra-", suffix=".json")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(before + b"\n")
        try:
            done = subprocess.run([*shlex.split(editor), name], check=False)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"the editor {editor!r} cannot be started ({error}): set EDITOR"
            ) from error
        after = path.read_bytes()
    finally:
        path.unlink(missing_ok=True)
    if done.returncode != 0:
        raise InvalidInput(f"the editor ended with {done.returncode}: nothing was decided")
    if after.strip() == before.strip():
        raise InvalidInput("the arguments were not changed: nothing was decided")
    try:
        return msgspec.json.decode(after, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"what was saved is not a JSON object ({error}): nothing was decided"
        ) from error


def proposed(api: Client, session_id: str, call_id: str) -> dict[str, Any]:
    """The arguments of a call as they stand on the tape."""
    for entry in lookup.entries(api, session_id):
        if entry.kind == "tool.proposed":
            event = events.decode(bytes(entry.event))
            if isinstance(event, ToolProposed) and event.call_id == call_id:
                return event.arguments
    raise NotFound(f"there is no call {call_id} on the tape of {session_id}")


_TOOL = "[y]es once · [n]o · [d]etails · [e]dit · [s]ession · [t]imed · [a]lways · [q]uit"
_HIDDEN = "[v]iew all · [n]o · [e]dit · [q]uit"
_DOUBT = "[h]appened · [r]un again · [s]kip · [d]etails · [q]uit"
_EDITED = "allow with these arguments? [y]es once · [s]ession · [t]imed · [a]lways · [n]o, discard"
# What ends a prompt.
MARK = " › "
_RISKY = ("high", "critical")
_SCOPES: dict[str, GrantScope] = {
    "s": "session",
    "session": "session",
    "t": "timed",
    "timed": "timed",
    "a": "always",
    "always": "always",
}
_HOW = "press one of the keys; to tell the agent what to do instead: n and your words"


class ApprovalDecision(Struct, frozen=True, kw_only=True):
    """Answer to an approval."""

    decision: Decision
    scope: GrantScope = "once"
    subject: Subject | None = None
    for_ms: int = 0
    arguments: dict[str, Any] | None = None
    reason: str = ""
    # The digest of what was shown whole.
    seen: str = ""
    # For all calls that were asked about together.
    together: bool = False


class Say(Struct, frozen=True):
    """Nothing is decided yet; tell the person this, and show the prompt again."""

    text: str = ""


class EditRequested(Struct, frozen=True):
    """The person wants to change the arguments."""


class ViewRequested(Struct, frozen=True):
    """The person wants to see the details, and all of what would run."""


class Leave(Struct, frozen=True):
    """Leave it pending."""


Step = ApprovalDecision | Say | EditRequested | ViewRequested | Leave


class ApprovalPrompt:
    def __init__(
        self,
        request: ApprovalRequested,
        *,
        hidden: bool = False,
        others: Sequence[ApprovalRequested] = (),
    ) -> None:
        """`hidden`: only a part of what would run was shown, so a yes needs a look at the rest
        first. `others`: that were asked together with it and shown whole, so one key answers all.
        """
        self.request = request
        self.others = tuple(others)
        self._hidden = hidden
        self._seen = ""
        self._doubt = request.about == "in_doubt"
        self._step = "choice"
        self._scope: GrantScope = "once"
        self._for_ms = 0
        self._arguments: dict[str, Any] | None = None
        # What a wider yes can cover: other things, once the arguments were edited.
        self._subjects = request.subjects

    @property
    def prompt(self) -> str:
        match self._step:
            case "for":
                return "for how long? (10m, 2h, 1d) "
            case "subject":
                return f"which? ({_numbers(len(self._subjects))}; anything else: none) "
            case "reason":
                return "reason for the agent (Enter for none) "
            case _ if self._arguments is not None:
                return f"{_EDITED}{MARK}"
            case _:
                choices = _DOUBT if self._doubt else _HIDDEN if self._hidden else _TOOL
                count = len(self.others) + 1
                both = f"[+] all {count} · [-] none of {count} · " if self.others else ""
                return f"{both}{choices}{MARK}"

    @property
    def keys(self) -> frozenset[str]:
        """The keys that are answers by themselves now. A risky yes needs Enter as well."""
        risky = any(each.risk in _RISKY for each in (self.request, *self.others))
        match self._step:
            case "for" | "reason":
                return frozenset()
            case "subject":
                last = min(9, len(self._subjects))
                return frozenset() if risky else frozenset(map(str, range(1, last + 1)))
            case _ if self._doubt:
                return frozenset("dq" if risky else "hrsdq")
            case _:
                together = ("-" if risky else "+-") if self.others else ""
                return frozenset(f"{'' if risky else 'y'}ndvestaq{together}")

    def enter(self, line: str) -> Step:
        given = line.strip()
        match self._step:
            case "for":
                return self._timed(given)
            case "subject":
                return self._chosen(given)
            case "reason":
                return ApprovalDecision(decision="deny", reason=given)
            case _ if self._arguments is not None:
                return self._confirmed(given)
            case _:
                return self._in_doubt(given.lower()) if self._doubt else self._choice(given)

    def edited(self, arguments: dict[str, Any], subjects: tuple[Subject, ...] = ()) -> Step:
        """The arguments came back from the editor, with what a wider yes to them can cover."""
        self._arguments = arguments
        self._subjects = subjects
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
            return Say("nothing was decided: only a part of it was shown; press v to see all of it")
        if word in ("t", "timed") and rest:
            return self._wider("timed", rest)
        if rest:
            return Say(
                f"nothing was decided: {one_line(given, 60)!r} says more than one of the answers"
                f" does; {_HOW}"
            )
        match word:
            case "+" | "-" if self.others:
                decision: Decision = "allow" if word == "+" else "deny"
                return ApprovalDecision(decision=decision, seen=self._seen, together=True)
            case "y" | "yes":
                return ApprovalDecision(decision="allow", seen=self._seen)
            case "v" | "view" | "d" | "details":
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
            case "d" | "details":
                return ViewRequested()
            case "q" | "quit":
                return Leave()
            case _:
                return Say(
                    "nothing was decided; did it happen, should it run again, or be skipped?"
                )

    def _wider(self, scope: GrantScope, rest: str) -> Step:
        if not self._subjects:
            return Say("nothing was decided: only yes once or no is possible here")
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
        self._step = "subject"
        return Say(
            "\n".join(
                f"  {number}. {subject_words(each)}"
                for number, each in enumerate(self._subjects, 1)
            )
        )

    def _chosen(self, given: str) -> Step:
        subjects = self._subjects
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
            arguments=self._arguments,
            seen="" if self._arguments is not None else self._seen,
        )

    def _confirmed(self, given: str) -> Step:
        """Answer for the edited arguments; whatever is no yes discards the edit."""
        head, _, rest = given.lower().partition(" ")
        if head in _SCOPES and (not rest or head in ("t", "timed")):
            return self._wider(_SCOPES[head], rest.strip())
        arguments, self._arguments = self._arguments, None
        self._subjects = self.request.subjects
        if given.lower() in ("y", "yes"):
            return ApprovalDecision(decision="allow", arguments=arguments)
        return Say("nothing was decided: the edit is discarded")


def _numbers(count: int) -> str:
    return "1" if count == 1 else f"1-{count}"


def subject_words(subject: Subject) -> str:
    """Return what a grant covers, in words."""
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
        case "arguments":
            return f"{tool} with {one_line(limits_in_words(subject.value), 400)}"
        case "tool":
            return f"{tool} with any arguments"
