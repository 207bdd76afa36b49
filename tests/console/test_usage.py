"""What models cost, in the console: drawn, and the same figures as a table that anybody can sort and read."""

from playwright.sync_api import Browser, expect

from tests.console_world import Person, person, serious
from tests.daemon import DaemonProcess


def test_what_was_used_is_drawn_and_told_in_figures(somebody: Person) -> None:
    session, entries = somebody.daemon.run("hello")
    used = next(entry["event"]["usage"] for entry in entries if entry["kind"] == "model.replied")
    page = somebody.log_in("/#/usage")
    tokens = page.get_by_role("figure").filter(has_text="Tokens")
    expect(tokens.locator("canvas")).to_be_visible()
    for title in ("Tokens", "Cost", "Waiting", "Calls"):
        expect(page.get_by_role("figure").filter(has_text=title).locator("canvas").first).to_be_visible()
    tokens.get_by_text("As a table").click()
    expect(tokens.get_by_role("table", name="Tokens")).to_be_visible()
    page.get_by_role("button", name="Session", exact=True).click()
    row = page.get_by_role("table", name="Usage by session").get_by_role("row").filter(has=page.locator(f"a[href$='{session}']"))
    expect(row).to_contain_text(f"{used['input_tokens']:,}")
    assert serious(page) == []
    page.get_by_role("button", name="Model", exact=True).click()
    expect(page.get_by_role("table", name="Usage by model")).to_contain_text("scripted/s1")


def test_a_new_call_shows_without_a_reload(somebody: Person) -> None:
    somebody.daemon.run("hello")
    page = somebody.log_in("/#/usage")
    calls = page.locator(".tile").filter(has_text="calls of models").locator("strong")
    before = int(calls.inner_text())
    somebody.daemon.run("hello")
    expect(calls).to_have_text(str(before + 1))


def test_a_table_is_sorted_with_the_keyboard_and_on_a_phone(browser: Browser, daemon: DaemonProcess) -> None:
    daemon.run("hello")
    daemon.run("code")
    with person(browser, daemon) as somebody:
        page = somebody.log_in("/#/usage")
        page.get_by_role("button", name="Run", exact=True).click()
        heading = page.get_by_role("table", name="Usage by run").get_by_role("button", name="Tokens out")
        heading.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("columnheader", name="Tokens out")).to_have_attribute("aria-sort", "descending")
        page.keyboard.press("Space")
        expect(page.get_by_role("columnheader", name="Tokens out")).to_have_attribute("aria-sort", "ascending")
        cells = page.get_by_role("table", name="Usage by run").locator("td[data-label='Tokens out']").all_inner_texts()
        assert [int(each) for each in cells] == sorted(int(each) for each in cells)
        page.set_viewport_size({"width": 360, "height": 740})
        page.get_by_label("Sort by: Usage by run").select_option("in")
        expect(page.get_by_role("button", name="Largest first")).to_be_visible()
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 360
        assert serious(page) == []


def test_a_budget_is_set_shown_with_what_is_left_and_removed(somebody: Person) -> None:
    page = somebody.log_in("/#/usage")
    page.get_by_role("button", name="Set a budget").click()
    form = page.get_by_role("form", name="Budget")
    form.get_by_label("Name").fill("My Month")
    expect(form.get_by_text("small letters")).to_be_visible()
    form.get_by_label("Name").fill("month")
    form.get_by_label("At most").fill("1000000")
    form.get_by_label("of", exact=True).select_option("tokens")
    assert serious(page) == []
    form.get_by_role("button", name="Set it").click()
    budget = page.get_by_role("list", name="Budgets").locator(".card")
    expect(budget).to_contain_text("of 1,000,000 tokens")
    _, entries = somebody.daemon.run("hello")
    used = next(entry["event"]["usage"] for entry in entries if entry["kind"] == "model.replied")
    (found,) = somebody.daemon.get("/v1/budgets")["budgets"]
    assert found["spent"] >= used["input_tokens"]
    expect(budget).to_contain_text(f"{found['spent']:,} tokens")
    assert serious(page) == []
    budget.get_by_role("button", name="Remove…").click()
    budget.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("There is no limit.")).to_be_visible()
