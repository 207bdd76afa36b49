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
    "GrantUse",
    "LineProblem",
    "PastCall",
    "PastCalls",
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
    """Preview of all that would run, and what policy says of it now: `ask` may be approved, `deny`
    may not.
    """

    preview: Preview
    verdict: Literal["allow", "ask", "deny"]
    why: str = ""
    subjects: tuple[Subject, ...] = ()


class PastCall(Struct, frozen=True, kw_only=True):
    """A recorded call that a grant would have covered. `about`: its values, in a line."""

    time_ms: int
    session_id: str
    verdict: str
    about: str


class PastCalls(Struct, frozen=True, kw_only=True):
    """Calls of the recorded past that a grant would have covered: all, those that asked, and the
    last of them.
    """

    calls: int = 0
    asked: int = 0
    examples: tuple[PastCall, ...] = ()


class ApprovalGroup(Struct, frozen=True, kw_only=True):
    approvals: list[Approval]


class LineProblem(Struct, frozen=True, kw_only=True):
    """A line that could not be answered so, and why."""

    approval_id: str
    message: str


class AnsweredGroup(Struct, frozen=True, kw_only=True):
    approvals: tuple[Approval, ...] = ()
    problems: tuple[LineProblem, ...] = ()


class GrantUse(Struct, frozen=True, kw_only=True):
    """Use of a grant: how often, and when last."""

    calls: int
    last_ms: int


class GrantList(Struct, frozen=True, kw_only=True):
    """`uses`: of those that were used, by approval."""

    grants: list[Grant]
    uses: dict[str, GrantUse] = {}
