"""Reports of the tools over recorded decisions. Plain values without the policy engine: the command
line reads them too.

Access report: every tool, judged in a few plain situations for one principal. It asks the policies
as a call would.

Explanation of a decision: the same questions as judging, with every fact and rule laid open.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.labels import CLEAN, Label, private, untrusted
from palyra.core.tools import Capability, Scope, ToolSpec
from palyra.core.verdicts import Allow, Ask, Deny, Question, Verdict, Word, word
from palyra.policy import judge, request
from palyra.policy.policy_set import PolicySet


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

    verdict: Verdict
    version: str
    tool: str
    principal: str
    rules: tuple[Deciding, ...]
    errors: tuple[str, ...]
    facts: dict[str, Any]
    asked: tuple[str, ...] = ("run", "run_unattended")

    def __str__(self) -> str:
        lines = [
            f"{_word(self.verdict)}: {self.principal} runs {self.tool}",
            f"  because {self.verdict.reason}",
        ]
        for action in self.asked:
            deciding = [rule for rule in self.rules if rule.action == action]
            lines.append(f"{action}: {'' if deciding else 'no policy permits it'}".rstrip())
            lines += [
                f"  {rule.effect} {rule.id} ({rule.file}:{rule.line}) {rule.reason}".rstrip()
                for rule in deciding
            ]
        lines += [f"error: {error}" for error in self.errors]
        lines.append(f"facts (policies {self.version}):")
        lines += [f"  {name} = {_show(value)}" for name, value in self.facts.items()]
        return "\n".join(lines)


def explain(policies: PolicySet, question: Question) -> Explanation:
    """The verdict that `judge` gives, and where it comes from."""
    found = judge.examine(policies, question)
    answers = [("run", found.run), ("run_unattended", found.unattended)]
    answers += [("send_private", found.sending)] if found.sending is not None else []
    deciding = (
        policies.under(question.rules) if any(answer.rules for _, answer in answers) else policies
    )
    return Explanation(
        verdict=found.verdict,
        version=policies.version,
        tool=question.tool.name,
        principal=question.principal,
        rules=tuple(
            _deciding(deciding, action, each) for action, answer in answers for each in answer.rules
        ),
        errors=tuple(error for _, answer in answers for error in answer.errors),
        facts=_facts(question),
        asked=tuple(action for action, _ in answers),
    )


def _facts(question: Question) -> dict[str, Any]:
    try:
        request.check(question)
    except InvalidInput:
        return {}
    return request.facts(question, frozenset(request.FACTS))


def _deciding(policies: PolicySet, action: str, rule_id: str) -> Deciding:
    rule = policies.by_id[rule_id]
    return Deciding(
        id=rule.id,
        action=action,
        effect=rule.effect,
        reason=rule.reason,
        file=rule.file,
        line=rule.line,
    )


def _word(verdict: Verdict) -> str:
    match verdict:
        case Allow():
            return "allow"
        case Ask(risk=risk):
            return f"ask ({risk} risk)"
        case Deny():
            return "deny"


def _show(value: Any) -> str:
    if isinstance(value, dict) and "__entity" not in value:
        there = {name: each for name, each in value.items() if each["origin"] != "none"}
        return ", ".join(_show_values(name, each) for name, each in there.items()) or "none"
    if isinstance(value, dict):
        reference = value["__entity"]
        return f'{reference["type"]}::"{reference["id"]}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value) or '""'


def _show_values(name: str, values: dict[str, Any]) -> str:
    sources = f" ({', '.join(values['sources'])})" if values["sources"] else ""
    return f"{name}: {values['origin']}{sources}"


_ELSEWHERE = "/srv/elsewhere/example.txt"
_HOST = "example.org"
_FILES: frozenset[Capability] = frozenset({"fs.read", "fs.write"})
_LABELS = {"untrusted": untrusted(f"web:{_HOST}"), "private": private("file:notes.txt")}
_OUT: frozenset[Capability] = frozenset({"network", "browser", "message"})


class Situation(Struct, frozen=True):
    id: str
    words: str


class Cell(Struct, frozen=True):
    """`word` is empty where the situation makes no sense for the tool."""

    word: Word | None
    reason: str = ""
    policies: tuple[str, ...] = ()


class ToolRow(Struct, frozen=True):
    """`cells` are in the order of the situations."""

    tool: str
    effect: str
    capabilities: tuple[str, ...]
    source: str
    cells: tuple[Cell, ...]


SITUATIONS = (
    Situation("plain", "as usual"),
    Situation("elsewhere", "outside the workspace"),
    Situation("untrusted", "after reading something from outside"),
    Situation("private", "with private data read before"),
)


class PolicyQuestion(Protocol):
    """The question that whoever is asked about would bring up."""

    def __call__(self, *, tool: ToolSpec, scope: Scope, label: Label) -> Question: ...


def table(
    judge: Callable[[Question], Verdict],
    tools: Sequence[ToolSpec],
    workspace: str,
    question: PolicyQuestion,
) -> list[ToolRow]:
    return [
        _row(judge, tool, workspace, question) for tool in sorted(tools, key=lambda each: each.name)
    ]


def _row(
    judge: Callable[[Question], Verdict], tool: ToolSpec, workspace: str, question: PolicyQuestion
) -> ToolRow:
    cells = []
    for situation in SITUATIONS:
        if not _makes_sense(situation.id, tool):
            cells.append(Cell(None))
            continue
        scope = _scope(tool, workspace, outside=situation.id == "elsewhere")
        verdict = judge(question(tool=tool, scope=scope, label=_LABELS.get(situation.id, CLEAN)))
        cells.append(Cell(word(verdict), verdict.reason, verdict.policies))
    return ToolRow(tool.name, tool.effect, tool.capabilities, tool.source, tuple(cells))


def _makes_sense(situation: str, tool: ToolSpec) -> bool:
    match situation:
        case "elsewhere":
            return not _FILES.isdisjoint(tool.capabilities)
        case "private":
            return not _OUT.isdisjoint(tool.capabilities)
        case _:
            return True


def _scope(tool: ToolSpec, workspace: str, *, outside: bool) -> Scope:
    """An ordinary call: one file, one command, one host, as far as the tool has to do with such
    things.
    """
    files, process = not _FILES.isdisjoint(tool.capabilities), "process" in tool.capabilities
    path = _ELSEWHERE if outside else f"{workspace.rstrip('/')}/example.txt"
    return Scope(
        paths=(path,) if files else (workspace,) if process else (),
        workspace=workspace,
        program="example" if process else "",
        command="example" if process else "",
        hosts=() if {"network", "browser"}.isdisjoint(tool.capabilities) else (_HOST,),
        recipients=("somebody",) if "message" in tool.capabilities else (),
    )


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
    """Decisions that the shadow policies would have made, from the record. `calls` were decided
    while a shadow was there.

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
