"""Install programs that others wrote for OpenAI's API, to be tested against ours: OpenAI's library
for Node, and ShellGPT.

Below .venv, once for each version. `make test` runs it before the tests. ShellGPT, a chat in a
terminal, has an environment of its own: it wants other versions of what we use.
"""

import subprocess
import sys
import venv
from pathlib import Path

# As a program it is started from anywhere.
sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts.npm_package import NpmPackage, node

NODE_SDK = NpmPackage(
    "openai", "7.53.0", "index.mjs", "for the tests of what OpenAI's programs see"
)
_VERSION = "1.5.1"
FOLDER = Path(__file__).parent.parent / ".venv" / f"shell-gpt-{_VERSION}"
# Written last: a folder without it is half an installation.
_READY = FOLDER / ".installed"
_LONGEST_S = 300
SHELL_GPT = FOLDER / "bin" / "sgpt"

__all__ = ["NODE_SDK", "SHELL_GPT", "install", "node"]


def install() -> None:
    NODE_SDK.install()
    if _READY.exists():
        return
    sys.stdout.write(
        f"installing ShellGPT {_VERSION}, for the tests of what OpenAI's programs see\n"
    )
    sys.stdout.flush()
    venv.create(FOLDER, with_pip=True, clear=True)
    pip = [
        str(FOLDER / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    try:
        # It uses click and does not say so.
        done = subprocess.run(
            [*pip, f"shell-gpt=={_VERSION}", "click"], timeout=_LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise SystemExit(
            f"error: pip did not install ShellGPT within {_LONGEST_S} s; is its index reachable?"
        ) from None
    if done.returncode != 0:
        raise SystemExit("error: pip could not install ShellGPT; see what it says above")
    _READY.touch()


if __name__ == "__main__":
    install()
