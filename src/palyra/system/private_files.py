"""Files that only their owner may read, replaced as a whole."""

import os
from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for its owner alone."""
    for missing in reversed([folder, *folder.parents]):
        if not missing.exists():
            missing.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, data: bytes) -> None:
    """Replace a file as a whole: a reader, or a crash, sees the old one or the new one."""
    # A file that is a link elsewhere is changed there, not cut off from it.
    path = Path(os.path.realpath(path))
    make_private(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    temporary.unlink(missing_ok=True)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
