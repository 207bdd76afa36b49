"""A tool used for a person, outside of any run: what their message names is read by the tool that a
model would use.

The rule: there is no second way to files, hosts or commands. Policy is asked the same question as
for a call; where it would ask a person, the person who named the thing has answered, and where it
denies, nothing is read.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from palyra.agent.authorize import Authorizer
from palyra.core import labels
from palyra.core.errors import Forbidden, InvalidInput, PalyraError
from palyra.core.labels import Label
from palyra.core.ports import CallContext, Policy
from palyra.core.tools import ToolResult
from palyra.core.verdicts import Allow, Ask, Deny, Origin, SessionRule
from palyra.store.sessions import Session
from palyra.system import thread_pool
from palyra.tools.catalogue import Catalogue

# Where somebody is there whose word counts as the answer.
_BY_A_PERSON: tuple[Origin, ...] = ("interactive", "api")
_CLEANUP_S = 1.0


class DirectCallContext(Struct, frozen=True, kw_only=True):
    """Session and origin of a direct call, and what the session's model has read so far."""

    session: Session
    origin: Origin
    label: Label
    rules: tuple[SessionRule, ...] = ()

    @property
    def workspace(self) -> str:
        return os.path.realpath(self.session.workspace) if self.session.workspace else ""


class Denied(Forbidden):
    def __init__(self, reason: str, policies: tuple[str, ...]) -> None:
        by = f" ({', '.join(policies)})" if policies else ""
        super().__init__(f"policy denies it: {reason}{by}", policies=policies)


class ByHand:
    def __init__(self, catalogue: Catalogue, judging: Authorizer, policy: Policy) -> None:
        self._catalogue = catalogue
        self._judging = judging
        self._policy = policy

    async def use(
        self,
        at: DirectCallContext,
        name: str,
        arguments: Mapping[str, Any],
        *,
        harmless: bool = False,
    ) -> ToolResult:
        """Return the tool's result. Raise a PalyraError if it gives none; with `harmless` run only
        what provably just reads.
        """
        tool, typed, _ = self._catalogue.parse(name, arguments)
        if not at.workspace and any(
            each in ("fs.read", "process") for each in tool.spec.capabilities
        ):
            raise InvalidInput(
                "this session has no workspace folder, so there are no files to name"
            )
        scope = await thread_pool.everyday.run(tool.scope, typed, at.workspace)
        if harmless and not scope.harmless:
            raise Forbidden("it cannot be known to be harmless here")
        question = self._judging.question(
            at.session, at.origin, at.label, tool.spec, scope, at.rules
        )
        match self._policy.judge(question):
            case Deny(reason=reason, policies=policies):
                raise Denied(reason, policies)
            case Ask(reason=reason, policies=policies) if at.origin not in _BY_A_PERSON:
                raise Denied(f"{reason}; it needs approval, and the run is unattended", policies)
            case Allow() | Ask():
                pass
        context = CallContext(
            principal=at.session.owner,
            session_id=at.session.session_id,
            run_id="",
            call_id="",
            workspace=at.workspace,
        )
        seconds = tool.spec.limits.time_ms / 1000 + _CLEANUP_S
        try:
            async with asyncio.timeout(seconds):
                result = await tool.execute(typed, context)
        except TimeoutError:
            raise InvalidInput(f"it took longer than {seconds:g} s") from None
        files = await self._judging.shown_by(tool.spec, scope, result)
        label = labels.merge(labels.merge(tool.spec.yields, result.label), files)
        return msgspec.structs.replace(result, label=label)

    async def read(
        self,
        at: DirectCallContext,
        name: str,
        arguments: Mapping[str, Any],
        *,
        harmless: bool = False,
    ) -> ToolResult:
        """The same for callers who have no use for a failure."""
        result = await self.use(at, name, arguments, harmless=harmless)
        if result.outcome != "ok":
            raise Failed(result.text)
        return result


class Failed(PalyraError):
    """The tool ran and says why it gives nothing."""

    code = "invalid_input"
