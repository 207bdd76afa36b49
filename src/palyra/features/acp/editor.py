"""The two ways that the agent of an editor has: to the daemon, call by call, and to the editor."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from acp.exceptions import RequestError
from acp.helpers import update_agent_message_text

from palyra.client.http import Api
from palyra.core.errors import Forbidden, InvalidInput, NotFound, PalyraError, Unauthenticated
from palyra.features.acp.updates import Updates

T = TypeVar("T")
INVALID_PARAMS, REFUSED, NO_AUTH, NOT_FOUND = -32602, -32603, -32000, -32002


class Editor:
    """`api` makes a way to the daemon: one for each call, because they may be many at once."""

    def __init__(self, api: Callable[[], Api]) -> None:
        self.api = api
        # The library's connection, once there is one.
        self.connection: Any = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def call(self, do: Callable[[Api], T]) -> T:
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
    code = REFUSED
    match error:
        case InvalidInput() | Forbidden():
            code = INVALID_PARAMS
        case NotFound():
            code = NOT_FOUND
        case Unauthenticated():
            code = NO_AUTH
    return RequestError(code, error.message, {"code": error.code})
