"""Decisions about one tool call, as values to be matched completely."""

from typing import Literal

from msgspec import Struct

from palyra.core.call_values import NO_VALUES, CallValues
from palyra.core.labels import CLEAN, Label
from palyra.core.tools import Scope, Subject, ToolSpec

Risk = Literal["low", "medium", "high", "critical"]
Word = Literal["allow", "ask", "deny"]
Origin = Literal["interactive", "scheduled", "child", "api", "channel"]


class SessionRule(Struct, frozen=True):
    """Rule that a person added to one session, in the words that policy compiles."""

    rule_id: str
    words: str


class Question(Struct, frozen=True, kw_only=True):
    """May this principal run this tool, on this, now?"""

    principal: str
    session_id: str
    tool: ToolSpec
    scope: Scope
    origin: Origin
    now_ms: int
    label: Label = CLEAN
    agent: str = "default"
    channel: str = ""
    rules: tuple[SessionRule, ...] = ()
    values: CallValues = NO_VALUES


class Allow(Struct, frozen=True, tag="allow"):
    reason: str
    policies: tuple[str, ...] = ()


class Ask(Struct, frozen=True, tag="ask"):
    """`sends_private`: among other things, because private data would go where no policy permits it
    to go.
    """

    reason: str
    risk: Risk
    policies: tuple[str, ...] = ()
    sends_private: bool = False


class Deny(Struct, frozen=True, tag="deny"):
    reason: str
    policies: tuple[str, ...] = ()


Verdict = Allow | Ask | Deny


def word(verdict: Verdict) -> Word:
    match verdict:
        case Allow():
            return "allow"
        case Ask():
            return "ask"
        case Deny():
            return "deny"


class Grant(Struct, frozen=True, kw_only=True):
    """An approval that is wider than one call. No `session_id`: any session of the principal. No
    `until_ms`: no end.

    `seen` is the label that stood in the prompt when the person said yes; it is public unless the
    prompt said where private data could go.
    """

    approval_id: str
    subject: Subject
    principal: str
    session_id: str | None = None
    until_ms: int | None = None
    seen: Label = CLEAN
