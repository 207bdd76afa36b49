"""The steps that an answer to an approval commits, and the checks before them."""

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from palyra.core import call_values
from palyra.core.errors import (
    Conflict,
    InvalidInput,
)
from palyra.core.events import (
    AnyEvent,
    ApprovalAbout,
    ApprovalResolved,
    Decision,
    GrantScope,
    RunFailed,
    RunResumed,
    ToolFinished,
    ToolProposed,
)
from palyra.core.ids import SYSTEM
from palyra.core.tools import Outcome, Subject
from palyra.core.verdicts import Grant, SessionRule
from palyra.store import approvals, runs, session_rules, sessions, tape
from palyra.store.approvals import Approval
from palyra.store.database import Tx
from palyra.store.sessions import Session

_FOR_TOOLS: frozenset[Decision] = frozenset({"allow", "deny"})

_FOR_DOUBT: frozenset[Decision] = frozenset({"happened", "again", "skip"})

_AFTER: dict[ApprovalAbout, Literal["approval", "in_doubt", "budget"]] = {
    "tool": "approval",
    "in_doubt": "in_doubt",
    "budget": "budget",
}

_LONGEST_GRANT_MS = 366 * 24 * 3_600_000


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`decision`: allow or deny; for a call in doubt: happened, again or skip. There is no
    default.
    """

    decision: Decision
    scope: GrantScope = "once"
    # What a wider scope covers; one of the request's subjects. Without it the narrowest is meant.
    subject: Subject | None = None
    # For scope `timed`.
    for_ms: int = 0
    # With a subject of arguments: at most so many calls (`10/hour`), amounts up to this.
    rate: str = ""
    upto: str = ""
    # Arguments to use instead of those proposed.
    arguments: dict[str, Any] | None = None
    reason: str = ""
    # The digest of what the person has seen whole, if the request shows only a part of it.
    seen: str = ""


def approval_with_call(
    tx: Tx, approval_id: str, principal: str
) -> tuple[Approval, ToolProposed | None, Session, tuple[SessionRule, ...]]:
    """An approval with the call that it is about; a question about a budget is about none."""
    approval = approvals.get(tx, approval_id, principal)
    session = sessions.get(tx, approval.session_id, approval.owner)
    about_call = approval.request.about != "budget"
    proposed = tape.proposal(tx, approval.run_id, approval.request.call_id) if about_call else None
    return approval, proposed, session, session_rules.laid_down(tx, session.session_id)


def expire(tx: Tx, approval: Approval) -> None:
    expired = ApprovalResolved(
        approval_id=approval.approval_id,
        call_id=approval.request.call_id,
        decision="expired",
        reason="nobody answered in time",
    )
    resolve(tx, approval.approval_id, expired, SYSTEM)


def resolve(tx: Tx, approval_id: str, resolved: ApprovalResolved, by: str) -> Approval:
    """One step: the answer and its consequences. The first answer wins; the last of a run's answers
    sets it to work again.
    """
    approval = approvals.find(tx, approval_id)
    assert approval is not None
    if approval.decision:
        raise already_answered(approval)
    (entry,) = tape.append(tx, approval.session_id, by, [resolved], approval.run_id)
    approvals.settle(tx, resolved, entry.position)
    following = (
        _no_more(tx, approval, resolved)
        if approval.request.about == "budget"
        else _consequences(approval, resolved)
    )
    if not any(isinstance(each, RunFailed) for each in following) and not approvals.pending_of_run(
        tx, approval.run_id
    ):
        following.append(RunResumed(after=_AFTER[approval.request.about]))
    if following:
        tape.append(tx, approval.session_id, approval.owner, following, approval.run_id)
    grant = grant_of(approval, resolved)
    if grant is not None:
        approvals.add_grant(tx, grant, entry.position)
    return approvals.get(tx, approval_id, approval.owner)


def _no_more(tx: Tx, approval: Approval, resolved: ApprovalResolved) -> list[AnyEvent]:
    """A run whose budget nobody raises ends, and says what it has done."""
    if resolved.decision == "allow":
        return []
    asked = approval.request.budget
    turns, calls = runs.work_done(tx, approval.run_id)
    why = (
        "nobody answered in time"
        if resolved.decision == "expired"
        else resolved.reason or "no more was allowed"
    )
    done = f"{turns} model turns and {calls} tool calls were made"
    name = asked.name if asked is not None else ""
    return [
        RunFailed(
            reason="budget_spent",
            message=f"the budget {name} is used up, and {why}: raise it, then ask again ({done})",
        )
    ]


def _consequences(approval: Approval, resolved: ApprovalResolved) -> list[AnyEvent]:
    outcome: Outcome
    match resolved.decision:
        case "deny":
            outcome, text = "denied", f"denied by the user: {resolved.reason or 'no reason given'}"
        case "expired":
            outcome, text = "denied", "denied: nobody answered the approval in time"
        case "happened":
            outcome, text = (
                "ok",
                "the daemon stopped while this ran; the user confirms that it happened",
            )
        case "skip":
            outcome, text = (
                "skipped",
                "the daemon stopped while this ran; the user chose not to run it again",
            )
        case _:
            return []
    return [
        ToolFinished(call_id=approval.request.call_id, outcome=outcome, text=text, size=len(text))
    ]


def grant_of(approval: Approval, resolved: ApprovalResolved) -> Grant | None:
    """Return the grant that the answer gives from now on; None if it gives none."""
    if (
        resolved.decision != "allow"
        or resolved.subject is None
        or resolved.scope not in ("session", "timed")
    ):
        return None
    label = approval.request.label
    return Grant(
        approval_id=approval.approval_id,
        principal=approval.owner,
        session_id=approval.session_id if resolved.scope == "session" else None,
        subject=resolved.subject,
        until_ms=resolved.until_ms or None,
        # Private is what the person was told could leave; a prompt that did not say so says nothing
        # about it.
        seen=(
            label
            if sends_private(approval)
            else replace(label, confidentiality="public", private_sources=())
        ),
    )


def sends_private(approval: Approval) -> bool:
    return approval.request.flow is not None and approval.request.flow.sends_private


def already_answered(approval: Approval) -> Conflict:
    by = f" by {approval.resolved_by}" if approval.resolved_by else ""
    return Conflict(
        f"this approval was already answered{by}: {approval.decision}",
        approval_id=approval.approval_id,
        decision=approval.decision,
    )


def check_decision(approval: Approval, answer: Answer) -> None:
    allowed = _FOR_DOUBT if approval.request.about == "in_doubt" else _FOR_TOOLS
    if answer.decision not in allowed:
        raise InvalidInput(
            f"this approval is answered with {', '.join(sorted(allowed))}, not {answer.decision!r}"
        )
    if approval.request.about == "budget" and (
        answer.arguments is not None or answer.scope != "once"
    ):
        raise InvalidInput(
            "going on beyond a budget is allowed for this run only; raise the budget itself for"
            " more"
        )
    if answer.decision != "allow" and answer.arguments is not None:
        raise InvalidInput("edited arguments go with `allow`")
    if answer.decision != "allow" and answer.scope != "once":
        raise InvalidInput("only `allow` can have a scope wider than once")


def check_seen(approval: Approval, answer: Answer) -> None:
    """Refuse a yes to something of which only a part was shown. Who edited the arguments has
    written them.
    """
    shown = approval.request.preview
    if (
        answer.decision != "allow"
        or answer.arguments is not None
        or not shown.length
        or answer.seen == shown.digest
    ):
        return
    raise Conflict(
        f"only a part of this call was shown ({len(shown.body):,} of {shown.length:,} characters),"
        " so it cannot be approved here: look at all of it in the console or with `palyra"
        f" approvals show {approval.approval_id}`, and answer there",
        approval_id=approval.approval_id,
    )


def subject_of(offered: tuple[Subject, ...], answer: Answer) -> Subject | None:
    """Return what the answer covers: one of the subjects that fit the call, the narrowest if none
    is named.
    """
    if answer.scope == "once":
        if answer.subject is not None or answer.rate or answer.upto:
            raise InvalidInput(
                "a subject, a rate or a bound goes with the scopes session, timed and always"
            )
        return None
    if not offered:
        raise InvalidInput("this call can only be allowed once")
    if answer.scope == "timed" and not 0 < answer.for_ms <= _LONGEST_GRANT_MS:
        raise InvalidInput("scope `timed` needs for_ms between 1 and a year")
    if answer.subject is not None and answer.subject not in offered:
        raise InvalidInput("the subject is not one that fits this call", offered=len(offered))
    chosen = answer.subject or offered[0]
    if not (answer.rate or answer.upto):
        return chosen
    if answer.rate and answer.scope == "always":
        raise InvalidInput("a rate goes with the scopes session and timed")
    value = call_values.limited(chosen.value, often=answer.rate, upto=answer.upto)
    if chosen.kind != "arguments" or not value:
        raise InvalidInput(
            "a rate is a number and minute, hour, day or session (`10/hour`), a bound is a number"
            " for a call with an amount; both go with a subject of arguments"
        )
    return replace(chosen, value=value)
