"""What the tools over recorded decisions report. Plain values without the policy engine: the
command line reads them too.
"""

from msgspec import Struct

from palyra.core.verdicts import Word


class Example(Struct, frozen=True, kw_only=True):
    """One call that would be decided otherwise; `times` is how often calls just like it were
    made.
    """

    call_id: str
    session_id: str
    time_ms: int
    tool: str
    about: str
    before: Word
    after: Word
    reason: str
    policies: tuple[str, ...]
    times: int


class Changed(Struct, frozen=True):
    calls: int
    examples: list[Example]


class Hit(Struct, frozen=True):
    id: str
    calls: int


class Report(Struct, frozen=True, kw_only=True):
    """`not_asked`: refused before policy was asked. `unknown`: recorded without what a question
    needs. `inexact`: decided again with a redacted scope.
    """

    version: str
    calls: int
    same: int
    newly_denied: Changed
    newly_allowed: Changed
    newly_asked: Changed
    hits: list[Hit]
    never_hit: list[str]
    not_asked: int
    unknown: int
    inexact: int


class Shadowed(Struct, frozen=True, kw_only=True):
    """What the shadow policies would have decided, from the record. `calls` were decided while a
    shadow was there.

    `named` is the shadow of now, empty if there is none; `versions` are those that decided, oldest
    first.
    """

    named: str
    version: str
    versions: list[str]
    calls: int
    same: int
    denied: Changed
    allowed: Changed
    asked: Changed


class Permit(Struct, frozen=True, kw_only=True):
    """`kept_narrow_by` are denied calls that a wider permit would have covered."""

    id: str
    tool: str
    principal: str
    what: str
    cedar: str
    covers: int
    examples: list[str]
    kept_narrow_by: list[str]


class Left(Struct, frozen=True, kw_only=True):
    """An approved call that goes on asking, and why."""

    call_id: str
    tool: str
    about: str
    why: str


class Suggestion(Struct, frozen=True, kw_only=True):
    """`cedar` is all permits in one text. `passing` of the approved calls run unattended with it,
    and none of the denied.
    """

    cedar: str
    permits: list[Permit]
    left: list[Left]
    approved: int
    denied: int
    already: int
    passing: int
