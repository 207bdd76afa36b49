"""The program inside the sandbox that drives Chromium: one JSON line in, one JSON line out.

It imports nothing of ours, because nothing of ours is in there with it; its text is handed to
Python on the command line. What a page does on its own between two lines (dialogs, downloads,
windows) is refused here and told with the next answer.
"""

import asyncio
import base64
import json
import os
import sys
from typing import Any
from urllib.parse import urlsplit

# The exit code that says that Chromium has died.
_DIED = 70
_ACTION_S = 5.0
_SETTLE_S = 4.0
_QUIET_S = 0.15
_MOST_FRAMES = 6
_MOST_NOTES = 8
_MOST_TRIED = 200
_WIDTH, _HEIGHT = 1280, 800
_FLAGS = (
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-gpu",
    "--no-pings",
    "--safebrowsing-disable-auto-update",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    # Names are looked up by the proxy, outside; in here there is nobody to ask.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Inside:
    """The one page there is, and what it tried since the last answer."""

    def __init__(self, context: Any, walk: str, page_s: float) -> None:
        self._context = context
        self._walk = walk
        self._page_s = page_s
        self._page: Any = None
        self._looks: list[tuple[Any, int]] = []
        self._notes: list[str] = []
        self._status = 0
        self._loading: set[Any] = set()
        self._tried: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        context.on("request", self._began)
        context.on("requestfinished", lambda request: self._loading.discard(request))
        context.on("requestfailed", lambda request: self._loading.discard(request))
        context.on("page", self._appeared)

    def _began(self, request: Any) -> None:
        self._loading.add(request)
        self._try_host(request.url)

    def _try_host(self, url: str) -> None:
        """Which hosts the page wants: the browser itself wants some too, and nobody needs to hear
        of those.
        """
        parts = urlsplit(url)
        if parts.hostname and len(self._tried) < _MOST_TRIED:
            self._tried.add(
                f"{parts.hostname}:{parts.port or (443 if parts.scheme in ('https', 'wss') else 80)}"  # noqa: E501
            )

    def _appeared(self, page: Any) -> None:
        page.on("websocket", lambda socket: self._try_host(socket.url))
        page.on("dialog", lambda dialog: self._later(self._dismiss(dialog)))
        page.on(
            "download",
            lambda download: self._note(
                f"a download was refused: {download.suggested_filename[:100]}"
            ),
        )
        page.on("crash", lambda _: self._crashed(page))
        page.on(
            "filechooser", lambda _: self._note("the page asked for a file; there are none here")
        )
        if self._page is not None and page is not self._page:
            self._later(self._window(page))

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _note(self, text: str) -> None:
        if len(self._notes) < _MOST_NOTES and text not in self._notes:
            self._notes.append(text)

    def _crashed(self, page: Any) -> None:
        self._note("the page crashed: open it again")
        if page is self._page:
            self._page = None

    async def _dismiss(self, dialog: Any) -> None:
        if dialog.type == "beforeunload":
            # "Do you want to leave?" Yes: a page does not get to hold on to the browser.
            await self._try(dialog.accept())
            return
        self._note(
            f"the page showed a box ({dialog.type}), which was dismissed: {dialog.message[:200]}"
        )
        await self._try(dialog.dismiss())

    async def _window(self, page: Any) -> None:
        """A new window becomes the page if it loads something; there is never more than one."""
        opener = self._page
        await self._try(page.wait_for_load_state("domcontentloaded", timeout=_ACTION_S * 1000))
        keep = (
            page.url.startswith(("http://", "https://"))
            and self._page is opener
            and not page.is_closed()
        )
        if keep:
            self._page = page
            self._note("a new window was opened; it is the page now")
            await self._try(opener.close())
        else:
            self._note("a new window was closed")
            await self._try(page.close())

    async def _try(self, work: Any) -> bool:
        """Return whether it worked; a page that is gone by now is nobody's problem."""
        from playwright.async_api import Error

        try:
            await asyncio.wait_for(work, _ACTION_S)
        except (Error, TimeoutError):
            return False
        return True

    async def do(self, asked: dict[str, Any]) -> dict[str, Any]:
        from playwright.async_api import Error

        try:
            async with asyncio.timeout(self._page_s + 2 * _ACTION_S):
                return await self._do(asked)
        except TimeoutError:
            return {
                "error": (
                    "the page did not answer in time, and the browser was closed: open another one"
                ),
                "stuck": True,
            }
        except Error as error:
            return {"error": _short(error.message), **self._told()}

    async def _do(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["do"]:
            case "open":
                return await self._open(asked["url"])
            case "click":
                await (await self._element(asked["number"])).click(timeout=_ACTION_S * 1000)
            case "type":
                await self._fill(
                    await self._element(asked["number"]), asked["text"], submit=asked["submit"]
                )
            case "screenshot":
                return await self._screenshot(asked.get("number", 0))
        return await self._look()

    async def _open(self, url: str) -> dict[str, Any]:
        from playwright.async_api import Error
        from playwright.async_api import TimeoutError as TimeoutError_

        if self._page is None:
            self._page = await self._context.new_page()
        self._status = 0
        try:
            answer = await self._page.goto(
                url, wait_until="domcontentloaded", timeout=self._page_s * 1000
            )
            self._status = answer.status if answer is not None else 0
        except TimeoutError_:
            # Whatever keeps it busy must not keep the next page waiting.
            stuck, self._page = self._page, None
            self._later(self._try(stuck.close()))
            raise
        except Error as error:
            if "Download is starting" not in error.message and "ERR_ABORTED" not in error.message:
                raise
            self._note("this address is a download, which is refused; http.fetch may read it")
        return await self._look()

    async def _element(self, number: int) -> Any:
        index = number - 1
        for handle, count in self._looks:
            if 0 <= index < count:
                found = (
                    await handle.evaluate_handle("(look, at) => look.nodes[at]", index)
                ).as_element()
                if found is not None:
                    return found
            index -= count
        raise LookupError

    async def _fill(self, element: Any, text: str, *, submit: bool) -> None:
        tag = await element.evaluate("e => e.tagName")
        if tag == "SELECT":
            await element.select_option(label=text, timeout=_ACTION_S * 1000)
        else:
            await element.fill(text, timeout=_ACTION_S * 1000)
        if submit:
            await element.press("Enter", timeout=_ACTION_S * 1000)

    async def _screenshot(self, number: int) -> dict[str, Any]:
        if number:
            await (await self._element(number)).scroll_into_view_if_needed(timeout=_ACTION_S * 1000)
        page = self._current()
        image = await page.screenshot(type="jpeg", quality=80, timeout=_ACTION_S * 2000)
        encoded = base64.b64encode(image).decode("ascii")
        return {"url": page.url, "title": await page.title(), "image": encoded, **self._told()}

    def _current(self) -> Any:
        if self._page is None or self._page.is_closed():
            raise LookupError
        return self._page

    async def _look(self) -> dict[str, Any]:
        """The page as it is once it has come to rest, with fresh numbers."""
        await self._settle()
        page = self._current()
        self._looks = []
        texts: list[str] = []
        items: list[Any] = []
        cut = False
        for frame in page.frames[:_MOST_FRAMES]:
            handle = await frame.evaluate_handle(self._walk, len(items))
            told = await handle.evaluate("look => look.told")
            self._looks.append((handle, len(told["items"])))
            items += told["items"]
            cut = cut or bool(told["cut"])
            if told["text"]:
                texts.append(
                    told["text"]
                    if frame == page.main_frame
                    else f"[frame {frame.url[:300]}]\n{told['text']}"
                )
        seen = {"url": page.url, "title": await page.title(), "status": self._status}
        return {**seen, "text": "\n".join(texts), "items": items, "cut": cut, **self._told()}

    def _told(self) -> dict[str, list[str]]:
        """Return what the page did on its own since the last call."""
        notes, tried = self._notes, sorted(self._tried)
        self._notes, self._tried = [], set()
        return {"notes": notes, "tried": tried}

    async def _settle(self) -> None:
        """Until nothing has been loading for a moment, or long enough."""
        end = asyncio.get_running_loop().time() + _SETTLE_S
        quiet = 0.0
        while quiet < _QUIET_S and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.05)
            quiet = 0.0 if self._loading or self._tasks else quiet + 0.05
        self._loading.clear()
        await self._try(
            self._current().wait_for_load_state("domcontentloaded", timeout=_ACTION_S * 1000)
        )


def _short(message: str) -> str:
    """The first line of an error, without the name of the method that nobody here called."""
    line = message.strip().splitlines()[0] if message.strip() else "the browser failed"
    return line.partition(": ")[2][:300] or line[:300]


async def main(packages: str, chromium: str, proxy: str, walk: str, page_s: str) -> None:
    sys.path.insert(0, packages)
    from playwright.async_api import async_playwright

    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium,
            args=list(_FLAGS),
            # Windows that nobody clicked for stay closed.
            ignore_default_args=["--disable-popup-blocking"],
            proxy={"server": proxy, "bypass": "<-loopback>"},
        )
        context = await browser.new_context(
            accept_downloads=False,
            service_workers="block",
            viewport={"width": _WIDTH, "height": _HEIGHT},
            permissions=[],
        )
        # A dead browser answers every command with an error, and the daemon would take it for a
        # page's: this ends with it.
        browser.on("disconnected", lambda _: os._exit(_DIED))
        context.on("page", lambda page: page.on("crash", lambda _: os._exit(_DIED)))
        inside = Inside(context, walk, float(page_s))
        _answer({"ready": True})
        while line := await reader.readline():
            try:
                _answer(await inside.do(json.loads(line)))
            except LookupError:
                _answer({"error": "that is no longer on the page: read it again"})


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:6]))
