"""The operator's policy files: read, tried, saved, removed. What would not load with everything
else is not written.

A file is replaced whole, under the same lock as "always" answers, and only if it still is what was
edited.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from palyra.core.errors import Conflict, NotFound
from palyra.policy import policy_set, sources
from palyra.policy.policy_set import GROUPS_FILE, SHIPPED, PolicySet
from palyra.policy.sources import PolicyProblem


class PolicyFile(Struct, frozen=True):
    """`digest` is of the text; who saves names the one that was edited."""

    name: str
    text: str
    digest: str
    shipped: bool = False


def listing(folder: Path | None, preset: str) -> list[PolicyFile]:
    """The operator's files by name, then the shipped ones that are in force with them."""
    own: list[PolicyFile] = []
    if folder is not None and folder.is_dir():
        for path in sorted((*folder.glob("*.cedar"), *folder.glob(GROUPS_FILE))):
            # What is not text is shown as far as it is: only so can it be mended here.
            text = path.read_bytes().decode("utf-8", "replace")
            own.append(PolicyFile(path.name, text, digest(text)))
    shipped = [
        (name, (SHIPPED / name).read_text("utf-8")) for name in (f"{preset}.cedar", "labels.cedar")
    ]
    return [*own, *(PolicyFile(name, text, digest(text), shipped=True) for name, text in shipped)]


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def tried(
    folder: Path | None, preset: str, name: str, text: str | None
) -> tuple[PolicySet | None, list[PolicyProblem]]:
    """The set as it would be with this text in this file, or without the file; or what is wrong,
    with plain names of files.
    """
    found, problems = policy_set.build(folder, preset, {name: text})
    return found, [
        PolicyProblem(problem.file.rpartition("/")[2], problem.line, problem.message)
        for problem in problems
    ]


def save(folder: Path, preset: str, name: str, text: str, was: str) -> PolicyFile:
    """Put a text into force. `was` is the digest of what was edited, empty for a new file."""
    with _locked(folder):
        _check_unchanged(folder / name, was)
        found, problems = tried(folder, preset, name, text)
        if found is None:
            raise sources.refuse(problems)
        # Not *.cedar, so that a half-written file is never read as a policy.
        fresh = folder / f".{name}.new"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / name)
    return PolicyFile(name, text, digest(text))


def remove(folder: Path, preset: str, name: str, was: str) -> None:
    with _locked(folder):
        path = folder / name
        if not path.is_file():
            raise NotFound(f"there is no policy file {name}", name=name)
        _check_unchanged(path, was)
        found, problems = tried(folder, preset, name, None)
        if found is None:
            raise sources.refuse(problems)
        path.unlink()


def _check_unchanged(path: Path, was: str) -> None:
    now = digest(path.read_bytes().decode("utf-8", "replace")) if path.is_file() else ""
    if now != was:
        how = (
            "was changed meanwhile"
            if now and was
            else "is there already"
            if now
            else "is no longer there"
        )
        raise Conflict(f"{path.name} {how}: load it again, then save", name=path.name)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
        os.fsync(place)
    finally:
        os.close(place)
