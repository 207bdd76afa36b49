"""`make screenshots` takes what it says: every page in light and dark, on a desktop, a tablet and
a phone, small enough to keep.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.console_scenes import PAGES

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "images" / "console"
MOST_BYTES = 7_000_000
SIZES = {"desktop": (1440, 900), "tablet": (1024, 768), "phone": (390, 844)}
VARIANTS = [f"{screen}-{scheme}" for screen in SIZES for scheme in ("light", "dark")]


@pytest.mark.timeout(400)
def test_the_pictures_that_are_asked_for_are_taken(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(ROOT / "scripts" / "screenshots.py"),
        "journal",
        "health",
        "--to",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(
        f"{name}-{variant}" for name in ("journal", "health") for variant in VARIANTS
    )
    for path in tmp_path.iterdir():
        with Image.open(path) as image:
            assert image.size == SIZES[path.stem.split("-")[-2]], path.name
            assert len(set(image.convert("RGB").tobytes())) > 20, f"{path.name} is blank"
    assert brightness(tmp_path / "health-desktop-light.png") > 200
    assert brightness(tmp_path / "health-desktop-dark.png") < 60


def brightness(path: Path) -> float:
    with Image.open(path) as image:
        return sum(image.convert("L").crop((1200, 700, 1270, 790)).tobytes()) / (70 * 90)


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_kept_in_the_docs_and_shown_there(name: str) -> None:
    shown = (ROOT / "docs" / "reference" / "console.md").read_text()
    assert f"images/console/{name}-desktop-light.png" in shown
    assert [variant for variant in VARIANTS if not (KEPT / f"{name}-{variant}.png").is_file()] == []


def test_all_pictures_together_are_small() -> None:
    assert sum(path.stat().st_size for path in KEPT.iterdir()) < MOST_BYTES
