"""A page that is left alone: what it asks the daemon for while time passes in it and nothing
happens.
"""

from urllib.parse import urlsplit

from playwright.sync_api import Page, Request

from tests.console_world import Person

_WHILE_MS = 600_000
_MARK = "/v1/openapi.json"


def open_in_time(somebody: Person, path: str) -> Page:
    """A page whose clock can be set forward."""
    somebody.context.clock.install()
    return somebody.log_in(path)


def asks_by_itself(page: Page) -> list[str]:
    """What it asks for whenever time passes. What only something that happened just then made it
    ask for does not count.
    """
    always: set[str] | None = None
    for _ in range(3):
        asked = _asked_in_a_while(page)
        always = asked if always is None else always & asked
    return sorted(always or ())


def _asked_in_a_while(page: Page) -> set[str]:
    asked: list[str] = []

    def hear(request: Request) -> None:
        asked.append(urlsplit(request.url).path)

    page.on("request", hear)
    page.clock.fast_forward(_WHILE_MS)
    # Asked for last by the same page: whatever its timers have asked for was heard of before.
    with page.expect_response(lambda response: urlsplit(response.url).path == _MARK):
        page.evaluate(f"void fetch('{_MARK}')")
    page.remove_listener("request", hear)
    return set(asked[: asked.index(_MARK)])
