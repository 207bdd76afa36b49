"""What a budget counts, since when, and for whom; and where spending goes by the end of the
month.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.agent.turn_cost import own_limits
from palyra.core import subagent_limits
from palyra.core.budgets import (
    Spender,
    Terms,
    amount,
    check,
    key_of,
    period_end,
    period_name,
    period_start,
)
from palyra.core.errors import ConfigInvalid, InvalidInput
from palyra.core.events import Budgets, RunAccepted
from palyra.core.ids import RunId
from palyra.core.run_progress import RunProgress
from palyra.features.budgets.forecasts import _daily
from palyra.serve.config import budgets, reader


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@given(st.integers(min_value=0, max_value=4_000_000_000_000))
def test_every_moment_lies_in_exactly_one_day_and_one_month(now_ms: int) -> None:
    for every in ("day", "month"):
        begin, end = period_start(every, now_ms), period_end(every, now_ms)
        assert begin <= now_ms < end
        assert period_start(every, end) == end
        assert period_start(every, end - 1) == begin


def test_periods_have_names() -> None:
    now = at("2028-02-29T12:00:00")
    assert [period_name(every, period_start(every, now)) for every in ("ever", "month", "day")] == [
        "ever",
        "2028-02",
        "2028-02-29",
    ]
    assert period_end("month", at("2026-12-31T23:59:59")) == at("2027-01-01T00:00:00")


def test_an_account_is_of_those_whom_the_limit_is_about() -> None:
    ada = Spender(principal="ada", session_id="s", run_id="r")
    assert key_of(Terms(per="principal", tokens=1), ada, 0) == key_of(
        Terms(per="principal", tokens=5, who="ada"), ada, 0
    )
    assert key_of(Terms(per="principal", tokens=1, who="bob"), ada, 0) is None
    assert key_of(Terms(per="schedule", tokens=1), ada, 0) is None
    keys = {
        key_of(Terms(per=per, tokens=1), ada, 0) for per in ("all", "principal", "session", "run")
    }
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("Big", Terms(tokens=1)),
        ("x", Terms()),
        ("x", Terms(tokens=1, microusd=1)),
        ("x", Terms(tokens=1, who="ada")),
        ("x", Terms(tokens=1, per="run", every="day")),
    ],
)
def test_what_makes_no_sense_as_a_budget_is_refused(name: str, terms: Terms) -> None:
    with pytest.raises(InvalidInput):
        check(name, terms)


def test_amounts_are_said_for_people() -> None:
    assert [
        amount(12_000, "tokens"),
        amount(20_000_000, "microusd"),
        amount(1_234, "microusd"),
        amount(0, "microusd"),
    ] == [
        "12,000 tokens",
        "$20.00",
        "$0.001234",
        "$0.00",
    ]


def test_the_file_says_dollars_and_shares(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[budgets.limits.month]\nusd = 20.5\nevery = "month"\nwarn_at = 0.5\nthen = "ask"\n'
    )
    (limit,) = budgets.limits(reader.load(tmp_path, {}).config)
    assert (limit.name, limit.source, limit.unit, limit.amount) == (
        "month",
        "config",
        "microusd",
        20_500_000,
    )
    assert limit.warn_from == 10_250_000


@pytest.mark.parametrize(
    "text",
    [
        "[budgets.limits.x]\n",
        "[budgets.limits.x]\ntokens = 5\nusd = 1.0\n",
        "[budgets.limits.X]\ntokens = 5\n",
        '[routing.x]\ntasks = ["background"]\n',
        '[routing.x]\nuse = ["demo"]\ntasks = ["nonsense"]\n',
        '[routing.x]\nuse = ["demo"]\nlabels = "private"\n',
    ],
)
def test_a_file_that_contradicts_itself_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    if text == "[budgets.limits.x]\n":
        # A table without anything in it says nothing, and nothing is made of it.
        assert budgets.limits(reader.load(tmp_path, {}).config) == ()
        return
    with pytest.raises(ConfigInvalid):
        reader.load(tmp_path, {})


def test_a_day_to_come_is_like_the_line_through_those_before() -> None:
    assert _daily([], 10) == 0
    assert _daily([10, 20], 10) == 15
    assert _daily([10, 10, 10, 10, 10], 20) == 10
    assert _daily([10, 20, 30, 40, 50], 2) == pytest.approx(60)
    assert _daily([50, 40, 30, 20, 10], 100) == 0


def test_subagents_share_what_is_left_of_tokens_and_money() -> None:
    run = RunProgress(
        RunId("r"), "in_progress", RunAccepted(budgets=Budgets(tokens=1_000, microusd=90)), 1
    )
    run.tokens, run.agent_tokens, run.cost_microusd = 300, 100, 30
    have = subagent_limits.left(run)
    assert (have.tokens, have.microusd) == (600, 60)
    given = subagent_limits.share(have, 2, Budgets(0, 0, 0))
    assert given is not None
    assert (given.tokens, given.microusd) == (300, 30)
    run.tokens = 900
    assert subagent_limits.share(subagent_limits.left(run), 1, Budgets(0, 0, 0)) is None
    assert [(limit.unit, limit.amount) for limit in own_limits(run)] == [
        ("tokens", 900),
        ("microusd", 90),
    ]
    free = subagent_limits.share(
        subagent_limits.left(RunProgress(RunId("r"), "in_progress", RunAccepted(), 1)),
        2,
        Budgets(0, 0, 0),
    )
    assert free is not None
    assert (free.tokens, free.microusd) == (0, 0)
