"""Showing the way to the console: a link that logs in, and the browser of whoever sits here, if
there is one to open.

Nothing is opened where nobody could see it: without a screen, over ssh, or in a build.
"""

import sys
import threading
import webbrowser
from collections.abc import Mapping

from palyra.cli.state import CliState


def console(state: CliState, *, browser: bool) -> None:
    link = state.api.create_login_link().url
    state.out.note(f"the console, logged in once within ten minutes: {link}")
    if browser and has_screen(state.env, sys.platform):
        # A browser may run as long as it likes, and the program that finds it may wait for it.
        threading.Thread(target=_open, args=(link,), daemon=True).start()


def has_screen(env: Mapping[str, str], platform: str) -> bool:
    if env.get("CI") or env.get("SSH_CONNECTION"):
        return False
    return platform == "darwin" or bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))


def _open(link: str) -> None:
    try:
        webbrowser.open(link)
    except webbrowser.Error:
        return  # The link is on the screen.
