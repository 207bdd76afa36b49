"""Session rules and the tools over recorded decisions, over HTTP. Rules are a person's: no tool leads here."""

from typing import Annotated

from msgspec import Meta, Struct

from palyra.runtime.rules import ShownRule
from palyra.transports.http.calls import Answer, Call, Input, Nothing, Ulid, ok


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
