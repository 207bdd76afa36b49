"""Channels in the console: added with a guided form, tried, ruled and removed; who is admitted;
what became of each message.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests import console_world
from tests.console.test_hostile_pages import BIDI, SCRIPT, unharmed
from tests.console.test_keyboard import press, reach
from tests.console_quiet import asks_by_itself, open_in_time
from tests.console_world import Person, read, serious, settled
from tests.daemon import DaemonProcess, start
from tests.webhook_world import SECRET, signed

_numbers = count()


class Program(ThreadingHTTPServer):
    """The program on the other side of a webhook: it keeps what we post, or says that the
    conversation is gone.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.texts: list[str] = []
        self.gone = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/take"


class _Taking(BaseHTTPRequestHandler):
    server: Program

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        gone = self.server.gone and told["type"] == "message"
        if told["type"] == "message" and not gone:
            self.server.texts.append(told["text"])
        self.send_response(410 if gone else 200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    with Program() as opened:
        thread = threading.Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield opened
        opened.shutdown()
        thread.join(10)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder: Path = tmp_path_factory.mktemp("channels")
    with start(
        folder,
        config="[limits]\nrequests_per_second = 1000\n",
        script={"*": [{"text": "Hello from the script."}]},
    ) as running:
        yield running


@pytest.fixture
def keeper(browser: Browser, daemon: DaemonProcess, program: Program) -> Iterator[Person]:
    program.gone = False
    program.texts.clear()
    with console_world.person(browser, daemon) as somebody:
        yield somebody
    daemon.request("DELETE", "/v1/channels/hook")


@pytest.fixture
def hook(daemon: DaemonProcess, program: Program) -> Callable[..., str]:
    """A channel that is there; called, somebody writes on it. Gives the message's id."""
    settings = {"url": program.url, "secret": SECRET}
    daemon.post("/v1/channels", {"name": "hook", "kind": "webhook", "settings": settings})
    # Rules outlive their channel.
    rule(daemon, **dict.fromkeys(daemon.get("/v1/channels/hook")["changed"]))

    def say(text: str, sender: str = "anna", *, name: str = "Anna", direct: bool = True) -> str:
        words = {
            "id": f"n{next(_numbers)}",
            "conversation": f"with {sender}",
            "sender": {"id": sender, "name": name},
        }
        body = json.dumps({**words, "text": text, "direct": direct}).encode()
        deadline = time.monotonic() + 20
        # It may be connecting anew, and says so.
        while (
            said := daemon.request(
                "POST", "/v1/channels/hook/hook", body, token="", headers=signed(body)
            )
        ).status == 503:
            assert time.monotonic() < deadline, said.body
            time.sleep(
                0.02
            )  # Another process's connection: there is nothing to wait on but the clock.
        assert said.status == 202, said.body
        return str(said.json["message_id"])

    return say


def rule(daemon: DaemonProcess, **changes: Any) -> None:
    assert daemon.request("PATCH", "/v1/channels/hook/rules", {"changes": changes}).status == 200


def test_a_channel_is_added_step_by_step_tried_with_a_message_and_removed(
    keeper: Person, program: Program
) -> None:
    page = keeper.log_in("/#/channels")
    expect(page.get_by_text("No channels yet")).to_be_visible()
    page.get_by_role("link", name="Add channel").first.click()
    page.get_by_label("Platform").select_option("matrix")
    form = page.get_by_role("form", name="New channel")
    expect(form.get_by_role("list", name="Permissions")).to_contain_text("must not be encrypted")
    expect(form.get_by_role("list", name="Steps")).not_to_contain_text("palyra channels add")
    assert serious(page) == []
    page.get_by_label("Platform").select_option("webhook")
    save = form.get_by_role("button", name="Save and connect")
    form.get_by_label("Name").fill("Not a name")
    form.get_by_label("url").fill(program.url)
    expect(form.get_by_text("Use lower-case letters")).to_be_visible()
    form.get_by_label("Name").fill("hook")
    expect(save).to_be_disabled()
    form.get_by_label("secret").fill("short")
    save.click()
    expect(page.get_by_role("heading", name="hook", level=1)).to_be_visible()
    expect(page.get_by_text("the secret must have 16 characters or more")).to_be_visible()

    page.goto(f"{keeper.daemon.url}/#/channels/new")
    page.get_by_label("Platform").select_option("webhook")
    form.get_by_label("Name").fill("hook")
    form.get_by_label("url").fill(program.url)
    form.get_by_label("secret").fill(SECRET)
    save.click()
    expect(page.locator(".badge", has_text="Connected")).to_be_visible()
    trial = page.get_by_role("form", name="Test channel")
    trial.get_by_role("button", name="Test connection").click()
    expect(trial.get_by_role("status")).to_contain_text("Connected as hook")
    trial.get_by_label("Conversation").fill("a room")
    trial.get_by_label("Test message").fill("is this thing on?")
    trial.get_by_role("button", name="Send test message").click()
    expect(trial.get_by_role("status")).to_contain_text("was sent")
    # Who pauses while it is being said, does not know whether it was heard.
    deadline = time.monotonic() + 20
    while keeper.daemon.get("/v1/channels/hook").get("outbox"):
        assert time.monotonic() < deadline, "it was not sent"
        time.sleep(0.02)  # Another process: there is nothing to wait on but the clock.
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".badge", has_text="Paused")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".badge", has_text="Connected")).to_be_visible()
    assert program.texts == ["is this thing on?"]
    assert SECRET not in page.content()
    page.get_by_role("button", name="Remove…").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("No channels yet")).to_be_visible()
    assert keeper.daemon.get("/v1/channels")["channels"] == []


def test_rules_are_changed_while_it_runs_and_the_preview_says_what_becomes_of_a_message(
    hook: Callable[..., str], keeper: Person
) -> None:
    page = keeper.log_in("/#/channels/at/hook")
    preview, decision = (
        page.get_by_role("form", name="Route preview"),
        page.get_by_role("region", name="Decision"),
    )
    preview.get_by_label("From").fill("anna")
    preview.get_by_label("Text").fill("hello")
    preview.get_by_label("Direct message").check()
    expect(decision).to_contain_text("Rejected")
    expect(
        decision.get_by_role("list", name="Checks").get_by_role("listitem").last
    ).to_contain_text("pairing_required")
    rules = page.get_by_role("form", name="Rules")
    expect(rules.get_by_role("button", name="Save rules")).to_be_disabled()
    rules.get_by_label("Direct messages from unknown people").select_option("allow")
    rules.get_by_label("Block list").fill("mallory, trent")
    rules.get_by_label("Messages per minute").fill("0")
    expect(rules.get_by_text("Enter a number from 1.")).to_be_visible()
    rules.get_by_label("Messages per minute").fill("7")
    rules.get_by_role("button", name="Save rules").click()
    expect(rules).to_contain_text("Differs from the file")
    expect(decision).to_contain_text("The message goes to the agent.")
    found = keeper.daemon.get("/v1/channels/hook")["changed"]
    assert found == {"direct": "allow", "deny": ["mallory", "trent"], "per_minute": 7}
    preview.get_by_label("From").fill("mallory")
    expect(
        decision.get_by_role("list", name="Checks").get_by_role("listitem").last
    ).to_contain_text("sender_denied")
    assert serious(page) == []
    rules.get_by_role("button", name="Reset to file").click()
    expect(rules).not_to_contain_text("Differs from the file")
    assert keeper.daemon.get("/v1/channels/hook")["changed"] == {}


def test_a_stranger_is_admitted_and_taken_back_and_another_one_is_not(
    hook: Callable[..., str], keeper: Person
) -> None:
    page = keeper.log_in("/#/channels/people")
    expect(page.get_by_text("No requests.")).to_be_visible()
    hook("may I?", "anna")
    hook("me too", "bert", name="Bert")
    asking = page.get_by_role("list", name="Pairing requests").locator(".card")
    expect(asking).to_have_count(2)
    assert serious(page) == []
    page.get_by_label("Approval lasts").select_option("for a day")
    asking.filter(has_text="Anna").get_by_role("button", name="Approve", exact=True).click()
    asking.filter(has_text="Bert").get_by_role("button", name="Deny").click()
    expect(page.get_by_text("No requests.")).to_be_visible()
    row = page.get_by_role("table", name="People").get_by_role("row").filter(has_text="Anna")
    expect(row).to_contain_text("Paired until")
    row.get_by_role("button", name="This is me…").click()
    row.get_by_role("button", name="Link").click()
    expect(row).to_contain_text("user:owner")
    row.get_by_role("button", name="Not me…").click()
    row.get_by_role("button", name="Unlink").click()
    row.get_by_role("button", name="Revoke…").click()
    row.get_by_role("button", name="Revoke", exact=True).click()
    expect(row).to_contain_text("Revoked")
    page.get_by_role("button", name="Create code").click()
    code = read(page.get_by_role("form", name="Invite").get_by_role("status").locator("code"))
    hook(code, "carl", name="Carl")
    expect(
        page.get_by_role("table", name="People").get_by_role("row").filter(has_text="Carl")
    ).to_contain_text("Paired")


def test_a_message_is_followed_while_it_happens_and_what_was_not_delivered_is_sent_again(
    hook: Callable[..., str], keeper: Person, program: Program
) -> None:
    daemon = keeper.daemon
    rule(daemon, direct="allow")
    page = keeper.log_in("/#/channels/messages")
    program.gone = True
    hook("how are you?", "dora", name="Dora")
    row = (
        page.get_by_role("table", name="Messages")
        .get_by_role("row")
        .filter(has_text="how are you?")
    )
    expect(row).to_contain_text("Failed")
    row.get_by_role("link").click()
    steps = page.get_by_role("list", name="Steps")
    expect(steps).to_contain_text("received")
    replies = page.get_by_role("list", name="Replies")
    expect(replies).to_contain_text("Undelivered")
    expect(replies).to_contain_text("Hello from the script.")
    assert serious(page) == []
    replies.get_by_role("link", name="Why was this sent?").click()
    causes = page.get_by_role("list", name="Causes")
    expect(causes).to_contain_text("answered: Hello from the script.")
    expect(causes).to_contain_text("dora on ")
    page.go_back()
    program.gone = False
    page.get_by_role("button", name="Dead letters").click()
    dead = page.get_by_role("list", name="Dead letters").locator(".card")
    expect(dead).to_have_count(1)
    assert serious(page) == []
    dead.get_by_role("button", name="Resend").click()
    expect(page.get_by_text("No dead letters.")).to_be_visible()
    page.go_back()
    expect(replies.locator(".badge", has_text="Sent")).to_be_visible()
    assert program.texts == ["Hello from the script."]
    program.gone = True
    hook("and now?", "dora", name="Dora")
    page.get_by_role("button", name="Dead letters").click()
    dead.get_by_role("button", name="Drop").click()
    expect(page.get_by_text("No dead letters.")).to_be_visible()
    program.gone = False
    rule(daemon, direct=None)
    refused = hook("and I?", "emil", name="Emil")
    page.goto(f"{daemon.url}/#/channels/messages")
    page.get_by_label("State").select_option("refused")
    expect(
        page.get_by_role("table", name="Messages").get_by_role("row").filter(has_text="and I?")
    ).to_contain_text("pairing_required")
    page.goto(f"{daemon.url}/#/channels/messages/{refused}")
    expect(page.get_by_role("list", name="Steps")).to_contain_text("refused")


def test_what_people_call_themselves_and_write_stays_text(
    hook: Callable[..., str], keeper: Person
) -> None:
    nasty = f"{SCRIPT} {BIDI} <button class=yes>Admit</button>"
    said = hook(nasty, f"{SCRIPT}{BIDI}", name=nasty)
    page = keeper.log_in("/#/channels/people")
    asking = (
        page.get_by_role("list", name="Pairing requests").locator(".card").filter(has_text="<img")
    )
    expect(asking.get_by_role("button", name="Approve", exact=True)).to_have_count(1)
    expect(asking).to_contain_text("⟨202E⟩")
    unharmed(page)
    for path in ("messages", f"messages/{said}", "at/hook", "at/%3Cscript%3E"):
        page.goto(f"{keeper.daemon.url}/#/channels/{path}")
        settled(page)
        unharmed(page)
        assert "\u202e" not in read(page.locator("main"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_fit_for_everyone_also_on_a_phone(
    browser: Browser, daemon: DaemonProcess, hook: Callable[..., str], keeper: Person, scheme: str
) -> None:
    said = hook(
        "x" * 300, "a-very-long-name-" * 8, name="Somebody with a rather long name of their own"
    )
    with console_world.person(
        browser, daemon, color_scheme=scheme, viewport={"width": 360, "height": 740}
    ) as somebody:
        page = somebody.log_in()
        for path in ("", "/new", "/at/hook", "/people", "/messages", f"/messages/{said}", "/dead"):
            page.goto(f"{daemon.url}/#/channels{path}")
            settled(page)
            assert serious(page) == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
            assert page.evaluate("document.querySelector('main').scrollWidth") <= 360, path


def test_somebody_is_admitted_and_a_rule_changed_without_a_mouse(
    hook: Callable[..., str], keeper: Person
) -> None:
    hook("please", "frida", name="Frida")
    page = keeper.log_in("/#/channels/people")
    page.get_by_role("list", name="Pairing requests").locator(".card").filter(
        has_text="Frida"
    ).wait_for()
    press(page, "Deny")
    expect(page.locator(".card", has_text="Frida")).to_have_count(0)
    page.goto(f"{keeper.daemon.url}/#/channels/at/hook")
    page.get_by_role("form", name="Rules").wait_for()
    reach(page, "In groups, reply only when mentioned")
    page.keyboard.press("Space")
    press(page, "Save rules")
    expect(page.get_by_role("form", name="Rules")).to_contain_text("Differs from the file")
    assert keeper.daemon.get("/v1/channels/hook")["changed"] == {"mention": False}


def test_what_happens_on_channels_shows_and_nothing_is_asked_for_until_then(
    keeper: Person, program: Program, hook: Callable[..., str]
) -> None:
    daemon = keeper.daemon
    rule(daemon, direct="allow")
    page = open_in_time(keeper, "/#/channels")
    card = page.get_by_role("list", name="Channels").locator(".card").filter(has_text="hook")
    expect(card).to_contain_text(" answered")
    (before,) = re.findall(r"(\d+) answered", read(card))
    assert asks_by_itself(page) == []
    daemon.post("/v1/channels/hook", {"verb": "pause"})
    expect(card).to_contain_text("Paused")
    daemon.post("/v1/channels/hook", {"verb": "resume"})
    expect(card).to_contain_text("Connected")
    hook("good morning", "greta", name="Greta")
    expect(card).to_contain_text(f"{int(before) + 1} answered")
    page.goto(f"{daemon.url}/#/channels/messages")
    rows = page.get_by_role("table", name="Messages").locator("tbody").get_by_role("row")
    expect(rows.filter(has_text="good morning")).to_contain_text("Answered")
    assert asks_by_itself(page) == []
    hook("good night", "greta", name="Greta")
    # Whatever the model makes of it: that it ended shows by itself.
    expect(rows.filter(has_text="good night")).to_contain_text(re.compile("Answered|Failed"))


def test_the_health_page_has_the_last_message_of_a_channel_and_its_lag(
    keeper: Person, hook: Callable[..., str]
) -> None:
    rule(keeper.daemon, direct="allow")
    page = keeper.log_in("/#/health")
    row = page.get_by_role("table", name="Channels").get_by_role("row").filter(has_text="hook")
    expect(row).to_contain_text("Connected")
    hook("is it lagging?", "hanna", name="Hanna")
    # The page hears of it by itself.
    expect(row.locator("td[data-label='Last message']")).to_have_text("just now")
    expect(row.locator("td[data-label='Lag']")).to_have_text(re.compile(r"\d+ m?s$"))
    expect(row.locator("td[data-label='Waiting']")).to_have_text("0")
