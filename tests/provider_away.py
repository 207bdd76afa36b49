"""A provider that a test switches off and on again, and time that passes while a daemon waits for
it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from palyra.core.ids import OWNER
from palyra.core.messages import (
    Emit,
    FailureClass,
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    Text,
    UserMessage,
)
from tests.clocks import HeldClock
from tests.inprocess import TERMINAL, entries

T = TypeVar("T")
_STEP_MS = 1_000


def last_said(request: ModelRequest) -> str:
    said = [message for message in request.messages if isinstance(message, UserMessage)]
    return (
        next((part.text for part in said[-1].parts if isinstance(part, Text)), "") if said else ""
    )


class AwayProvider:
    """Says `answer to X` to X while it is there. `asked` is everything it was asked, in order."""

    name = "away"

    def __init__(self, *, down: FailureClass | None = None) -> None:
        self.down: FailureClass | None = down
        self.retry_after_ms: int | None = None
        self.message = "the provider is away"
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.models: list[str] = []
        self.at_once = self.most_at_once = 0
        # Set: an answer comes only once it is cleared again.
        self.slow: asyncio.Event | None = None
        # Messages that are answered with a call first, and those that get no answer while it is away.
        self.calls: dict[str, ModelCall] = {}
        self.only: set[str] = set()
        # Models that answer whatever happens to the others.
        self.well: set[str] = set()

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        said = last_said(request)
        self.asked.append(said)
        self.models.append(request.model)
        away = not self.only or said in self.only
        if self.down is not None and away and request.model not in self.well:
            raise ModelFailure(self.down, self.message, retry_after_ms=self.retry_after_ms)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.slow is not None:
                await self.slow.wait()
            else:
                await asyncio.sleep(0)
        finally:
            self.at_once -= 1
        if said in self.calls and isinstance(request.messages[-1], UserMessage):
            return ModelReply(calls=(self.calls[said],), stop="tool_calls", model=request.model)
        text = f"answer to {said}"
        emit("text", text)
        self.answered.append(said)
        return ModelReply(text=text, model=request.model)


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, as one that is not."""

    @wraps(test)
    def run(*args: object, **named: object) -> None:
        asyncio.run(test(*args, **named))

    return run


async def soon(clock: HeldClock, work: Awaitable[T]) -> T:
    """What comes of this within a moment: so little time passes that nothing else comes due."""
    return await passing(clock, work, step_ms=50)


async def passing(clock: HeldClock, work: Awaitable[T], *, step_ms: int = _STEP_MS) -> T:
    """What comes of this, while time passes in small steps."""
    task = asyncio.ensure_future(work)
    async with asyncio.timeout(90):
        while not task.done():
            await asyncio.wait({task}, timeout=0.005)
            if not task.done() and clock.next_ms:
                clock.advance(min(step_ms, clock.next_ms))
    return task.result()


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while True:
            if await look():
                return
            await asyncio.sleep(0.005)


async def waits(d: Any, run_id: str) -> bool:
    run = await d.gateway.run(OWNER, run_id)
    return bool(run.state == "waiting" and run.reason == "provider")


async def answers(d: Any, session_ids: list[str]) -> dict[str, list[str]]:
    """How each run of these sessions ended: the kinds of its last entries, by run."""
    found: dict[str, list[str]] = {}
    for session_id in session_ids:
        for entry in await entries(d, session_id):
            if entry.kind in TERMINAL:
                found.setdefault(entry.run_id, []).append(entry.kind)
    return found
