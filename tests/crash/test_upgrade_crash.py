"""After `kill -9` at any point of an upgrade, a rollback, a backup or a restore: one state or the
other, nothing lost, nothing half.
"""

from pathlib import Path

import pytest

from tests.crash.everywhere import crash_everywhere


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("work", "least"),
    [
        ("upgrade:1", 150),
        ("upgrade:13", 60),
        ("upgrade:27", 20),
        ("rollback:1", 60),
        ("rollback:27", 60),
        ("backup", 8),
        ("restore", 60),
    ],
)
def test_it_survives_a_kill_at_every_point(work: str, least: int, tmp_path: Path) -> None:
    crash_everywhere(tmp_path, least, "tests.crash.upgrade_harness", work)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("work", ["upgrade", "rollback", "backup", "restore"])
def test_it_survives_being_really_killed(work: str, tmp_path: Path) -> None:
    crash_everywhere(tmp_path, 8, "tests.crash.upgrade_harness", work, "--kill")
