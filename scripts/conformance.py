"""Install the MCP conformance suite, an npm package, into .venv. `make test` runs it before the
tests.
"""

import sys
from pathlib import Path

# As a program it is started from anywhere.
sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts.npm_package import NpmPackage, node

PACKAGE = NpmPackage(
    "@modelcontextprotocol/conformance", "0.2.0-alpha.12", "dist/index.js", "for the tests of MCP"
)
SUITE = PACKAGE.program

__all__ = ["PACKAGE", "SUITE", "node"]

if __name__ == "__main__":
    PACKAGE.install()
