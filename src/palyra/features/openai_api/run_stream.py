"""Following a run to its answer: the words as they come, the calls for the caller, what was used,
how it ended.

The words of a request's answer are all that the agent says until it is done, turn after turn.
Deltas bring them early; the recorded replies say what they were, so that an answer is whole
whatever a slow connection missed.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from msgspec import Struct

from palyra.agent.gateway import Gateway
from palyra.api.calls import ApiCall
from palyra.api.decoding import Gone
from palyra.api.limits import ApiLimits, StreamEnd
from palyra.api.streams import gone, place
from palyra.core import events
from palyra.core.errors import Conflict, InvalidInput, PalyraError, Unavailable
from palyra.core.events import (
    AnyEvent,
    ApprovalRequested,
    ModelDelta,
    ModelReplied,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunResumed,
    RunWaiting,
    ToolHandedOver,
    ToolProposed,
)
from palyra.core.messages import Usage
from palyra.core.services import Services
from palyra.features.openai_api.parse_request import call_name
from palyra.features.openai_api.sessions import CallerRequest, CallerRun, Callers
from palyra.store import approvals
from palyra.store.database import Database
from palyra.system import thread_pool
from palyra.system.clock import Clock

_BETWEEN = "\n\n"
_LARGE = 256 << 10
_WAIT = re.compile(rb"\bwait=(\d{1,6})\b")
# How OpenAI's own programs say how long they wait, in seconds.
_OWN_TIMEOUTS = (b"x-stainless-timeout", b"x-stainless-read-timeout")
_SECONDS = re.compile(rb"\d{1,6}(\.\d{1,6})?")
# The part of a caller's time in which the answer must be on its way.
_IN_TIME = 0.9
_SOONEST_MS = 1_000
_delta = msgspec.json.Decoder(ModelDelta)


class _Head(Struct, frozen=True):
    kind: str
    run_id: str = ""
    event: msgspec.Raw = msgspec.Raw()


_head = msgspec.json.Decoder(_Head)
_TOLD = frozenset(
    {
        "model.replied",
        "tool.proposed",
        "tool.handed_over",
        "approval.requested",
        "run.waiting",
        "run.resumed",
        "run.completed",
        "run.failed",
        "run.cancelled",
    }
)


class AnswerFailed(Unavailable):
    """The run that should have answered failed. Asking again starts another one, so nobody should
    do it unasked.
    """

    retryable = False


class ProviderAway(Unavailable):
    """Error: no provider answered in the caller's time; `retry_after_ms` says when one may."""


class HandedCall(Struct, frozen=True):
    name: str
    tool: str
    arguments: str


@dataclass
class Answering:
    """Answer to a request so far. Of a `formed` one only the last word counts, once it is known to
    fit.
    """

    begun: CallerRun
    formed: bool = False
    model: str = ""
    text: list[str] = field(default_factory=list)
    calls: tuple[HandedCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish: str = ""
    error: PalyraError | None = None
    # What the run waits for while no provider can answer, and how long the caller does.
    waiting: RunWaiting | None = None
    away_s: float = 30.0
    _stop: str = ""
    _turn: int = 0
    _heard: list[str] = field(default_factory=list)
    _proposed: dict[str, ToolProposed] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return bool(self.finish) or self.error is not None

    def live(self, wire: bytes) -> str:
        """The words that a live event adds."""
        # Most of what is live are words; what tools report on the way is none.
        if self.formed or not wire.startswith(b'{"kind":"model.delta"'):
            return ""
        delta = _delta.decode(wire)
        if delta.run_id != self.begun.run_id or not delta.text:
            return ""
        if delta.turn != self._turn:
            self._turn, self._heard = delta.turn, []
        text = delta.text
        if delta.whole:
            heard = "".join(self._heard)
            text = text[len(heard) :] if text.startswith(heard) else ""
        return self._said(text)

    def entry(self, wire: bytes) -> str:
        """The words that an entry adds, or a note for who looks on."""
        head = _head.decode(wire)
        if head.run_id != self.begun.run_id or head.kind not in _TOLD:
            return ""
        return self.told(events.decode(head.event))

    def told(self, event: AnyEvent) -> str:
        match event:
            case ModelReplied() as replied:
                return self._replied(replied)
            case ToolProposed() as proposed:
                self._proposed[proposed.call_id] = proposed
            case RunWaiting() as waiting:
                self.waiting = waiting
            case RunResumed():
                self.waiting = None
            case ToolHandedOver(calls=calls):
                self.calls = tuple(self._call(each) for each in calls)
                self.finish = "tool_calls"
            case RunCompleted(text=text):
                self.finish = self._stop if self._stop in ("length", "content_filter") else "stop"
                return self._said(text) if self.formed else ""
            case RunFailed(reason="model_bad_request", message=message):
                # The model's own refusal of what was asked for: asking the same again is no use.
                self.error = InvalidInput(message, reason="model_bad_request", **self._where())
            case RunFailed(reason=reason, message=message):
                self.error = AnswerFailed(message, reason=reason, **self._where())
            case RunCancelled(reason=reason):
                self.error = Conflict(
                    f"the run was cancelled: {reason}", reason="cancelled", **self._where()
                )
        return ""

    def asked(self, wire: bytes) -> ApprovalRequested | None:
        """The question that an entry asks a person, if it is one of this run."""
        if b'"approval.requested"' not in wire:
            return None
        head = _head.decode(wire)
        event = events.decode(head.event) if head.run_id == self.begun.run_id else None
        return event if isinstance(event, ApprovalRequested) else None

    def _where(self) -> dict[str, str]:
        return {"run_id": self.begun.run_id, "session_id": self.begun.session_id}

    def _replied(self, replied: ModelReplied) -> str:
        used, more = self.usage, replied.usage
        self.usage = Usage(
            used.input_tokens + more.input_tokens,
            used.output_tokens + more.output_tokens,
            used.cached_tokens + more.cached_tokens,
            used.cache_write_tokens + more.cache_write_tokens,
            used.reasoning_tokens + more.reasoning_tokens,
        )
        self.model = f"{replied.provider}/{replied.model}"
        self._stop = replied.stop
        if self.formed:
            return ""
        if replied.turn != self._turn:
            self._turn, self._heard = replied.turn, []
        heard = "".join(self._heard)
        if replied.text.startswith(heard):
            rest = self._said(replied.text[len(heard) :])
        else:
            # What was heard belonged to an attempt that failed.
            self._heard = []
            rest = self._said(replied.text)
        self._turn, self._heard = 0, []
        return rest

    def _said(self, text: str) -> str:
        if not text:
            return ""
        first = not self._heard
        self._heard.append(text)
        added = _BETWEEN + text if first and self.text else text
        self.text.append(added)
        return added

    def _call(self, call_id: str) -> HandedCall:
        proposed = self._proposed[call_id]
        arguments = msgspec.json.encode(proposed.arguments).decode()
        return HandedCall(call_name(self.begun.run_id, call_id), proposed.tool, arguments)


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
    size = call.headers.get(b"content-length", b"")
    large = size.isdigit() and int(size) > _LARGE
    asked = (
        await thread_pool.everyday.run(read, call.body, call.headers)
        if large
        else read(call.body, call.headers)
    )
    held = StreamPlace(call)
    try:
        formed = asked.wanted is not None and asked.wanted.form != "text"
        begun = await call.services.get(Callers).begin(call.principal, asked, call.token)
        away_s = _away_s(call.headers, call.services.get(ApiLimits))
        return Answering(begun, formed, away_s=away_s), held
    except BaseException:
        held.__exit__()
        raise


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
