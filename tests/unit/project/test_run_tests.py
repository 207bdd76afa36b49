"""`make test` tries what failed once more: what passes then is unsteady, and what fails twice fails
the run.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "run_tests.py"
# Fails the first time it runs in a folder, and passes after that.
ONCE = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("name", {names})
def test_once(name):
    mark = Path(__file__).parent / name
    if not mark.exists():
        mark.touch()
        raise AssertionError("not yet")
"""


def outcome(folder: Path, **files: str) -> tuple[int, str]:
    """Run these modules in two workers; the exit code, and what was said after the first round."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider -p xdist\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    command = [sys.executable, str(SCRIPT), "-n", "2", "-q"]
    # Only the plugin that is needed: loading all takes longer than the tests.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=False
    )
    return done.returncode, done.stdout


def test_what_passes_needs_no_second_round(tmp_path: Path) -> None:
    code, said = outcome(tmp_path, fine="def test_fine(): pass\n")
    assert code == 0
    assert "again" not in said


@pytest.mark.parametrize(
    ("unsteady", "code"), [(["a", "b [1]", "c"], 0), (["a", "b", "c", "d"], 1)]
)
def test_what_passes_alone_is_listed_and_more_than_three_fail_the_run(
    tmp_path: Path, unsteady: list[str], code: int
) -> None:
    found, said = outcome(
        tmp_path, once=ONCE.format(names=unsteady), fine="def test_fine(): pass\n"
    )
    assert found == code, said
    listed = said.partition("unsteady (")[2]
    assert [name for name in unsteady if f"  test_once.py::test_once[{name}]\n" not in listed] == []
    assert ("fail the run" in said) == bool(code)


def test_what_fails_twice_fails_the_run_and_is_told_apart_from_what_is_unsteady(
    tmp_path: Path,
) -> None:
    code, said = outcome(
        tmp_path, once=ONCE.format(names=["a"]), never="def test_never(): assert False\n"
    )
    assert code == 1
    assert (
        "unsteady (failed beside others, passed alone; each is a defect):\n  test_once.py::test_once[a]\n"
        in said
    )
    assert "failed twice:\n  test_never.py::test_never\n" in said


def test_a_test_that_ends_its_process_and_a_module_that_cannot_be_read_are_failures(
    tmp_path: Path,
) -> None:
    code, said = outcome(
        tmp_path, ends="import os\n\ndef test_ends(): os._exit(3)\n", fine="def test_fine(): pass\n"
    )
    assert code == 1, said
    assert "failed twice:\n  test_ends.py::test_ends\n" in said
    (tmp_path / "test_ends.py").unlink()
    code, said = outcome(tmp_path, broken="import nothing_of_this_name\n")
    assert code != 0, said
