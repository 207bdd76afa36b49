"""Written by scripts/clients.py from the route table: types of the verbs about policy."""

from typing import Any, Literal

from msgspec import Struct

from palyra.client.types.status import PolicyState
from palyra.core.events import ToolDecided
from palyra.core.verdicts import Allow, Ask, Deny

__all__ = [
    "Allow",
    "Ask",
    "Cell",
    "Changed",
    "Deciding",
    "Deny",
    "Example",
    "ExplainedCall",
    "Explanation",
    "Hit",
    "Left",
    "Permit",
    "PolicyFile",
    "PolicyFiles",
    "PolicyInForce",
    "PolicyState",
    "Reloaded",
    "Report",
    "Rule",
    "Saved",
    "Shadowed",
    "Situation",
    "SourcesProblem",
    "Suggestion",
    "ToolDecided",
    "ToolRow",
    "Validated",
    "WhoCan",
]


class Rule(Struct, frozen=True, kw_only=True):
    id: str
    effect: str
    reason: str
    file: str
    line: int


class SourcesProblem(Struct, frozen=True, kw_only=True):
    """Problem in a policy, its place, and its fix. Line 0 means the file as a whole."""

    file: str
    line: int
    message: str


class PolicyInForce(Struct, frozen=True, kw_only=True):
    version: str
    preset: str
    folder: str
    policies: list[Rule]
    problems: list[SourcesProblem]


class Deciding(Struct, frozen=True, kw_only=True):
    """A rule that decided one of the questions."""

    id: str
    action: str
    effect: str
    reason: str
    file: str
    line: int


class Explanation(Struct, frozen=True, kw_only=True):
    """`facts` are what policies could have read, also those that none did. `asked` are the actions
    that were asked about.
    """

    verdict: Allow | Ask | Deny
    version: str
    tool: str
    principal: str
    rules: tuple[Deciding, ...]
    errors: tuple[str, ...]
    facts: dict[str, Any]
    asked: tuple[str, ...] = ("run", "run_unattended")


class Reloaded(Struct, frozen=True, kw_only=True):
    """Result of a reload, by policy id. With problems nothing changed and `version` is the one
    still in force.
    """

    version: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problems: tuple[SourcesProblem, ...] = ()


class Example(Struct, frozen=True, kw_only=True):
    """One call that would be decided otherwise; `times` is how often calls just like it were
    made.
    """

    call_id: str
    session_id: str
    time_ms: int
    tool: str
    about: str
    before: Literal["allow", "ask", "deny"]
    after: Literal["allow", "ask", "deny"]
    reason: str
    policies: tuple[str, ...]
    times: int


class Changed(Struct, frozen=True, kw_only=True):
    calls: int
    examples: list[Example]


class Hit(Struct, frozen=True, kw_only=True):
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


class Shadowed(Struct, frozen=True, kw_only=True):
    """Decisions that the shadow policies would have made, from the record. `calls` were decided
    while a shadow was there.
    """

    named: str
    version: str
    versions: list[str]
    calls: int
    same: int
    denied: Changed
    allowed: Changed
    asked: Changed


class ExplainedCall(Struct, frozen=True, kw_only=True):
    """`decided` is what the tape says; `now` is how the policies in force decide the same
    question.
    """

    call_id: str
    session_id: str
    time_ms: int
    tool: str
    about: str
    decided: ToolDecided
    now: Explanation


class PolicyFile(Struct, frozen=True, kw_only=True):
    """`digest` is of the text; who saves names the one that was edited."""

    name: str
    text: str
    digest: str
    shipped: bool = False


class PolicyFiles(Struct, frozen=True, kw_only=True):
    """`presets` are all there are; `shipped` files cannot be changed. `schema` is what a policy can
    talk about, in Cedar's own form.
    """

    folder: str
    preset: str
    presets: tuple[str, ...]
    files: list[PolicyFile]
    schema: str = ""


class Saved(Struct, frozen=True, kw_only=True):
    file: PolicyFile | None
    reloaded: Reloaded


class Validated(Struct, frozen=True, kw_only=True):
    """`policies` are those of the text, if everything would load with it."""

    ok: bool
    problems: list[SourcesProblem]
    policies: list[Rule]


class Situation(Struct, frozen=True, kw_only=True):
    id: str
    words: str


class Cell(Struct, frozen=True, kw_only=True):
    """`word` is empty where the situation makes no sense for the tool."""

    word: Literal["allow", "ask", "deny"] | None
    reason: str = ""
    policies: tuple[str, ...] = ()


class ToolRow(Struct, frozen=True, kw_only=True):
    """`cells` are in the order of the situations."""

    tool: str
    effect: str
    capabilities: tuple[str, ...]
    source: str
    cells: tuple[Cell, ...]


class WhoCan(Struct, frozen=True, kw_only=True):
    """`known` are principals that have a token or are in a group."""

    principal: str
    known: list[str]
    situations: tuple[Situation, ...]
    tools: list[ToolRow]
