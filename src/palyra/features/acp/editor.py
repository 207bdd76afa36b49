"""The two ways that the agent of an editor has: to the daemon, call by call, and to the editor."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from acp.exceptions import RequestError
from acp.helpers import update_agent_message_text

from palyra.client import Client
from palyra.core.errors import Forbidden, InvalidInput, NotFound, PalyraError, Unauthenticated
from palyra.core.json_rpc import INTERNAL_ERROR, INVALID_PARAMS
from palyra.features.acp.updates import Updates

T = TypeVar("T")
# The protocol's own codes, for who is not let in and what is not there.
NO_AUTH, NOT_FOUND = -32000, -32002


class Editor:
    """`api` makes a way to the daemon: one for each call, because they may be many at once."""

    def __init__(self, api: Callable[[], Client]) -> None:
        self.api = api
        # The library's connection, once there is one.
        self.connection: Any = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def call(self, do: Callable[[Client], T]) -> T:
        """One call of the daemon on a thread; what it refuses is an error that says why."""
        try:
            return await asyncio.to_thread(lambda: do(self.api()))
        except PalyraError as error:
            raise refusal(error) from error

    async def send(self, session_id: str, updates: Updates) -> None:
        for update in updates.take():
            await self.connection.session_update(session_id=session_id, update=update)

    async def note(self, session_id: str, words: str) -> None:
        await self.connection.session_update(
            session_id=session_id, update=update_agent_message_text(f"\n\n*{words}*\n\n")
        )

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def refusal(error: PalyraError) -> RequestError:
    code = INTERNAL_ERROR
    match error:
        case InvalidInput() | Forbidden():
            code = INVALID_PARAMS
        case NotFound():
            code = NOT_FOUND
        case Unauthenticated():
            code = NO_AUTH
    return RequestError(code, error.message, {"code": error.code})
