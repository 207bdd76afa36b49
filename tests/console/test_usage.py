"""What models cost, in the console: drawn, and the same figures as a table for everybody; and why
which model was asked.
"""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.console.test_keyboard import choose
from tests.console_health import used_by
from tests.console_world import Person, person, read, serious
from tests.daemon import DaemonProcess, start

CONFIG = """[limits]
requests_per_second = 1000
[models]
default = "scripted/s1"
fallbacks = ["spare/p1"]
[providers.spare]
kind = "scripted"
models = ["p1"]
script = "{spare}"
[budgets.limits.fixed]
tokens = 500000000
"""
SPEND = {"input_tokens": 2_000, "output_tokens": 100, "cached_tokens": 1_500}
SCRIPT = {
    "*": [{"text": "Hello.", "usage": SPEND}],
    "code": [
        {"text": "Look at this, all of it.", "usage": {"input_tokens": 100, "output_tokens": 300}}
    ],
    "refused": [{"fail": {"failure": "quota", "message": "nothing is left"}}],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("usage")
    (folder / "home").mkdir(mode=0o700)
    # A hundredth of a dollar for a call.
    (folder / "home" / "prices.toml").write_text(
        '[models]\n"scripted/*" = { input = 5.0, cached = 5.0, output = 0.0 }\n'
    )
    spare = folder / "spare.json"
    spare.write_text(json.dumps({"*": [{"text": "I step in.", "usage": SPEND}]}))
    with start(folder, config=CONFIG.format(spare=spare), script=SCRIPT) as running:
        running.run("hello")
        yield running


def by(page: Page, words: str) -> None:
    page.get_by_role("group", name="By").get_by_role("button", name=words, exact=True).click()


def figures(page: Page, group: str) -> Locator:
    return page.get_by_role("table", name=f"Usage by {group}")


def spent_words(tokens: int) -> str:
    """As the page says it: below ten thousand every digit, above it thousands."""
    return f"{tokens:,} tokens" if tokens < 10_000 else f"{tokens / 1_000:.1f}".removesuffix(".0")


def test_what_was_used_is_drawn_and_told_in_figures(somebody: Person) -> None:
    session, entries = somebody.daemon.run("hello")
    used = next(entry["event"]["usage"] for entry in entries if entry["kind"] == "model.replied")
    page = somebody.log_in("/#/usage")
    drawn = page.get_by_role("region", name="Over time")
    for measure, title in (
        ("Cost", "Cost"),
        ("Calls", "Calls"),
        ("Latency", "Latency"),
        ("Cache", "Cache hits"),
        ("Tokens", "Tokens"),
    ):
        drawn.get_by_role("button", name=measure, exact=True).click()
        expect(drawn.get_by_role("img", name=re.compile(f"^{title}: "))).to_be_visible()
        expect(drawn.locator("svg .bar, svg .plot-dot, svg .plot-line").first).to_be_attached()
    drawn.get_by_text("Show as table").click()
    hours = drawn.get_by_role("table", name="Tokens").locator("tbody tr")
    # One day only: its hours, from midnight on.
    expect(hours).to_have_count(time.gmtime().tm_hour + 1)
    by(page, "Session")
    row = (
        figures(page, "session")
        .get_by_role("row")
        .filter(has=page.locator(f"a[href$='{session}']"))
    )
    expect(row).to_contain_text(f"{used['input_tokens']:,}")
    assert serious(page) == []
    by(page, "Model")
    expect(figures(page, "model")).to_contain_text("scripted/s1")


def test_cache_hits_are_told_and_drawn(somebody: Person) -> None:
    page = somebody.log_in("/#/usage")
    by(page, "Model")
    row = figures(page, "model").get_by_role("row").filter(has_text="scripted/s1")
    everybodys = somebody.daemon.get("/v1/usage?by=model&everybody=true")["usage"]
    total = next(each for each in everybodys if each["group"] == "scripted/s1")
    share = round(100 * total["cached_tokens"] / total["input_tokens"])
    assert 50 < share <= 75
    expect(row.locator("td[data-label='Cached']")).to_have_text(f"{share} %")
    drawn = page.get_by_role("region", name="Over time")
    drawn.get_by_role("button", name="Cache", exact=True).click()
    drawn.get_by_text("Show as table").click()
    expect(drawn.get_by_role("table", name="Cache hits")).to_contain_text(f"{share} %")
    expect(page.locator(".figure").filter(has_text="Tokens in")).to_contain_text(
        re.compile(r"\d+ % cached")
    )


def test_who_asked_is_told_apart_and_ones_own_can_be_looked_at_alone(somebody: Person) -> None:
    used_by(somebody.daemon, "guest", 4_321)
    page = somebody.log_in("/#/usage")
    by(page, "User")
    row = figures(page, "principal").get_by_role("row").filter(has_text="guest")
    expect(row).to_contain_text("4,321")
    assert serious(page) == []
    page.get_by_role("group", name="Users").get_by_role("button", name="Only me").click()
    expect(row).to_have_count(0)
    expect(figures(page, "principal").get_by_role("row")).to_have_count(2)


def test_what_a_schedule_used_stands_under_its_name(somebody: Person) -> None:
    daemon = somebody.daemon
    page = somebody.log_in("/#/usage")
    by(page, "Schedule")
    expect(page.get_by_text("No scheduled runs in this period.")).to_be_visible()
    made = daemon.post(
        "/v1/schedules", {"when": "every day at 9", "text": "look around", "name": "morning look"}
    )
    daemon.post(f"/v1/schedules/{made['schedule']['schedule_id']}/run")
    row = figures(page, "schedule").get_by_role("row").filter(has_text="morning look")
    # It says so by itself, when the run has asked a model.
    expect(row.locator("td[data-label='Calls']")).to_have_text("1")
    row.get_by_role("link", name="morning look").click()
    expect(page).to_have_url(re.compile("#/schedules/"))


def test_a_new_call_shows_without_a_reload(somebody: Person) -> None:
    page = somebody.log_in("/#/usage")
    calls = page.locator(".figure").filter(has_text="Model calls").locator("strong")
    before = int(read(calls))
    somebody.daemon.run("hello")
    expect(calls).to_have_text(str(before + 1))


def test_a_table_is_sorted_with_the_keyboard_and_on_a_phone(
    browser: Browser, daemon: DaemonProcess
) -> None:
    daemon.run("code")
    with person(browser, daemon) as somebody:
        page = somebody.log_in("/#/usage")
        by(page, "Run")
        heading = figures(page, "run").get_by_role("button", name="Tokens out")
        heading.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("columnheader", name="Tokens out")).to_have_attribute(
            "aria-sort", "descending"
        )
        page.keyboard.press("Space")
        expect(page.get_by_role("columnheader", name="Tokens out")).to_have_attribute(
            "aria-sort", "ascending"
        )
        cells = figures(page, "run").locator("td[data-label='Tokens out']").all_inner_texts()
        assert [int(each) for each in cells] == sorted(int(each) for each in cells)
        page.set_viewport_size({"width": 360, "height": 740})
        page.get_by_label("Sort by: Usage by run").select_option("in")
        expect(page.get_by_role("button", name="Largest first")).to_be_visible()
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 360
        assert serious(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_why_a_model_was_asked_is_told_for_every_run(
    browser: Browser, daemon: DaemonProcess, scheme: str
) -> None:
    _, entries = daemon.run("refused")
    run_id = entries[0]["run_id"]
    with person(
        browser, daemon, color_scheme=scheme, viewport={"width": 360, "height": 740}
    ) as somebody:
        page = somebody.log_in("/#/usage")
        by(page, "Run")
        figures(page, "run").get_by_role("link", name=run_id[-6:]).click()
        expect(page.get_by_role("heading", name="Model routing")).to_be_visible()
        plans = page.get_by_role("list", name="Plans").locator(".card")
        expect(plans).to_have_count(2)
        first, second = plans.all()
        expect(first).to_contain_text("The default model")
        expect(first).to_contain_text("Fallbacks")
        expect(first.get_by_role("table")).to_contain_text("nothing is left")
        expect(second).to_contain_text("spare/p1")
        expect(second).to_contain_text("so the next of the plan is asked")
        expect(second.get_by_role("table")).to_contain_text("Reply")
        expect(second.get_by_role("table")).to_contain_text("2,000")
        assert serious(page) == []
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 360
        first.get_by_role("link", name="show on timeline").click()
        expect(page.get_by_role("region", name="Entry")).to_contain_text("Model selected")


def test_where_the_month_ends_is_told_drawn_and_held_against_the_budget(somebody: Person) -> None:
    daemon = somebody.daemon
    for name, microusd in (
        ("wide", 10**12),
        ("tight", 1 + daemon.get("/v1/usage/forecast?everybody=true")["spent_microusd"]),
    ):
        daemon.request(
            "PUT", f"/v1/budgets/{name}", {"every": "month", "microusd": microusd, "then": "ask"}
        )
    month = daemon.get("/v1/usage/forecast?everybody=true")
    assert month["spent_microusd"] > 0
    page = somebody.log_in("/#/usage")
    part = page.get_by_role("region", name="This month")
    expect(part).to_contain_text(re.compile(r"so far, \$[\d.]+ expected \(\$"))
    expect(part).to_contain_text(month["basis"])
    part.get_by_text("Show as table").click()
    last = time.gmtime(month["until_ms"] / 1000 - 1).tm_mday
    expect(part.get_by_role("table", name="Spending").get_by_role("row")).to_have_count(last + 1)
    part.get_by_role("button", name="Tokens").click()
    expect(part.get_by_role("button", name="Tokens")).to_have_attribute("aria-pressed", "true")
    budgets = page.get_by_role("list", name="Budgets").locator(".card")
    expect(budgets.filter(has_text="wide")).to_contain_text("expected by the end of the month")
    if time.gmtime().tm_mday < last:  # On the last day nothing is left to run out in.
        expect(budgets.filter(has_text="tight")).to_contain_text("Runs out")
    left = budgets.filter(has_text="wide").get_by_role("img", name=re.compile("^Left: "))
    expect(left.locator(".plot-band")).to_be_attached()
    assert serious(page) == []
    for name in ("wide", "tight"):
        daemon.request("DELETE", f"/v1/budgets/{name}")


def test_a_budget_is_set_shown_with_what_is_left_changed_and_removed(somebody: Person) -> None:
    daemon = somebody.daemon
    page = somebody.log_in("/#/usage")
    page.get_by_role("button", name="Add budget").click()
    form = page.get_by_role("form", name="Budget")
    form.get_by_label("Name").fill("My Month")
    expect(form.get_by_text("lowercase letters")).to_be_visible()
    form.get_by_label("Name").fill("fixed")
    expect(form.get_by_text("This name is taken")).to_be_visible()
    form.get_by_label("Name").fill("month")
    form.get_by_label("Limit").fill("1000000")
    form.get_by_label("Unit").select_option("tokens")
    form.get_by_label("Notify at (percent)").fill("120")
    expect(form.get_by_role("button", name="Add budget")).to_be_disabled()
    form.get_by_label("Notify at (percent)").fill("50")
    assert serious(page) == []
    form.get_by_role("button", name="Add budget").click()
    budget = (
        page.get_by_role("list", name="Budgets")
        .locator(".card")
        .filter(has=page.get_by_text("month", exact=True))
    )
    expect(budget).to_contain_text("of 1 M tokens")
    daemon.run("hello")
    found = {each["name"]: each for each in daemon.get("/v1/budgets")["budgets"]}["month"]
    assert (found["terms"]["warn_bps"], found["spent"] >= SPEND["input_tokens"]) == (5_000, True)
    expect(budget).to_contain_text(spent_words(found["spent"]))
    # Its limit comes nearer: what was spent counts.
    budget.get_by_role("button", name="Edit…").click()
    expect(form.get_by_label("Limit")).to_be_focused()
    form.get_by_label("Limit").fill(str(found["spent"] + 1_000))
    form.get_by_label("When used up").select_option("ask")
    form.get_by_role("button", name="Save changes").click()
    expect(budget).to_contain_text("Almost used up")
    expect(budget).to_contain_text("Asks you")
    assert serious(page) == []
    budget.get_by_role("button", name="Remove…").click()
    budget.get_by_role("button", name="Remove budget").click()
    expect(budget).to_have_count(0)
    fixed = page.get_by_role("list", name="Budgets").locator(".card").filter(has_text="fixed")
    expect(fixed).to_contain_text("Config file")
    expect(fixed.get_by_role("button")).to_have_count(0)


def test_an_allowance_for_one_person_is_set_with_the_keyboard_alone(somebody: Person) -> None:
    page = somebody.log_in("/#/usage")
    page.get_by_role("button", name="Add budget").focus()
    page.keyboard.press("Enter")
    form = page.get_by_role("form", name="Budget")
    form.get_by_label("Name").focus()
    page.keyboard.type("guest")
    page.keyboard.press("Tab")
    page.keyboard.type("2.5")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    choose(page, "each user")
    expect(form.get_by_label("Only for")).to_be_visible()
    page.keyboard.press("Tab")
    choose(page, "every day")
    page.keyboard.press("Tab")
    page.keyboard.type("guest")
    page.keyboard.press("Enter")
    budget = page.get_by_role("list", name="Budgets").locator(".card").filter(has_text="guest")
    expect(budget).to_contain_text("of $2.50 by guest")
    (found,) = [
        each for each in somebody.daemon.get("/v1/budgets")["budgets"] if each["name"] == "guest"
    ]
    assert found["terms"] == {
        "per": "principal",
        "every": "day",
        "microusd": 2_500_000,
        "warn_bps": 8_000,
        "who": "guest",
    }
    budget.get_by_role("button", name="Remove…").focus()
    page.keyboard.press("Enter")
    expect(budget.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(budget).to_have_count(0)


def test_figures_are_held_against_the_period_before_and_days_without_use_are_drawn(
    browser: Browser, tmp_path: Path
) -> None:
    day_ms = 86_400_000
    with start(tmp_path, script=SCRIPT) as daemon, person(browser, daemon) as somebody:
        now = int(time.time() * 1000)
        for days, tokens in ((0, 3_000), (4, 3_000), (40, 4_000)):
            used_by(daemon, "guest", tokens, time_ms=now - days * day_ms, first_delta_ms=700)
        page = somebody.log_in("/#/usage")
        tokens = page.locator(".figure").filter(has_text="Tokens out")
        expect(tokens).to_contain_text("+100 % vs the month before")
        first = page.locator(".figure").filter(has_text="Time to first token")
        expect(first).to_contain_text("700 ms")
        page.get_by_text("Show as table").first.click()
        drawn = page.get_by_role("region", name="Over time")
        expect(drawn.locator("tbody tr")).to_have_count(5)
        page.get_by_role("button", name="All", exact=True).click()
        expect(drawn.locator("tbody tr")).to_have_count(41)
        assert "period=all" in page.url
        with page.expect_download() as download:
            page.get_by_role("button", name="Export CSV").click()
        lines = Path(download.value.path()).read_text().splitlines()
        assert (lines[0].split(",")[0], lines[1].split(",")[0]) == ("model", "scripted/s1")
