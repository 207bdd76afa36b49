"""Answering approvals. The first answer wins, the default is never yes, and a wider yes is about a
subject, not a tool.

An answer and what it causes commit together: the call's result if it is refused, the grant if the
yes is wider, and the end of the run's wait if nothing else is pending.
"""

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

from msgspec import Struct
from msgspec.structs import replace

from palyra.agent.authorize import Authorizer
from palyra.core.errors import (
    ConfigInvalid,
    Conflict,
    Forbidden,
    InvalidInput,
    PalyraError,
    Unavailable,
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
from palyra.core.tools import Outcome, Preview, Scope, Subject
from palyra.core.verdicts import Deny, Grant, SessionRule, Verdict, word
from palyra.policy.permanent_grants import always_policy, append_always
from palyra.policy.store import PolicyStore
from palyra.store import approvals, runs, session_rules, sessions, tape
from palyra.store.approvals import Approval
from palyra.store.database import Database, Tx
from palyra.store.sessions import Session
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools import previews
from palyra.tools.catalogue import Arguments, Catalogue, TypedTool

log = logging.getLogger("palyra.approvals")

_FOR_TOOLS: frozenset[Decision] = frozenset({"allow", "deny"})
_FOR_DOUBT: frozenset[Decision] = frozenset({"happened", "again", "skip"})
_AFTER: dict[ApprovalAbout, Literal["approval", "in_doubt", "budget"]] = {
    "tool": "approval",
    "in_doubt": "in_doubt",
    "budget": "budget",
}
_LONGEST_GRANT_MS = 366 * 24 * 3_600_000
_RETRY_MS = 5_000


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
    # Arguments to use instead of those proposed.
    arguments: dict[str, Any] | None = None
    reason: str = ""
    # The digest of what the person has seen whole, if the request shows only a part of it.
    seen: str = ""


class ApprovalDraft(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What to preview: the proposed arguments, or others in their place."""

    arguments: dict[str, Any] | None = None


class ApprovalPreview(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What would run, whole, and what policy says of it now: `ask` may be approved, `deny` may
    not.
    """

    preview: Preview
    verdict: Literal["allow", "ask", "deny"]
    why: str = ""
    subjects: tuple[Subject, ...] = ()


class _Again(NamedTuple):
    """A call as it would run now, and what policy says of it."""

    tool: TypedTool
    arguments: Arguments
    normal: dict[str, Any]
    scope: Scope
    verdict: Verdict


class ApprovalService:
    def __init__(
        self,
        db: Database,
        judging: Authorizer,
        catalogue: Catalogue,
        policy: PolicyStore,
        redactor: Redactor,
        clock: Clock,
        policy_folder: Path,
    ) -> None:
        self._db = db
        self._judging = judging
        self._catalogue = catalogue
        self._policy = policy
        self._redactor = redactor
        self._clock = clock
        self._policy_folder = policy_folder
        self._alarm: asyncio.TimerHandle | None = None
        # When the alarm rings.
        self._due_ms = 0
        self._closed = False
        self._sweeping: asyncio.Task[None] | None = None
        self._in_turn: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def answer(
        self, principal: str, approval_id: str, answer: Answer, surface: str, *, through: str = ""
    ) -> Approval:
        """`through`: somebody else says it with the principal's rights, such as another agent;
        policy must let them.

        Answers to the same approval are taken in the order in which they came: a yes takes longer
        to judge than a no.
        """
        async with self._in_turn.setdefault(approval_id, asyncio.Lock()):
            return await self._answer(principal, approval_id, answer, surface, through)

    async def _answer(
        self, principal: str, approval_id: str, answer: Answer, surface: str, through: str
    ) -> Approval:
        approval, proposed, session, laid_down = await self._db.read(
            lambda tx: _asked(tx, approval_id, principal)
        )
        if approval.decision:
            raise _already(approval)
        _check_decision(approval, answer)
        _check_seen(approval, answer)
        if through or principal.startswith(approvals.CHANNEL):
            await self._may_answer(through or principal, approval, proposed, session)
        arguments, subjects, shown = answer.arguments, approval.request.subjects, None
        if answer.decision == "allow" and proposed is not None:
            again = await self._judge_again(
                approval, proposed, session, laid_down, answer.arguments
            )
            if isinstance(again.verdict, Deny):
                why, policies = again.verdict.reason, list(again.verdict.policies)
                raise Forbidden(
                    f"policy does not permit this call (any more): {why}", policies=policies
                )
            if arguments is not None:
                arguments, subjects = again.normal, self._judging.subjects(again.tool, again.scope)
                shown = await self._judging.preview(
                    again.tool, again.arguments, session.workspace, again.normal
                )
        subject = _subject(subjects, answer)
        resolved = ApprovalResolved(
            approval_id=approval.approval_id,
            call_id=approval.request.call_id,
            decision=answer.decision,
            scope=answer.scope,
            subject=subject,
            until_ms=self._clock.now_ms() + answer.for_ms if answer.scope == "timed" else 0,
            arguments=arguments,
            reason=await self._redactor.redacted(answer.reason),
            surface=surface,
            preview=shown,
        )
        settled = await self._db.write(lambda tx: resolve(tx, approval_id, resolved, principal))
        if answer.scope == "always" and subject is not None:
            await self._write_policy(settled, subject)
        return settled

    async def _may_answer(
        self, principal: str, approval: Approval, proposed: ToolProposed | None, session: Session
    ) -> None:
        """Whoever comes through a channel and is no user of the daemon answers only what a policy
        lets them answer.
        """
        if proposed is not None and approval.request.about == "tool":
            tool, arguments, _ = self._catalogue.parse(approval.request.tool, proposed.arguments)
            scope = await asyncio.to_thread(tool.scope, arguments, session.workspace)
            question = self._judging.question(
                session, approval.origin, approval.request.label, tool.spec, scope, ()
            )
            if self._policy.may_approve(replace(question, principal=principal)):
                return
        raise Forbidden(
            "no policy lets you answer this: the owner was asked", approval_id=approval.approval_id
        )

    async def _judge_again(
        self,
        approval: Approval,
        proposed: ToolProposed,
        session: Session,
        laid_down: tuple[SessionRule, ...],
        edited: dict[str, Any] | None,
    ) -> "_Again":
        """Judge a yes by the policy of now, with the arguments it is for: neither time nor an edit
        reaches what is denied.
        """
        if edited is not None and await self._redactor.redacted_json(edited) is not edited:
            raise InvalidInput(
                "the edited arguments contain a secret: secrets are given to tools by reference,"
                " not by value"
            )
        tool, arguments, normal = self._catalogue.parse(
            approval.request.tool, proposed.arguments if edited is None else edited
        )
        scope = await asyncio.to_thread(tool.scope, arguments, session.workspace)
        question = self._judging.question(
            session, approval.origin, approval.request.label, tool.spec, scope, laid_down
        )
        accepted = await self._db.read(lambda tx: runs.accepted(tx, approval.run_id))
        return _Again(
            tool, arguments, normal, scope, self._judging.policy_of(accepted).judge(question)
        )

    async def preview(
        self, principal: str, approval_id: str, draft: ApprovalDraft
    ) -> ApprovalPreview:
        """Return all of what a pending call would do, with its own arguments or edited ones, as it
        stands now.
        """
        approval, proposed, session, laid_down = await self._db.read(
            lambda tx: _asked(tx, approval_id, principal)
        )
        if approval.decision:
            raise _already(approval)
        if proposed is None or approval.request.about != "tool":
            return ApprovalPreview(
                preview=approval.request.preview, verdict="ask", why=approval.request.why
            )
        again = await self._judge_again(approval, proposed, session, laid_down, draft.arguments)
        shown = await self._judging.preview(
            again.tool, again.arguments, session.workspace, again.normal, most=previews.WHOLE
        )
        subjects = self._judging.subjects(again.tool, again.scope)
        why = self._redactor.redact(again.verdict.reason)
        return ApprovalPreview(
            preview=shown, verdict=word(again.verdict), why=why, subjects=subjects
        )

    async def _write_policy(self, approval: Approval, subject: Subject) -> None:
        """Only now that the answer has won. If it cannot be kept, the person hears that they will
        be asked again.
        """
        said = _sends_private(approval)
        text = always_policy(
            subject, approval.owner, approval.approval_id, self._clock.now_ms(), sends_private=said
        )
        try:
            await asyncio.to_thread(append_always, self._policy_folder, text)
            reloaded = await asyncio.to_thread(self._policy.reload)
        except OSError as error:
            raise Unavailable(
                f"the call was allowed, but `always` could not be written ({error}): you will be"
                " asked again"
            ) from error
        if reloaded.problems:
            raise ConfigInvalid(
                "the call was allowed, but the policy folder has problems, so `always` is not in"
                " force: see `palyra policy check`",
                problems=[str(problem) for problem in reloaded.problems],
            )

    async def start(self) -> None:
        """Set the one timer for the approval that times out next."""
        try:
            due_ms = await self._db.read(approvals.next_expiry)
        except PalyraError as error:
            log.warning("approvals could not be looked at: %s", error.message)
            due_ms = self._clock.now_ms() + _RETRY_MS
        self.expires(due_ms)

    async def clock_was_set(self, by_ms: int) -> None:
        """The alarm rings after as long as it was then, and not at the time that it was set for."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        await self.start()

    def expires(self, due_ms: int) -> None:
        """There is an approval that times out then. Too early an alarm finds nothing to do; too
        late a one must not be.
        """
        if not due_ms or self._closed or (self._alarm is not None and self._due_ms <= due_ms):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._due_ms = due_ms
        delay = max(0, due_ms - self._clock.now_ms()) / 1000
        self._alarm = asyncio.get_running_loop().call_later(delay, self._start_sweep)

    def _start_sweep(self) -> None:
        self._alarm = None
        self._sweeping = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        """A timeout is a denial with its own reason. What cannot be timed out now is tried again in
        a while, not at once.
        """
        failed = False
        try:
            for approval in await self._db.read(approvals.expired):
                try:
                    await self._db.write(partial(_expire, approval=approval))
                except Conflict:
                    continue  # Answered in the same moment.
                except Exception:
                    log.exception("approval %s could not be timed out", approval.approval_id)
                    failed = True
        except Exception:
            log.exception("approvals could not be looked at")
            failed = True
        if failed:
            self.expires(self._clock.now_ms() + _RETRY_MS)
        else:
            await self.start()

    def close(self) -> None:
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        if self._sweeping is not None:
            self._sweeping.cancel()


def _asked(
    tx: Tx, approval_id: str, principal: str
) -> tuple[Approval, ToolProposed | None, Session, tuple[SessionRule, ...]]:
    """An approval with the call that it is about; a question about a budget is about none."""
    approval = approvals.get(tx, approval_id, principal)
    session = sessions.get(tx, approval.session_id, approval.owner)
    about_call = approval.request.about != "budget"
    proposed = tape.proposal(tx, approval.run_id, approval.request.call_id) if about_call else None
    return approval, proposed, session, session_rules.laid_down(tx, session.session_id)


def _expire(tx: Tx, approval: Approval) -> None:
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
        raise _already(approval)
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
        approvals.add_grant(tx, grant)
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
    """What a wider yes permits from now on; nothing if the answer was none."""
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
            if _sends_private(approval)
            else replace(label, confidentiality="public", private_sources=())
        ),
    )


def _sends_private(approval: Approval) -> bool:
    return approval.request.flow is not None and approval.request.flow.sends_private


def _already(approval: Approval) -> Conflict:
    by = f" by {approval.resolved_by}" if approval.resolved_by else ""
    return Conflict(
        f"this approval was already answered{by}: {approval.decision}",
        approval_id=approval.approval_id,
        decision=approval.decision,
    )


def _check_decision(approval: Approval, answer: Answer) -> None:
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


def _check_seen(approval: Approval, answer: Answer) -> None:
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


def _subject(offered: tuple[Subject, ...], answer: Answer) -> Subject | None:
    """What the answer covers: one of the subjects that fit the call, the narrowest if none is
    named.
    """
    if answer.scope == "once":
        if answer.subject is not None:
            raise InvalidInput("a subject goes with the scopes session, timed and always")
        return None
    if not offered:
        raise InvalidInput("this call can only be allowed once")
    if answer.scope == "timed" and not 0 < answer.for_ms <= _LONGEST_GRANT_MS:
        raise InvalidInput("scope `timed` needs for_ms between 1 and a year")
    if answer.subject is None:
        return offered[0]
    if answer.subject not in offered:
        raise InvalidInput("the subject is not one that fits this call", offered=len(offered))
    return answer.subject
