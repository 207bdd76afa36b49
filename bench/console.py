"""Cost of the console in a real browser: its first load, streaming, long tapes, and memory over
many runs.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page
from tests import console_budgets as budgets
from tests.console_world import chromium, person
from tests.daemon import DaemonProcess, start

from bench.common import Table

Row = tuple[str, ...]
_CONFIG = "[limits]\nrequests_per_second = 1000000\n"
_ENTRIES = 10_000
_RUNS = 1_000
_ROUNDS = 5


def tables() -> Iterator[Table]:
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        chromium() as browser,
        start(Path(folder), config=_CONFIG, script=budgets.script(Path(folder))) as daemon,
    ):
        rows = [*_opening(browser, daemon), *_long(browser, daemon), _memory(browser, daemon)]
    yield Table("The console", ("what", "measured"), rows)


def _opening(browser: Browser, daemon: DaemonProcess) -> Iterator[Row]:
    yield ("first load, compressed", f"{budgets.first_load() / 1000:.0f} KB")
    with person(browser, daemon) as somebody:
        yield (
            "first paint, best of 5",
            f"{min(budgets.first_paint(somebody) for _ in range(5)):.0f} ms",
        )
        page = somebody.log_in()
        yield from _frames(f"{budgets.DELTAS:,} deltas", page, lambda: budgets.stream(page))


def _long(browser: Browser, daemon: DaemonProcess) -> Iterator[Row]:
    session = budgets.long_tape(daemon, _ENTRIES)
    with person(browser, daemon) as somebody:
        page = somebody.log_in(f"/#/timeline/{session}/view=entries")
        page.get_by_text("Drag to select").wait_for()
        yield from _frames(
            f"{_ENTRIES:,} entries, timeline", page, lambda: budgets.scroll(page, ".tape-list")
        )
        page.goto(f"{daemon.url}/#/timeline/{session}")
        page.get_by_role("button", name="All runs", exact=True).click()
        yield (f"{_ENTRIES:,} entries, waterfall: memory", f"{budgets.heap(page) / 1e6:.1f} MB")
        yield (
            f"{_ENTRIES:,} entries, waterfall: median frame while the window is dragged and zoomed",
            f"{budgets.brush(page):.1f} ms",
        )
        page.goto(f"{daemon.url}/#/chat/{session}")
        page.get_by_role("article", name="Palyra").last.wait_for()
        yield from _frames(
            f"{_ENTRIES:,} entries, chat", page, lambda: budgets.scroll(page, ".items")
        )


def _memory(browser: Browser, daemon: DaemonProcess) -> Row:
    session = daemon.post("/v1/sessions")["session_id"]
    with person(browser, daemon) as somebody:
        page = somebody.log_in(f"/#/chat/{session}")
        budgets.many_runs(daemon, session, 250)
        before = budgets.heap(page)
        budgets.many_runs(daemon, session, _RUNS)
        return (
            f"memory of the page, before and after {_RUNS:,} runs",
            f"{before / 1e6:.1f} MB, {budgets.heap(page) / 1e6:.1f} MB",
        )


def _frames(what: str, page: Page, work: Callable[[], None]) -> Iterator[Row]:
    work()  # Once to warm up: the first time its scripts are compiled.
    gaps = sorted(budgets.frames(page, work).gap for _ in range(_ROUNDS))
    yield (
        f"{what}: longest time between frames, median and worst of {_ROUNDS}",
        f"{gaps[_ROUNDS // 2]:.0f} ms, {gaps[-1]:.0f} ms",
    )
    tasks = [budgets.longest_task(page, work) for _ in range(3)]
    yield (f"{what}: longest task, worst of {len(tasks)}", f"{max(tasks):.0f} ms of a processor")
