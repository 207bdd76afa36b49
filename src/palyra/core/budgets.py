"""Limits on what models may cost, and the accounts that are held against them. Pure: what a limit
counts, and since when.
"""

import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from palyra.core.errors import InvalidInput

Per = Literal["all", "principal", "session", "schedule", "run"]
Every = Literal["ever", "month", "day"]
Then = Literal["block", "ask"]
Unit = Literal["tokens", "microusd"]
MOST = 1 << 50
_Amount = Annotated[int, Meta(ge=0, le=MOST)]
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")


class Terms(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A limit in tokens or in millionths of a dollar, for each of `per` or only for `who`, anew
    every day or month (UTC).

    At `warn_bps` of it the owner is told. When it is used up, `then`: a person is asked, or the run
    ends.
    """

    per: Per = "all"
    every: Every = "ever"
    tokens: _Amount = 0
    microusd: _Amount = 0
    warn_bps: Annotated[int, Meta(ge=0, le=10_000)] = 8_000
    then: Then = "block"
    who: Annotated[str, Meta(max_length=128)] = ""


class Limit(Struct, frozen=True, kw_only=True):
    name: str
    terms: Terms
    source: Literal["config", "api", "run"] = "api"

    @property
    def unit(self) -> Unit:
        return "tokens" if self.terms.tokens else "microusd"

    @property
    def amount(self) -> int:
        return self.terms.tokens or self.terms.microusd

    @property
    def warn_from(self) -> int:
        """0: nobody is told."""
        return self.amount * self.terms.warn_bps // 10_000


class Spender(Struct, frozen=True, kw_only=True):
    """Whose call it is."""

    principal: str = ""
    session_id: str = ""
    run_id: str = ""
    schedule_id: str = ""


class Key(Struct, frozen=True):
    """An account: whose spending it holds, and since when. Limits of the same kind share it."""

    per: Per
    who: str
    every: Every
    since_ms: int

    @property
    def text(self) -> str:
        since = period_name(self.every, self.since_ms)
        return f"{self.per}:{self.who}:{since}"


def check(name: str, terms: Terms) -> Limit:
    """The limit, or InvalidInput with what to change."""
    if not _NAME.match(name):
        raise InvalidInput("a budget's name is small letters, digits and dashes")
    if bool(terms.tokens) == bool(terms.microusd):
        raise InvalidInput(
            "a budget limits tokens or dollars: give one of them, --tokens or --usd", name=name
        )
    if terms.who and terms.per == "all":
        raise InvalidInput("`who` goes with per principal, session, schedule or run", name=name)
    if terms.per == "run" and terms.every != "ever":
        raise InvalidInput("a budget per run has no period: a run is short", name=name)
    return Limit(name=name, terms=terms)


def key_of(terms: Terms, spender: Spender, now_ms: int) -> Key | None:
    """The account that a limit holds this spender's calls against; None: it is not about them."""
    key = account_of(terms.per, terms.every, spender, now_ms)
    return None if key is None or (terms.who and terms.who != key.who) else key


def account_of(per: Per, every: Every, spender: Spender, now_ms: int) -> Key | None:
    """None: this spender has no such account, as a run that no schedule started has none of a
    schedule.
    """
    who = "" if per == "all" else str(getattr(spender, _FIELD[per]))
    return Key(per, who, every, period_start(every, now_ms)) if who or per == "all" else None


_FIELD = {
    "principal": "principal",
    "session": "session_id",
    "schedule": "schedule_id",
    "run": "run_id",
}


def period_start(every: Every, now_ms: int) -> int:
    match every:
        case "ever":
            return 0
        case "day":
            return now_ms - now_ms % 86_400_000
        case "month":
            now = datetime.fromtimestamp(now_ms / 1000, UTC)
            return int(datetime(now.year, now.month, 1, tzinfo=UTC).timestamp()) * 1000


def period_end(every: Every, now_ms: int) -> int:
    """Return when the next period begins; 0: never."""
    match every:
        case "ever":
            return 0
        case "day":
            return period_start("day", now_ms) + 86_400_000
        case "month":
            now = datetime.fromtimestamp(now_ms / 1000, UTC)
            year, month = (now.year + 1, 1) if now.month == 12 else (now.year, now.month + 1)
            return int(datetime(year, month, 1, tzinfo=UTC).timestamp()) * 1000


def period_name(every: Every, since_ms: int) -> str:
    if every == "ever":
        return "ever"
    since = datetime.fromtimestamp(since_ms / 1000, UTC)
    return since.strftime("%Y-%m" if every == "month" else "%Y-%m-%d")


def amount(value: int, unit: Unit) -> str:
    """Format an amount for people."""
    if unit == "tokens":
        return f"{value:,} tokens"
    return (
        f"${value / 1_000_000:,.2f}"
        if value >= 10_000 or not value
        else f"${value / 1_000_000:.6f}".rstrip("0")
    )


def described(limit: Limit) -> str:
    terms = limit.terms
    whose = {
        "all": "",
        "run": " per run",
        "session": " per session",
        "schedule": " per schedule",
        "principal": " per person",
    }[terms.per]
    when = {"ever": "", "day": " a day", "month": " a month"}[terms.every]
    return f"the budget {limit.name} ({amount(limit.amount, limit.unit)}{whose}{when})"
