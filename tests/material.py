"""Finds the public test material, which lies outside the project. A test that needs it is skipped
only where it is absent.
"""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def material(*parts: str) -> Path:
    folder = Path(os.environ.get("PALYRA_MATERIAL") or ROOT.parent / "shared" / "material")
    if not folder.is_dir():
        pytest.skip(f"the test material is not at {folder}; set PALYRA_MATERIAL to its folder")
    path = folder.joinpath(*parts)
    assert path.exists(), f"the test material has no {path.relative_to(folder)}"
    return path
