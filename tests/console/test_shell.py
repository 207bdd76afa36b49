"""What is around every page: navigation in groups, the palette, shortcuts, and what the browser
keeps.
"""

import re
import urllib.request

from playwright.sync_api import Browser, expect

from tests.console_world import Person, person, say, serious, settled
from tests.daemon import DaemonProcess


def test_the_palette_finds_pages_sessions_and_messages_with_the_keyboard(somebody: Person) -> None:
    session, _ = somebody.daemon.run("hello")
    somebody.daemon.request("PATCH", f"/v1/sessions/{session}", {"title": "Zinnia beds"})
    page = somebody.log_in()
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Search pages")
    expect(box).to_be_focused()
    assert serious(page) == []
    page.keyboard.type("journ")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Journal", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    expect(box).to_be_focused()
    page.keyboard.type("zinnia")
    expect(
        page.get_by_role("listbox", name="Results").get_by_text("Zinnia beds").first
    ).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Session name")).to_have_value("Zinnia beds")
    page.get_by_role("button", name="Search or jump to").click()
    expect(box).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_shortcuts_are_listed_and_a_slash_leads_to_the_search_field(somebody: Person) -> None:
    page = somebody.log_in("/#/memory")
    page.locator("main").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("Approve")
    assert serious(page) == []
    page.keyboard.press("Escape")
    page.locator("main").focus()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search memory")).to_be_focused()
    page.keyboard.type("?")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_groups_fold_and_the_navigation_collapses_and_both_stay(somebody: Person) -> None:
    page = somebody.log_in()
    page.get_by_role("button", name="Trust").click()
    expect(page.get_by_role("link", name="Journal")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="Trust")).to_have_attribute("aria-expanded", "false")
    page.get_by_role("button", name="Collapse navigation").click()
    # The icons of a rail have their names, also those of a folded group.
    expect(page.get_by_role("link", name="Journal")).to_be_visible()
    assert serious(page) == []
    page.reload()
    page.get_by_role("button", name="Expand navigation").click()
    page.get_by_role("button", name="Trust").click()
    expect(page.get_by_role("link", name="Journal")).to_be_visible()


def test_health_model_folder_and_preset_are_always_in_sight(somebody: Person) -> None:
    page = somebody.log_in()
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages.get_by_role("link", name="Healthy")).to_be_visible()
    expect(pages.get_by_role("link", name="scripted/s1")).to_be_visible()
    expect(pages.get_by_role("link", name=re.compile("workspace · default"))).to_be_visible()


def test_a_suggestion_is_sent_by_one_click(somebody: Person) -> None:
    page = somebody.log_in()
    page.get_by_role("group", name="Suggestions").get_by_role("button").first.click()
    expect(page.get_by_role("article", name="You")).to_contain_text("What is in this folder?")
    expect(page.get_by_role("article", name="Palyra")).to_contain_text("Hello.")


def test_preset_and_folder_are_changed_where_a_message_is_written(somebody: Person) -> None:
    daemon = somebody.daemon
    inner = daemon.workspace / "inner"
    inner.mkdir(exist_ok=True)
    page = somebody.log_in()
    preset = page.get_by_label("Policy preset", exact=True)
    expect(preset).to_have_value("default")
    preset.select_option("coding")
    asks = page.get_by_role("group", name="Change policy preset")
    expect(asks).to_contain_text("file changes in the workspace without approval")
    assert daemon.get("/v1/status")["policy"]["preset"] == "default"
    assert serious(page) == []
    asks.get_by_role("button", name="Use Coding").click()
    expect(asks).to_have_count(0)
    expect(page.get_by_role("link", name="coding").first).to_be_visible()
    assert daemon.get("/v1/status")["policy"]["preset"] == "coding"
    daemon.post("/v1/policy/preset", {"preset": "default"})
    page.locator("button.folder").click()
    page.get_by_label("Folder", exact=True).fill(str(inner))
    page.get_by_role("button", name="Use folder").click()
    expect(page.locator("button.folder")).to_contain_text("inner")
    say(page, "hello")
    expect(page.locator(".chip.folder")).to_contain_text("inner")
    expect(page.get_by_role("article", name="Palyra")).to_contain_text("the script")
    folders = [each.get("workspace") for each in daemon.get("/v1/sessions")["sessions"]]
    assert folders.count(str(inner)) == 1


def test_a_moment_is_written_in_one_way_whatever_the_browser_speaks(
    browser: Browser, daemon: DaemonProcess
) -> None:
    ends = {"name": "phone", "scope": "operator", "expires_ms": 1_900_000_000_000}
    daemon.post("/v1/tokens", ends)
    for locale in ("en-US", "de-AT"):
        with person(browser, daemon, locale=locale) as somebody:
            page = somebody.log_in("/#/connections/tokens")
            table = page.get_by_role("table", name="Tokens")
            expect(table).to_contain_text(re.compile(r"Mar 17, 2030, \d\d:46:40"))


def test_an_unknown_command_is_caught_and_stays_in_the_draft(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "/fly away")
    expect(page.get_by_role("alert")).to_contain_text("Unknown command /fly")
    box = page.get_by_role("textbox", name="Message")
    expect(box).to_have_value("/fly away")
    say(page, " /fly away")
    expect(page.get_by_role("article", name="You")).to_contain_text("/fly away")


def test_a_draft_survives_a_reload_and_is_gone_once_sent(somebody: Person) -> None:
    page = somebody.log_in()
    box = page.get_by_role("textbox", name="Message")
    box.fill("half a thought")
    page.reload()
    expect(box).to_have_value("half a thought")
    say(page, "hello")
    expect(page.get_by_role("article", name="You")).to_contain_text("hello")
    page.get_by_role("link", name="New session").click()
    page.reload()
    expect(box).to_have_value("")


def test_sessions_are_renamed_pinned_archived_and_restored(somebody: Person) -> None:
    session, _ = somebody.daemon.run("first words")
    page = somebody.log_in()
    listed = page.get_by_role("navigation", name="Sessions")
    listed.get_by_role("button", name="Actions for first words").click()
    listed.get_by_role("button", name="Rename").click()
    listed.get_by_role("textbox", name="New name").fill("Roses")
    page.keyboard.press("Enter")
    listed.get_by_role("button", name="Actions for Roses").click()
    listed.get_by_role("button", name="Pin", exact=True).click()
    pinned = listed.get_by_role("region", name="Pinned")
    expect(pinned.get_by_role("link", name=re.compile("Roses"))).to_be_visible()
    found = somebody.daemon.get(f"/v1/sessions/{session}")
    assert (found["title"], found["kept"]) == ("Roses", True)
    listed.get_by_role("button", name="Select", exact=True).click()
    listed.get_by_role("checkbox", name=re.compile("Roses")).check()
    assert serious(page) == []
    listed.get_by_role("button", name="Archive 1").click()
    expect(listed.get_by_role("link", name=re.compile("Roses"))).to_have_count(0)
    listed.get_by_role("button", name="Archived").click()
    listed.get_by_role("button", name="Actions for Roses").click()
    listed.get_by_role("button", name="Restore").click()
    expect(listed.get_by_role("link", name=re.compile("Roses"))).to_have_count(0)
    listed.get_by_role("button", name="Back to sessions").click()
    expect(listed.get_by_role("link", name=re.compile("Roses"))).to_be_visible()


def test_a_session_is_deleted_after_a_question_that_says_what_stays(somebody: Person) -> None:
    daemon = somebody.daemon
    (kept, _), (gone, _) = daemon.run("pin me first"), daemon.run("delete me soon")
    page = somebody.log_in()
    listed = page.get_by_role("navigation", name="Sessions")
    listed.get_by_role("button", name="Actions for delete me soon").click()
    listed.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Delete “delete me soon”?")
    expect(dialog).to_contain_text("What you lose")
    expect(dialog).to_contain_text("SHA-256 on the system tape")
    assert serious(page) == []
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert daemon.get(f"/v1/sessions/{gone}").get("segment_id", "") == ""

    listed.get_by_role("button", name="Actions for delete me soon").click()
    listed.get_by_role("button", name="Delete…").click()
    dialog.get_by_role("button", name="Delete session").click()
    expect(dialog).to_have_count(0)
    expect(listed.get_by_role("link", name=re.compile("delete me soon"))).to_have_count(0)
    assert daemon.get(f"/v1/sessions/{gone}")["segment_id"]
    assert daemon.get("/v1/journal/verify")["ok"]

    # Retention's rule: what is pinned stays, and the dialog says why.
    daemon.request("PATCH", f"/v1/sessions/{kept}", {"kept": True})
    page.goto(f"{daemon.url}/#/chat/{kept}")
    settled(page)
    page.get_by_role("button", name="Session actions").click()
    page.get_by_role("button", name="Delete…").click()
    refused = page.get_by_role("dialog", name="Delete “pin me first”?")
    refused.get_by_role("button", name="Delete session").click()
    expect(refused.get_by_role("alert")).to_contain_text("unpin it first")
    refused.get_by_role("button", name="Cancel").click()

    listed.get_by_role("button", name="Archived").click()
    listed.get_by_role("button", name="Actions for delete me soon").click()
    listed.get_by_role("button", name="Restore").click()
    listed.get_by_role("button", name="Back to sessions").click()
    listed.get_by_role("link", name=re.compile("delete me soon")).click()
    expect(page.locator(".item.user, .user").first).to_contain_text("delete me soon")


def test_words_that_were_searched_for_are_marked(somebody: Person) -> None:
    somebody.daemon.run("the xylophone is out of tune")
    page = somebody.log_in()
    page.get_by_role("searchbox", name="Search sessions").fill("xylophone")
    expect(page.locator(".sessions mark").first).to_have_text("xylophone")


def test_filters_stand_in_the_address(somebody: Person) -> None:
    page = somebody.log_in("/#/approvals?tab=answered&risk=high")
    expect(page.get_by_role("button", name="Answered")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="High risk only")).to_have_attribute(
        "aria-pressed", "true"
    )
    page.get_by_role("button", name="Waiting", exact=True).click()
    expect(page).to_have_url(re.compile(r"approvals\?risk=high$"))


def test_settings_are_searched(somebody: Person) -> None:
    page = somebody.log_in("/#/settings")
    page.get_by_role("searchbox", name="Search settings").fill("secrets")
    expect(page.get_by_role("heading", level=2)).to_have_text(["Vault"])
    page.get_by_role("searchbox", name="Search settings").fill("no such thing")
    page.get_by_role("button", name="Clear search").click()
    expect(page.get_by_role("heading", name="Appearance")).to_be_visible()


def test_logging_out_leaves_nothing_behind_but_the_theme(somebody: Person) -> None:
    page = somebody.log_in()
    page.get_by_role("textbox", name="Message").fill("something private")
    page.goto(somebody.daemon.url + "/#/settings")
    settled(page)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in to Palyra")).to_be_visible()
    assert page.evaluate("Object.keys(localStorage)") in ([], ["palyra.theme"])


def test_no_address_of_a_download_carries_the_key(somebody: Person) -> None:
    page = somebody.log_in("/#/journal")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").first.click()
    assert download.value.suggested_filename == "palyra-journal.ndjson"
    assert [each for each in asked if "/export" in each and "key=" in each] == []
    assert page.evaluate("[...document.links].every((it) => !it.href.includes('key='))")


def test_the_page_forbids_html_from_text_and_what_it_does_not_use(somebody: Person) -> None:
    with urllib.request.urlopen(somebody.daemon.url + "/") as answer:
        policy = answer.headers["content-security-policy"]
        assert "require-trusted-types-for 'script'; trusted-types palyra" in policy
        assert "camera=()" in answer.headers["permissions-policy"]
    page = somebody.log_in()
    refused = page.evaluate(
        "() => { try { document.createElement('p').innerHTML = '<b>x</b>'; return false; } catch { return true; } }"
    )
    somebody.complaints.clear()
    assert refused is True
