"""Saying yes and no in the console: beside the conversation, in the inbox, with the keyboard alone;
and never by mistake.
"""

import re

from playwright.sync_api import Page, expect

from tests.console_world import Person, file_text, read, say, serious


def plan(somebody: Person) -> str | None:
    path = somebody.daemon.workspace / "plan.txt"
    return path.read_text() if path.exists() else None


def asked(page: Page) -> None:
    say(page, "write")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_enabled()


def test_a_change_is_shown_before_it_is_allowed_and_can_be_undone(somebody: Person) -> None:
    page = somebody.log_in()
    asked(page)
    card = page.get_by_role("region", name="Approval:")
    expect(card.locator(".diff .add")).to_have_count(2)
    assert plan(somebody) is None
    card.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    assert plan(somebody) == "one\ntwo\n"
    step = page.get_by_role("article", name="Tool call: write a file")
    step.get_by_text("plan.txt", exact=True).first.click()
    expect(step).to_contain_text("Approved by you")
    step.get_by_role("button", name="Undo…").click()
    expect(step.locator(".diff .del").first).to_be_visible()
    step.get_by_role("button", name="Undo now").click()
    expect(step.locator("summary .badge")).to_have_text("Undone")
    assert plan(somebody) is None


def test_what_is_denied_does_not_happen_and_the_reason_is_told(somebody: Person) -> None:
    page = somebody.log_in()
    asked(page)
    card = page.get_by_role("region", name="Approval:")
    card.get_by_text("More options").click()
    card.get_by_label("Reason for the agent").fill("not on a Sunday")
    card.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    assert plan(somebody) is None
    page.get_by_role("link", name="Approvals").click()
    page.get_by_role("button", name="Answered").click()
    page.locator(".history summary").first.click()
    expect(page.locator(".history details[open]")).to_contain_text("not on a Sunday")


def test_arguments_are_edited_as_text_before_they_are_approved(somebody: Person) -> None:
    page = somebody.log_in()
    asked(page)
    card = page.get_by_role("region", name="Approval:")
    card.get_by_role("button", name="Edit", exact=True).click()
    expect(card.get_by_label("path", exact=True)).to_have_value("plan.txt")
    card.get_by_label("content").fill("never\n")
    card.get_by_role("button", name="Discard changes").click()
    card.get_by_role("button", name="Edit", exact=True).click()
    expect(card.get_by_label("content")).to_have_value("one\ntwo\n")
    card.get_by_label("content").fill("three\n")
    card.get_by_role("button", name="Approve edited").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    assert file_text(somebody.daemon.workspace / "plan.txt") == "three\n"
    # As in a terminal; the agent itself cannot take anything back.
    message = page.get_by_role("textbox", name="Message")
    message.fill("/undo")
    message.press("Enter")
    expect(
        page.get_by_role("article", name="Tool call: write a file").locator("summary .badge")
    ).to_have_text("Undone")
    assert plan(somebody) is None


def test_an_edit_is_shown_while_it_is_typed_and_ever_after(somebody: Person) -> None:
    page = somebody.log_in()
    asked(page)
    card = page.get_by_role("region", name="Approval:")
    card.get_by_role("button", name="Edit", exact=True).click()
    card.get_by_label("path", exact=True).fill(".env")
    expect(card.get_by_role("alert")).to_contain_text(".env")
    expect(card.get_by_role("button", name="Approve edited")).to_be_disabled()
    card.get_by_label("path", exact=True).fill("plan.txt")
    card.get_by_label("content").fill("edited\n")
    drafted = card.get_by_label("As edited")
    expect(drafted.locator(".diff .add")).to_contain_text("+edited")
    expect(card).not_to_contain_text("+two")
    card.get_by_role("button", name="Approve edited").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    step = page.get_by_role("article", name="Tool call: write a file")
    step.get_by_text("plan.txt", exact=True).first.click()
    expect(step.locator(".diff")).to_contain_text("+edited")
    expect(step.locator(".diff")).not_to_contain_text("+two")
    page.get_by_role("link", name="Approvals").click()
    page.get_by_role("button", name="Answered").click()
    page.locator(".history summary").first.click()
    shown = page.locator(".history details[open]").first
    expect(shown.locator(".diff").first).to_contain_text("edited")
    expect(shown.locator(".diff").nth(1)).not_to_be_visible()
    shown.get_by_role("link", name="Show on timeline").click()
    entry = page.locator(".tape-entry")
    expect(entry.locator(".diff").first).to_contain_text("edited")
    expect(entry.get_by_text("Approved with edited arguments")).to_be_visible()
    (somebody.daemon.workspace / "plan.txt").unlink()


def test_whoever_types_at_once_types_into_the_field_of_their_choice(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "write")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
    stays = page.get_by_role("button", name="Edit", exact=True).evaluate(
        """async (edit) => {
            const drawn = new Promise((done) => {
                const seen = new MutationObserver(() => {
                    const field = [...document.querySelectorAll(".edit-form label")]
                        .find((each) => each.textContent.startsWith("content"))
                        ?.querySelector("textarea, input");
                    if (field) { seen.disconnect(); done(field); }
                });
                seen.observe(document.body, { childList: true, subtree: true });
            });
            edit.click();
            const field = await drawn;
            field.focus();
            await new Promise((done) => setTimeout(done, 50));
            return document.activeElement === field;
        }"""
    )
    assert stays
    page.get_by_role("button", name="Deny", exact=True).click()


def test_what_is_too_long_for_the_card_is_allowed_only_after_all_of_it_was_shown(
    somebody: Person,
) -> None:
    page = somebody.log_in()
    say(page, "write much")
    card = page.get_by_role("region", name="Approval:")
    expect(card).to_contain_text("Only the beginning and the end are shown.")
    expect(card.get_by_role("button", name="Deny")).to_be_enabled()
    expect(card.get_by_role("button", name="Approve", exact=True)).to_be_disabled()
    card.get_by_role("button", name="Show everything").click()
    expect(card.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
    assert read(card.locator("pre").first).count("+a long line of words") == 6_000
    card.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Much is settled.")).to_be_visible()
    written = somebody.daemon.workspace / "much.txt"
    assert written.read_text().count("\n") == 6_000
    written.unlink()


def test_a_stopped_run_says_so_and_its_steps_do_not_wait_for_ever(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "two and wait")
    expect(page.get_by_role("button", name="Approve all 2")).to_be_enabled()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".meter .badge")).to_have_text("Stopped")
    badges = page.get_by_role("article", name="Tool call: write a file").locator("summary .badge")
    for number in range(2):
        expect(badges.nth(number)).to_have_text(re.compile("Stopped|Not run"))
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def test_a_wider_yes_says_what_it_covers_and_is_not_asked_again(somebody: Person) -> None:
    page = somebody.log_in()
    asked(page)
    card = page.get_by_role("region", name="Approval:")
    card.get_by_label("Scope").select_option("session")
    expect(card.get_by_label("Applies to")).to_be_visible()
    card.get_by_role("button", name="Approve for session").click()
    expect(page.get_by_text("It is settled.")).to_be_visible()
    (somebody.daemon.workspace / "plan.txt").unlink()
    say(page, "write")
    expect(page.get_by_text("It is settled.")).to_have_count(2)
    assert plan(somebody) == "one\ntwo\n"
    # What lasts is listed, and can be revoked.
    other = somebody.tab("/#/policies")
    row = other.get_by_role("table", name="Grants").get_by_role("row").nth(1)
    expect(row).to_contain_text("write")
    row.get_by_role("button", name="Revoke…").click()
    row.get_by_role("button", name="Revoke", exact=True).click()
    expect(other.get_by_text("No grants are active.")).to_be_visible()
    assert serious(other) == []
    other.close()
    assert somebody.daemon.get("/v1/grants")["grants"] == []
    # Nobody was asked, so nobody saw it yet: the step shows what it did.
    step = page.get_by_role("article", name="Tool call: write a file").last
    step.get_by_text("plan.txt", exact=True).first.click()
    step.get_by_role("button", name="Show changes").click()
    expect(step.locator(".diff .add")).to_have_text([re.compile(r"\+one$"), re.compile(r"\+two$")])
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
    assert not page.evaluate("document.activeElement.matches('.yes')")
    page.keyboard.press("Enter")
    page.keyboard.press("y")
    page.get_by_role("link", name="Approvals").click()
    expect(page.locator(".inbox-list li")).to_have_count(1)
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
    page.keyboard.press("Enter")
    page.keyboard.press("a")
    expect(page.get_by_text("Press A again")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_text("Press A again")).to_have_count(0)
    assert plan(somebody) is None
    page.keyboard.press("d")
    expect(page.get_by_text("Nothing needs approval")).to_be_visible()


def test_the_inbox_is_worked_through_with_the_keyboard(somebody: Person) -> None:
    page, workspace = somebody.log_in(), somebody.daemon.workspace
    asked(page)
    page.get_by_role("link", name="New session").click()
    say(page, "patch three")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Approvals").locator(".count")).to_have_text("2")
    page.goto(somebody.daemon.url + "/#/approvals")
    expect(page.locator(".inbox-list li")).to_have_count(2)
    assert serious(page) == []
    page.keyboard.press("j")
    expect(page.locator(".inbox-list li").nth(1)).to_have_class("current")
    kept = read(page.locator(".inbox-list li.current"))
    # A card that has just come takes no answer yet.
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
    page.keyboard.press("a")
    page.keyboard.press("a")
    expect(page.locator(".inbox-list li")).to_have_count(1)
    words = "plan.txt" if "plan.txt" in kept else "3 files"
    expect(page.locator(".inbox-list")).not_to_contain_text(words)
    expect(page.get_by_role("button", name="Deny", exact=True)).to_be_enabled()
    page.keyboard.press("d")
    expect(page.get_by_text("Nothing needs approval")).to_be_visible()
    page.get_by_role("link", name="Chat").click()
    for session, settled in (("write", "It is settled."), ("patch three", "The patch is settled.")):
        page.get_by_role("link", name=re.compile(f"^{session}")).first.click()
        expect(page.get_by_text(settled)).to_be_visible()
    there = [(workspace / each).exists() for each in ("plan.txt", "p.txt")]
    assert there == [words == "plan.txt", words == "3 files"]
    for each in "pqr":
        (workspace / f"{each}.txt").unlink(missing_ok=True)


def test_the_inbox_says_where_values_come_from(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "write")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    page.goto(somebody.daemon.url + "/#/approvals")
    origins = page.locator("dl.origins")
    expect(origins).to_contain_text("plan.txt")
    expect(origins).to_contain_text("written by the model")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_text("Nothing needs approval")).to_be_visible()


def test_a_file_of_a_patch_is_left_out_and_exactly_the_rest_runs(somebody: Person) -> None:
    page, workspace = somebody.log_in(), somebody.daemon.workspace
    say(page, "patch three")
    card = page.get_by_role("region", name="Approval:")
    files = card.get_by_role("group", name="Files to change")
    expect(files.get_by_role("checkbox")).to_have_count(3)
    files.get_by_role("checkbox", name="q.txt").uncheck()
    drafted = card.get_by_label("As edited")
    expect(drafted.get_by_role("region", name=re.compile("Changes in"))).to_have_count(2)
    expect(drafted).not_to_contain_text("q.txt")
    expect(card.get_by_role("button", name="Approve 2 of 3 files")).to_be_enabled()
    assert serious(page) == []
    for name in ("p.txt", "r.txt"):
        files.get_by_role("checkbox", name=name).uncheck()
    expect(files).to_contain_text("Deny the call instead.")
    expect(card.get_by_role("button", name="Approve", exact=True)).to_be_disabled()
    for name in ("p.txt", "r.txt"):
        files.get_by_role("checkbox", name=name).check()
    card.get_by_role("button", name="Approve 2 of 3 files").click()
    expect(page.get_by_text("The patch is settled.")).to_be_visible()
    there = [(workspace / f"{name}.txt").exists() for name in "pqr"]
    assert there == [True, False, True]
    # Afterwards, too, it is shown as edited, with what was proposed beside it.
    (answered, *_) = somebody.daemon.get("/v1/approvals?pending=false")["approvals"]
    assert "q.txt" not in answered["resolution"]["arguments"]["diff"]
    assert "q.txt" not in answered["resolution"]["preview"]["body"]
    assert "q.txt" in answered["request"]["preview"]["body"]
    page.goto(somebody.daemon.url + "/#/approvals?tab=answered")
    page.locator(".history summary").first.click()
    shown = page.locator(".history details[open]").first
    expect(shown).to_contain_text("Approved with edited arguments")
    expect(shown).to_contain_text("left out: q.txt")
    for name in "pr":
        (workspace / f"{name}.txt").unlink()


def test_calls_of_one_turn_are_one_question_with_a_line_for_each(somebody: Person) -> None:
    page, workspace = somebody.log_in(), somebody.daemon.workspace
    say(page, "two")
    card = page.get_by_role("region", name="Approval: 2 tool calls")
    expect(card.locator(".diff .add")).to_have_count(2)
    # Nobody is asked about the second one a second time.
    expect(page.get_by_role("region", name="Approval:")).to_have_count(1)
    card.get_by_role("checkbox", name="b.txt").uncheck()
    expect(card.locator(".diff .add")).to_have_count(1)
    assert serious(page) == []
    card.get_by_role("button", name="Approve 1 of 2").click()
    expect(page.get_by_text("Both are settled.")).to_be_visible()
    assert [(workspace / f"{name}.txt").exists() for name in "ab"] == [True, False]
    answered = somebody.daemon.get("/v1/approvals?pending=false")["approvals"][:2]
    assert sorted(each["decision"] for each in answered) == ["allow", "deny"]


def test_one_of_several_calls_is_edited_and_answered_alone(somebody: Person) -> None:
    page, workspace = somebody.log_in(), somebody.daemon.workspace
    say(page, "two")
    card = page.get_by_role("region", name="Approval: 2 tool calls")
    line = card.get_by_role("listitem", name=re.compile("a.txt"))
    line.get_by_role("button", name="Answer alone").click()
    # It is not answered with the others any more.
    expect(card.get_by_role("button", name="Approve 1 of 2")).to_be_enabled()
    line.get_by_role("button", name="Edit", exact=True).click()
    line.get_by_label("content").fill("edited\n")
    line.get_by_role("button", name="Approve edited").click()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Both are settled.")).to_be_visible()
    assert [(workspace / f"{name}.txt").read_text() for name in "ab"] == ["edited\n", "b"]


def test_a_line_that_is_not_shown_whole_waits_for_it_and_keys_answer_all(somebody: Person) -> None:
    page, workspace = somebody.log_in(), somebody.daemon.workspace
    say(page, "much and little")
    expect(page.get_by_role("button", name="Approve 1 of 2")).to_be_enabled()
    page.goto(somebody.daemon.url + "/#/approvals")
    expect(page.locator(".inbox-list li")).to_contain_text("2 tool calls")
    page.get_by_role("button", name="Show everything").click()
    expect(page.get_by_role("button", name="Approve all 2")).to_be_enabled()
    page.keyboard.press("a")
    expect(page.get_by_text("Press A again")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("Nothing needs approval")).to_be_visible()
    assert file_text(workspace / "much.txt").count("\n") == 6_000
    assert file_text(workspace / "a.txt") == "a"


def test_several_are_approved_at_once_after_all_of_each_was_shown(somebody: Person) -> None:
    page, workspace = somebody.log_in(), somebody.daemon.workspace
    say(page, "two")
    expect(page.get_by_role("button", name="Approve all 2")).to_be_visible()
    page.get_by_role("link", name="New session").click()
    say(page, "write much")
    expect(page.get_by_text("Only the beginning and the end")).to_be_visible()
    page.goto(somebody.daemon.url + "/#/approvals")
    expect(page.locator(".inbox-list li")).to_have_count(2)
    page.get_by_role("button", name="Select all 3").click()
    expect(page.get_by_role("region", name=re.compile("^Selected:"))).to_have_count(3)
    # The long one is loaded whole, and nobody has looked at its end yet.
    much = page.get_by_role("region", name=re.compile("^Selected:.*much"))
    expect(much.locator("pre")).to_contain_text("+a long line of words")
    expect(page.get_by_role("status").filter(has_text="of 3 seen")).to_be_visible()
    approve = page.get_by_role("button", name="Approve 3")
    expect(approve).to_be_disabled()
    assert serious(page) == []
    for end in page.locator("[data-end]").all():
        end.scroll_into_view_if_needed()
    expect(approve).to_be_enabled()
    approve.click()
    expect(page.get_by_text("Nothing needs approval")).to_be_visible()
    page.get_by_role("link", name="Chat").click()
    for session, words in (("write much", "Much is settled."), ("two", "Both are settled.")):
        page.get_by_role("link", name=re.compile(f"^{session}")).first.click()
        expect(page.get_by_text(words)).to_be_visible()
    for name in ("a.txt", "b.txt", "much.txt"):
        (workspace / name).unlink()


def test_many_are_denied_at_once_and_a_filter_narrows_them(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "two")
    expect(page.get_by_role("button", name="Approve all 2")).to_be_visible()
    page.goto(somebody.daemon.url + "/#/approvals")
    expect(page.locator(".inbox-list li")).to_contain_text("2 tool calls")
    filter_box = page.get_by_role("searchbox", name="Filter approvals")
    filter_box.fill("a.txt")
    expect(page.locator(".inbox-list li")).to_contain_text("create a.txt")
    filter_box.fill("")
    expect(page.locator(".inbox-list li")).to_contain_text("2 tool calls")
    for each in page.get_by_role("checkbox", name="Select").all():
        each.check()
    page.get_by_role("button", name="Deny 2").click()
    expect(page.get_by_text("Nothing needs approval")).to_be_visible()


def test_everything_from_asking_to_allowing_is_done_without_a_mouse(somebody: Person) -> None:
    page = somebody.log_in()
    page.get_by_role("textbox", name="Message").focus()
    page.keyboard.type("write")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.matches('button.yes')"):
            break
    page.keyboard.press("Space")
    expect(page.get_by_text("It is settled.")).to_be_visible()
    assert plan(somebody) == "one\ntwo\n"
    (somebody.daemon.workspace / "plan.txt").unlink()
