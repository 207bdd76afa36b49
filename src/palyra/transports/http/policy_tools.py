"""Session rules and the tools over recorded decisions, over HTTP. Rules are a person's: no tool leads here."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from palyra.domain.errors import Forbidden, InvalidInput
from palyra.domain.events import ToolDecided
from palyra.journal import decisions
from palyra.policy import store, suggest, testing
from palyra.policy.explain import Explanation
from palyra.policy.policy_set import PolicySet
from palyra.policy.reports import Report
from palyra.runtime.rules import ShownRule
from palyra.transports.http.calls import SSE, Answer, Call, Count, Input, Nothing, Parts, Streaming, Ulid, encode, ok
from palyra.transports.http.watching import HEARTBEAT


class NewRule(Input, frozen=True, kw_only=True):
    words: Annotated[str, Meta(min_length=1, max_length=1_000)]


class WhichRule(Input, frozen=True, kw_only=True):
    rule_id: Ulid


class RuleList(Struct, frozen=True):
    rules: list[ShownRule]


async def list_rules(call: Call[Nothing, Nothing]) -> Answer:
    return ok(RuleList(await call.parts.rules.listing(call.principal, call.path["session_id"])))


async def add_rule(call: Call[Nothing, NewRule]) -> Answer:
    return ok(await call.parts.rules.add(call.principal, call.path["session_id"], call.body.words), 201)


async def remove_rule(call: Call[WhichRule, Nothing]) -> Answer:
    return ok(await call.parts.rules.remove(call.principal, call.path["session_id"], call.query.rule_id))


# --- recorded decisions -------------------------------------------------------------------------------------------------


class Against(Input, frozen=True, kw_only=True):
    """Another set of policies: a preset, a folder on the daemon's machine, or both; what is not given is the one in force."""

    preset: str = ""
    folder: str = ""
    since_ms: Count = 0


class Since(Input, frozen=True, kw_only=True):
    since_ms: Count = 0


class WhichCall(Input, frozen=True, kw_only=True):
    call_id: Ulid


class Decided(Struct, frozen=True):
    calls: int


class ExplainedCall(Struct, frozen=True, kw_only=True):
    """`decided` is what the tape says; `now` is how the policies in force decide the same question."""

    call_id: str
    session_id: str
    time_ms: int
    tool: str
    about: str
    decided: ToolDecided
    now: Explanation


class _Abandoned(Exception):
    """Nobody waits for this any more."""


async def test(call: Call[Against, Nothing]) -> Answer | Streaming:
    policies = await asyncio.to_thread(_other, call.parts, call.query)
    if SSE in call.headers.get(b"accept", b""):
        return Streaming(SSE, _test_events(call.parts, policies, call.query.since_ms), HEARTBEAT)
    return ok(await asyncio.to_thread(_test, call.parts, policies, call.query.since_ms, lambda calls: None))


def _other(parts: Parts, wanted: Against) -> PolicySet:
    if wanted.folder and not os.path.isabs(wanted.folder):
        raise InvalidInput("the policy folder must be an absolute path on the daemon's machine", folder=wanted.folder)
    return store.load(Path(wanted.folder) if wanted.folder else parts.policy.folder, wanted.preset or parts.policy.preset)


def _test(parts: Parts, policies: PolicySet, since_ms: int, progress: Callable[[int], None]) -> Report:
    return testing.retest(parts.db.read_from_thread, policies, since_ms, progress)


async def _test_events(parts: Parts, policies: PolicySet, since_ms: int) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    seen: asyncio.Queue[int] = asyncio.Queue()
    abandoned = False

    def progress(calls: int) -> None:
        if abandoned:
            raise _Abandoned
        loop.call_soon_threadsafe(seen.put_nowait, calls)

    work = asyncio.create_task(asyncio.to_thread(_test, parts, policies, since_ms, progress))
    try:
        while not work.done():
            waiting = asyncio.create_task(seen.get())
            await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if waiting.done() and not waiting.cancelled():
                yield b"event: progress\ndata: %b\n\n" % encode(Decided(waiting.result()))
        yield b"event: report\ndata: %b\n\n" % encode(work.result())
    finally:
        abandoned = True
        work.cancel()


async def suggested(call: Call[Since, Nothing]) -> Answer:
    parts, since_ms = call.parts, call.query.since_ms
    return ok(await asyncio.to_thread(suggest.suggest, parts.db.read_from_thread, parts.policy.current, since_ms))


async def shadowed(call: Call[Since, Nothing]) -> Answer:
    parts = call.parts
    return ok(await asyncio.to_thread(testing.shadowed, parts.db.read_from_thread, call.query.since_ms, parts.shadow))


async def explain_call(call: Call[WhichCall, Nothing]) -> Answer:
    found = await call.parts.db.read(lambda tx: decisions.find(tx, call.query.call_id))
    if found.principal != call.principal:
        raise Forbidden("this call was made for someone else", call_id=call.query.call_id)
    now = await asyncio.to_thread(call.parts.policy.explain, testing.question(found))
    proposed = found.proposed
    return ok(
        ExplainedCall(
            call_id=proposed.call_id,
            session_id=found.session_id,
            time_ms=found.time_ms,
            tool=proposed.tool,
            about=testing.about(proposed.scope),
            decided=found.decided,
            now=now,
        )
    )
