"""Writes constraints.txt: the exact version of every package in this environment, and nothing about where it came from.

To refresh: upgrade what should move (`.venv/bin/pip install -U NAME`), run the tests, then `.venv/bin/python scripts/freeze.py`.
"""

import sys
from importlib.metadata import distributions
from pathlib import Path

TARGET = Path(__file__).parent.parent / "constraints.txt"
# The project itself, and what every virtual environment is born with.
NOT_OURS = {"palyra", "pip", "setuptools", "wheel"}
HEAD = """\
# The exact versions this project is tested with. pip reads it with -c: it pins what is installed and installs nothing.
# To refresh: upgrade in .venv, run the tests, then .venv/bin/python scripts/freeze.py
"""


def pinned() -> list[str]:
    found = {each.metadata["Name"].lower().replace("_", "-"): each.version for each in distributions()}
    return [f"{name}=={version}" for name, version in sorted(found.items()) if name not in NOT_OURS]


if __name__ == "__main__":
    lines = pinned()
    TARGET.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write(f"{TARGET.name}: {len(lines)} packages\n")
