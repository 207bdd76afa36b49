"""`palyra usage`: what models were asked and what it cost, as a table with a bar for each row."""

import time

import click

from palyra.cli import admin_client, naming, words
from palyra.cli.commands import command
from palyra.cli.state import State

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR = 20


@command("usage", help="Tokens and cost, by day, model, session or run.")
@click.option("--by", type=click.Choice(["day", "model", "session", "run"]), default="day", show_default=True)
@click.option("--since", default="30d", show_default=True, metavar="TIME", help="How far back: 12h, 30d, 8w, or all.")
@click.option("--session", "session_id", default="", metavar="ID", help="Only this session.")
def usage(state: State, by: str, since: str, session_id: str) -> None:
    since_ms = 0 if since == "all" else int(time.time() * 1000) - words.parse_duration(since)
    rows = admin_client.usage(
        state.api, by, since_ms=max(0, since_ms), session_id=naming.session(state.api, session_id) if session_id else ""
    )
    if state.out.as_json:
        state.out.json({"usage": rows})
        return
    if not rows:
        state.out.line("no model was asked in this time")
        return
    most = max(row.input_tokens + row.output_tokens for row in rows)
    columns = [by, "calls", "in", "cached", "out", "cost", "first word", "tokens"]
    table = [
        [
            _day(row.group) if by == "day" else row.group,
            words.count(row.calls),
            words.count(row.input_tokens),
            words.count(row.cached_tokens),
            words.count(row.output_tokens),
            words.money(row.cost_microusd),
            words.duration(row.first_delta_ms),
            bar(row.input_tokens + row.output_tokens, most),
        ]
        for row in rows
    ]
    state.out.table(columns, table, right=columns[1:-1])


def bar(value: int, most: int) -> str:
    """A bar as long as its share of the greatest one, to an eighth of a character."""
    eighths = round(value / most * _BAR * 8) if most else 0
    return (_EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8]).strip() or ("▏" if value else "")


def _day(days: str) -> str:
    """The day from its number since 1970, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(int(days) * 86_400)) if days.isdecimal() else days
