"""Build a reader of checkpoints from Go's own packages into .venv, where Go is installed. `make
test` runs it before the tests. Without Go, or without its modules, the test is skipped.
"""

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "tests" / "contract" / "proof" / "go"
FOLDER = Path(sys.prefix) / "tlog"
_FETCH_S, _BUILD_S = 30, 240


class Missing(Exception):
    """Error that names what is not there, so that the reader cannot be built."""


def built() -> Path:
    """Return the program, made if need be. Raise Missing if Go or a module is not there; an error
    in the program itself is a failure.
    """
    files = sorted(SOURCE.iterdir())
    digest = sha256(b"\0".join(each.read_bytes() for each in files)).hexdigest()
    program = FOLDER / digest[:16]
    if program.exists():
        return program
    go = shutil.which("go")
    if go is None:
        raise Missing("Go is not installed")
    # With the toolchain that is there, and the modules that go.sum names.
    env = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    try:
        fetched = subprocess.run(
            [go, "mod", "download"],
            cwd=SOURCE,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=_FETCH_S,
        )
    except subprocess.TimeoutExpired as error:
        raise Missing("Go's modules could not be fetched in time") from error
    if fetched.returncode:
        raise Missing("Go's modules could not be fetched: is its module proxy reachable?")
    FOLDER.mkdir(exist_ok=True)
    # Under its name only when it is whole: several tests may build it at once.
    fresh = FOLDER / f".{os.getpid()}"
    subprocess.run(
        [go, "build", "-o", str(fresh), "."], cwd=SOURCE, env=env, check=True, timeout=_BUILD_S
    )
    fresh.replace(program)
    return program


if __name__ == "__main__":
    try:
        built()
    except Missing as error:
        sys.stderr.write(f"note: the reader of checkpoints in Go is not built: {error}\n")
