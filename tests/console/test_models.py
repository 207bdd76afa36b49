"""Asking the same message again with another model: both answers side by side, and a way on."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests import console_world
from tests.console_world import Person, say, serious
from tests.daemon import DaemonProcess, start

FIRST = {"which": [{"text": "The first model answers."}], "go on": [{"text": "First goes on."}]}
SECOND = {
    "which": [{"text": ["The second model ", "answers."]}],
    "go on": [{"text": "Second goes on."}],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("models")
    other = folder / "other.json"
    other.write_text(json.dumps(SECOND))
    config = f'[providers.other]\nkind = "scripted"\nmodels = ["s2"]\nscript = "{other}"\n'
    with start(
        folder, config='[models]\ndefault = "scripted/s1"\n' + config, script=FIRST
    ) as running:
        yield running


@pytest.fixture
def somebody(browser: Browser, daemon: DaemonProcess) -> Iterator[Person]:
    with console_world.person(browser, daemon, viewport={"width": 1440, "height": 900}) as person:
        yield person


def test_a_message_is_asked_again_with_another_model_side_by_side(somebody: Person) -> None:
    page, daemon = somebody.log_in(), somebody.daemon
    say(page, "which")
    expect(page.get_by_text("The first model answers.")).to_be_visible()
    origin = page.url
    page.locator("article.user").hover()
    page.get_by_label("Ask another model").select_option("other/s2")
    both = page.get_by_role("region", name="Compare answers")
    first = both.get_by_role("region", name="Original", exact=True)
    second = both.get_by_role("region", name="Asked again", exact=True)
    expect(second).to_contain_text("The second model answers.")
    expect(first).to_contain_text("The first model answers.")
    expect(first).to_contain_text("scripted/s1")
    expect(second).to_contain_text("other/s2")
    expect(second.locator("header .badge")).to_have_text("Done")
    assert serious(page) == []
    # The address tells it: after a reload, the same two stand there.
    page.reload()
    expect(second).to_contain_text("The second model answers.")
    assert page.url.startswith(origin)
    assert "beside=" in page.url
    # The original is as it was, and the second goes on with its own model.
    second.get_by_role("link", name="Continue with this").click()
    expect(both).to_have_count(0)
    say(page, "go on")
    expect(page.get_by_text("Second goes on.")).to_be_visible()
    page.goto(origin)
    expect(page.get_by_text("The first model answers.")).to_be_visible()
    expect(page.get_by_text("The second model answers.")).to_have_count(0)
    session = re.search(r"chat/(\w+)", origin)
    assert session
    assert daemon.get("/v1/journal/verify")["ok"]
    assert len(daemon.get(f"/v1/sessions/{session[1]}/runs")["runs"]) == 1


def test_the_steps_of_both_are_compared_on_the_timeline(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "which")
    expect(page.get_by_text("The first model answers.")).to_be_visible()
    page.locator("article.user").hover()
    page.get_by_label("Ask another model").select_option("other/s2")
    second = page.get_by_role("region", name="Asked again", exact=True)
    expect(second.locator("header .badge")).to_have_text("Done")
    second.get_by_role("link", name="Compare steps").click()
    expect(page.locator(".compare-sides")).to_contain_text("Origin")
