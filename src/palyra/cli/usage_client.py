"""The daemon's verbs about usage, budgets and forecasts over HTTP. Shapes as in `client`."""

from typing import Any

import msgspec
from msgspec import Struct

from palyra.cli.client import checked
from palyra.client.http import Api
from palyra.core.budgets import Limit, Terms
from palyra.store.usage import UsageRow


class Used(Struct, frozen=True):
    usage: list[UsageRow]
    total: UsageRow


class Budget(Struct, frozen=True, kw_only=True):
    name: str
    source: str
    terms: Terms
    says: str
    who: str
    period: str
    until_ms: int
    unit: str
    limit: int
    spent: int
    reserved: int
    left: int


class Budgets(Struct, frozen=True):
    budgets: list[Budget]


class Forecast(Struct, frozen=True, kw_only=True):
    from_ms: int
    until_ms: int
    spent_tokens: int
    spent_microusd: int
    expected_tokens: int
    expected_microusd: int
    a_day_tokens: int
    a_day_microusd: int
    unpriced: int = 0
    basis: str = ""


def used(
    api: Api,
    by: str,
    *,
    since_ms: int = 0,
    session_id: str = "",
    everybody: bool = False,
    limit: int = 100,
) -> Used:
    given = checked(session_id) if session_id else ""
    everyone = {"everybody": "true"} if everybody else {}
    return api.get(
        "/v1/usage", Used, by=by, since_ms=since_ms, session_id=given, limit=limit, **everyone
    )


def budgets(api: Api) -> Budgets:
    return api.get("/v1/budgets", Budgets)


def put_budget(api: Api, name: str, terms: dict[str, Any]) -> Limit:
    return msgspec.json.decode(api.request("PUT", f"/v1/budgets/{name}", terms), type=Limit)


def remove_budget(api: Api, name: str) -> None:
    api.delete(f"/v1/budgets/{name}")


def forecast(api: Api, *, everybody: bool = False) -> Forecast:
    return api.get("/v1/usage/forecast", Forecast, **({"everybody": "true"} if everybody else {}))
