"""Compile proto/ into the package palyra.v1. It is never committed: set-up makes it, and a build
puts it into the wheel.

    python scripts/proto_code.py            write src/palyra/v1
    python scripts/proto_code.py --check    only say whether it is up to date

Imports nothing but grpcio-tools: setup.py runs it in an environment that has nothing else.
"""

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "proto"
PACKAGE = "palyra/v1"
CODE = ROOT / "src" / PACKAGE
_INIT = (
    '"""The messages and services of the gRPC API, made by scripts/proto_code.py. A client needs'
    ' nothing else of palyra."""\n'
)


def compiled(source: Path = SOURCE) -> dict[str, str]:
    """Return the package's files by name."""
    with tempfile.TemporaryDirectory() as folder:
        _protoc(source, *(f"--{kind}_out={folder}" for kind in ("python", "pyi", "grpc_python")))
        made = {
            each.name: each.read_text(encoding="utf-8")
            for each in sorted((Path(folder) / PACKAGE).iterdir())
        }
    # Files without services have nothing to call.
    services = {
        name: text
        for name, text in made.items()
        if not name.endswith("_grpc.py") or "class " in text
    }
    return {**services, "__init__.py": _INIT}


def descriptors(source: Path = SOURCE) -> bytes:
    """Return a serialised FileDescriptorSet of the .proto files."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set"
        _protoc(source, f"--descriptor_set_out={target}")
        return target.read_bytes()


def _protoc(source: Path, *outputs: str) -> None:
    from grpc_tools import protoc

    well_known = Path(protoc.__file__).parent / "_proto"
    files = sorted(str(each) for each in (source / PACKAGE).glob("*.proto"))
    if protoc.main(["protoc", f"-I{source}", f"-I{well_known}", *outputs, *files]) != 0:
        raise SystemExit("protoc refused the .proto files: see above")


def stale(target: Path = CODE) -> list[str]:
    """Return the names of files that are missing, outdated or left over."""
    files = compiled()
    wrong = [
        name
        for name, text in files.items()
        if not (target / name).exists() or (target / name).read_text() != text
    ]
    return wrong + [each.name for each in _others(target, files)]


def write(target: Path = CODE) -> None:
    """Write the package. `__init__.py` comes last: make(1) compares its time with that of the
    .proto files.
    """
    target.mkdir(parents=True, exist_ok=True)
    files = compiled()
    for name, text in files.items():
        # Replaced in one step: two targets of make may do this at the same time.
        fresh = target / f".{name}.{os.getpid()}"
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(target / name)
    for each in _others(target, files):
        each.unlink(missing_ok=True)


def _others(target: Path, files: Mapping[str, str]) -> list[Path]:
    """Return what does not belong there; what another one is just writing (a dot in front) does."""
    found = target.glob("*.py*")
    return [each for each in found if each.name not in files and not each.name.startswith(".")]


def main() -> int:
    if "--check" not in sys.argv[1:]:
        write()
        return 0
    wrong = stale()
    sys.stdout.write(
        "".join(
            f"src/{PACKAGE}/{name} is not up to date: python scripts/proto_code.py\n"
            for name in wrong
        )
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
