"""The doctor in the console: what is wrong comes first, with what mends it."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.console_world import Person, person, serious
from tests.daemon import start


def test_what_is_looked_at_is_shown_with_how_it_is(somebody: Person) -> None:
    page = somebody.log_in("/#/doctor")
    fine = page.get_by_role("list", name="fine")
    expect(fine.get_by_role("listitem").first).to_be_visible()
    assert serious(page) == []
    page.get_by_role("button", name="Look closely").click()
    expect(fine).to_contain_text("journal")


def test_what_is_wrong_comes_first_and_is_mended_by_a_click(browser: Browser, tmp_path: Path) -> None:
    with start(tmp_path, script={"*": [{"text": "Hello."}]}) as daemon, person(browser, daemon) as somebody:
        daemon.home.chmod(0o755)
        page = somebody.log_in("/#/doctor")
        bad = page.get_by_role("list", name="must be mended")
        expect(bad).to_contain_text("others can read")
        assert serious(page) == []
        bad.get_by_role("button", name="Mend it").first.click()
        expect(page.get_by_role("list", name="must be mended")).to_have_count(0)
        assert daemon.home.stat().st_mode & 0o077 == 0
