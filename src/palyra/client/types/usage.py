"""Written by scripts/clients.py from the route table: types of the verbs about usage."""

from msgspec import Struct

from palyra.core.budgets import Limit, Terms

__all__ = [
    "BudgetList",
    "BudgetState",
    "Forecast",
    "Limit",
    "RunForecast",
    "Terms",
    "UsageList",
    "UsageRow",
]


class UsageRow(Struct, frozen=True, kw_only=True):
    """`group` is what was grouped by: an id, `provider/model`, a name; hours and days as their
    number since 1970, months as `2026-11`, all UTC. `duration_ms` and `first_delta_ms` (until the
    first word) are means per call, `slowest_ms` is the longest.
    """

    group: str
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_microusd: int
    duration_ms: int
    first_delta_ms: int
    unpriced: int = 0
    slowest_ms: int = 0
    from_ms: int = 0
    until_ms: int = 0
    estimated: int = 0
    cache_write_tokens: int = 0
    first_p50_ms: int = 0
    first_p95_ms: int = 0
    duration_p50_ms: int = 0
    duration_p95_ms: int = 0


class UsageList(Struct, frozen=True, kw_only=True):
    """`total` is of all groups, also of those beyond the limit."""

    usage: list[UsageRow]
    total: UsageRow


class Forecast(Struct, frozen=True, kw_only=True):
    """`spent` since `from_ms`, `expected` in all by `until_ms`. `basis` says how it was worked out.
    In four of five months like this one the sum lies between `low` and `high`.
    """

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
    low_tokens: int = 0
    high_tokens: int = 0
    low_microusd: int = 0
    high_microusd: int = 0


class RunForecast(Struct, frozen=True, kw_only=True):
    """Forecast for one run and for a number of runs; `runs` is how many past runs it is based on,
    0: unknown.
    """

    runs: int
    times: int
    tokens: int = 0
    microusd: int = 0
    most_microusd: int = 0
    expected_tokens: int = 0
    expected_microusd: int = 0
    unpriced: int = 0
    basis: str = ""


class BudgetState(Struct, frozen=True, kw_only=True):
    """A limit and one account that is held against it. `until_ms` is when it begins anew, 0 for
    never.
    """

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


class BudgetList(Struct, frozen=True, kw_only=True):
    budgets: list[BudgetState]
