"""Written by scripts/clients.py from the route table: types of the verbs about approvals."""

from typing import Literal

from msgspec import Struct

from palyra.core.events import ApprovalRequested, ApprovalResolved
from palyra.core.tools import Preview, Subject
from palyra.core.verdicts import Grant

__all__ = [
    "AnsweredGroup",
    "Approval",
    "ApprovalGroup",
    "ApprovalPage",
    "ApprovalPreview",
    "ApprovalRequested",
    "ApprovalResolved",
    "Grant",
    "GrantList",
    "LineProblem",
    "Preview",
    "Subject",
]


class Approval(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`decision` is empty while the approval is pending. `seq`: where on the session's tape it was
    asked.
    """

    approval_id: str
    session_id: str
    run_id: str
    owner: str
    origin: Literal["api", "channel", "child", "interactive", "scheduled"]
    requested_ms: int
    expires_ms: int = 0
    decision: str = ""
    resolved_ms: int = 0
    request: ApprovalRequested
    resolution: ApprovalResolved | None = None
    resolved_by: str = ""
    seq: int = 0


class ApprovalPage(Struct, frozen=True, kw_only=True):
    approvals: list[Approval]
    next: str | None


class ApprovalPreview(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What would run, whole, and what policy says of it now: `ask` may be approved, `deny` may
    not.
    """

    preview: Preview
    verdict: Literal["allow", "ask", "deny"]
    why: str = ""
    subjects: tuple[Subject, ...] = ()


class ApprovalGroup(Struct, frozen=True, kw_only=True):
    approvals: list[Approval]


class LineProblem(Struct, frozen=True, kw_only=True):
    """A line that could not be answered so, and why."""

    approval_id: str
    message: str


class AnsweredGroup(Struct, frozen=True, kw_only=True):
    approvals: tuple[Approval, ...] = ()
    problems: tuple[LineProblem, ...] = ()


class GrantList(Struct, frozen=True, kw_only=True):
    grants: list[Grant]
