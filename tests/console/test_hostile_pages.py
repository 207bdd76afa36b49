"""What others wrote and the pages beside the chat show: skills, servers, files, names. There, too,
it stays text.
"""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console_world import Person, read
from tests.skills_at_work import ECHO, make

SCRIPT = "<img src=x onerror='window.owned=1'><script>window.owned=2</script>"
BIDI = "gpj\u202egnp"
YES = "<button class=yes>Install</button>"


def unharmed(page: Page) -> None:
    assert page.evaluate("window.owned") is None
    assert (
        page.evaluate("document.querySelectorAll('main script, main img, main iframe').length") == 0
    )


def hostile(folder: Path) -> Path:
    make(folder, ECHO, effect="pure", description=SCRIPT)
    head = f'---\nname: subject\ndescription: "{SCRIPT} {YES} {BIDI}"\n---\n{SCRIPT}\n{YES}\n[a](javascript:window.owned=3)\n'
    (folder / "SKILL.md").write_text(head)
    return folder


def test_a_skill_cannot_draw_in_the_console(somebody: Person, tmp_path: Path) -> None:
    page = somebody.log_in("/#/skills")
    page.get_by_label("Or a path on Palyra's computer").fill(str(hostile(tmp_path / "subject")))
    page.get_by_role("button", name="Preview").click()
    asked = page.get_by_role("region", name="Permissions of subject")
    expect(asked).to_contain_text(YES)
    assert "\u202e" not in read(asked)
    expect(page.get_by_role("button", name="Install")).to_have_count(1)
    unharmed(page)
    asked.get_by_role("button", name="Install").click()
    installed = page.get_by_role("list", name="Installed skills").locator(".card")
    installed.get_by_role("button", name="Details").click()
    expect(installed).to_contain_text("javascript:window.owned=3")
    assert installed.locator("a[href^='javascript']").count() == 0
    unharmed(page)
    somebody.daemon.request("DELETE", "/v1/skills/subject")


@pytest.mark.parametrize("place", ["usage", "journal", "policies/files", "connections/tokens"])
def test_names_stay_text_wherever_they_are_listed(somebody: Person, place: str) -> None:
    daemon = somebody.daemon
    session, _ = daemon.run("hello")
    daemon.request("PATCH", f"/v1/sessions/{session}", {"title": f"{BIDI} {SCRIPT}"})
    daemon.post("/v1/tokens", {"name": f"{SCRIPT} {BIDI}", "scope": "viewer"})
    text = f"// {SCRIPT}\n"
    daemon.request("POST", "/v1/policy/files", {"name": "nasty.cedar", "text": text})
    page = somebody.log_in(f"/#/{place}")
    match place:
        case "usage":
            page.get_by_role("button", name="Session", exact=True).click()
            expect(page.get_by_role("table", name="Usage by session")).to_contain_text("⟨202E⟩")
        case "journal":
            expect(
                page.get_by_role("combobox", name="Export")
                .locator("option")
                .filter(has_text="⟨202E⟩")
            ).not_to_have_count(0)
        case "connections/tokens":
            expect(page.get_by_role("table", name="Tokens")).to_contain_text("⟨202E⟩")
        case _:
            page.get_by_role("button", name="nasty.cedar").click()
            expect(page.get_by_role("textbox", name="nasty.cedar")).to_have_value(text)
    unharmed(page)
