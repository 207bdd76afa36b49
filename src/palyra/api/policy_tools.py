"""Session rules and the tools over recorded decisions, over HTTP. Rules are a person's: no tool
leads here.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from palyra.agent.session_rules import SessionRules, ShownRule
from palyra.api import streams
from palyra.api.calls import (
    ApiCall,
    Count,
    HttpResponse,
    Input,
    Nothing,
    StreamingResponse,
    Ulid,
    ok,
)
from palyra.core.errors import Forbidden, InvalidInput
from palyra.core.events import ToolDecided
from palyra.core.services import Services
from palyra.policy import backtest, store, suggest
from palyra.policy.policy_set import PolicySet
from palyra.policy.reports import Explanation, Report
from palyra.policy.store import PolicyStore, ShadowSlot
from palyra.store import decisions
from palyra.store.database import Database


class NewRule(Input, frozen=True, kw_only=True):
    words: Annotated[str, Meta(min_length=1, max_length=1_000)]


class WhichRule(Input, frozen=True, kw_only=True):
    rule_id: Ulid


class RuleList(Struct, frozen=True):
    rules: list[ShownRule]


async def list_rules(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(
        RuleList(
            await call.services.get(SessionRules).listing(call.principal, call.path["session_id"])
        )
    )


async def add_rule(call: ApiCall[Nothing, NewRule]) -> HttpResponse:
    return ok(
        await call.services.get(SessionRules).add(
            call.principal, call.path["session_id"], call.body.words
        ),
        201,
    )


async def remove_rule(call: ApiCall[WhichRule, Nothing]) -> HttpResponse:
    return ok(
        await call.services.get(SessionRules).remove(
            call.principal, call.path["session_id"], call.query.rule_id
        )
    )


class Against(Input, frozen=True, kw_only=True):
    """Another set of policies: a preset, a folder on the daemon's machine, or both; what is not
    given is the one in force.
    """

    preset: str = ""
    folder: str = ""
    since_ms: Count = 0


class Since(Input, frozen=True, kw_only=True):
    since_ms: Count = 0


class WhichCall(Input, frozen=True, kw_only=True):
    call_id: Ulid


class DecidedCall(Struct, frozen=True):
    calls: int


class ExplainedCall(Struct, frozen=True, kw_only=True):
    """`decided` is what the tape says; `now` is how the policies in force decide the same
    question.
    """

    call_id: str
    session_id: str
    time_ms: int
    tool: str
    about: str
    decided: ToolDecided
    now: Explanation


async def test(call: ApiCall[Against, Nothing]) -> HttpResponse | StreamingResponse:
    policies = await asyncio.to_thread(_other, call.services, call.query)

    def work(progress: Callable[[int], None]) -> Report:
        return backtest.retest(
            call.services.get(Database).read_from_thread, policies, call.query.since_ms, progress
        )

    return await streams.told(call.headers, work, DecidedCall)


def _other(services: Services, wanted: Against) -> PolicySet:
    if wanted.folder and not os.path.isabs(wanted.folder):
        raise InvalidInput(
            "the policy folder must be an absolute path on the daemon's machine",
            folder=wanted.folder,
        )
    return store.load(
        Path(wanted.folder) if wanted.folder else services.get(PolicyStore).folder,
        wanted.preset or services.get(PolicyStore).preset,
    )


async def suggested(call: ApiCall[Since, Nothing]) -> HttpResponse:
    services, since_ms = call.services, call.query.since_ms
    return ok(
        await asyncio.to_thread(
            suggest.suggest,
            services.get(Database).read_from_thread,
            services.get(PolicyStore).current,
            since_ms,
        )
    )


async def shadowed(call: ApiCall[Since, Nothing]) -> HttpResponse:
    services = call.services
    return ok(
        await asyncio.to_thread(
            backtest.shadowed,
            services.get(Database).read_from_thread,
            call.query.since_ms,
            services.get(ShadowSlot).current,
        )
    )


async def explain_call(call: ApiCall[WhichCall, Nothing]) -> HttpResponse:
    found = await call.services.get(Database).read(
        lambda tx: decisions.find(tx, call.query.call_id)
    )
    if found.principal != call.principal:
        raise Forbidden("this call was made for someone else", call_id=call.query.call_id)
    now = await asyncio.to_thread(call.services.get(PolicyStore).explain, backtest.question(found))
    proposed = found.proposed
    return ok(
        ExplainedCall(
            call_id=proposed.call_id,
            session_id=found.session_id,
            time_ms=found.time_ms,
            tool=proposed.tool,
            about=backtest.about(proposed.scope),
            decided=found.decided,
            now=now,
        )
    )
