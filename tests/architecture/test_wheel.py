"""The wheel has everything that the daemon needs, also what is not committed, and is the same each
time it is built.
"""

import zipfile
from pathlib import Path

import pytest
from scripts import try_wheel


@pytest.mark.timeout(300)
def test_a_wheel_has_the_console_and_the_grpc_code_and_is_reproducible(tmp_path: Path) -> None:
    first, second = (try_wheel.build(tmp_path / name) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as wheel:
        names = set(wheel.namelist())
        page = wheel.read("palyra/console/index.html").decode()
    wanted = {
        "palyra/console/worker.js",
        "palyra/console/manifest.webmanifest",
        "palyra/console/verify.html",
        "palyra/v1/__init__.py",
        "palyra/policy/shipped/palyra.cedarschema",
        "palyra/models/prices.toml",
        "palyra/py.typed",
    }
    assert wanted <= names
    # What the page names is there as well.
    assets = {name.rpartition("/")[2] for name in names if "/console/assets/" in name}
    named = {part.split('"')[0] for part in page.split("/assets/")[1:]}
    assert named
    assert named <= assets
    assert not {name for name in names if name.startswith(("tests/", "bench/", "scripts/"))}
