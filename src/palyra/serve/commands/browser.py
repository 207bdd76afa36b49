"""`palyra browser`: whether the agent has a browser, and getting one. It looks at this machine; the
daemon need not run.
"""

import subprocess
import sys

from palyra.cli import exit_codes
from palyra.cli.commands import group, verb
from palyra.cli.state import CliState
from palyra.core.errors import Unavailable
from palyra.serve import config
from palyra.tools.browser import discovery
from palyra.tools.browser.discovery import BrowserMissing, Installed

browser = group("browser", "The agent's browser: status, install.", default="status")
_LONGEST_S = 1800


def found(state: CliState) -> Installed | BrowserMissing:
    return discovery.find(state.env, config.load(state.home, state.env).config.browser.chromium)


@verb(browser, "status", help="Say whether there is a browser, and which.")
def status(state: CliState) -> int:
    there = found(state)
    offered = (
        isinstance(there, Installed) and config.load(state.home, state.env).config.browser.enabled
    )
    if state.out.as_json:
        state.out.json({"offered": offered, **_told(there)})
    elif isinstance(there, BrowserMissing):
        state.out.line(f"no browser: {there.what}")
        state.out.note(there.fix)
    elif not offered:
        state.out.line(f"{there.chromium}, switched off: palyra config set browser.enabled true")
    else:
        state.out.line(there.chromium)
    return exit_codes.OK if offered else exit_codes.FAILED


def _told(there: Installed | BrowserMissing) -> dict[str, str]:
    return (
        {"chromium": there.chromium}
        if isinstance(there, Installed)
        else {"missing": there.what, "fix": there.fix}
    )


@verb(browser, "install", help="Download the Chromium that Playwright brings, unless there is one.")
def install(state: CliState) -> None:
    there = found(state)
    if there == discovery.NO_PLAYWRIGHT:
        raise Unavailable(f"{there.what}: {there.fix}, then run this again")
    if isinstance(there, BrowserMissing):
        command = [sys.executable, "-m", "playwright", "install", "chromium"]
        try:
            # Its progress is for people; what this prints is for programs too.
            ended = subprocess.run(
                command, stdout=sys.stderr, timeout=_LONGEST_S, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            ended = -1
        there = found(state)
        if isinstance(there, BrowserMissing):
            raise Unavailable(
                f"playwright brought no Chromium (exit code {ended}): {discovery.BY_HAND}",
                exit_code=ended,
            )
    if state.out.as_json:
        state.out.json(_told(there))
        return
    state.out.line(there.chromium)
    state.out.note(
        "a daemon that runs offers its browser tools after its next start: palyra stop --daemon,"
        " then palyra up"
    )
