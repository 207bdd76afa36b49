"""Install a Slack that others wrote, the npm package emulate, into .venv. `make test` runs it
before the tests.
"""

import sys
from pathlib import Path

# As a program it is started from anywhere.
sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts.npm_package import NpmPackage, node

# Newer numbers of this name are another package.
PACKAGE = NpmPackage("emulate", "0.12.2", "dist/index.js", "for the tests of the Slack channel")
PROGRAM = PACKAGE.program

__all__ = ["PACKAGE", "PROGRAM", "node"]

if __name__ == "__main__":
    PACKAGE.install()
