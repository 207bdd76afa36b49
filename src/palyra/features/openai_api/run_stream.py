"""Following a run to its answer: how long a caller waits for it, and what happens if it goes away
or no provider can answer.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, cast

from palyra.agent.gateway import Gateway
from palyra.api.calls import ApiCall
from palyra.api.decoding import Gone
from palyra.api.limits import ApiLimits, StreamEnd
from palyra.api.streams import gone, place
from palyra.core.errors import Conflict, Unavailable
from palyra.core.events import ApprovalRequested
from palyra.core.services import Services
from palyra.features.openai_api import parameters
from palyra.features.openai_api.answer_options import refuse
from palyra.features.openai_api.answers import Answering
from palyra.features.openai_api.names import CallerRun
from palyra.features.openai_api.sessions import CallerRequest, Callers
from palyra.store import approvals
from palyra.store.database import Database
from palyra.system import thread_pool
from palyra.system.clock import Clock
from palyra.tools.catalogue import Catalogue

_LARGE = 256 << 10
_WAIT = re.compile(rb"\bwait=(\d{1,6})\b")
# How OpenAI's own programs say how long they wait, in seconds.
_OWN_TIMEOUTS = (b"x-stainless-timeout", b"x-stainless-read-timeout")
_SECONDS = re.compile(rb"\d{1,6}(\.\d{1,6})?")
# The part of a caller's time in which the answer must be on its way.
_IN_TIME = 0.9
_SOONEST_MS = 1_000
_SEARCH = "web.search"


class ProviderAway(Unavailable):
    """Error: no provider answered in the caller's time; `retry_after_ms` says when one may."""


async def follow(
    services: Services, principal: str, answering: Answering
) -> AsyncGenerator[str | ApprovalRequested, None]:
    """The words of the answer as they come, and questions to a person; ends when the answer
    does, or when no provider can answer in the caller's time.
    """
    begun = answering.begun
    watching = services.get(Gateway).watch(principal, begun.session_id, begun.seq)
    until = asyncio.get_running_loop().time() + answering.away_s
    async with aclosing(_closable(watching)) as batches:
        while True:
            try:
                async with asyncio.timeout_at(_away_at(services, answering, until)):
                    batch = await anext(batches)
            except TimeoutError:
                answering.error = await _away(services, principal, answering)
                return
            words: list[str] = []
            for seq, wire in batch:
                words.append(answering.entry(wire) if seq else answering.live(wire))
                if answering.over:
                    break
                if seq and (question := answering.asked(wire)) is not None:
                    yield question
            if text := "".join(words):
                yield text
            if answering.over:
                return


def _away_at(services: Services, answering: Answering, until: float) -> float | None:
    """Return when the caller is told that nobody can answer: at once, if the next try is too late
    for it. None: somebody may be answering.
    """
    if answering.waiting is None:
        return None
    now = asyncio.get_running_loop().time()
    left_ms = answering.waiting.next_try_ms - services.get(Clock).now_ms()
    return until if now + left_ms / 1000 < until else now


async def _away(services: Services, principal: str, answering: Answering) -> ProviderAway:
    begun = answering.begun
    run = await services.get(Gateway).run(principal, begun.run_id)
    next_ms = run.wait.next_try_ms if run.wait is not None else 0
    await services.get(Callers).give_up(principal, begun)
    left_ms = max(_SOONEST_MS, next_ms - services.get(Clock).now_ms())
    return ProviderAway(
        "no provider can answer at the moment: try again later",
        retry_after_ms=left_ms,
        run_id=begun.run_id,
        session_id=begun.session_id,
    )


def _closable(
    watching: AsyncIterator[Sequence[tuple[int, bytes]]],
) -> AsyncGenerator[Sequence[tuple[int, bytes]], None]:
    return cast("AsyncGenerator[Sequence[tuple[int, bytes]], None]", watching)


class StreamPlace:
    """A place for an answer that is waited for, held before its run begins: who gets none must not
    have started anything.
    """

    def __init__(self, call: ApiCall[Any, Any]) -> None:
        self._place = place(call.services, call.token)
        self._ended = self._place.__enter__()

    def __enter__(self) -> StreamEnd:
        return self._ended

    def __exit__(self, *_: object) -> None:
        self._place.__exit__(None, None, None)


async def begin(
    call: ApiCall[Any, Any], read: Callable[[Any, dict[bytes, bytes]], CallerRequest]
) -> tuple[Answering, StreamPlace]:
    """Set the run to work that answers. What is large is read beside the event loop."""
    ignored = parameters.unused(call.unread, call.body)
    size = call.headers.get(b"content-length", b"")
    large = size.isdigit() and int(size) > _LARGE
    asked = (
        await thread_pool.everyday.run(read, call.body, call.headers)
        if large
        else read(call.body, call.headers)
    )
    if asked.searches and not _can_search(call.services):
        refuse(
            asked.searches,
            "no search engine is set up here: leave it out, or set web_search.engine",
        )
    held = StreamPlace(call)
    try:
        formed = asked.wanted is not None and asked.wanted.form != "text"
        begun = await call.services.get(Callers).begin(call.principal, asked, call.token)
        away_s = _away_s(call.headers, call.services.get(ApiLimits))
        return Answering(begun, formed, away_s=away_s, ignored=ignored), held
    except BaseException:
        held.__exit__()
        raise


def _can_search(services: Services) -> bool:
    return any(each.name == _SEARCH for each in services.get(Catalogue).specs())


async def whole(call: ApiCall[Any, Any], answering: Answering, held: StreamPlace) -> None:
    """The whole answer. Who goes away meanwhile ends a run that is nobody else's; who waits too
    long is told how to come back.
    """
    services, begun = call.services, answering.begun
    with held as ended:
        work = asyncio.create_task(_to_the_end(services, call.principal, answering))
        left = asyncio.create_task(gone(call.receive))
        try:
            patience_s = _patience_s(call.headers, services.get(ApiLimits).answer_s)
            await asyncio.wait(
                {work, left, ended.future}, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (work, left):
                task.cancel()
            await asyncio.wait({work, left})
    if not work.cancelled():
        work.result()
    elif not left.cancelled():
        await services.get(Callers).leave(call.principal, begun)
        raise Gone
    else:
        raise await _unfinished(services, call.principal, begun)
    if answering.error is not None:
        raise answering.error


def _patience_s(headers: dict[bytes, bytes], most: float) -> float:
    """Return how long the caller waits: as it prefers, and no longer than anybody may."""
    wanted = _WAIT.search(headers.get(b"prefer", b""))
    return min(int(wanted[1]), most) if wanted else most


def _away_s(headers: dict[bytes, bytes], limits: ApiLimits) -> float:
    """Return how long a caller is kept while no provider can answer: by its own time-out, if
    said.
    """
    said = [headers.get(name, b"") for name in _OWN_TIMEOUTS]
    if wanted := _WAIT.search(headers.get(b"prefer", b"")):
        said.append(wanted[1])
    known = [float(each) for each in said if _SECONDS.fullmatch(each)]
    return _IN_TIME * min([*known, limits.answer_s]) if known else limits.unavailable_s


async def _to_the_end(services: Services, principal: str, answering: Answering) -> None:
    async for _ in follow(services, principal, answering):
        pass


async def _unfinished(services: Services, principal: str, begun: CallerRun) -> Conflict:
    asked = await services.get(Database).read(lambda tx: approvals.pending_of_run(tx, begun.run_id))
    waits = (
        f"waits for approval {asked[0].approval_id}: answer it (`palyra approvals`)"
        if asked
        else "is not done"
    )
    return Conflict(
        f"run {begun.run_id} {waits}. It goes on; send the same request again with the header"
        f" Idempotency-Key: {begun.run_id} to get its answer, or ask with stream=true, which waits"
        " as long as it takes",
        run_id=begun.run_id,
        session_id=begun.session_id,
        approvals=[each.approval_id for each in asked],
    )
