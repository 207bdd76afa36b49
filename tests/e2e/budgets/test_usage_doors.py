"""Usage, budgets and forecasts through their doors: HTTP and the command line, on a real daemon."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from palyra.features.budgets.cli import spark
from tests.cli_terminal import palyra
from tests.console_health import used_by
from tests.daemon import DaemonProcess, start

CONFIG = '[models]\ndefault = "scripted/s1"\n[budgets.limits.fixed]\ntokens = 1000000\n'
SCRIPT = {"hi": [{"text": "hello"}], "bye": [{"text": "so long"}]}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("usage")
    (folder / "home").mkdir(mode=0o700)
    (folder / "home" / "prices.toml").write_text(
        '[models]\n"scripted/*" = { input = 1.0, output = 2.0 }\n'
    )
    with start(folder, config=CONFIG, script=SCRIPT) as daemon:
        for text in ("hi", "bye"):
            daemon.run(text)
        yield daemon


def test_every_group_adds_up_to_the_same_total(served: DaemonProcess) -> None:
    groups = (
        "call",
        "run",
        "session",
        "model",
        "principal",
        "origin",
        "task",
        "hour",
        "day",
        "month",
    )
    told = {by: served.get(f"/v1/usage?by={by}") for by in groups}
    for each in told.values():
        for name in (
            "calls",
            "input_tokens",
            "output_tokens",
            "cached_tokens",
            "cost_microusd",
            "unpriced",
        ):
            assert sum(row[name] for row in each["usage"]) == each["total"][name]
    total = told["day"]["total"]
    assert total["cost_microusd"] == total["input_tokens"] + 2 * total["output_tokens"]
    assert (total["unpriced"], total["calls"] >= 2) == (0, True)
    assert total["from_ms"] <= total["until_ms"]
    assert [row["group"] for row in told["month"]["usage"]] == [
        time.strftime("%Y-%m", time.gmtime(total["until_ms"] / 1000))
    ]
    assert [row["group"] for row in told["task"]["usage"]] == ["interactive"]
    assert served.get("/v1/usage?by=schedule")["usage"] == []


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[DaemonProcess]:
    """A daemon whose past a test may write: the others' budgets would not know of it."""
    with start(tmp_path, config=CONFIG, script=SCRIPT) as daemon:
        yield daemon


def test_percentiles_are_those_of_the_calls_of_each_group(alone: DaemonProcess) -> None:
    year_ms = int(time.time() * 1000) - 400 * 86_400_000
    for number in range(1, 41):
        used_by(
            alone,
            "someone",
            10,
            time_ms=year_ms + number,
            model="s1" if number <= 20 else "s2",
            duration_ms=number * 10,
            # A call that answers with tool calls alone has no first word.
            first_delta_ms=number if number % 2 else 0,
        )
    asked = f"/v1/usage?everybody=true&since_ms={year_ms}&until_ms={year_ms + 1_000}&by="
    rows = {each["group"]: each for each in alone.get(f"{asked}model")["usage"]}
    names = ("first_p50_ms", "first_p95_ms", "duration_p50_ms", "duration_p95_ms")
    assert [rows["scripted/s1"][name] for name in names] == [9, 19, 100, 190]
    assert [rows["scripted/s2"][name] for name in names] == [29, 39, 300, 390]
    whole = [19, 37, 200, 380]
    assert [alone.get(f"{asked}day")["total"][name] for name in names] == whole
    assert [alone.get(f"{asked}month")["usage"][0][name] for name in names] == whole


def test_a_forecast_has_a_band_as_wide_as_the_days_before_differ(alone: DaemonProcess) -> None:
    now_ms = int(time.time() * 1000)
    for days in range(1, 11):
        used_by(alone, "someone", 99, time_ms=now_ms - days * 86_400_000)
    even = alone.get("/v1/usage/forecast?everybody=true")
    assert even["low_tokens"] == even["expected_tokens"] == even["high_tokens"]
    used_by(alone, "someone", 5_000, time_ms=now_ms - 3 * 86_400_000)
    uneven = alone.get("/v1/usage/forecast?everybody=true")
    assert uneven["spent_tokens"] <= uneven["low_tokens"] <= uneven["expected_tokens"]
    assert uneven["high_tokens"] > uneven["expected_tokens"]


def test_only_an_owner_sees_everybody_and_sets_budgets(served: DaemonProcess) -> None:
    made = served.post("/v1/tokens", {"name": "guest", "scope": "operator"})["token"]
    assert served.get("/v1/usage", token=made)["total"]["calls"] >= 2
    for path in ("/v1/usage?everybody=true", "/v1/usage/forecast?everybody=true"):
        assert served.request("GET", path, token=made).code == "forbidden"
        assert served.request("GET", path).status == 200
    assert served.request("PUT", "/v1/budgets/mine", {"tokens": 5}, token=made).code == "forbidden"


def test_a_budget_is_set_seen_and_removed_over_http(served: DaemonProcess) -> None:
    assert (
        served.request(
            "PUT", "/v1/budgets/guests", {"tokens": 500, "per": "principal", "who": "guest"}
        ).status
        == 200
    )
    states = {each["name"]: each for each in served.get("/v1/budgets")["budgets"]}
    assert (states["fixed"]["source"], states["fixed"]["limit"]) == ("config", 1_000_000)
    assert states["fixed"]["spent"] == sum(
        served.get("/v1/usage?by=day&everybody=true")["total"][k]
        for k in ("input_tokens", "output_tokens")
    )
    assert (states["guests"]["who"], states["guests"]["left"]) == ("guest", 500)
    assert served.request("PUT", "/v1/budgets/fixed", {"tokens": 5}).code == "conflict"
    assert served.request("PUT", "/v1/budgets/none", {}).code == "invalid_input"
    assert served.request("DELETE", "/v1/budgets/guests").status == 204
    assert served.request("DELETE", "/v1/budgets/guests").code == "not_found"


def test_a_forecast_says_what_it_is_made_of(served: DaemonProcess) -> None:
    month = served.get("/v1/usage/forecast")
    assert month["spent_tokens"] <= month["expected_tokens"]
    assert month["basis"] == "today alone: there is nothing before it"
    schedule = served.get("/v1/usage/forecast/schedule?times=10")
    assert schedule["runs"] >= 2
    assert schedule["expected_tokens"] == schedule["tokens"] * 10
    assert "it has not run yet" in schedule["basis"]


def test_the_command_line_shows_tables_lines_budgets_and_forecast(served: DaemonProcess) -> None:
    def said(*arguments: str) -> str:
        result = palyra(served.home, "usage", *arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert "scripted/s1" in said("show", "--by", "model")
    assert "whole call" in said()
    assert "▏" in said() or "█" in said()
    plotted = said("show", "--by", "day", "--plot")
    assert [line.split()[0] for line in plotted.splitlines()[:3]] == ["tokens", "cost", "first"]
    assert json.loads(said("show", "--json"))["total"]["calls"] >= 2
    assert "is set" in said(
        "budgets", "set", "day", "--usd", "0.5", "--every", "day", "--then", "ask"
    )
    listed = said("budgets")
    assert "$0.50 a day, then ask" in listed
    assert "config" in listed
    assert "is removed" in said("budgets", "remove", "day")
    assert "worked out from today alone" in said("forecast")
    wrong = palyra(served.home, "usage", "budgets", "set", "x")
    assert wrong.returncode != 0
    assert "--tokens or --usd" in wrong.stderr


def test_lines_are_as_high_as_their_values() -> None:
    assert spark([0, 1, 4, 8]) == " ▁▄█"
    assert spark([]) == ""


def test_a_broken_price_file_is_named_at_start(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "prices.toml").write_text("nonsense")
    with (
        pytest.raises(AssertionError, match=r"prices\.toml cannot be read"),
        start(tmp_path, config=CONFIG, script=SCRIPT),
    ):
        pass
