"""What was learned, looked through in the console: where it was said, what accepting does, yes, no,
and back again.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests import console_world
from tests.console_world import Person, serious
from tests.daemon import DaemonProcess, start
from tests.learning_at_work import approved, learned, script


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("learning")
    # What is said is read when the test says so, and not in between by itself: who reads it second
    # finds nothing new.
    config = "[limits]\nrequests_per_second = 1000\n[memory]\nembeddings = false\n[learning]\nenabled = false\n"
    with start(folder, config=config, script=script()) as running:
        yield running


@pytest.fixture
def reviewer(browser: Browser, daemon: DaemonProcess) -> Iterator[Person]:
    with console_world.person(browser, daemon) as somebody:
        yield somebody


def look(somebody: Person, candidate: dict[str, Any]) -> tuple[Page, Locator]:
    """The candidate in the list, picked as a person does."""
    page = somebody.log_in("/#/learning")
    row = (
        page.get_by_role("list", name="Candidates")
        .get_by_role("button")
        .filter(has_text=candidate["content"][:40])
    )
    row.click()
    shown = page.get_by_role("article", name="Candidate")
    expect(shown.get_by_role("heading", level=2)).to_have_text(candidate["content"])
    return page, shown


def test_a_fact_is_read_with_its_evidence_accepted_and_rolled_back(reviewer: Person) -> None:
    (candidate,) = learned(reviewer.daemon, "Our staging host is stage7.example.")
    page, shown = look(reviewer, candidate)
    expect(page.get_by_role("link", name="Learning 1 open")).to_be_visible()
    expect(shown.get_by_role("list", name="Evidence")).to_contain_text(
        "Our staging host is stage7.example."
    )
    expect(shown).to_contain_text("Remember it.")
    expect(shown).to_contain_text("found by rules")
    assert serious(page) == []
    shown.get_by_role("button", name="Accept", exact=True).click()
    expect(shown).to_contain_text("Saved to memory")
    expect(page.get_by_role("link", name="Learning", exact=True)).to_be_visible()
    # It stays in view, so that what was done can be taken back, and nothing else lies where the
    # click was.
    expect(shown.get_by_role("button", name="Accept", exact=True)).to_have_count(0)
    found = reviewer.daemon.get(f"/v1/candidates/{candidate['candidate_id']}")["candidate"]
    assert (
        reviewer.daemon.get(f"/v1/memory/{found['effect']['memory_id']}")["text"]
        == candidate["content"]
    )
    shown.get_by_role("button", name="Roll back…").click()
    shown.get_by_role("button", name="Roll back").click()
    expect(shown).to_contain_text("Rolled back")
    expect(shown.get_by_role("button", name="Accept anyway")).to_be_visible()
    assert reviewer.daemon.get(f"/v1/memory/{found['effect']['memory_id']}")["state"] == "forgotten"
    page.get_by_label("Status", exact=True).select_option("rolled_back")
    expect(page.get_by_role("list", name="Candidates")).to_contain_text("stage7.example")


def test_evidence_leads_to_the_entry_on_the_tape(reviewer: Person) -> None:
    (candidate,) = learned(reviewer.daemon, "Our mail server is mail3.example.")
    page, shown = look(reviewer, candidate)
    shown.get_by_role("link", name="on the timeline").click()
    entry = page.get_by_role("region", name="Entry")
    expect(entry).to_contain_text("Our mail server is mail3.example.")
    evidence = candidate["evidence"][0]
    assert page.url.endswith(f"/timeline/{evidence['session_id']}/{evidence['seq']}")


def test_a_preference_is_accepted_in_other_words(reviewer: Person) -> None:
    (candidate,) = learned(reviewer.daemon, "I prefer metric units over imperial units.")
    page, shown = look(reviewer, candidate)
    expect(shown).to_contain_text("tell it to the agent every time")
    shown.get_by_role("button", name="Edit text").click()
    words = shown.get_by_label("Edited text")
    words.fill(" ")
    expect(shown.get_by_role("button", name="Accept", exact=True)).to_be_disabled()
    words.fill("Metric units, always")
    assert serious(page) == []
    shown.get_by_role("button", name="Accept edited").click()
    expect(shown.get_by_role("heading", level=2)).to_have_text("Metric units, always")
    found = reviewer.daemon.get(f"/v1/candidates/{candidate['candidate_id']}")["candidate"]
    assert (found["state"], found["content"]) == ("applied", "Metric units, always")


def test_one_is_rejected_with_a_reason_and_accepted_after_all(reviewer: Person) -> None:
    (candidate,) = learned(reviewer.daemon, "I prefer tea over coffee.")
    page, shown = look(reviewer, candidate)
    shown.get_by_role("button", name="Reject…").click()
    shown.get_by_label("Reason (optional)").fill("Not any more")
    shown.get_by_label("Reason (optional)").press("Enter")
    expect(shown).to_contain_text("Palyra does not suggest it again.")
    expect(shown).to_contain_text("Not any more")
    expect(
        page.get_by_role("list", name="Candidates")
        .get_by_role("button")
        .filter(has_text="tea over coffee")
    ).to_have_count(0)
    shown.get_by_role("button", name="Accept anyway").click()
    expect(shown).to_contain_text("Saved to memory")


def test_a_contradiction_shows_what_is_remembered_and_takes_its_place(reviewer: Person) -> None:
    reviewer.daemon.post("/v1/memory", {"text": "Our build server is old.example"})
    (candidate,) = learned(reviewer.daemon, "Our build server is now new.example.")
    assert candidate["state"] == "conflicted"
    page, shown = look(reviewer, candidate)
    expect(shown).to_contain_text("Our build server is old.example")
    assert serious(page) == []
    shown.get_by_role("button", name="Replace memory").click()
    expect(shown).to_contain_text("It replaced an earlier memory.")


def test_a_procedure_shows_its_steps_and_becomes_a_skill_in_quarantine(reviewer: Person) -> None:
    for version in ("one", "two"):
        _, run_id = approved(reviewer.daemon, f"Release version {version}")
        found = reviewer.daemon.post(f"/v1/runs/{run_id}/reflect")["candidates"]
    (candidate,) = [each for each in found if each["kind"] == "procedure"]
    page, shown = look(reviewer, candidate)
    expect(shown.get_by_role("list", name="Steps").get_by_role("listitem")).to_have_count(2)
    expect(shown.locator(".diff .add").first).to_be_visible()
    assert serious(page) == []
    shown.get_by_role("button", name="Accept", exact=True).click()
    expect(shown.get_by_role("list", name="Effect")).to_contain_text("in quarantine")
    (skill,) = reviewer.daemon.get("/v1/skills")["skills"]
    assert skill["state"] == "quarantined"
    shown.get_by_role("button", name="Roll back…").click()
    shown.get_by_role("button", name="Roll back").click()
    expect(shown).to_contain_text("Rolled back")
    assert reviewer.daemon.get("/v1/skills")["skills"] == []


def test_a_policy_shows_the_permit_before_it_is_in_force(reviewer: Person) -> None:
    for number in range(3):
        _, run_id = approved(reviewer.daemon, f"write {number}")
    found = reviewer.daemon.post(f"/v1/runs/{run_id}/reflect")["candidates"]
    (candidate,) = [each for each in found if each["kind"] == "policy"]
    _, shown = look(reviewer, candidate)
    expect(shown.locator(".diff")).to_contain_text("permit (")
    expect(
        shown.get_by_role("list", name="Evidence").get_by_role("link", name="on the timeline")
    ).to_have_count(len(candidate["evidence"]))
    before = reviewer.daemon.get("/v1/policy")["version"]
    shown.get_by_role("button", name="Accept", exact=True).click()
    expect(shown.get_by_role("list", name="Effect")).to_contain_text("is active")
    assert reviewer.daemon.get("/v1/policy")["version"] != before
    shown.get_by_role("button", name="Roll back…").click()
    shown.get_by_role("button", name="Roll back").click()
    expect(shown).to_contain_text("Rolled back")
    assert reviewer.daemon.get("/v1/policy")["version"] == before


def test_a_conversation_is_read_now_and_what_was_found_appears(reviewer: Person) -> None:
    session, _ = reviewer.daemon.run("Our printer is called Gutenberg.")
    page = reviewer.log_in("/#/learning")
    page.get_by_label("Session", exact=True).select_option(session)
    page.get_by_role("button", name="Review now").click()
    expect(page.get_by_text("Found 1 in your last message there.")).to_be_visible()
    page.get_by_role("list", name="Found").get_by_role("link", name="Gutenberg").click()
    expect(
        page.get_by_role("article", name="Candidate").get_by_role("heading", level=2)
    ).to_contain_text("Gutenberg")


def test_settings_are_checked_saved_and_in_force_at_once(reviewer: Person) -> None:
    page = reviewer.log_in("/#/learning")
    page.get_by_role("button", name="Settings", exact=True).click()
    form = page.get_by_role("form", name="Learning settings")
    save = form.get_by_role("button", name="Save")
    expect(save).to_be_disabled()
    fact = form.get_by_role("group", name="Confidence for a fact")
    fact.get_by_label("Review from").fill("95")
    expect(fact.get_by_text("Must not be lower than the review threshold.")).to_be_visible()
    expect(save).to_be_disabled()
    fact.get_by_label("Apply from").fill("")
    fact.get_by_label("Review from").fill("62.5")
    form.get_by_label("Apply high-confidence finds automatically").uncheck()
    form.get_by_label("Minutes between reviews").fill("9")
    assert serious(page) == []
    save.click()
    expect(form.get_by_text("Saved. Active now.")).to_be_visible()
    now = reviewer.daemon.get("/v1/candidates/settings")
    assert now["thresholds"]["fact"] == {"review_bps": 6_250, "auto_bps": 10_001}
    assert (now["thresholds"]["automatic"], now["cooldown_ms"]) == (False, 9 * 60_000)
    (candidate,) = learned(reviewer.daemon, "Remember that my locker is number 17.")
    assert candidate["state"] == "pending_review"
    form.get_by_label("Apply high-confidence finds automatically").check()
    fact.get_by_label("Apply from").fill("90")
    save.click()
    expect(form.get_by_text("Saved. Active now.")).to_be_visible()
    (candidate,) = learned(reviewer.daemon, "Remember that my bicycle is green.")
    assert (candidate["state"], candidate["automatic"]) == ("applied", True)
