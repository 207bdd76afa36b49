"""The browsers of a daemon, for those who must not load what drives them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palyra.tools.browser.pool import Browsers


class BrowserPool:
    """Holds the browsers; there is one where Playwright and Chromium are installed."""

    def __init__(self, browsers: "Browsers") -> None:
        self.browsers = browsers
