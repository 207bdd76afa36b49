"""Connections in the console: programs connected by copying what it says, tokens, workers and what
runs where, certificates.
"""

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from palyra.features.workers.node import enrol as node_enrol
from palyra.features.workers.node.home import Home
from tests import console_world
from tests.console.test_hostile_pages import BIDI, SCRIPT, unharmed
from tests.console.test_keyboard import press, reach
from tests.console_quiet import asks_by_itself, open_in_time
from tests.console_world import click_and_see, read, serious, settled
from tests.daemon import DaemonProcess, start
from tests.e2e.workers.test_daemon import HELD, begin

ROOT = Path(__file__).parents[2]
CONFIG = """[limits]
requests_per_second = 1000
[rehearsal]
tools = true
[memory]
embeddings = false
[server]
quic = true
quic_port = 0
grpc = true
grpc_port = 0
[workers]
listen = "127.0.0.1:0"
"""
LIAR = f"{SCRIPT} {BIDI}"
# For a program that starts, on a machine that does much else.
LONGEST_S = 60.0
# `palyra worker run` on a machine whose name is an attack.
_RUN = f"import platform\nplatform.node = lambda: {LIAR!r}\nfrom palyra.cli.root import run\nimport sys\nsys.exit(run(sys.argv[1:]))"


At = Callable[[str], Page]


@dataclass
class Machine:
    """Another machine: a folder, and a shell in which somebody types what the console says."""

    folder: Path
    running: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def types(self, command: str) -> None:
        words = shlex.split(command)
        assert words[0] == "palyra"
        subprocess.run(
            [sys.executable, "-m", "palyra.cli.main", *words[1:], "--folder", str(self.folder)],
            timeout=LONGEST_S,
            check=True,
        )

    def starts(self, command: str) -> "subprocess.Popen[bytes]":
        arguments = [
            *shlex.split(command)[1:],
            "--offer",
            "shell.run,test.once",
            "--rehearsal",
            "--folder",
            str(self.folder),
        ]
        process = subprocess.Popen(
            [sys.executable, "-c", _RUN, *arguments], stderr=subprocess.DEVNULL
        )
        self.running.append(process)
        return process


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("connections")
    policies = folder / "home" / "policies"
    policies.mkdir(parents=True)
    (policies / "all.cedar").write_text('@id("all")\npermit (principal, action, resource);\n')
    script = {"*": [{"text": "A garden plan."}], "go": [{"calls": [HELD]}, {"text": "done"}]}
    with start(folder, config=CONFIG, script=script) as running:
        yield running


@pytest.fixture(scope="module")
def tab(browser: Browser, daemon: DaemonProcess) -> Iterator[Page]:
    """Somebody who logs in once, and goes from view to view: loading the console anew is most of
    what a test costs.
    """
    with console_world.person(
        browser, daemon, permissions=["clipboard-read", "clipboard-write"]
    ) as somebody:
        yield somebody.log_in()


@pytest.fixture
def at(tab: Page, daemon: DaemonProcess) -> At:
    def go(view: str) -> Page:
        # By way of another page: a view that is left forgets what was typed into it.
        for path in ("tour", f"connections{view}"):
            tab.goto(f"{daemon.url}/#/{path}")
            settled(tab)
        return tab

    return go


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path / "there")
    yield found
    for process in found.running:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(10)


@pytest.fixture
def enrolled(daemon: DaemonProcess, tmp_path: Path) -> Iterator[str]:
    """A worker that has a certificate and is away."""
    made = daemon.post("/v1/workers", {"name": "cellar"})
    home, address = Home(tmp_path / "cellar"), f"127.0.0.1:{made['port']}"
    # In a thread of its own: the browser's driver has the loop of this one.
    with ThreadPoolExecutor(1) as hand:
        hand.submit(
            lambda: asyncio.run(node_enrol.enrol(home, address, made["code"], made["authority"]))
        ).result(LONGEST_S)
    yield "cellar"
    daemon.request("DELETE", "/v1/workers/cellar")


def copied(page: Page, which: int, language: str) -> str:
    """What is in the clipboard after somebody has pressed Copy at a text."""
    text = page.locator(".code").filter(has_text=language).nth(which)
    click_and_see(text.get_by_role("button", name="Copy"), "Copied")
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_a_machine_is_enrolled_seen_at_work_drained_and_revoked(
    at: At, daemon: DaemonProcess, machine: Machine
) -> None:
    page = at("/workers")
    expect(page.get_by_text("No workers yet")).to_be_visible()
    form = page.get_by_role("form", name="Enrol")
    expect(form.get_by_label("This machine")).to_have_value("127.0.0.1")
    form.get_by_label("Name").fill("Attic!")
    form.get_by_label("This machine").fill("$(reboot)")
    expect(form.get_by_text("lower-case letters")).to_be_visible()
    expect(form.get_by_text("Enter a host name")).to_be_visible()
    form.get_by_label("Name").fill("attic")
    expect(form.get_by_role("button", name="Create code")).to_be_disabled()
    form.get_by_label("This machine").fill("127.0.0.1")
    form.get_by_role("button", name="Create code").click()
    told = page.locator(".once")
    expect(told.get_by_role("status")).to_have_text("Waiting for the worker…")
    assert serious(page) == []
    enrol, run = read(told.locator("code")).strip().splitlines()
    machine.types(enrol)
    expect(told.get_by_role("status")).to_contain_text("attic is enrolled")
    process = machine.starts(run)
    expect(told.get_by_role("status")).to_have_text("attic is connected.")
    told.get_by_role("button", name="Done").click()
    assert shlex.split(enrol)[4] not in page.content()
    form.get_by_label("Name").fill("attic")
    form.get_by_role("button", name="Create code").click()
    expect(form.get_by_role("alert")).to_contain_text("there is a worker attic already")

    # What runs where, while it runs.
    card = page.get_by_role("list", name="Workers").locator(".card")
    expect(card).to_contain_text("Connected")
    session, _, _, held = begin(daemon, machine.folder)
    expect(card).to_contain_text("1 of 4 busy")
    runs = card.get_by_role("list", name="Running calls")
    expect(runs).to_contain_text("test.once for go")
    expect(runs.get_by_role("link", name="go")).to_have_attribute("href", f"#/chat/{session}")
    expect(card).to_contain_text("<img src=x")
    unharmed(page)
    assert "\u202e" not in read(page.locator("main"))
    card.get_by_role("link", name="attic").click()
    expect(page.get_by_role("region", name="Running now")).to_contain_text("test.once")
    expect(page.get_by_text("shell.run")).to_be_visible()
    unharmed(page)
    page.get_by_role("button", name="Drain").click()
    expect(page.locator(".badge", has_text="Draining")).to_be_visible()
    assert daemon.get("/v1/workers/attic")["worker"]["state"] == "draining"
    os.write(held, b"x")
    os.close(held)
    expect(
        page.get_by_role("table", name="Calls").locator(".badge", has_text="Done")
    ).to_be_visible()
    expect(page.get_by_role("region", name="Running now")).to_contain_text("Idle.")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".badge", has_text="Connected")).to_be_visible()
    # A line that is cut is on no tape for as long as the worker may come back.
    process.kill()
    expect(page.locator(".badge", has_text="Offline")).to_be_visible()
    process = machine.starts(run)
    expect(page.locator(".badge", has_text="Connected")).to_be_visible()
    page.get_by_role("button", name="Revoke…").click()
    expect(page.get_by_text("must be enrolled again")).to_be_visible()
    page.get_by_role("button", name="Revoke", exact=True).click()
    expect(page.locator(".badge", has_text="Revoked")).to_be_visible()
    expect(page.get_by_role("button", name="Drain")).to_have_count(0)
    assert process.wait(LONGEST_S) != 0
    page.get_by_role("link", name="All workers").click()
    expect(page.get_by_text("No workers yet")).to_be_visible()
    page.get_by_label("Show revoked").check()
    expect(card).to_contain_text("Revoked")


def test_where_it_listens_is_shown_a_certificate_is_renewed_and_a_workers_is_revoked(
    at: At, daemon: DaemonProcess, enrolled: str, tmp_path: Path
) -> None:
    page = at("/listening")
    doors = page.get_by_role("table", name="Listeners")
    for each in daemon.get("/v1/tls")["listeners"]:
        expect(doors.get_by_role("row").filter(has_text=each["address"])).to_contain_text(
            "Encrypted" if each.get("tls") else "No TLS"
        )
    expect(doors.locator("tbody tr")).to_have_count(4)
    copy = doors.get_by_role("row").filter(has_text="HTTP/3").locator("button").first
    click_and_see(copy, "Copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("https://127.0.0.1:")
    expect(page.get_by_text("Only programs on this machine")).to_be_visible()
    before = daemon.get("/v1/tls")["served"]["fingerprint"]
    expect(page.get_by_text(before)).to_be_visible()
    page.get_by_role("button", name="Renew now").click()
    expect(page.get_by_text(before)).to_have_count(0)
    after = daemon.get("/v1/tls")["served"]["fingerprint"]
    expect(page.get_by_text(after)).to_be_visible()
    assert after != before
    with page.expect_download() as download:
        page.get_by_role("link", name="Download palyra-ca.pem").click()
    download.value.save_as(tmp_path / "ca.pem")
    assert (tmp_path / "ca.pem").read_bytes() == daemon.request("GET", "/v1/tls/authority").body
    assert "PRIVATE" not in page.content()

    row = (
        page.get_by_role("table", name="Worker certificates")
        .get_by_role("row")
        .filter(has_text=enrolled)
        .last
    )
    row.get_by_role("button", name="Revoke…").click()
    row.get_by_role("button", name="Revoke", exact=True).click()
    expect(row).to_contain_text("Revoked")
    assert [
        each["name"]
        for each in daemon.get("/v1/tls")["workers"]
        if not each.get("revoked_ms") and each["name"] == enrolled
    ] == []


def _by_curl(page: Page, folder: Path) -> str:
    both = f"{copied(page, 0, 'export')}\n{copied(page, 0, 'completions')}"
    answer = subprocess.run(
        ["bash", "-ec", both], cwd=folder, capture_output=True, timeout=LONGEST_S, check=True
    ).stdout
    return str(json.loads(answer)["choices"][0]["message"]["content"])


def _by_python(page: Page, _: Path) -> str:
    return _ran([sys.executable, "-c", copied(page, 0, "import Client")])


def _by_javascript(page: Page, folder: Path) -> str:
    (folder / "node_modules" / "@palyra").mkdir(parents=True)
    (folder / "node_modules" / "@palyra" / "client").symlink_to(ROOT / "clients" / "js")
    (folder / "ask.mjs").write_text(copied(page, 0, "import {"))
    return _ran(["node", str(folder / "ask.mjs")])


def _by_grpc(page: Page, _: Path) -> str:
    return _ran([sys.executable, "-c", copied(page, 0, "import grpc")])


def _by_mcp(page: Page, _: Path) -> str:
    server = json.loads(copied(page, 0, "http"))["mcpServers"]["palyra"]
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    headers = [
        part for name, value in server["headers"].items() for part in ("-H", f"{name}: {value}")
    ]
    accept = [
        "-H",
        "Accept: application/json, text/event-stream",
        "-H",
        "Content-Type: application/json",
    ]
    return _ran(
        [
            "curl",
            "-s",
            "--max-time",
            "60",
            server["url"],
            *headers,
            *accept,
            "-d",
            json.dumps(asked),
        ]
    )


def _ran(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, timeout=LONGEST_S, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


PASTED: dict[str, tuple[Callable[[Page, Path], str], str]] = {
    "curl": (_by_curl, "A garden plan."),
    "Python": (_by_python, "A garden plan."),
    "JavaScript": (_by_javascript, "A garden plan."),
    "gRPC": (_by_grpc, 'version: "'),
    "MCP": (_by_mcp, '"serverInfo"'),
}


def test_what_is_copied_for_a_program_works_as_it_is_with_a_token_that_is_shown_once(
    at: At, daemon: DaemonProcess, tmp_path: Path
) -> None:
    page = at("")
    for program, (paste, answer) in PASTED.items():
        page.get_by_role("group", name="Program").get_by_role(
            "button", name=program, exact=True
        ).click()
        part = page.get_by_role("region", name=program)
        # Whoever comes, also from another program for which one was made, finds a place for a token
        # and none.
        expect(part).to_contain_text("YOUR_TOKEN")
        assert "plr_" not in page.content()
        part.get_by_role("button", name="Create token").click()
        expect(part.get_by_role("status")).to_contain_text("shown only once")
        assert answer in paste(page, tmp_path), program
        (made,) = [each for each in daemon.get("/v1/tokens")["tokens"] if each["name"] == program]
        assert (made["scope"], made["expires_ms"] > made["created_ms"]) == (
            ("operator" if program == "Command line" else "client"),
            True,
        )
    page.reload()
    expect(part).to_contain_text("YOUR_TOKEN")
    assert "plr_" not in page.content()

    # What starts a program is told where it is.
    page.get_by_role("button", name="Editor (ACP)").click()
    shown = read(page.get_by_role("region", name="Editor (ACP)").locator(".code code"))
    palyra = json.loads(shown)["agent_servers"]["Palyra"]
    assert [palyra["command"], *palyra["args"]] == ["palyra", "acp"]
    assert palyra["env"] == {"PALYRA_URL": daemon.url, "PALYRA_TOKEN": "YOUR_TOKEN"}
    page.get_by_role("button", name="OpenAI SDK").click()
    expect(page.get_by_role("region", name="OpenAI SDK")).to_contain_text(
        f'base_url="{daemon.url}/v1"'
    )
    page.get_by_role("button", name="Command line").click()
    page.get_by_role("link", name="enrol it as a worker").click()
    expect(page.get_by_role("form", name="Enrol")).to_be_visible()


def test_over_tls_programs_are_told_to_trust_its_own_authority(
    browser: Browser, tmp_path: Path
) -> None:
    script = {"*": [{"text": "A garden plan."}]}
    with start(
        tmp_path,
        config="[memory]\nembeddings = false\n[server.tls]\nenabled = true\n",
        script=script,
    ) as secured:
        (link,) = re.findall(r"https://\S+/login\?\S+", secured.said("Ctrl-C"))
        # The browser was told nothing of this authority: it looks past that for pages, and keeps
        # none of them.
        trusting = {"ignore_https_errors": True, "service_workers": "block"}
        with console_world.person(
            browser, secured, permissions=["clipboard-read", "clipboard-write"], **trusting
        ) as somebody:
            page = somebody.tab(link.removeprefix(secured.url))
            page.get_by_role("textbox", name="Message").wait_for()
            page.goto(f"{secured.url}/#/connections")
            page.get_by_role("button", name="Create token").click()
            expect(page.get_by_text("shown only once")).to_be_visible()
            with page.expect_download() as download:
                page.get_by_role("link", name="palyra-ca.pem").click()
            download.value.save_as(tmp_path / "palyra-ca.pem")
            assert _by_curl(page, tmp_path) == "A garden plan."
            page.get_by_role("button", name="Python", exact=True).click()
            expect(page.get_by_role("region", name="Python")).to_contain_text(
                'authority="palyra-ca.pem"'
            )


def test_a_token_is_found_by_its_scope_shown_once_seen_in_use_and_taken_back(
    at: At, daemon: DaemonProcess
) -> None:
    page = at("/tokens")
    page.get_by_role("button", name="Create token").click()
    form = page.get_by_role("form", name="Token")
    form.get_by_label("Name").fill("phone")
    form.get_by_label("Scope").select_option("viewer")
    form.get_by_role("button", name="Create", exact=True).click()
    token = read(page.locator(".once code"))
    row = page.get_by_role("table", name="Tokens").get_by_role("row").filter(has_text="phone")
    used = row.locator("td[data-label='Last used']")
    expect(used).to_have_text("never")
    assert daemon.request("GET", "/v1/status", token=token).status == 200
    assert daemon.request("POST", "/v1/stop", {}, token=token).status == 403
    page.get_by_role("button", name="Done").click()
    assert token not in page.content()
    daemon.run("hello")
    expect(used).to_have_text("just now")

    scopes = page.get_by_role("group", name="Scope")
    scopes.get_by_role("button", name=re.compile("^owner")).click()
    expect(page.get_by_role("table", name="Tokens")).to_contain_text("command line")
    expect(row).to_have_count(0)
    scopes.get_by_role("button", name=re.compile("^viewer 1")).click()
    expect(page.get_by_text("Viewer: reads everything, changes nothing.")).to_be_visible()
    row.get_by_role("button", name="Revoke…").click()
    row.get_by_role("button", name="Revoke", exact=True).click()
    expect(row).to_have_count(0)
    assert daemon.request("GET", "/v1/status", token=token).status == 401
    page.get_by_label("Show expired and revoked").check()
    expect(row).to_contain_text("Revoked")


def test_a_code_is_made_and_a_worker_drained_and_revoked_without_a_mouse(
    at: At, enrolled: str
) -> None:
    page = at("")
    page.get_by_role("region", name="curl").wait_for()
    press(page, "Workers")
    page.get_by_role("form", name="Enrol").wait_for()
    reach(page, "Name")
    page.keyboard.type("loft")
    page.keyboard.press("Enter")
    expect(page.locator(".once")).to_contain_text("loft")
    press(page, "Done")
    page.get_by_role("link", name=enrolled).focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Drain").wait_for()
    press(page, "Drain")
    expect(page.locator(".badge", has_text="Draining, offline")).to_be_visible()
    press(page, "Revoke…")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".badge", has_text="Revoked")).to_be_visible()


def test_every_view_is_fit_for_everyone_also_on_a_phone(
    at: At, daemon: DaemonProcess, enrolled: str
) -> None:
    daemon.post("/v1/tokens", {"name": LIAR + "x" * (100 - len(LIAR)), "scope": "viewer"})
    page = at("")
    page.set_viewport_size({"width": 360, "height": 740})
    for path in (
        "/programs/grpc",
        "/tokens",
        "/workers",
        f"/workers/{enrolled}",
        "/workers/%3Cimg%3E",
        "/listening",
    ):
        page.goto(f"{daemon.url}/#/connections{path}")
        settled(page)
        assert serious(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        assert page.evaluate("document.querySelector('main').scrollWidth") <= 360, path
        unharmed(page)
        assert "\u202e" not in read(page.locator("main"))
    page.emulate_media(color_scheme="dark")
    assert serious(page) == []


def test_what_changes_elsewhere_shows_and_nothing_is_asked_for_until_then(
    browser: Browser, daemon: DaemonProcess, enrolled: str
) -> None:
    with console_world.person(browser, daemon) as somebody:
        page = open_in_time(somebody, "/#/connections/workers")
        card = page.get_by_role("list", name="Workers").locator(".card").filter(has_text=enrolled)
        expect(card).to_contain_text("Offline")
        assert asks_by_itself(page) == []
        daemon.post(f"/v1/workers/{enrolled}/drain", {"on": True})
        expect(card).to_contain_text("Draining")
        page.goto(f"{daemon.url}/#/connections/tokens")
        rows = page.get_by_role("table", name="Tokens").locator("tbody").get_by_role("row")
        expect(rows.first).to_be_visible()
        assert asks_by_itself(page) == []
        made = daemon.post("/v1/tokens", {"name": "a late one", "scope": "viewer"})
        late = rows.filter(has_text="a late one")
        expect(late.locator("td[data-label='Last used']")).to_have_text("never")
        assert daemon.request("GET", "/v1/status", token=made["token"]).status == 200
        expect(late.locator("td[data-label='Last used']")).to_contain_text("ago")
        page.goto(f"{daemon.url}/#/connections/listening")
        certificate = (
            page.get_by_role("table", name="Worker certificates")
            .get_by_role("row")
            .filter(has_text=enrolled)
            .last
        )
        expect(certificate.get_by_role("button", name="Revoke…")).to_be_visible()
        assert asks_by_itself(page) == []
        daemon.request("DELETE", f"/v1/workers/{enrolled}")
        expect(certificate).to_contain_text("Revoked")
