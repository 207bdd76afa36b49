"""Which statements say that something is otherwise now, and which only stand beside each other."""

import pytest

from palyra.features.memory import contradictions
from palyra.features.memory.contradictions import claim


def verdict(one: str, other: str) -> contradictions.Verdict | None:
    first, second = claim(one), claim(other)
    return contradictions.judge(first, second) if first and second else None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The staging database runs on port 5433.", "The staging database runs on port 5440"),
        ("Anna lives in Brno", "Anna moved to Lisbon"),
        ("I live in Brno", "I live in Prague now"),
        ("My favourite tea is oolong.", "My favourite tea is rooibos."),
        ("The deadline is Friday", "Update: the deadline is 3 May"),
        ("I prefer tea over coffee", "I prefer coffee to tea"),
        ("User's manager is Liis Tamm.", "User's manager is Ants Kask."),
        ("Our team's stand-up is at 9:40.", "Our team's stand-up is at 10:15."),
        ("My dog is called Rex", "My dog is called Max"),
    ],
)
def test_a_thing_that_has_one_value_at_a_time_has_another_one(one: str, other: str) -> None:
    assert verdict(one, other) == "other"
    assert verdict(one, one.upper()) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("My sister is a doctor", "My sister is in Lisbon"),
        ("Order 17 was shipped", "Order 18 was shipped"),
        ("My laptop has 32 GB of memory", "My laptop has 14 inches"),
        ("I visited Prague", "I visited Brno"),
        ("Anna likes tea", "Anna likes coffee"),
        ("The car is blue", "The car is a Skoda"),
        ("Where is the port?", "The port is 7142"),
        ("I work at Siemens", "I work in Vienna"),
    ],
)
def test_what_stands_beside_each_other_is_left_alone(one: str, other: str) -> None:
    assert verdict(one, other) is None


def test_where_a_thing_may_have_two_values_it_is_unclear() -> None:
    assert verdict("My brother is Radek", "My brother is Pavel") == "unclear"
