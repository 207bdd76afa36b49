"""Take every page of the console, in light and dark, on a desktop, a tablet and a phone, with real
work in it.

`python scripts/screenshots.py` writes to docs/images/console; `--to FOLDER` elsewhere, and names of
pages take only those. It has a daemon of its own with a scripted model in a temporary home, and
ends it again. Folders of this machine are shown by other names.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import numpy  # noqa: E402
from PIL import Image  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402
from tests import console_scenes as scenes  # noqa: E402
from tests.daemon import DaemonProcess, start  # noqa: E402

from palyra.tools.browser import discovery  # noqa: E402
from palyra.tools.browser.discovery import Installed  # noqa: E402

FOLDER = ROOT / "docs" / "images" / "console"
SCREENS = {"desktop": (1440, 900), "tablet": (1024, 768), "phone": (390, 844)}
SCHEMES = ("light", "dark")
_COLOURS = 224
# So many are those that are used most; the others are chosen where they are missed most.
_COMMON = 96
# Not the usual folder for temporary files: commands in the sandbox have one of their own in its
# place.
_ROOM = Path("/var/tmp")
_WAIT_MS = 15_000
_RENAME = """names => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode())
        for (const [from, to] of Object.entries(names))
            if (text.data.includes(from)) text.data = text.data.replaceAll(from, to);
}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", help=f"some of: {', '.join(scenes.PAGES)}")
    parser.add_argument("--to", type=Path, default=FOLDER)
    given = parser.parse_args()
    unknown = set(given.pages) - set(scenes.PAGES)
    if unknown:
        parser.error(f"there is no page {', '.join(sorted(unknown))}")
    found = discovery.find({})
    if not isinstance(found, Installed):
        sys.stderr.write(
            f"error: {found.what}: run `.venv/bin/python scripts/chromium.py` ({found.fix})\n"
        )
        return 1
    given.to.mkdir(parents=True, exist_ok=True)
    room = _ROOM if _ROOM.is_dir() else ROOT
    with (
        tempfile.TemporaryDirectory(prefix="palyra-", dir=room) as folder,
        start(
            Path(folder), config=scenes.furnish(Path(folder) / "home"), script=scenes.script()
        ) as daemon,
        sync_playwright() as playwright,
    ):
        session = scenes.fill(daemon)
        short = f"…/{Path(folder).name}"
        names = {folder: "/home/me", short: "…/me", str(ROOT): "/opt/palyra"}
        browser = playwright.chromium.launch(
            executable_path=found.chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            for scheme, screen in product(SCHEMES, SCREENS):
                with opened(browser, daemon, scheme, screen) as page:
                    for name in given.pages or scenes.PAGES:
                        # Where the last click was, something would look as if it were pointed at.
                        page.mouse.move(0, 0)
                        scenes.PAGES[name](page, daemon, session)
                        page.evaluate(_RENAME, names)
                        write(
                            given.to / f"{name}-{screen}-{scheme}.png",
                            page.screenshot(animations="disabled"),
                        )
        finally:
            browser.close()
    return 0


@contextmanager
def opened(browser: Browser, daemon: DaemonProcess, scheme: str, screen: str) -> Iterator[Page]:
    width, height = SCREENS[screen]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(_WAIT_MS)
    try:
        page = context.new_page()
        page.goto(daemon.post("/v1/login-links")["url"])
        page.get_by_role("textbox", name="Message").wait_for()
        yield page
    finally:
        context.close()


def write(path: Path, picture: bytes) -> None:
    """Write with few colours, exactly: a screen of text has few. Each of the others becomes the
    nearest of them.
    """
    image = Image.open(BytesIO(picture)).convert("RGB")
    pixels = numpy.frombuffer(image.tobytes(), numpy.uint8).reshape(-1, 3).astype(numpy.uint32)
    packed = pixels[:, 0] << 16 | pixels[:, 1] << 8 | pixels[:, 2]
    codes, which, often = numpy.unique(packed, return_inverse=True, return_counts=True)
    colours = numpy.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1)
    kept = chosen(colours.astype(int), often)
    nearest = numpy.array(
        [((kept - colour) ** 2).sum(axis=1).argmin() for colour in colours.astype(int)], numpy.uint8
    )
    small = Image.frombytes("P", image.size, nearest[which.reshape(-1)].tobytes())
    small.putpalette(kept.astype(numpy.uint8).tobytes())
    small.save(path, optimize=True)
    sys.stdout.write(f"{path.name} {path.stat().st_size // 1000} KB\n")
    sys.stdout.flush()


def chosen(colours: numpy.ndarray, often: numpy.ndarray) -> numpy.ndarray:
    """The commonest, and then whichever is missed most: far from those that are kept, and not
    rare. A small dot of its own colour keeps it.
    """
    kept = list(numpy.argsort(-often, kind="stable")[:_COMMON])
    away = numpy.full(len(colours), numpy.inf)
    for one in kept:
        away = numpy.minimum(away, ((colours - colours[one]) ** 2).sum(axis=1))
    while len(kept) < min(_COLOURS, len(colours)):
        one = int((away * numpy.sqrt(often)).argmax())
        kept.append(one)
        away = numpy.minimum(away, ((colours - colours[one]) ** 2).sum(axis=1))
    return colours[kept]


if __name__ == "__main__":
    sys.exit(main())
