"""Why a call is decided as it is: the same questions as judging, with every fact and rule laid
open.
"""

from typing import Any

from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.verdicts import Allow, Ask, Deny, Question, Verdict
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
    if isinstance(value, dict):
        reference = value["__entity"]
        return f'{reference["type"]}::"{reference["id"]}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value) or '""'
