"""Decides one call by asking Cedar two questions, and a third if private data could leave with it.

Only clean permissions allow; whatever goes wrong denies.
"""

import re
from typing import Any

import cedarpy
import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.labels import CLEAN
from palyra.core.verdicts import Allow, Ask, Deny, Question, Verdict
from palyra.policy import request, risk
from palyra.policy.policy_set import PolicySet, Slice

_NUMBERED = re.compile(r"`policy([0-9]+)`")
_RUN = request.uid("Action", "run")
_RUN_UNATTENDED = request.uid("Action", "run_unattended")
_SEND_PRIVATE = request.uid("Action", "send_private")
_APPROVE = request.uid("Action", "approve")

# Facts are small; a policy that reads the time makes every call's facts new, so there is an end.
_MOST_ANSWERED = 1_000


class CedarAnswer(Struct, frozen=True):
    """Answer of Cedar to one question. `rules` are the ids that decided: permits if permitted, else
    the forbids, if any.
    """

    permitted: bool
    rules: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class Examined(Struct, frozen=True):
    """A verdict with the answers it was made of; `sending` only if private data could leave."""

    verdict: Verdict
    run: CedarAnswer = CedarAnswer(permitted=False)
    unattended: CedarAnswer = CedarAnswer(permitted=False)
    sending: CedarAnswer | None = None


def judge(policies: PolicySet, question: Question) -> Verdict:
    """The verdict on one call. Never raises: a decision that cannot be made is a Deny."""
    return examine(policies, question).verdict


def may_approve(policies: PolicySet, question: Question) -> bool:
    """Return whether a policy permits the question's principal to answer for this call. Only a
    clean permission counts.
    """
    try:
        request.check(question)
        part = policies.slice(question)
        asked = {
            "principal": request.uid(*request.principal(question.principal)),
            "resource": request.uid("Tool", question.tool.name),
            "context": msgspec.json.encode(request.facts(question, part.uses)).decode(),
            "action": _APPROVE,
        }
        return decide(part, [asked])[0].permitted
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - as below: whatever goes wrong, the answer is no
        return False


def examine(policies: PolicySet, question: Question) -> Examined:
    try:
        policies = policies.under(question.rules)
        run, unattended, sending = _ask(policies, question)
        return Examined(
            _verdict(policies, question, run, unattended, sending), run, unattended, sending
        )
    except InvalidInput as error:
        return Examined(Deny(f"the call cannot be judged: {error.message}"))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of the engine is no Exception, and it too must be a denial
        return Examined(
            Deny(
                f"the policy could not be evaluated, so the call is denied: {type(error).__name__}:"
                f" {error}"
            )
        )


def _ask(
    policies: PolicySet, question: Question
) -> tuple[CedarAnswer, CedarAnswer, CedarAnswer | None]:
    """May it run? May it run unattended? If private data could leave with it: may that go there?"""
    request.check(question)
    part = policies.slice(question)
    # As text, because the library would encode a dict once per question.
    context = msgspec.json.encode(request.facts(question, part.uses)).decode()
    sends = request.sends_private(question)
    known: tuple[CedarAnswer, CedarAnswer, CedarAnswer | None] | None = part.answered.get(
        (context, sends)
    )
    if known is not None:
        return known
    same = {
        "principal": request.uid(*request.principal(question.principal)),
        "resource": request.uid("Tool", question.tool.name),
        "context": context,
    }
    actions = (_RUN, _RUN_UNATTENDED, _SEND_PRIVATE) if sends else (_RUN, _RUN_UNATTENDED)
    run, unattended, *rest = decide(part, [{**same, "action": action} for action in actions])
    found = run, unattended, rest[0] if rest else None
    if len(part.answered) >= _MOST_ANSWERED:
        part.answered.clear()
    part.answered[context, sends] = found
    return found


def decide(part: Slice, requests: list[dict[str, Any]]) -> list[CedarAnswer]:
    """Return Cedar's answer to each request.

    No schema is given here: the policies were validated against it, the facts follow it by
    construction, and without it only those facts need to be sent that a policy reads. A fact that
    is missing or of a wrong type is an error, and so a denial.
    """
    return [
        _answer(part, result)
        for result in cedarpy.is_authorized_batch(requests, part.cedar, part.entities)
    ]


def _answer(part: Slice, result: cedarpy.AuthzResult) -> CedarAnswer:
    # An erring forbid is skipped by Cedar, so an Allow with errors is none; a request Cedar cannot
    # read is NoDecision.
    errors = tuple(
        _NUMBERED.sub(lambda found: f"`{part.rules[int(found[1])].id}`", each)
        for each in result.diagnostics.errors
    )
    decided = sorted(int(name.removeprefix("policy")) for name in result.diagnostics.reasons)
    return CedarAnswer(
        permitted=result.decision is cedarpy.Decision.Allow and not errors,
        rules=tuple(part.rules[number].id for number in decided),
        errors=errors,
    )


def _verdict(
    policies: PolicySet,
    question: Question,
    run: CedarAnswer,
    unattended: CedarAnswer,
    sending: CedarAnswer | None,
) -> Verdict:
    errors = run.errors + unattended.errors + (sending.errors if sending else ())
    if errors:
        return Deny(
            f"the policy could not be evaluated, so the call is denied: {errors[0]}", run.rules
        )
    if not run.permitted:
        return Deny(_reason(policies, run.rules) or _nothing_permits(question), run.rules)
    stays = sending is not None and not sending.permitted
    if sending is not None and stays and sending.rules:
        return Deny(f"{_reason(policies, sending.rules)}: {risk.leaving(question)}", sending.rules)
    if unattended.permitted and not stays:
        used = unattended.rules + (sending.rules if sending else ())
        return Allow(_reason(policies, used) or "permitted by policy", tuple(dict.fromkeys(used)))
    found = risk.assess(question)
    reasons = (
        [f"no policy permits {question.label.confidentiality} data to go there"] if stays else []
    )
    if not unattended.permitted:
        why = _reason(policies, unattended.rules or run.rules)
        reasons += [why] if why else [] if stays else ["no policy permits it without asking"]
    decided = run.rules if unattended.permitted else unattended.rules + run.rules
    # Without a label it does not matter where a value is from.
    values = risk.unvouched(question) if question.label != CLEAN else ""
    return Ask(
        # What is special about this call comes first; the policy says the same of many.
        f"{f'{values}. ' if values else ''}{found.why}. {'; '.join(reasons)}",
        found.risk,
        decided,
        sends_private=stays,
    )


def _reason(policies: PolicySet, ids: tuple[str, ...]) -> str:
    """Return the reasons of the deciding rules; a rule without @reason is named."""
    reasons = dict.fromkeys(
        policies.by_id[each].reason or f"decided by policy {each}" for each in ids
    )
    return "; ".join(reasons)


def _nothing_permits(question: Question) -> str:
    about = ""
    if "secrets" in question.tool.capabilities:
        about = " with access to secrets"
    elif request.wide(question.scope):
        about = " on a path as wide as a home folder or a folder above the workspace"
    elif question.scope.paths and not request.in_workspace(question.scope):
        about = " outside the workspace"
    refused = f"no policy permits {question.principal} to run {question.tool.name}{about}"
    if question.tool.source.startswith("mcp:"):
        server, _, tool = question.tool.name.removeprefix("mcp:").partition("/")
        return (
            f"{refused}: tools of MCP servers are denied until permitted. Run `palyra mcp permit"
            f" {server} {tool}`, "
            'or add permit (principal, action == Action::"run", resource =='
            f' Tool::"{question.tool.name}"); to the policy folder'
        )
    return f"{refused}; the operator can add a permit for this tool to the policy folder"
