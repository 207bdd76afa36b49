"""What the console may cost, measured in a real browser, for the tests that bound it and for
`python -m bench console`.
"""

import asyncio
import gzip
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import CDPSession, Page

from palyra.api.console import FOLDER
from palyra.core.events import (
    AnyEvent,
    InputAssembled,
    InputReceived,
    ModelReplied,
    RunAccepted,
    RunCompleted,
    RunStarted,
)
from palyra.core.ids import OWNER
from palyra.store import tape
from palyra.store.database import Tx
from tests import journals
from tests.console_world import Person, say
from tests.daemon import DaemonProcess

DELTAS = 5_000
_WORDS = [
    "the",
    "quick",
    "fox",
    "**jumps**",
    "over",
    "the",
    "`lazy`",
    "dog",
    "and",
    "[reads](https://example.org/)",
    "on",
]
_CODE = [
    "\n\n```python\n",
    *(f"print({number})  # line {number}\n" for number in range(120)),
    "```\n\n",
]
_LIST = [f"- item {number} of *many*\n" for number in range(80)]
_LONGEST_S = 60.0

_WATCH = """() => {
  const seen = {gap: 0, frames: 0, last: performance.now(), on: true};
  window.frames_seen = seen;
  const frame = (now) => {
    seen.gap = Math.max(seen.gap, now - seen.last);
    seen.last = now;
    seen.frames++;
    if (seen.on) requestAnimationFrame(frame);
  };
  requestAnimationFrame((now) => { seen.last = now; requestAnimationFrame(frame); });
}"""
_PAINTED = """() => new Promise((done) => new PerformanceObserver((list) => {
  for (const each of list.getEntries()) if (each.name === "first-contentful-paint") done(each.startTime);
}).observe({type: "paint", buffered: true}))"""
_UNWATCH = "() => { window.frames_seen.on = false; return window.frames_seen; }"
_BRUSH = """async () => {
  const box = document.querySelector(".overview");
  const {left, top, width} = box.getBoundingClientRect();
  const times = [];
  const at = (type, x) => (type === "pointerdown" ? box : window).dispatchEvent(
    new PointerEvent(type, {bubbles: true, cancelable: true, clientX: left + x * width, clientY: top + 20}));
  let before = 0;
  const frame = () => new Promise((done) => requestAnimationFrame((now) => {
    if (before) times.push(now - before);
    before = now;
    done();
  }));
  const drag = async (from, to) => {
    at("pointerdown", from);
    for (let step = 1; step <= 45; step++) { at("pointermove", from + (to - from) * step / 45); await frame(); }
    at("pointerup", to);
  };
  await drag(0.5, 0.02);
  await drag(0.25, 0.7);
  for (let step = 0; step < 60; step++) {
    box.dispatchEvent(new WheelEvent("wheel", {cancelable: true, clientX: left + width / 2, clientY: top + 20, deltaY: step < 30 ? -60 : 90}));
    await frame();
  }
  times.sort((a, b) => a - b);
  return times[times.length >> 1];
}"""
_SCROLL = """async (selector) => {
  const box = document.querySelector(selector);
  const pause = () => new Promise((done) => requestAnimationFrame(done));
  for (let step = 0; step < 120; step++) { box.scrollTop = box.scrollHeight * (1 - step / 120); await pause(); }
  for (let step = 0; step < 60; step++) { box.scrollTop += 140; await pause(); }
}"""


def deltas() -> list[str]:
    """A reply in so many pieces, with paragraphs, code and a long list."""
    pieces: list[str] = [*_CODE, *_LIST, "\n\n"]
    while len(pieces) < DELTAS:
        # Numbered: an answer that repeats itself is refused.
        pieces += [f"{word} " for word in (*_WORDS, str(len(pieces)))]
        if len(pieces) % 70 < len(_WORDS):
            pieces.append("\n\n")
    return pieces[:DELTAS]


def brush(page: Page) -> float:
    """Drag the window of the timeline over all runs, move it and zoom it; gives the median time
    between two frames, in milliseconds.
    """
    return float(page.evaluate(_BRUSH))


def stream(page: Page) -> None:
    """Say `stream`, which the script answers with `deltas()`, and wait until it is done."""
    say(page, "stream")
    # By then it is this run that is shown, whether it still works or is done already. Of a long
    # answer only the end is drawn.
    working = page.locator(".meter .badge").get_by_text("working")
    working.or_(page.get_by_role("article", name="You").last.get_by_text("stream")).first.wait_for()
    page.locator(".meter .badge").get_by_text("Done").wait_for(timeout=_LONGEST_S * 1000)


def scroll(page: Page, selector: str) -> None:
    """Through the whole of something long and back a little."""
    page.evaluate(_SCROLL, selector)


class Frames(msgspec.Struct):
    """How many there were, and the longest time between two, in milliseconds."""

    gap: float
    frames: int


def frames(page: Page, work: Callable[[], Any]) -> Frames:
    """What a person sees. It says something only on a machine with nothing else to do, and nothing
    while a trace is taken.
    """
    page.evaluate(_WATCH)
    work()
    return msgspec.convert(page.evaluate(_UNWATCH), Frames)


def longest_task(page: Page, work: Callable[[], Any]) -> float:
    """The most that one task of the page took of a processor, in milliseconds: the same on a busy
    machine.
    """
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(
        page=page, categories=["toplevel", "disabled-by-default-devtools.timeline"]
    )
    try:
        work()
    finally:
        trace = browser.stop_tracing()
    events = msgspec.json.decode(trace, type=_Trace).traceEvents
    page_thread = {
        (each.pid, each.tid) for each in events if each.args.get("name") == "CrRendererMain"
    }
    tasks = [
        each.tdur
        for each in events
        if each.name.endswith("RunTask") and (each.pid, each.tid) in page_thread
    ]
    assert tasks, "the trace has no tasks"
    return max(tasks) / 1000


class _Traced(msgspec.Struct):
    name: str = ""
    pid: int = 0
    tid: int = 0
    tdur: float = 0
    args: dict[str, Any] = {}


class _Trace(msgspec.Struct):
    traceEvents: list[_Traced]


def first_load() -> int:
    """Bytes that the browser gets before anything is shown, compressed as they are served."""
    page = (FOLDER / "index.html").read_text()
    assets = [
        path
        for path in (FOLDER / "assets").iterdir()
        if path.suffix in (".js", ".css") and path.name in page
    ]
    return sum(
        len(gzip.compress(path.read_bytes(), 9)) for path in (FOLDER / "index.html", *assets)
    )


def first_paint(somebody: Person, path: str = "/") -> float:
    """Milliseconds until the page has drawn something, with nothing kept from before."""
    page = somebody.tab(path)
    page.get_by_role("heading").first.wait_for(state="attached")
    return float(page.evaluate(_PAINTED))


def heap(page: Page) -> int:
    """Bytes that scripts hold, after everything that can be let go was."""
    session: CDPSession = page.context.new_cdp_session(page)
    try:
        for _ in range(2):
            session.send("HeapProfiler.collectGarbage")
        session.send("Performance.enable")
        metrics: list[dict[str, Any]] = session.send("Performance.getMetrics")["metrics"]
        return int(next(each["value"] for each in metrics if each["name"] == "JSHeapUsedSize"))
    finally:
        session.detach()


def many_runs(daemon: DaemonProcess, session: str, count: int) -> None:
    """One after the other. The conversation begins anew from time to time: it is the tape that
    shall be long, not the prompt.
    """
    for done in range(count):
        daemon.run("hello", session)
        if done % 25 == 24:
            daemon.post(f"/v1/sessions/{session}/reset")


def long_tape(daemon: DaemonProcess, entries: int) -> str:
    """A session with so many entries, written while nobody else writes: a daemon would take a
    minute for it.
    """
    session: str = daemon.post("/v1/sessions")["session_id"]
    port = daemon.port
    daemon.stop()

    def step(tx: Tx) -> None:
        for number in range(entries // len(_events(0)) + 1):
            run = journals.new_id()
            for event in _events(number):
                # Time passes as in a real session: in the model call, and between the runs.
                tx.now_ms += event.duration_ms if isinstance(event, ModelReplied) else 3
                tape.append(tx, session, OWNER, [event], run)
            tx.now_ms += 20_000 * (number % 7 == 0)

    async def write() -> None:
        async with journals.opened(daemon.home / "journal.db") as db:
            await db.write(step)

    # In a thread of its own: the browser's driver has an event loop in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, write()).result()
    daemon.restart(port=port)
    return session


def _events(number: int) -> list[AnyEvent]:
    text = f"Answer {number}. " + "Some words of it, **one** after the other. " * (1 + number % 9)
    return [
        RunAccepted(),
        InputReceived(submission_id=journals.new_id(), text=f"Question {number}"),
        RunStarted(),
        InputAssembled(turn=1, upto_seq=0, parts=(), tokens=0, budget=0),
        ModelReplied(
            turn=1,
            provider="scripted",
            model="s1",
            text=text,
            duration_ms=300 + number * 37 % 2_000,
        ),
        RunCompleted(text=text),
    ]


def script(folder: Path) -> dict[str, Any]:
    return {
        "*": [{"text": "Hello."}],
        "hello": [{"text": ["Hello ", "there."]}],
        "stream": [{"text": deltas()}],
    }
