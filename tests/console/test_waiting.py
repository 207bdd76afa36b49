"""A run that waits for its provider, in the console: why, a clock that counts, and three buttons."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.console_world import Person, read, say, serious
from tests.daemon import DaemonProcess, start

CONFIG = """[models]
default = "scripted/s1"
[providers.spare]
kind = "scripted"
models = ["p1"]
script = "{spare}"
"""
AWAY = {"failure": "overloaded", "message": "too many people", "retry_after_ms": 90_000}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("waiting")
    spare = folder / "spare.json"
    spare.write_text(json.dumps({"away": [{"text": "I step in."}]}))
    script = {"away": [{"fail": AWAY}], "once": [{"text": "Back.", "fail": {**AWAY, "times": 1}}]}
    with start(folder, config=CONFIG.format(spare=spare), script=script) as running:
        yield running


def test_a_run_that_waits_says_why_and_can_be_tried_now_switched_and_cancelled(
    somebody: Person,
) -> None:
    page = somebody.log_in()
    card = page.get_by_role("region", name="Waiting for model")
    say(page, "once")
    expect(card).to_contain_text("Model overloaded")
    expect(card).to_contain_text("too many people")
    expect(card).to_contain_text("Gives up in")
    expect(page.locator(".meter .badge")).to_have_text("Waiting for model")
    first = read(card.get_by_role("timer"))
    expect(card.get_by_role("timer")).not_to_have_text(first)
    assert serious(page) == []
    card.get_by_role("button", name="Try now").click()
    expect(page.get_by_text("Back.")).to_be_visible()
    expect(card).to_have_count(0)
    say(page, "away")
    card.get_by_role("combobox", name="Switch model").select_option("spare/p1")
    expect(page.get_by_text("I step in.")).to_be_visible()
    expect(card).to_have_count(0)
    say(page, "away")
    card.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Stopped: cancelled")).to_be_visible()
    expect(card).to_have_count(0)
