"""Run the tests, and try what failed once more at the end, alone on the machine.

    python scripts/run_tests.py [ARGUMENTS FOR PYTEST]     # what `make test` runs

A test that fails beside others and passes alone is unsteady: it is listed as such, and it is a
defect to be mended, of the test or of the code. More than three of them fail the run, and so does
every test that fails twice.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_UNSTEADY = 3
# So many failures are no matter of steadiness: trying them again, one after the other, would only
# take long.
MOST_TRIED_AGAIN = 40
FAILED = 1
PLUGIN = "tests.failed_tests"


def pytest(arguments: list[str], failed: Path) -> tuple[int, list[str]]:
    """Run pytest; return its exit code and the tests that failed."""
    failed.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "--failed-to", str(failed), *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": _paths()}, check=False)
    return done.returncode, failed.read_text().splitlines() if failed.exists() else []


def _paths() -> str:
    """Return where Python looks for modules: here too, for the plugin."""
    return os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH", "")) if part)


def alone(names: list[str], folder: Path) -> list[str] | None:
    """Run these again, one after the other; return those that failed again, or nothing if that
    cannot be known.
    """
    chosen = folder / "again"
    chosen.write_text("\n".join(names) + "\n")
    # One worker, not none: a test that takes its process with it is a failure like others then.
    code, failed = pytest(["-n", "1", f"@{chosen}"], folder / "failed")
    return failed if code in (0, FAILED) else None


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        code, failed = pytest(arguments, Path(folder) / "failed")
        if code != FAILED or not failed:
            return code
        if len(failed) > MOST_TRIED_AGAIN:
            say(f"{len(failed)} tests failed: too many to try each of them again alone")
            return code
        say(f"{counted(failed)} failed: trying again, alone on the machine")
        again = alone(failed, Path(folder))
    if again is None:
        say("could not try them again: the first result stands")
        return code
    unsteady = [name for name in failed if name not in again]
    if unsteady:
        say("unsteady (failed beside others, passed alone; each is a defect):", *unsteady)
    if again:
        say("failed twice:", *again)
        return code
    if len(unsteady) > MOST_UNSTEADY:
        say(f"{counted(unsteady)} are unsteady: more than {MOST_UNSTEADY} fail the run")
        return code
    say(f"passed, with {counted(unsteady)} unsteady")
    return 0


def counted(names: list[str]) -> str:
    return f"{len(names)} test" if len(names) == 1 else f"{len(names)} tests"


def say(headline: str, *lines: str) -> None:
    sys.stdout.write("\n".join([f"\n{headline}", *(f"  {line}" for line in lines)]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
