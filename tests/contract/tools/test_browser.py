"""The browser tools with a real Chromium: what a model is told, what it may do, and when the
browser is gone.
"""

import asyncio
import os
import re
import signal
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palyra.core import image_formats
from palyra.core.errors import InvalidInput, NotFound, PalyraError
from palyra.core.labels import Label
from palyra.core.tools import Scope, Subject, ToolResult
from palyra.tools.browser import tools
from palyra.tools.catalogue import Catalogue
from tests.browser_world import Surfing, alive, below, surfing
from tests.net_world import Asked, answer, html, redirect

FORM = """<title>A shop</title><h1>Hello</h1><p>See <a href="/two">the second page</a>.</p>
<form action="/found"><label>Name <input name=q></label><label>Secret <input type=password value=x></label>
<label>Colour <select name=c><option>red<option>blue</select></label>
<input type=checkbox aria-label=agree><button>Search</button></form>
<div style="display:none">nobody sees this</div><img src="http://cdn.example:PORT/p.png" alt="a picture">
<button onclick="alert('boo')">Boo</button><button onclick="window.open('/two')">New window</button>
<a href="/file" download>Get it</a><iframe src="/framed"></iframe>"""
PAGES = {
    "/two": html("<title>Two</title><h2>Second</h2><a href='http://other.example:PORT/'>away</a>"),
    "/framed": html("<p>in a frame <a href='/two' target=_top>out of it</a></p>"),
    "/file": answer(
        b"PK", 200, content_type="application/zip", content_disposition="attachment; filename=x.zip"
    ),
    "/away": redirect("http://other.example:PORT/two"),
    "/missing": answer("<p>gone</p>", 404, content_type="text/html"),
    "/empty": html(""),
}
PAGES["/"] = html(FORM)


@pytest.fixture(scope="module")
def surf() -> Iterator[Surfing]:
    async def serve(asked: Asked, writer: asyncio.StreamWriter) -> None:
        path = asked.target.partition("?")[0]
        if path == "/never":
            await asyncio.Event().wait()
        page = (
            html(f"<p>found {asked.target}</p>")
            if path == "/found"
            else PAGES.get(path, html("<p>else</p>"))
        )
        head, _, body = page.partition(b"\r\n\r\n")
        port = str(opened.site.port).encode()
        fixed = body.replace(b"PORT", port)
        head = re.sub(rb"content-length: \d+", b"content-length: %d" % len(fixed), head).replace(
            b"PORT", port
        )
        writer.write(head + b"\r\n\r\n" + fixed)

    with surfing(serve) as opened:
        yield opened


def test_a_page_is_given_as_text_with_a_number_for_everything_that_can_be_used(
    surf: Surfing,
) -> None:
    result = surf.open()
    mark = result.data["page"]
    assert result.outcome == "ok"
    first, _, text = result.text.partition("\n\n")
    assert first.splitlines()[0] == f"PAGE {mark}: A shop <{surf.url()}>; [N] is {mark}.N"
    assert text.splitlines() == [
        "# Hello",
        "See the second page [1].",
        'Name [2 field Name = ""] Secret [3 password Secret = "•••"] Colour [4 choice Colour = "red" of red | blue] '
        "[5 checkbox agree: off] [6 button Search]",
        "(image: a picture) [7 button Boo] [8 button New window] Get it [9]",
        f"[frame {surf.url('/framed')}]",
        "in a frame out of it [10]",
    ]


def test_what_a_page_says_is_untrusted_and_names_its_site(surf: Surfing) -> None:
    assert surf.open().label == Label(
        integrity="untrusted", sources=(f"http://site.example:{surf.site.port}",)
    )


def test_a_form_is_filled_in_and_sent(surf: Surfing) -> None:
    page = surf.open()
    page = surf.call("type", ref=surf.reference(page, "Name"), text="a b")
    assert '[2 field Name = "a b"]' in page.text
    page = surf.call("type", ref=surf.reference(page, "Colour"), text="blue")
    page = surf.call("click", ref=surf.reference(page, "agree"))
    assert "[5 checkbox agree: on]" in page.text
    page = surf.call("click", ref=surf.reference(page, "Search"))
    assert "found /found?q=a+b&c=blue" in page.text


def test_enter_after_typing_sends_the_form(surf: Surfing) -> None:
    page = surf.open()
    assert (
        "found /found?q=quick&c=red"
        in surf.call("type", ref=surf.reference(page, "Name"), text="quick", submit=True).text
    )


def test_a_link_in_a_frame_can_be_followed(surf: Surfing) -> None:
    page = surf.open()
    assert surf.call("click", ref=surf.reference(page, "out of it")).data["title"] == "Two"


def test_a_screenshot_is_an_image_of_the_page(surf: Surfing) -> None:
    page = surf.open()
    result = surf.call("screenshot", at=page.data["page"])
    head, _, body = result.images[0].partition(",")
    assert (result.outcome, head) == ("ok", "data:image/jpeg;base64")
    assert image_formats.shape(b64decode(body)) == image_formats.Shape("image/jpeg", 1280, 800)
    assert surf.call("screenshot", at=surf.reference(page, "Get it")).outcome == "ok"


def test_a_page_can_be_read_again_by_any_mark_of_it(surf: Surfing) -> None:
    first = surf.open()
    second = surf.call("read", page=first.data["page"])
    assert second.data["page"] != first.data["page"]
    assert surf.call("read", page=first.data["page"]).outcome == "ok"


def test_an_error_page_says_its_status(surf: Surfing) -> None:
    result = surf.open("/missing")
    assert ", status 404;" in result.text
    assert "gone" in result.text


def test_a_host_that_was_not_allowed_is_blocked_and_named(surf: Surfing) -> None:
    before = len(surf.site.asked)
    result = surf.open("/?blocked")
    assert result.data["blocked"] == [f"cdn.example:{surf.site.port}"]
    assert (
        f"Blocked: cdn.example:{surf.site.port}. If the page needs one of them, open it again"
        in result.text
    )
    assert all(
        asked.headers["host"].startswith("site.example") for asked in surf.site.asked[before:]
    )


def test_a_further_host_of_the_call_is_reached(surf: Surfing) -> None:
    result = surf.open("/?with", session="with hosts", hosts=[f"cdn.example:{surf.site.port}"])
    assert result.data["blocked"] == []
    assert any(asked.headers["host"].startswith("cdn.example") for asked in surf.site.asked)


def test_a_redirect_to_another_host_is_not_followed_and_says_where_it_leads(surf: Surfing) -> None:
    result = surf.open("/away")
    assert result.outcome == "error"
    assert f"other.example:{surf.site.port}/two" in result.text
    assert "not among the hosts" in result.text


def _looked(surf: Surfing, result: ToolResult, enough: Callable[[ToolResult], bool]) -> ToolResult:
    """What a page does by itself is told with the next answer: on a busy machine that is a later
    one.
    """
    end = time.monotonic() + 30
    while not enough(result):
        assert time.monotonic() < end, result.text
        result = surf.call("read", page=result.data["page"])
    return result


def test_a_box_is_dismissed_and_told(surf: Surfing) -> None:
    page = surf.open()
    assert (
        "Note: the page showed a box (alert), which was dismissed: boo"
        in surf.call("click", ref=surf.reference(page, "Boo")).text
    )


def test_a_new_window_becomes_the_page(surf: Surfing) -> None:
    page = surf.open()
    result = surf.call("click", ref=surf.reference(page, "New window"))
    assert _looked(surf, result, lambda seen: seen.data["title"] == "Two").outcome == "ok"


def test_a_download_is_refused(surf: Surfing) -> None:
    page = surf.open()
    clicked = surf.call("click", ref=surf.reference(page, "Get it"))
    assert (
        _looked(surf, clicked, lambda seen: "a download was refused" in seen.text).outcome == "ok"
    )
    assert "this address is a download, which is refused" in surf.open("/file").text


def test_a_page_that_never_answers_is_given_up_and_the_browser_goes_on(surf: Surfing) -> None:
    browsers = surf.another(page_s=5.0)
    catalogue = Catalogue(tools.tools(browsers))

    async def visit() -> None:
        late = await surf.calling(catalogue, "open", url=surf.url("/never"))
        assert (late.outcome, "Timeout 5000ms exceeded" in late.text) == ("error", True)
        assert (await surf.calling(catalogue, "open", url=surf.url("/two"))).outcome == "ok"
        await browsers.close()

    surf.wait(visit())


def test_a_reference_to_a_page_that_has_changed_is_refused(surf: Surfing) -> None:
    old = surf.open()
    ref = surf.reference(old, "Boo")
    surf.call("read", page=old.data["page"])
    result = surf.call("click", ref=ref)
    assert (result.outcome, "the page has changed since" in result.text) == ("error", True)


def test_a_page_of_another_session_cannot_be_used(surf: Surfing) -> None:
    page = surf.open()
    for name, arguments in (
        ("read", {"page": page.data["page"]}),
        ("click", {"ref": surf.reference(page, "Boo")}),
    ):
        result = surf.call(name, session="another", **arguments)
        assert (result.outcome, result.text) == (
            "denied",
            "this page is not this session's: open one with browser.open",
        )


def test_a_reference_that_names_nothing_is_refused_before_anybody_is_asked(surf: Surfing) -> None:
    mark = surf.open().data["page"]
    for reference, error in (
        (f"{mark}.99", NotFound),
        (mark, InvalidInput),
        (f"{mark}.x", InvalidInput),
        ("zzzz.1", NotFound),
    ):
        with pytest.raises(error):
            surf.scope("click", ref=reference)


def test_a_decision_is_about_the_host_of_the_page(surf: Surfing) -> None:
    host = f"site.example:{surf.site.port}"
    assert surf.scope("open", url=surf.url("/a"), hosts=["cdn.example"]) == Scope(
        program="open", command=f"open {surf.url('/a')}", hosts=(host, "cdn.example")
    )
    page = surf.open()
    scope = surf.scope("click", ref=surf.reference(page, "Search"))
    assert scope == Scope(
        program="click", command=f'click the button "Search" on {surf.url()}', hosts=(host,)
    )
    assert surf.catalogue.get("browser.click").subjects(scope) == (
        Subject("browser.click", "host", host),
        Subject("browser.click", "tool"),
    )


def test_a_person_is_shown_what_is_clicked_and_typed_and_where(surf: Surfing) -> None:
    host = f"site.example:{surf.site.port}"
    page = surf.open()
    link = surf.preview("click", ref=surf.reference(page, "the second page"))
    assert link.title == f'click the link "the second page" to {surf.url("/two")} on {host}'
    typed = surf.preview("type", ref=surf.reference(page, "Name"), text="x\ny", submit=True)
    assert typed.title == f'type "xy" into the field "Name" and press Enter on {host}'
    assert typed.body == f"page: {surf.url()}\ntitle: A shop\ntext: x\ny"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "chrome://settings",
        "javascript:alert(1)",
        "data:text/html,x",
        "view-source:http://site.example/",
        "http://127.0.0.1/",
        "http://localhost:7142/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://0x7f.1/",
        "http://user:pass@site.example/",
        "http://metadata.google.internal/",
    ],
)
def test_an_address_that_no_policy_can_permit_is_refused_before_anybody_is_asked(
    surf: Surfing, url: str
) -> None:
    with pytest.raises(PalyraError):
        surf.scope("open", url=url)
    with pytest.raises(PalyraError):
        surf.scope("open", url=surf.url(), hosts=[url.partition("//")[2] or url])


async def _until(true: Callable[[], bool]) -> None:
    """Other processes tell nobody when they end; the caller's bound holds."""
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("ending", ["run", "cancel", "close", "idle"])
def test_a_browser_is_gone_when_its_run_ends_is_cancelled_or_nobody_uses_it(
    surf: Surfing, ending: str
) -> None:
    async def scene() -> None:
        browsers = surf.another(idle_s=0.5 if ending == "idle" else 1000)
        catalogue = Catalogue(tools.tools(browsers))
        result = await surf.calling(catalogue, "open", url=surf.url("/two"))
        (opened,) = browsers._open.values()
        pids = [opened.driven.pid, *below(opened.driven.pid)]
        assert len(pids) > 4
        match ending:
            case "run":
                browsers.run_ended("another run")
                assert browsers.open == 1
                browsers.run_ended("run of session")
            case "cancel":
                reading = asyncio.ensure_future(
                    surf.calling(catalogue, "open", url=surf.url("/never?cancel"))
                )
                await _until(
                    lambda: any(asked.target == "/never?cancel" for asked in surf.site.asked)
                )
                reading.cancel()
                await asyncio.wait([reading])
            case "close":
                await browsers.close()
        await _until(lambda: not any(map(alive, pids)))
        assert browsers.open == 0
        late = await surf.calling(catalogue, "read", page=result.data["page"])
        assert (late.outcome, "open one with browser.open" in late.text) == ("error", True)

    surf.wait(scene())


def test_there_are_only_so_many_browsers(surf: Surfing) -> None:
    browsers = surf.another(most=1)
    catalogue = Catalogue(tools.tools(browsers))

    async def two() -> None:
        results = await asyncio.gather(
            *(
                surf.calling(catalogue, "open", session=name, url=surf.url("/two"))
                for name in ("one", "two")
            )
        )
        assert sorted(result.outcome for result in results) == ["error", "ok"]
        await browsers.close()

    surf.wait(two())


def _chromium(pid: int) -> int:
    """The main process of the Chromium below a driver: the one that has no other Chromium above
    it.
    """
    named = {each: Path(f"/proc/{each}/cmdline").read_bytes() for each in below(pid)}
    (found,) = [
        each
        for each, line in named.items()
        if b"--remote-debugging" in line and b"--type=" not in line
    ]
    return found


def test_a_chromium_that_dies_is_replaced_and_the_call_is_done(surf: Surfing) -> None:
    async def scene() -> None:
        browsers = surf.another()
        catalogue = Catalogue(tools.tools(browsers))
        try:
            first = await surf.calling(catalogue, "open", url=surf.url("/two"))
            assert first.outcome == "ok"
            for name in ("open", "read", "screenshot"):
                (opened,) = browsers._open.values()
                os.kill(_chromium(opened.driven.pid), signal.SIGKILL)
                given = {"open": "url", "read": "page", "screenshot": "at"}[name]
                result = await surf.calling(
                    catalogue,
                    name,
                    **{given: surf.url("/two") if name == "open" else opened.marks[-1]},
                )
                assert result.outcome == "ok", (name, result.text)
            assert len(browsers.deaths) == 3
            # A click is not done again: nobody knows whether it arrived.
            opened = browsers._open["session"]
            os.kill(_chromium(opened.driven.pid), signal.SIGKILL)
            late = await surf.calling(catalogue, "click", ref=f"{opened.marks[-1]}.1")
            assert (late.outcome, "open the page again" in late.text) == ("error", True)
            assert (await surf.calling(catalogue, "open", url=surf.url("/two"))).outcome == "ok"
        finally:
            await browsers.close()

    surf.wait(scene(), 120)
