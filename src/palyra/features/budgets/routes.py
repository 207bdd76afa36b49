"""The endpoints of usage and budgets."""

from typing import Any

from palyra.api.routes import Gives, Route
from palyra.core.budgets import Limit, Terms
from palyra.features.budgets import http
from palyra.features.budgets.forecasts import RunForecast, SpendingForecast


def _json(type_: Any, status: int = 200) -> tuple[Gives, ...]:
    return (Gives(status, type_),)


USAGE: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/usage",
        summary="what models were asked, and what it cost",
        handler=http.used,
        query=http.UsageQuery,
        gives=_json(http.UsageList),
    ),
    Route(
        method="GET",
        path="/v1/usage/forecast",
        summary="what the month will have cost, by the trend",
        handler=http.forecast,
        query=http.Whose,
        gives=_json(SpendingForecast),
    ),
    Route(
        method="GET",
        path="/v1/usage/forecast/schedule",
        summary="what so many firings of a schedule will use",
        handler=http.schedule_forecast,
        query=http.ScheduleQuery,
        gives=_json(RunForecast),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/runs/{run_id}/plans",
        summary="who was asked in a run, why, and what came of it",
        handler=http.run_plans,
        gives=_json(http.RunPlans),
    ),
    Route(
        method="GET",
        path="/v1/budgets",
        summary="limits on what models may cost, and what is left of them",
        handler=http.list_budgets,
        gives=_json(http.BudgetList),
    ),
    Route(
        method="PUT",
        path="/v1/budgets/{budget}",
        summary="set a limit, also in place of the one that has its name",
        handler=http.put_budget,
        scope="owner",
        body=Terms,
        gives=_json(Limit),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path="/v1/budgets/{budget}",
        summary="remove a limit",
        handler=http.remove_budget,
        scope="owner",
        gives=(Gives(204),),
        errors=(404, 409),
    ),
)
