"""Prices: what a call costs, whose price counts, and what is unknown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.errors import ConfigInvalid
from palyra.core.messages import Usage
from palyra.models.prices import FREE, SHIPPED, Price, Prices, Tag

MINI = Price(250, 25, 250, 2_000)


@pytest.mark.parametrize(
    ("provider", "model", "known"),
    [
        ("openai", "gpt-5-mini", "list"),
        ("openai", "gpt-5-mini-2025-08-07", "list"),
        ("openrouter", "openai/gpt-5-mini", "list"),
        ("anthropic", "claude-sonnet-4-5-20250929", "list"),
        ("mistral", "mistral-small-latest", "list"),
        ("openai", "gpt-5-minimal", "unknown"),
        ("demo", "demo-1", "free"),
        ("openai", "something-new", "unknown"),
    ],
)
def test_a_model_is_found_under_the_names_it_goes_by(provider: str, model: str, known: str) -> None:
    tag = Prices(free=["demo"]).of(provider, model)
    assert tag.known == known
    assert (tag.price is None) == (known == "unknown")
    if "gpt-5-mini" in model and known == "list":
        assert tag.price == MINI


def test_the_owners_prices_stand_over_the_list_and_over_what_is_free(tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(
        'date = "2026-01-01"\n[models]\n"gpt-5" = { input = 9, output = 1.5 }\n"home/*" = { input = 0.5, output = 1 }\n'
    )
    prices = Prices(own, free=["home"])
    assert prices.of("openai", "gpt-5") == Tag(Price(9_000, 9_000, 9_000, 1_500), "own")
    assert prices.of("home", "llama") == Tag(Price(500, 500, 500, 1_000), "own")
    assert prices.of("openai", "gpt-5-mini") == Tag(MINI, "list")
    assert Prices(tmp_path / "nothing.toml", free=["home"]).of("home", "llama") == Tag(FREE, "free")


@pytest.mark.parametrize(
    "text",
    [
        "models = 3",
        '[models]\n"x" = { input = -1, output = 1 }',
        '[models]\n"x" = { input = 1 }',
        "[",
        "x = 1",
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(text)
    with pytest.raises(ConfigInvalid, match=r"prices\.toml"):
        Prices(own)


def test_a_cost_counts_what_came_from_the_cache_and_what_went_into_it() -> None:
    price = Price(3_000, 300, 3_750, 15_000)
    assert price.cost(Usage(1_000_000, 0)) == 3_000_000
    assert price.cost(Usage(1_000_000, 0, cached_tokens=1_000_000)) == 300_000
    assert (
        price.cost(Usage(1_000_000, 100_000, cached_tokens=500_000, cache_write_tokens=500_000))
        == 150_000 + 1_875_000 + 1_500_000
    )
    # A part of a millionth is one.
    assert price.cost(Usage(1, 0, cached_tokens=1)) == 1
    assert FREE.cost(Usage(10**9, 10**9)) == 0


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("openai.gpt-5.6-luna", "gpt-5.6-luna"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_a_model_has_its_price_under_the_name_that_a_cloud_gives_it(
    model: str, listed: str
) -> None:
    prices = Prices()
    found = prices.of("cloud", model)
    assert found.known == "list"
    assert found == prices.of("vendor", listed)


def test_what_is_kept_for_an_hour_costs_twice_the_input_to_write(tmp_path: Path) -> None:
    prices = Prices(hourly=["hourly"])
    written = Usage(1_000_000, 0, cache_write_tokens=1_000_000)
    costs = {}
    for provider in ("anthropic", "hourly"):
        price = prices.of(provider, "claude-sonnet-4-5").price
        assert price is not None
        costs[provider] = price.cost(written)
        # What is reserved for a call covers it.
        assert price.most(1_000_000, 0) == costs[provider]
    assert costs == {"anthropic": 3_750_000, "hourly": 6_000_000}
    own = tmp_path / "prices.toml"
    own.write_text("[models]\nm = { input = 1, written = 2, written_1h = 5, output = 1 }\n")
    mine = Prices(own, hourly=["x"]).of("x", "m").price
    assert mine is not None
    assert mine.cost(written) == 5_000_000


counts = st.integers(min_value=0, max_value=10**9)


@given(counts, counts, counts, counts)
def test_no_call_costs_more_than_was_reserved_for_its_tokens(
    sent: int, produced: int, cached: int, written: int
) -> None:
    usage = Usage(sent, produced, cached_tokens=cached, cache_write_tokens=written)
    for tag in map(Prices().of, ("a", "o"), ("claude-sonnet-4-5", "gpt-5")):
        assert tag.price is not None
        assert 0 <= tag.price.cost(usage) <= tag.price.most(sent, produced)


def test_the_list_that_is_shipped_has_a_date_and_sane_prices() -> None:
    text = SHIPPED.read_text()
    assert 'date = "20' in text
    prices = Prices()
    for line in text.splitlines():
        if line.startswith('"'):
            price = prices.of("any", line.split('"')[1]).price
            assert price is not None
            assert 0 < price.cached <= price.input <= price.written < price.output * 20
