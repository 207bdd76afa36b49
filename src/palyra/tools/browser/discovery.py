"""Discovery of a browser to use: Playwright's package and a Chromium. Nothing is imported or
started to find out.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from msgspec import Struct

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
# Distributions put a script in front of the program, which reads settings of the person who starts
# it.
_BEHIND_SCRIPTS = (
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
)
_PLAYWRIGHTS = (
    "chromium-*/chrome-linux*/chrome",
    "chromium_headless_shell-*/chrome-*/*headless*shell",
)
_HERE_ALREADY = ("/usr/", "/bin/", "/opt/")


class Installed(Struct, frozen=True):
    """`packages` is the folder that holds Playwright; `folders` are those the sandbox must show
    besides the system's.
    """

    chromium: str
    packages: str
    folders: tuple[str, ...] = ()


class BrowserMissing(Struct, frozen=True):
    """Missing part of the browser, and what to do about it."""

    what: str
    fix: str


NO_PLAYWRIGHT = BrowserMissing("Playwright is not installed", "pip install 'palyra[browser]'")
BY_HAND = (
    "install your distribution's package (on Debian: apt install chromium), or name one with"
    " browser.chromium"
)
NO_CHROMIUM = BrowserMissing("there is no Chromium", f"palyra browser install; or {BY_HAND}")


def find(env: Mapping[str, str], chromium: str = "") -> Installed | BrowserMissing:
    """The browser to use; `chromium` names one that somebody chose."""
    packages = _packages()
    if packages is None:
        return NO_PLAYWRIGHT
    if chromium and not _runs(chromium):
        return BrowserMissing(
            f"browser.chromium is {chromium}, which is not a program",
            "name one that is, or leave it empty",
        )
    found = chromium or next(_candidates(env), "")
    if not found:
        return NO_CHROMIUM
    program = os.path.realpath(found)
    folders = () if program.startswith(_HERE_ALREADY) else (os.path.dirname(program),)
    return Installed(program, packages, (packages, *folders))


def _packages() -> str | None:
    spec = PathFinder.find_spec("playwright")
    return (
        os.path.dirname(os.path.dirname(spec.origin)) if spec is not None and spec.origin else None
    )


def _candidates(env: Mapping[str, str]) -> Iterator[str]:
    """Yield Playwright's browsers, which are newest, and then the system's."""
    kept = env.get("PLAYWRIGHT_BROWSERS_PATH", "")
    home = env.get("HOME", "")
    folder = (
        Path(kept)
        if kept not in ("", "0")
        else Path(home, ".cache/ms-playwright")
        if home
        else None
    )
    if folder is not None and folder.is_dir():
        for pattern in _PLAYWRIGHTS:
            yield from (
                str(path) for path in sorted(folder.glob(pattern), reverse=True) if _runs(str(path))
            )
    yield from (path for path in _BEHIND_SCRIPTS if _runs(path))
    for name in _NAMES:
        path = shutil.which(name, path=env.get("PATH", os.defpath))
        if path is not None:
            yield path


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
