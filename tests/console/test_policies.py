"""Policies in the console: judged as one types, tried on what happened, saved; presets, suggestions
and who can do what.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console_world import Person, person, say, serious, settled
from tests.daemon import DaemonProcess

RULE = '@id("no-plans")\n@reason("no plans on a Sunday")\nforbid (principal, action == Action::"run", resource == Tool::"fs.write");\n'


@pytest.fixture(autouse=True)
def as_before(daemon: DaemonProcess) -> Iterator[None]:
    yield
    for each in daemon.get("/v1/policy/files")["files"]:
        if not each["shipped"]:
            daemon.request("DELETE", f"/v1/policy/files?name={each['name']}&was={each['digest']}")
    daemon.post("/v1/policy/preset", {"preset": "default"})


def begin(page: Page, name: str, text: str) -> None:
    page.get_by_role("button", name="New file…").click()
    page.get_by_label("File name").fill(name)
    page.get_by_role("button", name="Create file").click()
    page.get_by_role("textbox", name=name).fill(text)


def test_a_shadow_policy_is_tried_and_stopped_without_a_restart(somebody: Person) -> None:
    page, daemon = somebody.log_in("/#/policies/shadow"), somebody.daemon
    expect(page.get_by_text("No shadow policy configured")).to_be_visible()
    form = page.get_by_role("form", name="Choose a shadow policy")
    form.get_by_label("Or a folder of policies").fill(str(daemon.home / "nowhere"))
    form.get_by_role("button", name="Try folder").click()
    expect(form.get_by_role("alert")).to_contain_text("nowhere")
    assert daemon.get("/v1/policy/shadow")["named"] == ""
    form.get_by_role("button", name="Try locked").click()
    expect(page.get_by_text("Shadow policy: preset locked")).to_be_visible()
    assert serious(page) == []
    page.goto(daemon.url + "/#/chat")
    say(page, "write")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    assert daemon.get("/v1/policy/shadow")["calls"] == 1
    page.goto(daemon.url + "/#/policies/shadow")
    page.get_by_role("button", name="Stop shadow policy").click()
    expect(page.get_by_text("No shadow policy now")).to_be_visible()
    assert daemon.get("/v1/policy/shadow")["named"] == ""


def test_the_editor_colours_cedar_and_offers_what_the_schema_has(somebody: Person) -> None:
    page = somebody.log_in("/#/policies/files")
    begin(page, "offered.cedar", "")
    box = page.get_by_role("textbox", name="offered.cedar")
    shown = page.get_by_role("listbox", name="Suggestions")
    box.press_sequentially('forbid (principal, action == Action::"run_un')
    expect(shown.get_by_role("option")).to_have_text([re.compile("^run_unattended")])
    page.keyboard.press("Enter")
    box.press_sequentially('", resource) when { context.conf')
    expect(shown.get_by_role("option")).to_have_text([re.compile("^confidentiality.*String")])
    assert serious(page) == []
    page.keyboard.press("Tab")
    box.press_sequentially(' == "secret" && resource.eff')
    expect(shown.get_by_role("option")).to_have_text([re.compile("^effect")])
    page.keyboard.press("Escape")
    expect(shown).to_have_count(0)
    box.press_sequentially('ect == "once" };')
    expect(box).to_have_value(
        'forbid (principal, action == Action::"run_unattended", resource) when {'
        ' context.confidentiality == "secret" && resource.effect == "once" };'
    )
    expect(page.get_by_text("Valid. This file: forbid")).to_be_visible()
    under = page.locator(".editor .under")
    expect(under.locator(".c-key", has_text="forbid")).to_be_visible()
    expect(under.locator(".c-str", has_text='"run_unattended"')).to_be_visible()
    # The colours stand exactly under the letters, wherever one has scrolled to.
    same = """(it) => { const area = it.nextElementSibling, [a, b] = [it, area].map(getComputedStyle);
      return a.font === b.font && a.paddingLeft === b.paddingLeft && it.scrollLeft === area.scrollLeft }"""
    assert under.evaluate(same)
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+Space")
    expect(shown.get_by_role("option", name=re.compile("^permit"))).to_be_visible()


def test_a_policy_is_judged_as_it_is_typed_tried_saved_and_removed(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "write")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    page.goto(f"{somebody.daemon.url}/#/policies/files")
    begin(page, "sunday.cedar", RULE.replace("Tool::", "Tol::"))
    save = page.get_by_role("button", name="Save and activate")
    expect(page.locator(".faults")).to_contain_text("Line 3")
    expect(page.locator(".wrong-line").filter(has_text="Tol::")).to_be_visible()
    expect(save).to_be_disabled()
    assert serious(page) == []
    page.get_by_role("textbox", name="sunday.cedar").fill(RULE)
    expect(page.get_by_text("Valid. This file: forbid no-plans.")).to_be_visible()
    page.get_by_role("button", name="Backtest").click()
    expect(
        page.locator(".tile").filter(has_text="newly denied").locator("strong")
    ).not_to_have_text("0")
    row = (
        page.get_by_role("table", name="Changed decisions")
        .get_by_role("row")
        .filter(has_text="plan.txt")
    )
    expect(row).to_contain_text("no plans on a Sunday")
    assert serious(page) == []
    save.click()
    expect(page.get_by_text("Saved and active: added no-plans")).to_be_visible()
    assert (somebody.daemon.home / "policies" / "sunday.cedar").read_text() == RULE
    page.get_by_role("button", name="Delete file…").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("button", name="sunday.cedar")).to_have_count(0)
    assert not (somebody.daemon.home / "policies" / "sunday.cedar").exists()


def test_what_somebody_else_saved_meanwhile_is_not_overwritten(somebody: Person) -> None:
    somebody.daemon.post("/v1/policy/files", {"name": "shared.cedar", "text": RULE})
    page = somebody.log_in("/#/policies/files")
    page.get_by_role("button", name="shared.cedar").click()
    other = RULE.replace("Sunday", "Monday")
    (somebody.daemon.home / "policies" / "shared.cedar").write_text(other)
    page.get_by_role("textbox", name="shared.cedar").fill(RULE.replace("Sunday", "Friday"))
    page.get_by_role("button", name="Save and activate").click()
    expect(page.get_by_role("alert")).to_contain_text("changed meanwhile")
    assert (somebody.daemon.home / "policies" / "shared.cedar").read_text() == other


def test_who_can_do_what_follows_the_preset(somebody: Person) -> None:
    page = somebody.log_in("/#/policies")
    table = page.get_by_role("table", name="Permissions")
    row = table.get_by_role("row").filter(has_text="fs.write")
    expect(row.get_by_role("cell").nth(1)).to_have_text("ask")
    assert serious(page) == []
    row.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Why: fs.write")).to_contain_text("default-ask")
    page.get_by_role("button", name="Presets").click()
    page.get_by_role("button", name="Use Coding…").click()
    expect(page.get_by_text("Active", exact=True)).to_have_count(1)
    page.get_by_role("button", name="Use Coding", exact=True).click()
    expect(page.locator(".card.here")).to_contain_text("Coding")
    assert 'preset = "coding"' in (somebody.daemon.home / "config.toml").read_text()
    page.get_by_role("button", name="Permissions").click()
    expect(row.get_by_role("cell").nth(1)).to_have_text("allow")


def test_a_preset_shows_what_it_would_change_before_it_is_used(somebody: Person) -> None:
    somebody.daemon.run("code")
    page = somebody.log_in()
    say(page, "write")
    page.get_by_role("button", name="Deny").click()
    page.goto(f"{somebody.daemon.url}/#/policies/presets")
    page.locator(".card").filter(has_text="Locked").get_by_role(
        "button", name="What would change?"
    ).click()
    page.get_by_role("button", name="Backtest").click()
    expect(page.locator(".change").first).to_contain_text("deny")
    assert serious(page) == []


def test_a_suggestion_is_taken_over_into_the_editor_and_saved(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "two")
    page.get_by_role("button", name="Approve all 2").click()
    expect(page.get_by_text("Both are settled.")).to_be_visible()
    page.goto(f"{somebody.daemon.url}/#/policies/suggestions")
    page.get_by_role("button", name="Use all").click()
    expect(page.get_by_role("textbox", name="suggested.cedar")).to_have_value(
        re.compile("run_unattended")
    )
    expect(page.get_by_text("Valid.")).to_be_visible()
    assert not (somebody.daemon.home / "policies" / "suggested.cedar").exists()
    page.get_by_role("button", name="Save and activate").click()
    expect(page.get_by_text("Saved and active")).to_be_visible()
    _, entries = somebody.daemon.run("two")
    assert "approval.requested" not in [entry["kind"] for entry in entries]


def test_the_policy_pages_fit_a_phone(browser: Browser, daemon: DaemonProcess) -> None:
    with person(browser, daemon, viewport={"width": 360, "height": 740}) as somebody:
        page = somebody.log_in()
        for view in ("who", "presets", "files", "suggestions", "shadow"):
            page.goto(f"{daemon.url}/#/policies/{view}")
            settled(page)
            expect(page.get_by_role("heading", name="Policies")).to_be_visible()
            page.locator(".page table, .cards, .editor, .empty, .history").first.wait_for()
            assert serious(page) == [], view
            assert page.evaluate("document.querySelector('main').scrollWidth") <= 360, view
