"""Write the Python and the JavaScript client from the route table, so that neither can ask for what
is not there.

`python scripts/clients.py` writes src/palyra/client/{verbs,async_verbs}.py,
src/palyra/client/types/, clients/js/{verbs.js,verbs.d.ts,types.d.ts} and console/src/core/verbs.ts;
with `--check` it only says whether they are up to date. Every route has a verb; its name stands in
scripts/client_verbs.py.
"""

import subprocess
import sys
from pathlib import Path

# As a program it is started from anywhere.
sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts import client_javascript, client_python

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "palyra" / "client"


def formatted(texts: dict[Path, str]) -> dict[Path, str]:
    """Return Python as the linter and the formatter of the project leave it."""
    ruff = Path(sys.executable).with_name("ruff")
    found = {}
    for path, text in texts.items():
        for command in (["check", "--fix-only", "--select", "I"], ["format"]):
            how = [
                "--quiet",
                "--config",
                str(ROOT / "pyproject.toml"),
                "--stdin-filename",
                str(path),
                "-",
            ]
            text = subprocess.run(
                [str(ruff), *command, *how], input=text, capture_output=True, text=True, check=True
            ).stdout
        found[path] = text
    return found


def files() -> dict[Path, str]:
    python = formatted({PACKAGE / name: text for name, text in client_python.files().items()})
    return {**python, **{ROOT / path: text for path, text in client_javascript.files().items()}}


def left_over(written: dict[Path, str]) -> list[Path]:
    """Return the modules of areas that are no more."""
    return [each for each in (PACKAGE / "types").glob("*.py") if each not in written]


def main() -> int:
    written = files()
    if "--check" in sys.argv[1:]:
        same = all(path.exists() and path.read_text() == text for path, text in written.items())
        return 0 if same and not left_over(written) else 1
    for path, text in written.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for path in left_over(written):
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
