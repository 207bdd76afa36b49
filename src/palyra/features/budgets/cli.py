"""`palyra usage`: what models were asked and what it cost, as tables with bars and lines; the
limits on it, and where it goes.
"""

import time
from collections.abc import Sequence
from typing import Any

import click

from palyra.cli import formatting, short_ids
from palyra.cli.commands import group, verb
from palyra.cli.formatting import bar
from palyra.cli.state import CliState
from palyra.client.types.usage import UsageRow
from palyra.core.budgets import Terms, amount
from palyra.core.errors import InvalidInput

_HEIGHTS = "▁▂▃▄▅▆▇█"
_MOST_POINTS = 60
_GROUPS = [
    "day",
    "hour",
    "month",
    "model",
    "session",
    "run",
    "call",
    "principal",
    "schedule",
    "origin",
    "task",
]
_SPAN = {"day": 1, "hour": 1}

usage = group(
    "usage",
    "Tokens and cost, by day, model, session, run and more; budgets and forecast.",
    default="show",
)


@verb(usage, "show", help="What models were asked and what it cost, with a bar for each row.")
@click.option("--by", type=click.Choice(_GROUPS), default="day", show_default=True)
@click.option(
    "--since",
    default="30d",
    show_default=True,
    metavar="TIME",
    help="How far back: 12h, 30d, 8w, or all.",
)
@click.option("--session", "session_id", default="", metavar="ID", help="Only this session.")
@click.option("--everybody", is_flag=True, help="Of all principals; needs an owner's token.")
@click.option("--plot", is_flag=True, help="Lines of tokens, cost and time instead of a table.")
def show(
    state: CliState, by: Any, since: str, session_id: str, everybody: bool, plot: bool
) -> None:
    since_ms = 0 if since == "all" else int(time.time() * 1000) - formatting.parse_duration(since)
    whole = short_ids.session(state.api, session_id) if session_id else ""
    found = state.api.usage(
        by=by, since_ms=max(0, since_ms), session_id=whole, limit=100, everybody=everybody
    )
    if state.out.as_json:
        state.out.json(found)
        return
    if not found.usage:
        state.out.line("No usage in this period.")
        return
    if plot:
        for line in lines(list(reversed(found.usage)), by):
            state.out.line(line)
        return
    _table(state, by, found.usage)
    if found.total.unpriced:
        state.out.line(
            f"{formatting.counted(found.total.unpriced, 'call has', 'calls have')} no known price:"
            " put it into prices.toml"
        )
    if found.total.estimated:
        counted = formatting.counted(found.total.estimated, "call is", "calls are")
        state.out.line(f"{counted} estimated: broken off, or the provider reported no usage")


def _table(state: CliState, by: str, rows: Sequence[UsageRow]) -> None:
    most = max(row.input_tokens + row.output_tokens for row in rows)
    # Most providers charge nothing for it and do not report it.
    writes = any(row.cache_write_tokens for row in rows)
    columns = [by, "calls", "in", "cached", *(["written"] if writes else []), "out", "cost"]
    columns += ["first word", "whole call", "tokens"]
    table = [
        [
            _name(row.group, by),
            formatting.count(row.calls),
            formatting.count(row.input_tokens),
            formatting.count(row.cached_tokens),
            *([formatting.count(row.cache_write_tokens)] if writes else []),
            formatting.count(row.output_tokens),
            cost(row),
            formatting.duration(row.first_delta_ms),
            formatting.duration(row.duration_ms),
            bar(row.input_tokens + row.output_tokens, most),
        ]
        for row in rows
    ]
    state.out.table(columns, table, right=columns[1:-1])


def cost(row: UsageRow) -> str:
    """Return the cost as text. An unknown cost is shown as unknown, not as free."""
    if row.unpriced == row.calls:
        return "unknown"
    return formatting.money(row.cost_microusd) + ("+" if row.unpriced else "")


def lines(rows: Sequence[UsageRow], by: str) -> list[str]:
    """Tokens, cost and time from the oldest to the newest, each as a line of small bars. Days and
    hours without use are gaps.
    """
    spread = _spread(rows, by)[-_MOST_POINTS:]
    first, last = rows[0], rows[-1]
    kinds = (
        (
            "tokens",
            [row.input_tokens + row.output_tokens if row else 0 for row in spread],
            formatting.count,
        ),
        ("cost", [row.cost_microusd if row else 0 for row in spread], formatting.money),
        ("first word", [row.first_delta_ms if row else 0 for row in spread], formatting.duration),
        ("whole call", [row.duration_ms if row else 0 for row in spread], formatting.duration),
    )
    drawn = [f"{name:<11} {spark(values)}  most {say(max(values))}" for name, values, say in kinds]
    return [*drawn, f"{'':<11} {_name(first.group, by)} … {_name(last.group, by)}"]


def _spread(rows: Sequence[UsageRow], by: str) -> list[UsageRow | None]:
    if by not in _SPAN:
        return list(rows)
    known = {int(row.group): row for row in rows}
    return [known.get(at) for at in range(min(known), max(known) + 1)]


def spark(values: Sequence[int]) -> str:
    most = max(values, default=0)
    return "".join(
        " " if not value else _HEIGHTS[min(7, value * 8 // (most + 1))] for value in values
    )


def _name(name: str, by: str) -> str:
    """Days and hours from their number since 1970, UTC."""
    if by == "day" and name.isdecimal():
        return time.strftime("%Y-%m-%d", time.gmtime(int(name) * 86_400))
    if by == "hour" and name.isdecimal():
        return time.strftime("%Y-%m-%d %H:00", time.gmtime(int(name) * 3_600))
    return name


@verb(
    usage,
    "budgets",
    help="Limits on what models may cost: list; `set NAME` and `remove NAME` change them.",
)
@click.argument("what", type=click.Choice(["list", "set", "remove"]), default="list")
@click.argument("name", default="")
@click.option("--tokens", type=click.IntRange(1), default=None, help="The limit in tokens.")
@click.option(
    "--usd", type=click.FloatRange(0, min_open=True), default=None, help="The limit in dollars."
)
@click.option(
    "--per",
    type=click.Choice(["all", "principal", "session", "schedule", "run"]),
    default="all",
    show_default=True,
)
@click.option(
    "--every", type=click.Choice(["ever", "month", "day"]), default="month", show_default=True
)
@click.option(
    "--then",
    type=click.Choice(["block", "ask"]),
    default="block",
    show_default=True,
    help="When it is used up.",
)
@click.option(
    "--warn-at",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="Share at which you are told.",
)
@click.option("--who", default="", help="Only this principal, session or schedule.")
def budgets(
    state: CliState,
    what: str,
    name: str,
    tokens: int | None,
    usd: float | None,
    per: Any,
    every: Any,
    then: Any,
    warn_at: float,
    who: str,
) -> None:
    if what != "list" and not name:
        raise InvalidInput(f"which budget? `palyra usage budgets {what} NAME`")
    if what == "remove":
        state.api.remove_budget(name)
        state.out.line(f"the budget {name} is removed")
        return
    if what == "set":
        period: Any = "ever" if per == "run" else every
        money = round((usd or 0) * 1_000_000)
        warn_bps = round(warn_at * 10_000)
        limit = state.api.put_budget(
            name,
            per=per,
            every=period,
            tokens=tokens or 0,
            microusd=money,
            then=then,
            who=who,
            warn_bps=warn_bps,
        )
        if state.out.as_json:
            state.out.json(limit)
        else:
            state.out.line(f"the budget {name} is set: {_limit(limit.terms)}")
        return
    found = state.api.list_budgets()
    if state.out.as_json:
        state.out.json(found)
        return
    if not found.budgets:
        state.out.line("there are no budgets: `palyra usage budgets set month --usd 20` sets one")
        return
    table = [
        [
            each.name,
            _limit(each.terms),
            each.who or "-",
            each.period or "-",
            amount(each.spent, "tokens" if each.unit == "tokens" else "microusd"),
            f"{each.spent * 100 // each.limit} %",
            bar(min(each.spent, each.limit), each.limit),
            "config" if each.source == "config" else "",
        ]
        for each in found.budgets
    ]
    state.out.table(
        ["name", "limit", "who", "since", "spent", "used", "", "from"],
        table,
        right=["spent", "used"],
    )


def _limit(terms: Terms) -> str:
    whose = {"all": "", "principal": " per person"}.get(terms.per, f" per {terms.per}")
    often = {"ever": "", "month": " a month", "day": " a day"}[terms.every]
    said = amount(terms.tokens, "tokens") if terms.tokens else amount(terms.microusd, "microusd")
    return f"{said}{whose}{often}, then {terms.then}"


@verb(usage, "forecast", help="What the month will have cost, by the trend.")
@click.option("--everybody", is_flag=True, help="Of all principals; needs an owner's token.")
def forecast(state: CliState, everybody: bool) -> None:
    found = state.api.forecast_usage(everybody=everybody)
    if state.out.as_json:
        state.out.json(found)
        return
    until = time.strftime("%Y-%m-%d", time.gmtime(found.until_ms / 1000 - 1))
    least = " at least: some calls have no known price" if found.unpriced else ""
    rows = [
        ["so far", formatting.count(found.spent_tokens), amount(found.spent_microusd, "microusd")],
        ["a day", formatting.count(found.a_day_tokens), amount(found.a_day_microusd, "microusd")],
        [
            f"by {until}",
            formatting.count(found.expected_tokens),
            amount(found.expected_microusd, "microusd") + least,
        ],
    ]
    state.out.table(["", "tokens", "cost"], rows, right=["tokens"])
    state.out.line(f"worked out from {found.basis}")
