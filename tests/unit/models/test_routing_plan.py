"""The plan of a model call: who is asked, who is passed over, and why, for every consideration
there is.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.events import PassedOver
from palyra.models.routing_plan import (
    CallNeeds,
    ModelRoute,
    NoRoute,
    RouteRule,
    Target,
    plan,
    task_of,
)

BIG = Target("big", "one", 100_000)
SMALL = Target("small", "two", 8_000, vision=False)
HOME = Target("home", "three", 8_000, vision=False)
FAR = Target("far", "four", 100_000, private=False)


def planned(
    need: CallNeeds,
    *,
    rules: tuple[RouteRule, ...] = (),
    ill: tuple[str, ...] = (),
    first: Target = BIG,
) -> ModelRoute:
    return plan(
        need,
        [first],
        [SMALL, HOME, FAR],
        rules,
        lambda each: each.provider not in ill,
        lambda each: each is HOME,
    )


def names(route: ModelRoute) -> list[str]:
    return [each.provider for each in route.targets]


def test_without_anything_special_it_is_the_default_and_then_the_fallbacks() -> None:
    route = planned(CallNeeds(now_ms=0))
    assert (names(route), route.reason, route.passed_over) == (
        ["big", "small", "home", "far"],
        "the default model",
        (),
    )


def test_who_fails_is_left_out_unless_everybody_does() -> None:
    route = planned(CallNeeds(now_ms=0), ill=("big",))
    assert (names(route), route.reason) == (["small", "home", "far"], "big is failing right now")
    assert route.passed_over == (PassedOver("big/one", "its provider is failing right now"),)
    assert names(planned(CallNeeds(now_ms=0), ill=("big", "small", "home", "far"))) == [
        "big",
        "small",
        "home",
        "far",
    ]


def test_private_data_goes_only_to_who_may_have_it_even_if_another_is_asked_for() -> None:
    need = CallNeeds(now_ms=0, private=("file:diary",))
    assert "far" not in names(planned(need))
    asked = planned(CallNeeds(now_ms=0, private=("file:diary",), wanted="far/four"), first=FAR)
    assert names(asked) == ["small", "home"]
    assert asked.passed_over == (PassedOver("far/four", "it may not be sent private data"),)
    with pytest.raises(NoRoute, match="file:diary"):
        plan(need, [FAR], [], (), lambda each: True, lambda each: False)


def test_images_and_size_put_who_does_not_fit_last() -> None:
    seeing = planned(CallNeeds(now_ms=0, images=True, task="vision"), first=SMALL)
    assert names(seeing) == ["far", "small", "home"]
    assert seeing.passed_over[0] == PassedOver("small/two", "it cannot look at images")
    large = planned(CallNeeds(now_ms=0, least=20_000), first=SMALL)
    assert names(large)[0] == "far"
    # A person's own choice stands.
    assert (
        names(planned(CallNeeds(now_ms=0, images=True, wanted="small"), first=SMALL))[0] == "small"
    )


def test_without_money_what_costs_nothing_is_asked() -> None:
    route = planned(CallNeeds(now_ms=0, broke=lambda: True))
    assert names(route) == ["home"]
    assert {each.why for each in route.passed_over} == {"a budget is used up, and it costs money"}


def test_the_first_rule_that_matches_chooses_and_says_so() -> None:
    rules = (
        RouteRule(name="night", use=(HOME,), tasks=("background",)),
        RouteRule(name="secret", use=(SMALL,), private=True, fallbacks=False),
        RouteRule(name="long", use=(FAR,), tokens_above=5_000),
        RouteRule(name="saving", use=(SMALL,), budget_left_below=0.2),
    )
    cases = [
        (CallNeeds(now_ms=0, task="background"), "night", "home"),
        (CallNeeds(now_ms=0, private=("x",)), "secret", "small"),
        (CallNeeds(now_ms=0, tokens=5_000), "long", "far"),
        (CallNeeds(now_ms=0, budget_left=lambda: 0.1), "saving", "small"),
        (CallNeeds(now_ms=0, budget_left=lambda: 0.2), "", "big"),
        (CallNeeds(now_ms=0, task="background", wanted="big"), "", "big"),
    ]
    for need, rule, first in cases:
        route = planned(need, rules=rules)
        assert (route.rule, names(route)[0]) == (rule, first)
        assert (
            (rule in route.reason)
            if rule
            else (route.reason in ("the default model", "asked for by the caller"))
        )
    assert names(planned(cases[1][0], rules=rules)) == ["small"]


@given(
    st.booleans(),
    st.booleans(),
    st.integers(min_value=0, max_value=200_000),
    st.booleans(),
    st.sets(st.sampled_from(["big", "small", "home", "far"])),
)
def test_every_model_is_either_asked_or_passed_over_with_a_reason(
    private: bool, images: bool, least: int, broke: bool, ill: set[str]
) -> None:
    need = CallNeeds(
        now_ms=0, private=("x",) if private else (), images=images, least=least, broke=lambda: broke
    )
    route = planned(need, ill=tuple(ill))
    asked, over = {each.name for each in route.targets}, {each.model for each in route.passed_over}
    assert asked | over == {each.name for each in (BIG, SMALL, HOME, FAR)}
    assert all(each.why for each in route.passed_over)
    assert not private or FAR.name not in asked
    assert route.reasons
    # The colon marks a failover on the tape.
    assert ": " not in route.reason


def test_task_classes() -> None:
    assert [task_of(origin) for origin in ("interactive", "api", "scheduled", "child")] == [
        "interactive",
        "interactive",
        "background",
        "background",
    ]
    assert task_of("interactive", images=True) == "vision"
