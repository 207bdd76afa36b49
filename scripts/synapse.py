"""Install Synapse, the Matrix server that the Matrix channel is tested against, into a virtual
environment of its own below .venv.

Once for each version. `make test` runs it before the tests. It wants other versions of what we use,
so it does not share .venv.
"""

import subprocess
import sys
import venv
from pathlib import Path

VERSION = "1.163.2"
FOLDER = Path(__file__).parent.parent / ".venv" / f"synapse-{VERSION}"
PYTHON = FOLDER / "bin" / "python"
# Written last: a folder without it is half an installation.
READY = FOLDER / ".installed"
_LONGEST_S = 600


def install() -> None:
    venv.create(FOLDER, with_pip=True, clear=True)
    pip = [
        str(PYTHON),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
    ]
    try:
        done = subprocess.run([*pip, f"matrix-synapse=={VERSION}"], timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        raise SystemExit(
            f"error: pip did not install Synapse within {_LONGEST_S} s; is its index reachable?"
        ) from None
    if done.returncode != 0:
        raise SystemExit(
            f"error: pip could not install matrix-synapse {VERSION}; see what it says above"
        )
    READY.touch()


if __name__ == "__main__":
    if not READY.exists():
        sys.stdout.write(f"installing Synapse {VERSION}, for the tests of the Matrix channel\n")
        sys.stdout.flush()
        install()
