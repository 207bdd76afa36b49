"""Acting while watching, over one open connection: what a caller may say on it and how it is
answered, whatever carries it.

It offers nothing that requests do not: the same verbs, the same scopes and limits, the same errors.
"""

import logging
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from palyra.agent import client_tokens
from palyra.agent.approval_steps import Answer
from palyra.agent.approvals import ApprovalService
from palyra.agent.gateway import Gateway
from palyra.agent.submit import Submission, Submitted
from palyra.api.auth import allows, check_standing
from palyra.api.decoding import check_json
from palyra.api.errors import Problem, internal, problem_of
from palyra.api.guard import Guard
from palyra.core.errors import Forbidden, InvalidInput, PalyraError
from palyra.core.services import Services
from palyra.store.approvals import Approval
from palyra.store.database import Database
from palyra.store.runs import RunRow
from palyra.store.tokens import Token
from palyra.system.clock import Clock

log = logging.getLogger("palyra.http")


class Submit(Submission, frozen=True, kw_only=True, tag_field="type", tag="submit"):
    id: str = ""


class AnswerApproval(Answer, frozen=True, kw_only=True, tag_field="type", tag="answer"):
    approval_id: str
    id: str = ""


class CancelRun(
    Struct, frozen=True, kw_only=True, tag_field="type", tag="cancel", forbid_unknown_fields=True
):
    run_id: str
    reason: str = ""
    id: str = ""


class Ping(
    Struct, frozen=True, kw_only=True, tag_field="type", tag="ping", forbid_unknown_fields=True
):
    id: str = ""


Act = Submit | AnswerApproval | CancelRun
Said = Act | Ping


class Ack(Struct, frozen=True, tag_field="type", tag="ack"):
    """`id` is the message's own; `result` is what HTTP would have answered."""

    id: str
    result: Submitted | Approval | RunRow


class RefusedCommand(Struct, frozen=True, tag_field="type", tag="error"):
    id: str
    error: Problem


class Pong(Struct, frozen=True, tag_field="type", tag="pong"):
    id: str


_decoder: msgspec.json.Decoder[Said] = msgspec.json.Decoder(Said)


class Conversing:
    """One caller in one session. `surface` says where an approval was answered."""

    def __init__(
        self, services: Services, guard: Guard, token: Token, session_id: str, surface: str
    ) -> None:
        self._services = services
        self._guard = guard
        self._token = token
        self._session_id = session_id
        self._surface = surface

    async def reply(
        self, read: Callable[[], Said | Awaitable[Said]]
    ) -> Ack | RefusedCommand | Pong:
        """Answer what `read` makes of the bytes that came; what it refuses is an answer too."""
        message_id = ""
        try:
            self._guard.take(self._token)
            found = read()
            message = await found if isinstance(found, Awaitable) else found
            message_id = message.id
            if isinstance(message, Ping):
                return Pong(message_id)
            return Ack(message_id, await self._act(message))
        except PalyraError as error:
            return RefusedCommand(message_id, problem_of(error))
        except Exception:
            reference = self._services.get(Clock).new_id()
            log.exception("a message over %s failed (%s)", self._surface, reference)
            return RefusedCommand(message_id, problem_of(internal(reference)))

    async def _act(self, message: Act) -> Submitted | Approval | RunRow:
        token, services = self._token, self._services
        if not allows(token.scope, "operator") and (
            token.scope != "client" or isinstance(message, AnswerApproval)
        ):
            raise Forbidden(
                f"a token with scope {token.scope} may not do this: it needs operator",
                scope=token.scope,
            )
        match message:
            case Submit():
                origin = client_tokens.origin_of(token, attended=message.attended)
                return await services.get(Gateway).submit(
                    token.principal, self._session_id, message, origin=origin
                )
            case AnswerApproval():
                check_standing(token, message)
                return await services.get(ApprovalService).answer(
                    token.principal, message.approval_id, message, self._surface
                )
            case CancelRun():
                await client_tokens.check(services.get(Database), token, {"run_id": message.run_id})
                return await services.get(Gateway).cancel(
                    token.principal, message.run_id, message.reason or "cancelled by the user"
                )


async def from_json(raw: bytes) -> Said:
    await check_json(raw)
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the message is not valid: {error}") from error
