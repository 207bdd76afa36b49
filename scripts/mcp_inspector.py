"""Install the MCP inspector, an npm package, into .venv. `make test` runs it before the tests."""

import sys
from pathlib import Path

# As a program it is started from anywhere.
sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts.npm_package import NpmPackage, node

PACKAGE = NpmPackage(
    "@modelcontextprotocol/inspector",
    "2.12.0",
    "clients/cli/build/index.js",
    "for the tests of the MCP server",
)
PROGRAM = PACKAGE.program

__all__ = ["PACKAGE", "PROGRAM", "node"]

if __name__ == "__main__":
    PACKAGE.install()
