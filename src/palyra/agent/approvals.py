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

from palyra.agent.approval_steps import (
    Answer,
    already_answered,
    approval_with_call,
    check_decision,
    check_seen,
    expire,
    resolve,
    sends_private,
    subject_of,
)
from palyra.agent.authorize import Authorizer
from palyra.core import origins
from palyra.core.call_values import NO_VALUES, CallValues
from palyra.core.errors import (
    ConfigInvalid,
    Conflict,
    Forbidden,
    InvalidInput,
    PalyraError,
    Unavailable,
)
from palyra.core.events import (
    ApprovalResolved,
    ToolProposed,
)
from palyra.core.tools import Preview, Scope, Subject
from palyra.core.verdicts import Deny, SessionRule, Verdict, word
from palyra.policy.grants import always_policy, append_always
from palyra.policy.store import PolicyStore
from palyra.store import approvals, runs
from palyra.store.approvals import Approval
from palyra.store.database import Database
from palyra.store.sessions import Session
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools import previews
from palyra.tools.catalogue import Arguments, Catalogue, TypedTool

log = logging.getLogger("palyra.approvals")

_RETRY_MS = 5_000


class ApprovalDraft(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Arguments to preview: the proposed ones, or others in their place."""

    arguments: dict[str, Any] | None = None


class ApprovalPreview(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Preview of all that would run, and what policy says of it now: `ask` may be approved, `deny`
    may not.
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
    values: CallValues = NO_VALUES


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
            lambda tx: approval_with_call(tx, approval_id, principal)
        )
        if approval.decision:
            raise already_answered(approval)
        check_decision(approval, answer)
        check_seen(approval, answer)
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
                arguments, subjects = (
                    again.normal,
                    self._judging.subjects(again.tool, again.scope, again.values),
                )
                shown = await self._judging.preview(
                    again.tool, again.arguments, session.workspace, again.normal
                )
        subject = subject_of(subjects, answer)
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
        """Raise Forbidden if no policy lets a person in a channel, who is no user of the daemon,
        answer this.
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
        values = (
            proposed.asked.values
            if edited is None and proposed.asked is not None
            else origins.said(tool.spec.use, normal)
        )
        question = self._judging.question(
            session,
            approval.origin,
            approval.request.label,
            tool.spec,
            scope,
            laid_down,
            values,
        )
        accepted = await self._db.read(lambda tx: runs.accepted(tx, approval.run_id))
        verdict = self._judging.policy_of(accepted).judge(question)
        return _Again(tool, arguments, normal, scope, verdict, values)

    async def preview(
        self, principal: str, approval_id: str, draft: ApprovalDraft
    ) -> ApprovalPreview:
        """Return all of what a pending call would do, with its own arguments or edited ones, as it
        stands now.
        """
        approval, proposed, session, laid_down = await self._db.read(
            lambda tx: approval_with_call(tx, approval_id, principal)
        )
        if approval.decision:
            raise already_answered(approval)
        if proposed is None or approval.request.about != "tool":
            return ApprovalPreview(
                preview=approval.request.preview, verdict="ask", why=approval.request.why
            )
        again = await self._judge_again(approval, proposed, session, laid_down, draft.arguments)
        shown = await self._judging.preview(
            again.tool, again.arguments, session.workspace, again.normal, most=previews.WHOLE
        )
        subjects = self._judging.subjects(again.tool, again.scope, again.values)
        why = self._redactor.redact(again.verdict.reason)
        return ApprovalPreview(
            preview=shown, verdict=word(again.verdict), why=why, subjects=subjects
        )

    async def _write_policy(self, approval: Approval, subject: Subject) -> None:
        """Write the policy, only now that the answer has won. If it cannot be kept, the person
        hears that they will be asked again.
        """
        said = sends_private(approval)
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
        """Set the alarm for an approval that expires then. One too early finds nothing to do; one
        too late must not be.
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
                    await self._db.write(partial(expire, approval=approval))
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
