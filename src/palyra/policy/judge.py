"""Decides one call by asking Cedar two questions. Only two clean permissions allow; whatever goes wrong denies."""

import re
from typing import Any

import cedarpy
import msgspec
from msgspec import Struct

from palyra.domain.errors import InvalidInput
from palyra.domain.verdicts import Allow, Ask, Deny, Question, Verdict
from palyra.policy import request, risk
from palyra.policy.policy_set import PolicySet, Slice

_NUMBERED = re.compile(r"`policy([0-9]+)`")
_RUN = request.uid("Action", "run")
_RUN_UNATTENDED = request.uid("Action", "run_unattended")

# Facts are small; a policy that reads the time makes every call's facts new, so there is an end.
_MOST_ANSWERED = 1_000


class Answer(Struct, frozen=True):
    """What Cedar said to one question. `rules` are the ids that decided: permits if permitted, else the forbids, if any."""

    permitted: bool
    rules: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class Examined(Struct, frozen=True):
    """A verdict with the two answers it was made of."""

    verdict: Verdict
    run: Answer = Answer(permitted=False)
    unattended: Answer = Answer(permitted=False)


def judge(policies: PolicySet, question: Question) -> Verdict:
    """The verdict on one call. Never raises: a decision that cannot be made is a Deny."""
    return examine(policies, question).verdict


def examine(policies: PolicySet, question: Question) -> Examined:
    try:
        policies = policies.under(question.rules)
        run, unattended = _ask(policies, question)
        return Examined(_verdict(policies, question, run, unattended), run, unattended)
    except InvalidInput as error:
        return Examined(Deny(f"the call cannot be judged: {error.message}"))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the engine is no Exception, and it too must be a denial
        return Examined(Deny(f"the policy could not be evaluated, so the call is denied: {type(error).__name__}: {error}"))


def _ask(policies: PolicySet, question: Question) -> tuple[Answer, Answer]:
    """May it run? May it run unattended?"""
    request.check(question)
    part = policies.slice(question)
    # As text, because the library would encode a dict once per question.
    context = msgspec.json.encode(request.facts(question, part.uses)).decode()
    known: tuple[Answer, Answer] | None = part.answered.get(context)
    if known is not None:
        return known
    same = {
        "principal": request.uid(*request.principal(question.principal)),
        "resource": request.uid("Tool", question.tool.name),
        "context": context,
    }
    run, unattended = decide(part, [{**same, "action": _RUN}, {**same, "action": _RUN_UNATTENDED}])
    if len(part.answered) >= _MOST_ANSWERED:
        part.answered.clear()
    part.answered[context] = run, unattended
    return run, unattended


def decide(part: Slice, requests: list[dict[str, Any]]) -> list[Answer]:
    """What Cedar says to each request.

    No schema is given here: the policies were validated against it, the facts follow it by construction, and without it only
    those facts need to be sent that a policy reads. A fact that is missing or of a wrong type is an error, and so a denial.
    """
    return [_answer(part, result) for result in cedarpy.is_authorized_batch(requests, part.cedar, part.entities)]


def _answer(part: Slice, result: cedarpy.AuthzResult) -> Answer:
    # An erring forbid is skipped by Cedar, so an Allow with errors is none; a request Cedar cannot read is NoDecision.
    errors = tuple(_NUMBERED.sub(lambda found: f"`{part.rules[int(found[1])].id}`", each) for each in result.diagnostics.errors)
    decided = sorted(int(name.removeprefix("policy")) for name in result.diagnostics.reasons)
    return Answer(
        permitted=result.decision is cedarpy.Decision.Allow and not errors,
        rules=tuple(part.rules[number].id for number in decided),
        errors=errors,
    )


def _verdict(policies: PolicySet, question: Question, run: Answer, unattended: Answer) -> Verdict:
    errors = run.errors + unattended.errors
    if errors:
        return Deny(f"the policy could not be evaluated, so the call is denied: {errors[0]}", run.rules)
    if not run.permitted:
        return Deny(_reason(policies, run.rules) or _nothing_permits(question), run.rules)
    if unattended.permitted:
        return Allow(_reason(policies, unattended.rules) or "permitted by policy", unattended.rules)
    found = risk.assess(question)
    why = _reason(policies, unattended.rules or run.rules) or "no policy permits it without asking"
    return Ask(f"{why}. {found.risk} risk: {found.why}", found.risk, unattended.rules + run.rules)


def _reason(policies: PolicySet, ids: tuple[str, ...]) -> str:
    """What the deciding rules say about themselves; a rule without @reason is named."""
    reasons = dict.fromkeys(policies.by_id[each].reason or f"decided by policy {each}" for each in ids)
    return "; ".join(reasons)


def _nothing_permits(question: Question) -> str:
    about = ""
    if "secrets" in question.tool.capabilities:
        about = " with access to secrets"
    elif request.wide(question.scope):
        about = " on a path as wide as a home folder or a folder above the workspace"
    elif question.scope.paths and not request.in_workspace(question.scope):
        about = " outside the workspace"
    return (
        f"no policy permits {question.principal} to run {question.tool.name}{about}; "
        "the operator can add a permit for this tool to the policy folder"
    )
