"""Judging a proposed call: does it fit the catalogue, what is it about, what does policy say, who
must be asked.

A call leaves here with everything that goes on the tape about it, in one piece; nothing has run
yet.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from palyra.agent import (
    grant_rates,
    planning,
    session_rules,
    unchanged_calls,
    value_origins,
)
from palyra.agent.active_run import ActiveRun
from palyra.agent.judged_call import Judged, only_looks
from palyra.agent.labelled_files import FileLabels
from palyra.agent.settings import Settings
from palyra.core import subagent_limits
from palyra.core.call_values import NO_VALUES, CallValues, bounds
from palyra.core.errors import Forbidden, PalyraError
from palyra.core.events import (
    ApprovalRequested,
    Flow,
    RunAccepted,
    Shadow,
    ToolDecided,
    ToolFinished,
    ToolProposed,
)
from palyra.core.ids import ApprovalId
from palyra.core.labels import CLEAN, Label, merge, private
from palyra.core.ports import Policy
from palyra.core.run_progress import CallProgress
from palyra.core.tools import Outcome, Preview, Scope, Subject, ToolResult, ToolSpec, input_digest
from palyra.core.verdicts import Allow, Ask, Deny, Origin, Question, SessionRule, Verdict, word
from palyra.policy import risk
from palyra.policy.rules import PREFIX
from palyra.store import decisions
from palyra.store.database import Database
from palyra.store.sessions import Session
from palyra.system import thread_pool
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools import previews
from palyra.tools.catalogue import Arguments, Catalogue, TypedTool

_WORKSPACE = private("file:.")


class _Unreadable:
    """Stand-in for policies that are not there: nothing is permitted."""

    version = ""

    def __init__(self, why: str) -> None:
        self._why = why

    def judge(self, question: Question) -> Verdict:
        return Deny(self._why)


_SHORT = 4 << 10


class Authorizer:
    def __init__(
        self,
        db: Database,
        catalogue: Catalogue,
        policy: Policy,
        redactor: Redactor,
        clock: Clock,
        settings: Settings,
        *,
        shadow: Callable[[], Policy | None] = lambda: None,
        others: Callable[[str], Policy] | None = None,
    ) -> None:
        """`shadow` gives what is asked beside the policy in force, if there is any; what it would
        have decided is recorded, never enforced.

        `others` gives the policies of a folder, for a run that was forked under them.
        """
        self._db = db
        self.files = FileLabels(db)
        self._shadow = shadow
        self._catalogue = catalogue
        self._policy = policy
        self._others = others
        self._redactor = redactor
        self._clock = clock
        self._settings = settings

    async def judge(
        self, run: ActiveRun, progress: CallProgress, ahead: Sequence[Judged] = ()
    ) -> Judged:
        """Validate one call against the catalogue, ask what it is about, and ask the policy.

        `ahead` are the calls of the same turn that were judged before it.
        """
        call = progress.call
        proposed = ToolProposed(call_id=call.id, tool=call.tool, arguments=call.arguments)
        if call.malformed:
            return self._refused(
                proposed, "catalogue", f"{call.malformed}; send them again as one JSON object"
            )
        if any(each.name == call.tool for each in run.progress.accepted.offered):
            # It is the caller's own doing: nothing happens here, and what it is told it could read
            # on the tape.
            decided = ToolDecided(
                call_id=call.id,
                verdict="allow",
                reason="the program that asked does it",
                by="client",
            )
            return Judged([proposed, decided])
        try:
            tool, arguments, normal = self._catalogue.parse(call.tool, call.arguments)
        except PalyraError as error:
            return self._refused(proposed, "catalogue", error.message)
        proposed = ToolProposed(
            call_id=call.id, tool=call.tool, arguments=normal, effect=tool.spec.effect
        )
        not_given = subagent_limits.not_given(run.progress.accepted.commission, call.tool)
        if not_given:
            return self._refused(proposed, "hard_rule", not_given)
        if not run.workspace and any(
            capability.startswith("fs.") for capability in tool.spec.capabilities
        ):
            return self._refused(
                proposed,
                "hard_rule",
                "this session has no workspace folder, so there are no files to work on",
            )
        try:
            scope = await thread_pool.everyday.run(tool.scope, arguments, run.workspace)
        except PalyraError as error:
            return self._refused(
                proposed,
                "hard_rule" if isinstance(error, Forbidden) else "catalogue",
                error.message,
            )
        laid_down = run.live.rules
        question = self.question(
            run.live.session,
            run.progress.accepted.origin,
            merge(run.live.conversation.label, await self.files.given(tool.spec, scope)),
            tool.spec,
            scope,
            laid_down,
            await value_origins.values_of(
                run, tool.spec, normal, [one.events[0] for one in ahead if not one.refused]
            ),
        )
        # A command may be as long as a file.
        told = (
            self._told(scope)
            if len(scope.command) <= _SHORT
            else await thread_pool.everyday.run(self._told, scope)
        )
        if late := planning.too_late(run, call.tool):
            return self._refused(proposed, "hard_rule", late)
        proposed = msgspec.structs.replace(
            proposed, scope=told, asked=value_origins.circumstances(question, exact=told is scope)
        )
        if session_rules.counts_matter(laid_down):
            waiting = [one.events[0] for one in ahead if not one.refused]
            too_many = await self._too_many(
                run, question, [each for each in waiting if isinstance(each, ToolProposed)]
            )
            if too_many:
                return self._refused(proposed, "rule", too_many)
        used = [one.grant for one in ahead if one.grant]
        judged = await self._ask_policy(run, proposed, tool, arguments, question, used)
        return self._shadowed(judged, question)

    async def _ask_policy(
        self,
        run: ActiveRun,
        proposed: ToolProposed,
        tool: TypedTool,
        arguments: Arguments,
        question: Question,
        ahead: Sequence[str],
    ) -> Judged:
        policy = self.policy_of(run.progress.accepted)
        version = policy.version
        match policy.judge(question):
            case Deny(reason=reason, policies=policies):
                return self._refused(
                    proposed, "policy", reason, policies=policies, policy_version=version
                )
            case Allow(reason=reason, policies=policies):
                decided = ToolDecided(
                    call_id=proposed.call_id,
                    verdict="allow",
                    reason=reason,
                    policies=policies,
                    policy_version=version,
                )
                pure = tool.spec.effect == "pure"
                looks = pure and only_looks(tool.spec, question.scope)
                return Judged([proposed, decided], pure=pure, allowed=True, looks=looks)
            case Ask() as ask:
                grant = None
                if not by_rule(ask):
                    same = await unchanged_calls.result(
                        self._catalogue, policy, tool, arguments, question, run.workspace
                    )
                    if same is not None:
                        ended = unchanged_calls.events(proposed, ask, version, same)
                        return Judged([proposed, *ended])
                    # A rule that asks means every time; what was allowed before does not answer it.
                    grant = await grant_rates.covering(self._db, question, ask, ahead)
                if grant is not None:
                    decided = ToolDecided(
                        call_id=proposed.call_id,
                        verdict="allow",
                        reason=f"allowed before by approval {grant.approval_id}",
                        by="grant",
                        policies=ask.policies,
                        policy_version=version,
                    )
                    pure = tool.spec.effect == "pure"
                    return Judged(
                        [proposed, decided], pure=pure, allowed=True, grant=grant.approval_id
                    )
                # It names files, and a file behind a symlink can hold a secret in its name.
                why = self._redactor.redact(ask.reason)
                decided = ToolDecided(
                    call_id=proposed.call_id,
                    verdict="ask",
                    reason=why,
                    policies=ask.policies,
                    policy_version=version,
                )
                preview = await self.preview(tool, arguments, run.workspace, proposed.arguments)
                request = ApprovalRequested(
                    approval_id=ApprovalId(self._clock.new_id()),
                    call_id=proposed.call_id,
                    tool=proposed.tool,
                    about="tool",
                    preview=preview,
                    risk=ask.risk,
                    why=why,
                    subjects=self.subjects(tool, question.scope, question.values),
                    policies=ask.policies,
                    label=question.label,
                    expires_ms=self._expiry(question.origin),
                    cost_microusd=run.progress.cost_microusd,
                    flow=await self._flow(run.live.session, question, ask),
                    asker=subagent_limits.asker(run.progress.accepted.commission),
                    values=question.values,
                    plan=planning.beside(run, question),
                )
                return Judged([proposed, decided, request], request)

    async def shown_by(self, spec: ToolSpec, scope: Scope, result: ToolResult) -> Label:
        """The label of the files that a result shows."""
        return await self.files.shown_by(spec, scope, result)

    def policy_of(self, accepted: RunAccepted) -> Policy:
        """The policies in force for a run. Those that it was forked under, if they cannot be read
        any more, permit nothing.
        """
        if not accepted.policy or self._others is None:
            return self._policy
        try:
            return self._others(accepted.policy)
        except PalyraError as error:
            return _Unreadable(
                f"the policies in {accepted.policy} that this run was forked under cannot be read:"
                f" {error.message}"
            )

    async def _flow(self, session: Session, question: Question, ask: Ask) -> Flow | None:
        """Return how what the model has read could get out, if this call lets anything out or
        cannot be taken back.
        """
        label, scope = question.label, question.scope
        if label == CLEAN or not (risk.reaches_out(question) or ask.sends_private):
            return None
        sources = await self._db.read(lambda tx: decisions.brought(tx, session, label))
        return Flow(sources, (*scope.hosts, *scope.recipients), ask.sends_private)

    async def _too_many(self, run: ActiveRun, question: Question, ahead: list[ToolProposed]) -> str:
        done = await self._db.read(lambda tx: decisions.counts(tx, run.session_id))
        return session_rules.used_up(question.rules, done, ahead, question.tool, question.scope)

    async def forbidden_now(self, run: ActiveRun, call: CallProgress) -> str:
        """Return why a rule forbids a call that was decided in its favour, or nothing.

        Between a decision and its call lie other calls, answers and days: a rule laid down
        meanwhile holds, and so does a count.
        """
        laid_down = run.live.rules
        before = call.proposed.asked.rules if call.proposed and call.proposed.asked else ()
        counted = session_rules.counts_matter(laid_down)
        if not laid_down or (laid_down == before and not counted):
            return ""
        try:
            tool, arguments, _ = self._catalogue.parse(call.call.tool, call.arguments)
            scope = await thread_pool.everyday.run(tool.scope, arguments, run.workspace)
        except PalyraError:
            return ""  # Executing it will say what is wrong with it.
        origin, label = run.progress.accepted.origin, run.live.conversation.label
        values = call.proposed.asked.values if call.proposed and call.proposed.asked else NO_VALUES
        session = run.live.session
        question = self.question(session, origin, label, tool.spec, scope, laid_down, values)
        if counted and (too_many := await self._too_many(run, question, [])):
            return self._redactor.redact(too_many)
        match self.policy_of(run.progress.accepted).judge(question):
            case Deny(reason=reason) as denied if by_rule(denied):
                return self._redactor.redact(reason)
            case Ask(reason=reason) as ask if by_rule(ask) and call.answered is None:
                return self._redactor.redact(
                    f"{reason}. The rule came after this call was decided: propose the call again"
                )
            case _:
                return ""

    def _shadowed(self, judged: Judged, question: Question) -> Judged:
        """The same, with what the shadow policies would have decided; why, only if that is
        something else.
        """
        policy = self._shadow()
        if policy is None:
            return judged
        verdict = policy.judge(question)
        said = word(verdict)
        for place, event in enumerate(judged.events):
            if isinstance(event, ToolDecided):
                shadow = Shadow(said, "", (), policy.version)
                if said != ("ask" if event.by == "grant" else event.verdict):
                    shadow = Shadow(
                        said,
                        self._redactor.redact(verdict.reason),
                        verdict.policies,
                        policy.version,
                    )
                judged.events[place] = msgspec.structs.replace(event, shadow=shadow)
        return judged

    def _told(self, scope: Scope) -> Scope:
        """The scope as the tape has it: a path behind a symlink can hold a secret that nobody
        named.

        The workspace's own path is on the tape since the session began; only what lies below it is
        looked at.
        """
        redact = self._redactor.redact
        root = scope.workspace

        def told(path: str) -> str:
            below = path[len(root) :] if root and path.startswith(root) else path
            return path if not below else path[: len(path) - len(below)] + redact(below)

        paths = tuple(map(told, scope.paths))
        command = redact(scope.command) if scope.command else ""
        hosts = tuple(map(redact, scope.hosts))
        if (paths, command, hosts) == (scope.paths, scope.command, scope.hosts):
            return scope
        return msgspec.structs.replace(scope, paths=paths, command=command, hosts=hosts)

    def subjects(
        self, tool: TypedTool, scope: Scope, values: CallValues = NO_VALUES
    ) -> tuple[Subject, ...]:
        """Return what a grant can be about, the narrowest first. A subject with a secret in it is
        not offered: a placeholder would match nothing.

        Neither is one that nobody would read to its end.
        """
        offered = tool.subjects(scope)
        if all(each.kind == "tool" for each in offered):
            # Else the tool itself would be the narrowest.
            limits = (Subject(tool.spec.name, "arguments", each) for each in bounds(values))
            offered = (*limits, *offered)
        short = (each for each in offered if len(each.value) <= _SHORT)
        return tuple(each for each in short if self._redactor.redact(each.value) == each.value)

    def question(
        self,
        session: Session,
        origin: Origin,
        label: Label,
        spec: ToolSpec,
        scope: Scope,
        laid_down: tuple[SessionRule, ...],
        values: CallValues = NO_VALUES,
    ) -> Question:
        asked = Question(
            principal=session.owner,
            session_id=session.session_id,
            tool=spec,
            scope=scope,
            origin=origin,
            now_ms=self._clock.now_ms(),
            label=label,
            channel=session.channel,
            rules=laid_down,
            values=values,
        )
        return complete(asked)

    async def preview(
        self,
        tool: TypedTool,
        arguments: Arguments,
        workspace_root: str,
        normal: dict[str, Any],
        *,
        most: int = previews.SHOWN,
    ) -> Preview:
        """Return what the person is shown. A preview that fails (a hunk does not fit) says so; the
        call will too.
        """
        return await thread_pool.everyday.run(
            self._previewed, tool, arguments, workspace_root, normal, most
        )

    def _previewed(
        self,
        tool: TypedTool,
        arguments: Arguments,
        workspace_root: str,
        normal: dict[str, Any],
        most: int,
    ) -> Preview:
        try:
            preview = tool.preview(arguments, workspace_root)
        except PalyraError as error:
            preview = Preview("text", f"{tool.spec.name} will probably fail", error.message)
        return previews.finished(preview, self._redactor.redact, input_digest(normal), most)

    def _refused(
        self,
        proposed: ToolProposed,
        by: Any,
        reason: str,
        *,
        policies: tuple[str, ...] = (),
        policy_version: str = "",
    ) -> Judged:
        reason = self._redactor.redact(reason)
        decided = ToolDecided(
            call_id=proposed.call_id,
            verdict="deny",
            reason=reason,
            by=by,
            policies=policies,
            policy_version=policy_version,
        )
        outcome: Outcome = "error" if by == "catalogue" else "denied"
        text = reason if by == "catalogue" else f"denied: {reason}"
        return Judged(
            [
                proposed,
                decided,
                ToolFinished(call_id=proposed.call_id, outcome=outcome, text=text, size=len(text)),
            ]
        )

    def _expiry(self, origin: Origin) -> int:
        allowed = self._settings.approval_times.of(origin)
        return self._clock.now_ms() + allowed if allowed else 0


def complete(question: Question) -> Question:
    """The question with what the arguments make of the call. Policy sees what a call is able to do
    as its tool's own abilities.
    """
    spec, scope, label = question.tool, question.scope, question.label
    # Whether a call is given a secret, or hosts.
    added = (*scope.capabilities, *(("secrets",) if scope.secrets else ()))
    if not set(added) <= set(spec.capabilities):
        spec = msgspec.structs.replace(
            spec, capabilities=tuple(dict.fromkeys((*spec.capabilities, *added)))
        )
    if scope.paths and ((scope.hosts and "process" in spec.capabilities) or scope.recipients):
        # Nobody has read the files yet, but the command can, and it has a way out; or they go with
        # a message.
        label = merge(label, _WORKSPACE)
    if spec is question.tool and label is question.label:
        return question
    return msgspec.structs.replace(question, tool=spec, label=label)


def by_rule(verdict: Verdict) -> bool:
    """Return whether a rule of the session had a part in this."""
    return any(each.startswith(PREFIX) for each in verdict.policies)
