"""Settings in the console: providers tried before they are used, secrets that go in and never out,
the way to tokens.
"""

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, expect

from tests.console_world import Person, person, say, serious
from tests.daemon import DaemonProcess, start
from tests.fake_provider import Script, openai_chat
from tests.model_servers import host_of, ollama, serving

KEY = "pk-3f9a1c0de5b8"


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        good = self.headers["authorization"] == f"Bearer {KEY}"
        body = (
            openai_chat(Script(text=("I am ", "the new one.")))
            if good
            else b'{"error": {"message": "wrong key"}}'
        )
        self.send_response(200 if good else 401)
        self.send_header("content-type", "text/event-stream" if good else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about: object) -> None:
        pass


@contextmanager
def provider() -> Iterator[str]:
    """Somebody who answers those who have the key."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def everything(home: Path) -> bytes:
    found = []
    for path in filter(Path.is_file, home.rglob("*")):
        # The daemon works on: what was there a moment ago may be gone.
        with suppress(FileNotFoundError):
            found.append(path.read_bytes())
    return b"".join(found)


def test_a_provider_is_tried_saved_and_answers_at_once(browser: Browser, tmp_path: Path) -> None:
    config = "[limits]\nrequests_per_second = 1000\n"
    with (
        provider() as url,
        start(tmp_path, config=config) as daemon,
        person(browser, daemon) as somebody,
    ):
        page = somebody.log_in("/#/settings")
        page.get_by_role("button", name="Add provider").click()
        form = page.get_by_role("form", name="Provider")
        form.get_by_label("Kind").select_option("openai-chat")
        form.get_by_label("Name").fill("Mine!")
        form.get_by_label("Models").fill("m1")
        expect(form.get_by_text("Use lower-case letters")).to_be_visible()
        form.get_by_label("Name").fill("mine")
        form.get_by_label("Address").fill(url)
        form.get_by_label("Key").fill("pk-wrong")
        form.get_by_role("button", name="Test").click()
        expect(form.get_by_role("alert")).to_contain_text("check the key")
        form.get_by_label("Key").fill(KEY)
        form.get_by_role("button", name="Test").click()
        expect(form.get_by_text("m1 answered in")).to_be_visible()
        assert serious(page) == []
        form.get_by_role("button", name="Save").click()
        card = page.get_by_role("list", name="Providers").locator(".card").filter(has_text="mine")
        expect(card).to_contain_text("Ready")
        expect(card).to_contain_text("Default")
        assert "vault:provider-mine" in (daemon.home / "config.toml").read_text()
        card.get_by_role("button", name="Test").click()
        expect(card).to_contain_text("m1 answered in")
        page.get_by_role("link", name="Chat").click()
        say(page, "who are you?")
        expect(page.get_by_text("I am the new one.")).to_be_visible()
        assert KEY.encode() not in everything(daemon.home)
        page.goto(f"{daemon.url}/#/settings")
        card.get_by_role("button", name="Remove…").click()
        card.get_by_role("button", name="Remove", exact=True).click()
        expect(card).to_have_count(0)
        assert "[providers.mine]" not in (daemon.home / "config.toml").read_text()


def test_a_server_on_this_machine_is_used_with_one_click_and_chosen_for_a_session(
    browser: Browser, tmp_path: Path
) -> None:
    config = "[limits]\nrequests_per_second = 1000\n"
    with serving(ollama()) as server:
        env = {"OLLAMA_HOST": host_of(server)}
        with (
            start(tmp_path, config=config, env=env) as daemon,
            person(browser, daemon) as somebody,
        ):
            page = somebody.log_in("/#/settings")
            found = page.get_by_role("region", name="Found")
            expect(found).to_contain_text("qwen3:8b, llama3.2:latest")
            assert serious(page) == []
            found.get_by_role("button", name="Use Ollama").click()
            cards = page.get_by_role("list", name="Providers").locator(".card")
            expect(cards.filter(has_text="ollama")).to_contain_text("Default")
            page.get_by_label("Default model").select_option("ollama/llama3.2:latest")
            expect(page.get_by_text("ollama/llama3.2:latest is the default now.")).to_be_visible()
            page.get_by_role("link", name="Chat").click()
            picker = page.get_by_label("Model", exact=True)
            expect(picker).to_have_value("ollama/llama3.2:latest")
            picker.select_option("ollama/qwen3:8b")
            say(page, "hello")
            expect(page.get_by_text("Hello from the server.")).to_be_visible()
            expect(page.get_by_role("combobox", name="Model", exact=True)).to_have_value(
                "ollama/qwen3:8b"
            )
            expect(picker).to_have_value("ollama/qwen3:8b")
            page.reload()
            expect(picker).to_have_value("ollama/qwen3:8b")
            assert serious(page) == []
            asked = [each for each in server.requests if each.path == "/v1/chat/completions"]
            assert [each.json()["model"] for each in asked] == ["qwen3:8b"]


def test_a_secret_goes_in_and_is_never_shown(somebody: Person) -> None:
    page = somebody.log_in("/#/settings")
    page.get_by_role("button", name="Add secret").click()
    form = page.get_by_role("form", name="Secret")
    form.get_by_label("Name").fill("WEATHER_KEY")
    form.get_by_label("Value").fill("abc")
    form.get_by_label("Limit to hosts").fill("api.example.org")
    expect(form.get_by_text("At least 4 characters")).to_be_visible()
    form.get_by_label("Value").fill("w-very-secret-value")
    form.get_by_role("button", name="Save secret").click()
    row = (
        page.get_by_role("table", name="Secrets").get_by_role("row").filter(has_text="WEATHER_KEY")
    )
    expect(row).to_contain_text("api.example.org")
    assert "w-very-secret-value" not in page.content()
    assert serious(page) == []
    row.get_by_role("button", name="Remove…").click()
    row.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("WEATHER_KEY")).to_have_count(0)
    assert somebody.daemon.get("/v1/vault")["secrets"] == []


def test_who_looks_for_tokens_finds_them(somebody: Person) -> None:
    page = somebody.log_in("/#/settings")
    page.get_by_role("link", name="tokens").click()
    expect(page.get_by_role("table", name="Tokens")).to_contain_text("command line")


def test_listeners_open_and_close_without_a_restart(browser: Browser, tmp_path: Path) -> None:
    with start(tmp_path) as daemon, person(browser, daemon) as somebody:
        started = daemon.get("/v1/status")["started_ms"]
        page = somebody.log_in("/#/connections/workers")
        expect(page.get_by_role("form", name="Enrol")).to_have_count(0)
        page.get_by_label("Listen on").fill("127.0.0.1:0")
        page.get_by_role("button", name="Enable listener").click()
        expect(page.get_by_role("form", name="Enrol")).to_be_visible()
        page.goto(f"{daemon.url}/#/connections/programs/grpc")
        expect(page.get_by_text("gRPC is disabled")).to_be_visible()
        page.get_by_role("link", name="Listeners", exact=True).click()
        expect(page.get_by_text("No certificates yet")).to_have_count(0)
        page.get_by_text("Disabled listeners").click()
        assert serious(page) == []
        page.get_by_role("button", name="Enable gRPC").click()
        doors = page.get_by_role("table", name="Listeners")
        row = doors.get_by_role("row").filter(has_text="gRPC")
        expect(row).to_contain_text("127.0.0.1:")
        (grpc,) = [each for each in daemon.get("/v1/tls")["listeners"] if each["name"] == "grpc"]
        host, port = grpc["address"].rsplit(":", 1)
        socket.create_connection((host, int(port)), 10).close()
        assert json.loads((daemon.home / "daemon.json").read_text())["grpc"] == grpc["address"]
        row.get_by_role("button", name="Disable…").click()
        row.get_by_role("button", name="Disable", exact=True).click()
        expect(row).to_have_count(0)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), 10).close()
        assert daemon.get("/v1/status")["started_ms"] == started


def test_others_are_let_in_only_with_tls_and_a_token(browser: Browser, tmp_path: Path) -> None:
    with start(tmp_path) as daemon, person(browser, daemon) as somebody:
        page = somebody.log_in("/#/connections/listening")
        form = page.get_by_role("form", name="Exposure")
        form.get_by_label("Address").fill("0.0.0.0")
        expect(form.get_by_text("Other machines could read every word")).to_be_visible()
        expect(form.get_by_role("button", name="Save exposure")).to_be_disabled()
        form.get_by_label("TLS").check()
        form.get_by_role("button", name="Save exposure").click()
        expect(page.get_by_text("create a token for the other machine first")).to_be_visible()
        assert "0.0.0.0" not in (daemon.home / "config.toml").read_text()
        form.get_by_label("Address").fill("127.0.0.1")
        form.get_by_role("button", name="Save exposure").click()
        there = page.get_by_role("link", name="https://127.0.0.1")
        expect(there).to_be_visible()
        assert daemon.url.replace("http:", "https:") in (there.get_attribute("href") or "")
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection(("127.0.0.1", daemon.port), 10) as plain,
            trusting.wrap_socket(plain) as secured,
        ):
            assert secured.version() == "TLSv1.3"


def test_everything_is_stopped_from_the_settings(somebody: Person, daemon: DaemonProcess) -> None:
    session = daemon.post("/v1/sessions")["session_id"]
    daemon.post(f"/v1/sessions/{session}/messages", {"text": "never"})
    page = somebody.log_in("/#/settings")
    page.get_by_role("button", name="Stop everything").click()
    expect(page.get_by_text("Stopped 1.")).to_be_visible()
