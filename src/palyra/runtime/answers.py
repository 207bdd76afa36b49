"""Answering approvals. The first answer wins, the default is never yes, and a wider yes is about a subject, not a tool.

An answer and what it causes commit together: the call's result if it is refused, the grant if the yes is wider, and the end
of the run's wait if nothing else is pending.
"""

import asyncio
import logging
from pathlib import Path
from typing import Any

from msgspec import Struct

from palyra.domain.errors import Conflict, Forbidden, InvalidInput, PalyraError
from palyra.domain.events import AnyEvent, ApprovalResolved, Decision, GrantScope, RunResumed, ToolFinished
from palyra.domain.redaction import Redactor
from palyra.domain.tools import Outcome, Subject
from palyra.domain.verdicts import Deny, Grant
from palyra.journal import approvals, runs, sessions, tape
from palyra.journal.approvals import Approval
from palyra.journal.database import Database, Tx
from palyra.policy.always import always_policy, append_always
from palyra.policy.store import PolicyStore
from palyra.runtime.clock import Clock
from palyra.runtime.judging import Judging
from palyra.runtime.runs import Runs
from palyra.tools.catalogue import Catalogue

log = logging.getLogger("palyra.approvals")

_FOR_TOOLS: frozenset[Decision] = frozenset({"allow", "deny"})
_FOR_DOUBT: frozenset[Decision] = frozenset({"happened", "again", "skip"})
_LONGEST_GRANT_MS = 366 * 24 * 3_600_000


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`decision`: allow or deny; for a call in doubt: happened, again or skip. There is no default."""

    decision: Decision
    scope: GrantScope = "once"
    # What a wider scope covers; one of the request's subjects. Without it the narrowest is meant.
    subject: Subject | None = None
    # For scope `timed`.
    for_ms: int = 0
    # Arguments to use instead of those proposed.
    arguments: dict[str, Any] | None = None
    reason: str = ""


class Answers:
    def __init__(
        self,
        db: Database,
        runs_: Runs,
        judging: Judging,
        catalogue: Catalogue,
        policy: PolicyStore,
        redactor: Redactor,
        clock: Clock,
        policy_folder: Path,
    ) -> None:
        self._db = db
        self._runs = runs_
        self._judging = judging
        self._catalogue = catalogue
        self._policy = policy
        self._redactor = redactor
        self._clock = clock
        self._policy_folder = policy_folder
        self._alarm: asyncio.TimerHandle | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def answer(self, principal: str, approval_id: str, answer: Answer, surface: str) -> Approval:
        approval = await self._db.read(lambda tx: approvals.get(tx, approval_id, principal))
        if approval.decision:
            raise _already(approval)
        subject = _subject(approval, answer)
        arguments = await self._edited(approval, answer)
        until_ms = self._clock.now_ms() + answer.for_ms if answer.scope == "timed" else 0
        resolved = ApprovalResolved(
            approval_id=approval.approval_id,
            call_id=approval.request.call_id,
            decision=answer.decision,
            scope=answer.scope,
            subject=subject,
            until_ms=until_ms,
            arguments=arguments,
            reason=self._redactor.redact(answer.reason),
            surface=surface,
        )
        if answer.scope == "always" and subject is not None:
            # Written before the answer: if it cannot be written the person is told, and nothing was decided.
            text = always_policy(subject, approval.owner, approval.approval_id, self._clock.now_ms())
            await asyncio.to_thread(append_always, self._policy_folder, text)
            reloaded = await asyncio.to_thread(self._policy.reload)
            if reloaded.problems:
                log.warning("the policy folder has problems, the last good set stays in force: %s", reloaded.problems)
        settled, resumed = await self._db.write(lambda tx: resolve(tx, approval_id, resolved, principal))
        if resumed:
            self._runs.start(settled.session_id, settled.run_id)
        return settled

    async def _edited(self, approval: Approval, answer: Answer) -> dict[str, Any] | None:
        """Edited arguments are judged like any others: an edit cannot reach what policy denies."""
        if answer.arguments is None:
            return None
        if answer.decision != "allow":
            raise InvalidInput("edited arguments go with `allow`")
        if self._redactor.redact_json(answer.arguments) is not answer.arguments:
            raise InvalidInput("the edited arguments contain a secret: secrets are given to tools by reference, not by value")
        tool, arguments, normal = self._catalogue.parse(approval.request.tool, answer.arguments)
        session = await self._db.read(lambda tx: sessions.get(tx, approval.session_id, approval.owner))
        scope = await asyncio.to_thread(tool.scope, arguments, session.workspace)
        question = self._judging.question(session, approval.origin, approval.request.label, tool.spec, scope)
        verdict = self._policy.judge(question)
        if isinstance(verdict, Deny):
            raise Forbidden(f"the edited arguments are denied by policy: {verdict.reason}", policies=list(verdict.policies))
        return normal

    # --- timeouts -----------------------------------------------------------------------------------------------------

    async def watch_expiry(self) -> None:
        """Set the one timer for the approval that times out next. Called at start and after each request."""
        due_ms = await self._db.read(approvals.next_expiry)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if due_ms:
            delay = max(0, due_ms - self._clock.now_ms()) / 1000
            self._alarm = asyncio.get_running_loop().call_later(delay, self._start_sweep)

    def _start_sweep(self) -> None:
        self._sweeping = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        """A timeout is a denial with its own reason."""
        try:
            for approval in await self._db.read(approvals.expired):
                expired = ApprovalResolved(
                    approval_id=approval.approval_id,
                    call_id=approval.request.call_id,
                    decision="expired",
                    reason="nobody answered in time",
                )
                settled, resumed = await self._db.write(
                    lambda tx, event=expired: resolve(tx, event.approval_id, event, "system")  # type: ignore[misc]
                )
                if resumed:
                    self._runs.start(settled.session_id, settled.run_id)
        except PalyraError as error:
            log.warning("approvals could not be timed out now: %s", error.message)
        await self.watch_expiry()

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        if self._sweeping is not None:
            self._sweeping.cancel()


def resolve(tx: Tx, approval_id: str, resolved: ApprovalResolved, by: str) -> tuple[Approval, bool]:
    """One step: the answer, its consequences, and whether the run goes on now. The first answer wins."""
    row = tx.one("SELECT owner FROM approvals WHERE approval_id = :id", id=approval_id)
    approval = approvals.get(tx, approval_id, row[0] if row else "")
    if approval.decision:
        raise _already(approval)
    run = runs.find(tx, approval.run_id)
    assert run is not None
    (entry,) = tape.append(tx, approval.session_id, by, [resolved], approval.run_id)
    approvals.settle(tx, resolved, entry.position)
    following = _consequences(approval, resolved)
    left = approvals.pending_of_run(tx, approval.run_id)
    if not left:
        following.append(RunResumed(after="in_doubt" if approval.request.about == "in_doubt" else "approval"))
    if following:
        tape.append(tx, approval.session_id, approval.owner, following, approval.run_id)
    grant = _grant(approval, resolved)
    if grant is not None:
        approvals.add_grant(tx, grant)
    return approvals.get(tx, approval_id, approval.owner), not left


def _consequences(approval: Approval, resolved: ApprovalResolved) -> list[AnyEvent]:
    outcome: Outcome
    match resolved.decision:
        case "deny":
            outcome, text = "denied", f"denied by the user: {resolved.reason or 'no reason given'}"
        case "expired":
            outcome, text = "denied", "denied: nobody answered the approval in time"
        case "happened":
            outcome, text = "ok", "the daemon stopped while this ran; the user confirms that it happened"
        case "skip":
            outcome, text = "skipped", "the daemon stopped while this ran; the user chose not to run it again"
        case _:
            return []
    return [ToolFinished(call_id=approval.request.call_id, outcome=outcome, text=text, size=len(text))]


def _grant(approval: Approval, resolved: ApprovalResolved) -> Grant | None:
    if resolved.decision != "allow" or resolved.subject is None or resolved.scope not in ("session", "timed"):
        return None
    return Grant(
        approval_id=approval.approval_id,
        principal=approval.owner,
        session_id=approval.session_id if resolved.scope == "session" else None,
        subject=resolved.subject,
        until_ms=resolved.until_ms or None,
        seen=approval.request.label,
    )


def _already(approval: Approval) -> Conflict:
    by = f" by {approval.resolved_by}" if approval.resolved_by else ""
    return Conflict(
        f"this approval was already answered{by}: {approval.decision}", approval_id=approval.approval_id, decision=approval.decision
    )


def _subject(approval: Approval, answer: Answer) -> Subject | None:
    """What the answer covers, checked against what was asked."""
    request = approval.request
    allowed = _FOR_DOUBT if request.about == "in_doubt" else _FOR_TOOLS
    if answer.decision not in allowed:
        raise InvalidInput(f"this approval is answered with {', '.join(sorted(allowed))}, not {answer.decision!r}")
    if answer.scope == "once":
        if answer.subject is not None:
            raise InvalidInput("a subject goes with the scopes session, timed and always")
        return None
    if answer.decision != "allow" or not request.subjects:
        raise InvalidInput("only `allow` for a tool call can have a scope wider than once")
    if answer.scope == "timed" and not 0 < answer.for_ms <= _LONGEST_GRANT_MS:
        raise InvalidInput("scope `timed` needs for_ms between 1 and a year")
    if answer.subject is None:
        return request.subjects[0]
    if answer.subject not in request.subjects:
        raise InvalidInput("the subject is not one that was offered with this approval", subjects=len(request.subjects))
    return answer.subject
