"""Costs of models and their limits. Everybody sees their own; only an owner's token sees
everybody's and sets limits.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.agent.gateway import Gateway
from palyra.api.calls import ApiCall, Count, HttpResponse, Input, Nothing, Ulid, ok
from palyra.api.calls import Limit as PageSize
from palyra.api.routes import Gives, Route, json_of
from palyra.core.budgets import Limit, Spender, Terms
from palyra.core.errors import Forbidden
from palyra.features.budgets.forecasts import Forecasts, RunForecast, SpendingForecast
from palyra.features.budgets.service import BudgetService, BudgetState
from palyra.store import route_plans, usage
from palyra.store.database import Database
from palyra.store.route_plans import PlannedRoute
from palyra.store.runs import RunRow
from palyra.store.usage import GroupBy, UsageFilter, UsageRow


class UsageQuery(Input, frozen=True, kw_only=True):
    """`everybody` is for an owner's token: the usage of all principals."""

    by: GroupBy = "day"
    since_ms: Count = 0
    until_ms: Count = (1 << 53) - 1
    session_id: Ulid = ""
    run_id: Ulid = ""
    schedule_id: Ulid = ""
    everybody: bool = False
    limit: PageSize = 100


class UsageList(Struct, frozen=True):
    """`total` is of all groups, also of those beyond the limit."""

    usage: list[UsageRow]
    total: UsageRow


async def used(call: ApiCall[UsageQuery, Nothing]) -> HttpResponse:
    query = call.query
    if query.everybody and call.token.scope != "owner":
        raise Forbidden(
            "everybody's usage is for an owner's token; leave `everybody` away to see your own"
        )
    asked = UsageFilter(
        principal="" if query.everybody else call.principal,
        since_ms=query.since_ms,
        until_ms=query.until_ms,
        session_id=query.session_id,
        run_id=query.run_id,
        schedule_id=query.schedule_id,
    )
    found = await call.services.get(Database).read(
        lambda tx: (usage.grouped(tx, query.by, asked, query.limit), usage.total(tx, asked))
    )
    return ok(UsageList(*found))


class Whose(Input, frozen=True, kw_only=True):
    everybody: bool = False


class ScheduleQuery(Input, frozen=True, kw_only=True):
    """`times`: how many firings."""

    schedule_id: Ulid = ""
    times: Annotated[int, Meta(ge=1, le=100_000)] = 30


class BudgetList(Struct, frozen=True):
    budgets: list[BudgetState]


async def forecast(call: ApiCall[Whose, Nothing]) -> HttpResponse:
    if call.query.everybody and call.token.scope != "owner":
        raise Forbidden(
            "everybody's usage is for an owner's token; leave `everybody` away to see your own"
        )
    return ok(
        await call.services.get(Forecasts).month("" if call.query.everybody else call.principal)
    )


async def schedule_forecast(call: ApiCall[ScheduleQuery, Nothing]) -> HttpResponse:
    query = call.query
    return ok(
        await call.services.get(Forecasts).schedule(
            query.schedule_id, principal=call.principal, times=query.times
        )
    )


class RunPlans(Struct, frozen=True):
    """`plans` is empty where the run asked nobody yet, or where its tape was put away."""

    run: RunRow
    plans: list[PlannedRoute]


async def run_plans(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    run = await call.services.get(Gateway).run(call.principal, call.path["run_id"])
    return ok(
        RunPlans(
            run,
            await call.services.get(Database).read(lambda tx: route_plans.of_run(tx, run.run_id)),
        )
    )


async def list_budgets(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    """A limit that is about somebody else is the owner's to see."""
    states = await call.services.get(BudgetService).states(Spender(principal=call.principal))
    mine = [
        each
        for each in states
        if call.token.scope == "owner" or each.terms.who in ("", call.principal)
    ]
    return ok(BudgetList(mine))


async def put_budget(call: ApiCall[Nothing, Terms]) -> HttpResponse:
    return ok(
        await call.services.get(BudgetService).put(call.path["budget"], call.body, call.principal)
    )


async def remove_budget(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    await call.services.get(BudgetService).remove(call.path["budget"], call.principal)
    return HttpResponse(204)


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/usage",
        summary="what models were asked, and what it cost",
        handler=used,
        query=UsageQuery,
        gives=json_of(UsageList),
    ),
    Route(
        method="GET",
        path="/v1/usage/forecast",
        summary="what the month will have cost, by the trend",
        handler=forecast,
        query=Whose,
        gives=json_of(SpendingForecast),
    ),
    Route(
        method="GET",
        path="/v1/usage/forecast/schedule",
        summary="what so many firings of a schedule will use",
        handler=schedule_forecast,
        query=ScheduleQuery,
        gives=json_of(RunForecast),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run_id}/plans",
        summary="who was asked in a run, why, and what came of it",
        handler=run_plans,
        gives=json_of(RunPlans),
    ),
    Route(
        method="GET",
        path="/v1/budgets",
        summary="limits on what models may cost, and what is left of them",
        handler=list_budgets,
        gives=json_of(BudgetList),
    ),
    Route(
        method="PUT",
        path="/v1/budgets/{budget}",
        summary="set a limit, also in place of the one that has its name",
        handler=put_budget,
        scope="owner",
        body=Terms,
        gives=json_of(Limit),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path="/v1/budgets/{budget}",
        summary="remove a limit",
        handler=remove_budget,
        scope="owner",
        gives=(Gives(204),),
        errors=(404, 409),
    ),
)
