"""The endpoints of usage and budgets."""

from typing import Any

from palyra.transports.http import usage
from palyra.transports.http.routes import Gives, Route


def _json(type_: Any, status: int = 200) -> tuple[Gives, ...]:
    return (Gives(status, type_),)


USAGE: tuple[Route[Any, Any], ...] = (
    Route(method="GET", path="/v1/usage", summary="what models were asked, and what it cost", handler=usage.used,
          query=usage.UsageQuery, gives=_json(usage.UsageList)),
)  # fmt: skip
