"""Judging a proposed call: does it fit the catalogue, what is it about, what does policy say, who must be asked.

A call leaves here with everything that goes on the tape about it, in one piece; nothing has run yet.
"""

import asyncio
from typing import Any

import msgspec
from msgspec import Struct

from palyra.domain.conversation import CallProgress
from palyra.domain.errors import Forbidden, PalyraError
from palyra.domain.events import AnyEvent, ApprovalRequested, ToolDecided, ToolFinished, ToolProposed
from palyra.domain.ids import ApprovalId
from palyra.domain.labels import Label
from palyra.domain.ports import Policy
from palyra.domain.redaction import Redactor
from palyra.domain.tools import Outcome, Preview, Scope, Subject, ToolSpec
from palyra.domain.verdicts import Allow, Ask, Deny, Origin, Question
from palyra.journal import approvals
from palyra.journal.database import Database
from palyra.journal.sessions import Session
from palyra.policy import grants
from palyra.runtime.clock import Clock
from palyra.runtime.settings import Settings
from palyra.runtime.working import Working
from palyra.tools.catalogue import Arguments, Catalogue, TypedTool


class Judged(Struct):
    """One call after judging: what goes on the tape, and the approval it asks for."""

    events: list[AnyEvent]
    request: ApprovalRequested | None = None
    pure: bool = False
    allowed: bool = False


class Judging:
    def __init__(
        self, db: Database, catalogue: Catalogue, policy: Policy, redactor: Redactor, clock: Clock, settings: Settings
    ) -> None:
        self._db = db
        self._catalogue = catalogue
        self._policy = policy
        self._redactor = redactor
        self._clock = clock
        self._settings = settings

    async def judge(self, run: Working, progress: CallProgress) -> Judged:
        """Validate one call against the catalogue, ask what it is about, and ask the policy."""
        call = progress.call
        proposed = ToolProposed(call_id=call.id, tool=call.tool, arguments=call.arguments)
        if call.malformed:
            return self._refused(proposed, "catalogue", f"{call.malformed}; send them again as one JSON object")
        try:
            tool, arguments, normal = self._catalogue.parse(call.tool, call.arguments)
        except PalyraError as error:
            return self._refused(proposed, "catalogue", error.message)
        proposed = ToolProposed(call_id=call.id, tool=call.tool, arguments=normal, effect=tool.spec.effect)
        if not run.workspace and any(capability.startswith("fs.") for capability in tool.spec.capabilities):
            return self._refused(proposed, "hard_rule", "this session has no workspace folder, so there are no files to work on")
        try:
            scope = await asyncio.to_thread(tool.scope, arguments, run.workspace)
        except PalyraError as error:
            return self._refused(proposed, "hard_rule" if isinstance(error, Forbidden) else "catalogue", error.message)
        proposed = msgspec.structs.replace(proposed, scope=self._told(scope))
        return await self._ask_policy(run, proposed, tool, arguments, scope)

    async def _ask_policy(
        self, run: Working, proposed: ToolProposed, tool: TypedTool, arguments: Arguments, scope: Scope
    ) -> Judged:
        conversation, accepted = run.live.conversation, run.progress.accepted
        question = self.question(run.live.session, accepted.origin, conversation.label, tool.spec, scope)
        version = self._policy.version
        match self._policy.judge(question):
            case Deny(reason=reason, policies=policies):
                return self._refused(proposed, "policy", reason, policies=policies, policy_version=version)
            case Allow(reason=reason, policies=policies):
                decided = ToolDecided(
                    call_id=proposed.call_id, verdict="allow", reason=reason, policies=policies, policy_version=version
                )
                return Judged([proposed, decided], pure=tool.spec.effect == "pure", allowed=True)
            case Ask() as ask:
                held = await self._db.read(lambda tx: approvals.grants_for(tx, question.principal, question.session_id))
                grant = grants.covering(held, question)
                if grant is not None:
                    decided = ToolDecided(
                        call_id=proposed.call_id,
                        verdict="allow",
                        reason=f"allowed before by approval {grant.approval_id}",
                        by="grant",
                        policies=ask.policies,
                        policy_version=version,
                    )
                    return Judged([proposed, decided], pure=tool.spec.effect == "pure", allowed=True)
                decided = ToolDecided(
                    call_id=proposed.call_id, verdict="ask", reason=ask.reason, policies=ask.policies, policy_version=version
                )
                preview = await self._preview(tool, arguments, run.workspace)
                request = ApprovalRequested(
                    approval_id=ApprovalId(self._clock.new_id()),
                    call_id=proposed.call_id,
                    tool=proposed.tool,
                    about="tool",
                    preview=preview,
                    risk=ask.risk,
                    why=ask.reason,
                    subjects=self.subjects(tool, scope),
                    policies=ask.policies,
                    label=conversation.label,
                    expires_ms=self._expiry(accepted.origin),
                    cost_microusd=run.progress.cost_microusd,
                )
                return Judged([proposed, decided, request], request)

    def _told(self, scope: Scope) -> Scope:
        """The scope as the tape has it: a path behind a symlink can hold a secret that nobody named."""
        plain = msgspec.to_builtins(scope)
        redacted = self._redactor.redact_json(plain)
        return scope if redacted is plain else msgspec.convert(redacted, Scope)

    def subjects(self, tool: TypedTool, scope: Scope) -> tuple[Subject, ...]:
        """What a wider yes can be about. A subject with a secret in it is not offered: a placeholder would match nothing."""
        return tuple(each for each in tool.subjects(scope) if self._redactor.redact(each.value) == each.value)

    def question(self, session: Session, origin: Origin, label: Label, spec: ToolSpec, scope: Scope) -> Question:
        if scope.secrets and "secrets" not in spec.capabilities:
            # Whether a call is given a secret depends on its arguments; policy sees it as a capability all the same.
            spec = msgspec.structs.replace(spec, capabilities=(*spec.capabilities, "secrets"))
        return Question(
            principal=session.owner,
            session_id=session.session_id,
            tool=spec,
            scope=scope,
            origin=origin,
            now_ms=self._clock.now_ms(),
            label=label,
            channel=session.channel,
        )

    async def _preview(self, tool: TypedTool, arguments: Arguments, workspace_root: str) -> Preview:
        """What the person is shown. A preview that fails (the file is gone, a hunk does not fit) says so; the call will too."""
        try:
            preview = await asyncio.to_thread(tool.preview, arguments, workspace_root)
        except PalyraError as error:
            preview = Preview("text", f"{tool.spec.name} will probably fail", error.message)
        redact = self._redactor.redact
        return Preview(preview.kind, redact(preview.title), redact(preview.body))

    def _refused(
        self, proposed: ToolProposed, by: Any, reason: str, *, policies: tuple[str, ...] = (), policy_version: str = ""
    ) -> Judged:
        reason = self._redactor.redact(reason)
        decided = ToolDecided(
            call_id=proposed.call_id, verdict="deny", reason=reason, by=by, policies=policies, policy_version=policy_version
        )
        outcome: Outcome = "error" if by == "catalogue" else "denied"
        text = reason if by == "catalogue" else f"denied: {reason}"
        return Judged([proposed, decided, ToolFinished(call_id=proposed.call_id, outcome=outcome, text=text, size=len(text))])

    def _expiry(self, origin: Origin) -> int:
        allowed = self._settings.approval_times.of(origin)
        return self._clock.now_ms() + allowed if allowed else 0
