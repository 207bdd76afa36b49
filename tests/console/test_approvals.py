"""Saying yes and no in the console: beside the conversation, in the inbox, with the keyboard alone;
and never by mistake.
"""

import re

from playwright.sync_api import Page, expect

from tests.console_world import Person, say, serious


def plan(somebody: Person) -> str | None:
    path = somebody.daemon.workspace / "plan.txt"
    return path.read_text() if path.exists() else None


def asked(page: Page) -> None:
    say(page, "write")
    expect(page.get_by_role("button", name="Allow once")).to_be_enabled()


def test_a_change_is_shown_before_it_is_allowed_and_can_be_undone(somebody: Person) -> None:
    page = somebody.log_in()
    asked(page)
    card = page.get_by_role("region", name="Palyra asks")
    expect(card.locator(".diff .add")).to_have_count(2)
    assert plan(somebody) is None
    card.get_by_role("button", name="Allow once").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    assert plan(somebody) == "one\ntwo\n"
    step = page.get_by_role("article", name="Step: write a file")
    step.get_by_text("plan.txt", exact=True).first.click()
    expect(step).to_contain_text("you allowed it")
    step.get_by_role("button", name="Undo…").click()
    expect(step.locator(".diff .del").first).to_be_visible()
    step.get_by_role("button", name="Undo this now").click()
    expect(step.locator("summary .badge")).to_have_text("undone")
    assert plan(somebody) is None


def test_what_is_denied_does_not_happen_and_the_reason_is_told(somebody: Person) -> None:
    page = somebody.log_in()
    asked(page)
    card = page.get_by_role("region", name="Palyra asks")
    card.get_by_text("More ways to answer").click()
    card.get_by_label("Tell it why").fill("not on a Sunday")
    card.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    assert plan(somebody) is None
    page.get_by_role("link", name="Approvals").click()
    page.get_by_role("button", name="Answered").click()
    page.locator(".history summary").first.click()
    expect(page.locator(".history details[open]")).to_contain_text("not on a Sunday")


def test_what_it_does_can_be_edited_before_it_is_allowed(somebody: Person) -> None:
    page = somebody.log_in()
    asked(page)
    card = page.get_by_role("region", name="Palyra asks")
    card.get_by_text("More ways to answer").click()
    card.get_by_role("button", name="Edit arguments").click()
    box = card.get_by_label("Arguments")
    box.fill("{ not json")
    card.get_by_role("button", name="Allow as edited").click()
    expect(card.get_by_role("alert")).to_contain_text("not valid")
    box.fill('{"path": "plan.txt", "content": "three\\n"}')
    card.get_by_role("button", name="Allow as edited").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    assert plan(somebody) == "three\n"
    # As in a terminal; the agent itself cannot take anything back.
    message = page.get_by_role("textbox", name="Message")
    message.fill("/undo")
    message.press("Enter")
    expect(
        page.get_by_role("article", name="Step: write a file").locator("summary .badge")
    ).to_have_text("undone")
    assert plan(somebody) is None


def test_an_edit_is_shown_while_it_is_typed_and_ever_after(somebody: Person) -> None:
    page = somebody.log_in()
    asked(page)
    card = page.get_by_role("region", name="Palyra asks")
    card.get_by_text("More ways to answer").click()
    card.get_by_role("button", name="Edit arguments").click()
    card.get_by_label("Arguments").fill('{"path": ".env", "content": "x"}')
    expect(card.get_by_role("alert")).to_contain_text(".env")
    card.get_by_label("Arguments").fill('{"path": "plan.txt", "content": "edited\\n"}')
    drafted = card.get_by_label("As edited")
    expect(drafted.locator(".diff .add")).to_have_text("+edited\n")
    expect(card).not_to_contain_text("+two")
    card.get_by_role("button", name="Allow as edited").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    step = page.get_by_role("article", name="Step: write a file")
    step.get_by_text("plan.txt", exact=True).first.click()
    expect(step.locator(".diff")).to_contain_text("+edited")
    expect(step.locator(".diff")).not_to_contain_text("+two")
    page.get_by_role("link", name="Approvals").click()
    page.get_by_role("button", name="Answered").click()
    page.locator(".history summary").first.click()
    shown = page.locator(".history details[open]").first
    expect(shown.locator(".diff").first).to_contain_text("+edited")
    expect(shown.locator(".diff").nth(1)).not_to_be_visible()
    shown.get_by_role("link", name="See the moment on the timeline").click()
    entry = page.locator(".tape-entry")
    expect(entry.locator(".diff").first).to_contain_text("+edited")
    expect(entry.get_by_text("Approved with edited arguments")).to_be_visible()
    (somebody.daemon.workspace / "plan.txt").unlink()


def test_what_is_too_long_for_the_card_is_allowed_only_after_all_of_it_was_shown(
    somebody: Person,
) -> None:
    page = somebody.log_in()
    say(page, "write much")
    card = page.get_by_role("region", name="Palyra asks")
    expect(card).to_contain_text("Only the beginning and the end are shown.")
    expect(card.get_by_role("button", name="Deny")).to_be_enabled()
    expect(card.get_by_role("button", name="Allow once")).to_be_disabled()
    card.get_by_role("button", name="Show everything").click()
    expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    assert card.locator("pre").first.inner_text().count("+a long line of words") == 6_000
    card.get_by_role("button", name="Allow once").click()
    expect(page.get_by_text("Much is settled.")).to_be_visible()
    written = somebody.daemon.workspace / "much.txt"
    assert written.read_text().count("\n") == 6_000
    written.unlink()


def test_a_stopped_run_says_so_and_its_steps_do_not_wait_for_ever(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "two and wait")
    expect(page.get_by_role("button", name="Allow once").first).to_be_enabled()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".meter .badge")).to_have_text("stopped")
    badges = page.get_by_role("article", name="Step: write a file").locator("summary .badge")
    for number in range(2):
        expect(badges.nth(number)).to_have_text(re.compile("stopped|not run"))
    expect(page.get_by_role("button", name="Allow once")).to_have_count(0)


def test_a_wider_yes_says_what_it_covers_and_is_not_asked_again(somebody: Person) -> None:
    page = somebody.log_in()
    asked(page)
    card = page.get_by_role("region", name="Palyra asks")
    card.get_by_text("More ways to answer").click()
    card.get_by_label("Allow").select_option("session")
    expect(card.get_by_label("This covers")).to_be_visible()
    card.get_by_role("button", name="Allow in this session").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    (somebody.daemon.workspace / "plan.txt").unlink()
    say(page, "write")
    expect(page.get_by_text("It is settled.")).to_have_count(2)
    assert plan(somebody) == "one\ntwo\n"
    # Nobody was asked, so nobody saw it yet: the step shows what it did.
    step = page.get_by_role("article", name="Step: write a file").last
    step.get_by_text("plan.txt", exact=True).first.click()
    step.get_by_role("button", name="Show what changed").click()
    expect(step.locator(".diff .add")).to_have_text([re.compile(r"\+one"), re.compile(r"\+two")])
    (somebody.daemon.workspace / "plan.txt").unlink()


def test_no_key_and_no_hasty_click_is_a_yes(somebody: Person) -> None:
    page = somebody.log_in()
    page.evaluate(
        """() => new MutationObserver(() => {
            const yes = document.querySelector("button.yes");
            if (yes && window.early === undefined) { window.early = yes.disabled; yes.click(); }
        }).observe(document.body, {childList: true, subtree: true})"""
    )
    asked(page)
    assert page.evaluate("window.early") is True
    assert page.evaluate("document.activeElement.className") != "yes"
    page.keyboard.press("Enter")
    page.keyboard.press("y")
    page.get_by_role("link", name="Approvals").click()
    expect(page.locator(".inbox-list li")).to_have_count(1)
    page.keyboard.press("Enter")
    page.keyboard.press("a")
    expect(page.get_by_text("Press a again")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_text("Press a again")).to_have_count(0)
    assert plan(somebody) is None
    page.keyboard.press("d")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()


def test_the_inbox_is_worked_through_with_the_keyboard(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "two")
    expect(page.get_by_role("button", name="Allow once")).to_have_count(2)
    expect(page.get_by_role("link", name="Approvals").locator(".count")).to_have_text("2")
    page.goto(somebody.daemon.url + "/#/approvals")
    expect(page.locator(".inbox-list li")).to_have_count(2)
    assert serious(page) == []
    page.keyboard.press("j")
    expect(page.locator(".inbox-list li").nth(1)).to_have_class("current")
    kept = page.locator(".inbox-list li.current").inner_text()
    page.keyboard.press("a")
    page.keyboard.press("a")
    expect(page.locator(".inbox-list li")).to_have_count(1)
    name = "a.txt" if "a.txt" in kept else "b.txt"
    expect(page.locator(".inbox-list")).not_to_contain_text(name)
    page.keyboard.press("d")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    page.get_by_role("link", name="Chat").click()
    page.get_by_role("link", name="two").first.click()
    expect(page.get_by_text("Both are settled.")).to_be_visible()
    assert [
        (somebody.daemon.workspace / each).exists()
        for each in (name, "b.txt" if name == "a.txt" else "a.txt")
    ] == [
        True,
        False,
    ]
    (somebody.daemon.workspace / name).unlink()


def test_many_are_denied_at_once_and_a_filter_narrows_them(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "two")
    expect(page.get_by_role("button", name="Allow once")).to_have_count(2)
    page.goto(somebody.daemon.url + "/#/approvals")
    filter_box = page.get_by_role("searchbox", name="Filter approvals")
    filter_box.fill("a.txt")
    expect(page.locator(".inbox-list li")).to_have_count(1)
    filter_box.fill("")
    expect(page.locator(".inbox-list li")).to_have_count(2)
    for each in page.get_by_role("checkbox").all():
        each.check()
    page.get_by_role("button", name="Deny the 2 picked").click()
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()


def test_everything_from_asking_to_allowing_is_done_without_a_mouse(somebody: Person) -> None:
    page = somebody.log_in()
    page.get_by_role("textbox", name="Message").focus()
    page.keyboard.type("write")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Allow once")).to_be_enabled()
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.textContent") == "Allow once":
            break
    page.keyboard.press("Space")
    expect(page.get_by_text("It is settled.")).to_be_visible()
    assert plan(somebody) == "one\ntwo\n"
    (somebody.daemon.workspace / "plan.txt").unlink()
