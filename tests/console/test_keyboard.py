"""The pages beside the chat, worked with the keyboard alone."""

from playwright.sync_api import Page, expect

from tests.console_world import Person

RULE = '@id("by-keys")\nforbid (principal, action == Action::"run", resource == Tool::"fs.patch");'


def reach(page: Page, name: str) -> None:
    """Tab until what has this name has the focus."""
    named = """(() => {
        const here = document.activeElement;
        return (here?.getAttribute("aria-label") || here?.labels?.[0]?.textContent || here?.textContent || "").trim();
    })()"""
    for _ in range(80):
        if page.evaluate(named) == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never comes to {name!r}")


def press(page: Page, name: str) -> None:
    reach(page, name)
    page.keyboard.press("Enter")


def choose(page: Page, words: str) -> None:
    """Go down in the list that has the focus. Letters would do as well, unless one is late: then it
    begins another word.
    """
    here = page.locator(":focus")
    for _ in range(here.locator("option").count()):
        if here.evaluate("(it) => it.selectedOptions[0].textContent").startswith(words):
            return
        page.keyboard.press("ArrowDown")
    raise AssertionError(f"there is no {words!r}")


def test_a_policy_is_written_and_saved_without_a_mouse(somebody: Person) -> None:
    page = somebody.log_in("/#/policies/files")
    page.locator(".editor").wait_for()
    press(page, "New file…")
    reach(page, "File name")
    page.keyboard.type("keys.cedar")
    page.keyboard.press("Enter")
    reach(page, "keys.cedar")
    page.get_by_role("textbox", name="keys.cedar").wait_for()
    page.keyboard.press("Shift+Tab")
    reach(page, "keys.cedar")
    while page.evaluate("document.activeElement.tagName") != "TEXTAREA":
        page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(RULE)
    expect(page.get_by_text("Valid. This file: forbid by-keys.")).to_be_visible()
    press(page, "Save and activate")
    expect(page.get_by_text("Saved and active: added by-keys")).to_be_visible()
    press(page, "Delete file…")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="keys.cedar")).to_have_count(0)


def test_a_token_is_made_and_taken_back_without_a_mouse(somebody: Person) -> None:
    page = somebody.log_in("/#/connections/tokens")
    page.get_by_role("table", name="Tokens").wait_for()
    press(page, "Create token")
    reach(page, "Name")
    page.keyboard.type("keys")
    page.keyboard.press("Enter")
    expect(page.locator(".once code")).to_be_visible()
    press(page, "Done")
    row = page.get_by_role("table", name="Tokens").get_by_role("row").filter(has_text="keys")
    row.get_by_role("button", name="Revoke…").focus()
    page.keyboard.press("Enter")
    expect(row.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(row).to_have_count(0)


def test_whoever_moved_on_to_the_yes_stays_there_while_the_page_is_drawn_anew(
    somebody: Person,
) -> None:
    somebody.daemon.post("/v1/tokens", {"name": "mine", "scope": "viewer"})
    page = somebody.log_in("/#/connections/tokens")
    rows = page.get_by_role("table", name="Tokens").get_by_role("row")
    mine = rows.filter(has_text="mine")
    mine.get_by_role("button", name="Revoke…").focus()
    page.keyboard.press("Enter")
    expect(mine.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    somebody.daemon.post("/v1/tokens", {"name": "another", "scope": "viewer"})
    expect(rows.filter(has_text="another")).to_be_visible()
    expect(mine.get_by_role("button", name="Revoke", exact=True)).to_be_focused()


def test_on_a_phone_the_other_pages_lie_behind_more_and_escape_closes_it(somebody: Person) -> None:
    page = somebody.log_in()
    page.set_viewport_size({"width": 360, "height": 740})
    more = page.get_by_role("button", name="More", exact=True)
    expect(page.get_by_role("link", name="Journal")).to_be_hidden()
    more.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Journal")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Journal")).to_be_hidden()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Journal").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Journal", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Journal")).to_be_hidden()
