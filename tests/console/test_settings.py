"""Settings in the console: providers tried before they are used, secrets that go in and never out,
the way to tokens.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from playwright.sync_api import Browser, expect

from tests.console_world import Person, person, say, serious
from tests.daemon import DaemonProcess, start
from tests.fake_provider import Script, openai_chat

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


def test_a_provider_is_tried_saved_and_answers_after_a_restart(
    browser: Browser, tmp_path: Path
) -> None:
    config = "[limits]\nrequests_per_second = 1000\n"
    with (
        provider() as url,
        start(tmp_path, config=config) as daemon,
        person(browser, daemon) as somebody,
    ):
        page = somebody.log_in("/#/settings")
        page.get_by_role("button", name="Add a provider").click()
        form = page.get_by_role("form", name="Provider")
        form.get_by_label("Kind").select_option("openai-chat")
        form.get_by_label("Name").fill("Mine!")
        form.get_by_label("Models").fill("m1")
        expect(form.get_by_text("small letters")).to_be_visible()
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
        expect(card).to_contain_text("after the next start")
        assert "vault:provider-mine" in (daemon.home / "config.toml").read_text()
        page.get_by_role("button", name="Start it again now").click()
        expect(card).to_contain_text("works")
        card.get_by_role("button", name="Test").click()
        expect(card).to_contain_text("m1 answered in")
        page.get_by_role("link", name="Chat").click()
        say(page, "who are you?")
        expect(page.get_by_text("I am the new one.")).to_be_visible()
        assert KEY.encode() not in everything(daemon.home)
        page.goto(f"{daemon.url}/#/settings")
        card.get_by_role("button", name="Remove…").click()
        card.get_by_role("button", name="Remove it").click()
        expect(card).to_have_count(0)
        expect(page.get_by_role("button", name="Start it again now")).to_be_visible()
        assert "[providers.mine]" not in (daemon.home / "config.toml").read_text()


def test_a_secret_goes_in_and_is_never_shown(somebody: Person) -> None:
    page = somebody.log_in("/#/settings")
    page.get_by_role("button", name="Add a secret").click()
    form = page.get_by_role("form", name="Secret")
    form.get_by_label("Name").fill("WEATHER_KEY")
    form.get_by_label("Value").fill("abc")
    form.get_by_label("Only for these hosts").fill("api.example.org")
    expect(form.get_by_text("At least 4 characters")).to_be_visible()
    form.get_by_label("Value").fill("w-very-secret-value")
    form.get_by_role("button", name="Store it").click()
    row = (
        page.get_by_role("table", name="Secrets").get_by_role("row").filter(has_text="WEATHER_KEY")
    )
    expect(row).to_contain_text("api.example.org")
    assert "w-very-secret-value" not in page.content()
    assert serious(page) == []
    row.get_by_role("button", name="Remove…").click()
    row.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("WEATHER_KEY")).to_have_count(0)
    assert somebody.daemon.get("/v1/vault")["secrets"] == []


def test_who_looks_for_tokens_finds_them_and_what_is_shut_says_how_it_is_opened(
    somebody: Person,
) -> None:
    page = somebody.log_in("/#/settings")
    page.get_by_role("link", name="who has a token").click()
    expect(page.get_by_role("table", name="Tokens")).to_contain_text("command line")
    page.get_by_role("button", name="Workers").click()
    expect(page.get_by_text("palyra config set workers.listen 0.0.0.0:7445")).to_be_visible()
    expect(page.get_by_role("form", name="Enrol")).to_have_count(0)
    page.goto(f"{somebody.daemon.url}/#/connections/programs/grpc")
    expect(page.get_by_text("palyra config set server.grpc true")).to_be_visible()
    page.get_by_role("button", name="Listening").click()
    page.get_by_text("Doors that are shut").click()
    for command in ("server.grpc true", "server.quic true", "workers.listen 0.0.0.0:7445"):
        expect(page.get_by_text(f"palyra config set {command}")).to_be_visible()
    expect(page.get_by_text("None yet: nothing here speaks TLS.")).to_be_visible()

    with (somebody.daemon.home / "config.toml").open("a") as config:
        config.write('\n[workers]\nlisten = "127.0.0.1:0"\n')
    page.get_by_role("button", name="Workers").click()
    page.get_by_role("button", name="Start it again…").click()
    page.get_by_role("button", name="Start again", exact=True).click()
    expect(page.get_by_role("form", name="Enrol")).to_be_visible()


def test_everything_is_stopped_from_the_settings(somebody: Person, daemon: DaemonProcess) -> None:
    session = daemon.post("/v1/sessions")["session_id"]
    daemon.post(f"/v1/sessions/{session}/messages", {"text": "never"})
    page = somebody.log_in("/#/settings")
    page.get_by_role("button", name="Stop everything").click()
    expect(page.get_by_text("1 stopped.")).to_be_visible()
