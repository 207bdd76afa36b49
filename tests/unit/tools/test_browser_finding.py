"""Finding a browser: what counts as one, what is preferred, and what is said where there is
none.
"""

import os
import sys
from pathlib import Path

import pytest

from palyra.tools.browser import discovery
from palyra.tools.browser.discovery import BrowserMissing, Installed


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_newest_of_playwrights_own_is_preferred(tmp_path: Path) -> None:
    program(tmp_path / "chromium-1100/chrome-linux/chrome")
    newest = program(tmp_path / "chromium-1200/chrome-linux64/chrome")
    (tmp_path / "chromium-1300/chrome-linux").mkdir(parents=True)
    found = discovery.find({"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)})
    assert isinstance(found, Installed)
    assert found.chromium == str(newest)
    assert found.folders == (found.packages, str(newest.parent))


def test_one_that_was_chosen_is_used_and_one_that_is_not_there_is_said(tmp_path: Path) -> None:
    chosen = program(tmp_path / "mine")
    found = discovery.find({}, str(chosen))
    assert isinstance(found, Installed)
    assert found.chromium == str(chosen)
    gone = discovery.find({}, str(tmp_path / "gone"))
    assert gone == BrowserMissing(
        f"browser.chromium is {tmp_path / 'gone'}, which is not a program",
        "name one that is, or leave it empty",
    )


def test_a_program_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_BEHIND_SCRIPTS", ())
    there = program(tmp_path / "chromium-browser")
    found = discovery.find({"PATH": str(tmp_path)})
    assert isinstance(found, Installed)
    assert found.chromium == str(there)
    assert discovery.find({"PATH": str(tmp_path / "empty")}) == discovery.NO_CHROMIUM


def test_without_playwright_there_is_no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert discovery.find(os.environ) == discovery.NO_PLAYWRIGHT


def test_the_tools_cost_few_tokens_of_every_request() -> None:
    import msgspec

    from palyra.tools.browser import tools

    specs = [
        tool.declared
        for tool in (
            tools.BrowserOpen,
            tools.BrowserRead,
            tools.Click,
            tools.Type,
            tools.Screenshot,
        )
    ]
    size = sum(
        len(msgspec.json.encode([spec.name, spec.description, spec.parameters])) for spec in specs
    )
    assert size / 4 < 350
