"""Bounds of a wider approval in the console: chosen on the card, seen in the list, revoked there."""

import os
import sys
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests import console_world, mcp_servers
from tests.console_world import Person, say, serious
from tests.daemon import DaemonProcess, start
from tests.mcp_at_work import ASK, permit, program


def pays(amount: int) -> dict[str, object]:
    return {"name": "mcp:bank/send_money", "arguments": {"recipient": "DE89", "amount": amount}}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("bounds")
    permit(folder, ASK)
    tests = os.path.dirname(mcp_servers.SCRIPT)
    settings = program("bank", sys.executable, mcp_servers.SCRIPT, "bank", readable=(tests,))
    config = f"[limits]\nrequests_per_second = 1000\n[memory]\nembeddings = false\n{settings}"
    script = {
        "*": [{"text": "Hello."}],
        "pay": [{"calls": [pays(5)]}, {"calls": [pays(90)]}, {"text": "Both are paid."}],
    }
    with start(folder, config=config, script=script) as running:
        deadline = time.monotonic() + 60
        while not (server := running.get("/v1/mcp")["servers"][0]).get("pending"):
            assert time.monotonic() < deadline, server
            # Another process starts: there is nothing to wait on but the clock.
            time.sleep(0.1)
        running.post("/v1/mcp/bank/accept", {"fingerprint": server["fingerprint"]})
        yield running


@pytest.fixture
def somebody(browser: Browser, daemon: DaemonProcess) -> Iterator[Person]:
    with console_world.person(browser, daemon) as found:
        yield found


def test_a_grant_is_bound_seen_and_revoked(somebody: Person) -> None:
    page = somebody.log_in()
    say(page, "pay")
    card = page.get_by_role("region", name="Approval:")
    limits = card.get_by_role("group", name="Limits for")
    expect(card.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
    expect(limits).to_have_count(0)
    # An amount has an origin, too.
    expect(card.locator("dl.origins")).to_contain_text("amount5written by the model")
    card.get_by_label("Scope").select_option("This session")
    expect(limits).to_contain_text("amount<=5")
    limits.get_by_label("Calls at most").fill("3")
    limits.get_by_label("per").select_option("day")
    limits.get_by_label("Amount up to").fill("100")
    assert serious(page) == []
    card.get_by_role("button", name="Approve for session").click()
    expect(page.get_by_text("Both are paid.")).to_be_visible()
    page.get_by_role("link", name="Policies").click()
    listed = page.get_by_role("table", name="Grants")
    expect(listed).to_contain_text("amount<=100")
    expect(listed).to_contain_text("at most 3 calls a day")
    expect(listed).to_contain_text("(1 call)")
    listed.get_by_role("button", name="Revoke…").click()
    page.get_by_role("button", name="Revoke", exact=True).click()
    expect(page.get_by_text("No grants are active.")).to_be_visible()
