"""Notes for agents at the top of a workspace: AGENTS.md, CLAUDE.md and PALYRA.md, read once and
known by their digest.

A file is read once: the bytes whose digest is checked are the bytes that are used.

A file with notes for agents, as a person reviews it.
"""

import os
import stat
from hashlib import sha256
from typing import Annotated, Literal

from msgspec import Meta, Struct

NoteState = Literal["accepted", "changed", "new", "missing", "unusable"]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Note(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file as it is now. `text` and `diff` show secrets and invisible characters by a mark;
    lists leave both out.

    `new`: no content of it was ever accepted here. `changed`: another one was. `missing`: the file
    is gone. `unusable`: see `problem`. `diff` is against what was accepted last, which
    `accepted_sha256`, `accepted_by` and `accepted_ms` are about.
    """

    workspace: str
    file: str
    state: NoteState
    sha256: str = ""
    size: int = 0
    text: str = ""
    diff: str = ""
    problem: str = ""
    accepted_sha256: str = ""
    accepted_by: str = ""
    accepted_ms: int = 0

    @property
    def waits(self) -> bool:
        """Return whether somebody should review it: it is there, and runs go without it."""
        return self.state in ("new", "changed")


NAMES = ("AGENTS.md", "CLAUDE.md", "PALYRA.md")
# What goes into a prompt, of one file and of all.
LARGEST = 24 << 10
LARGEST_IN_ALL = 64 << 10
# What is read of a file to know it by its digest. No person reviews more.
LARGEST_READ = 256 << 10

# A link could lead out of the workspace, to a file that changes with nobody looking.
LINK = "it is a symbolic link; use a regular file"

Stamp = tuple[tuple[str, int, int, int, int, int], ...]


class NoteFile(Struct, frozen=True):
    """One file with all of its bytes, or with the reason why it cannot be used."""

    name: str
    body: bytes = b""
    digest: str = ""
    problem: str = ""


def stamp(workspace: str) -> Stamp:
    """Return what tells whether the files are still those that were read. The change time cannot be
    set back by a program.
    """
    found = []
    for name in NAMES:
        try:
            about = os.lstat(os.path.join(workspace, name))
        except OSError:
            continue
        found.append(
            (name, about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino, about.st_mode)
        )
    return tuple(found)


def read(workspace: str) -> tuple[NoteFile, ...]:
    """Return the notes that a workspace has, in the order of the prompt."""
    found = (read_one(workspace, name) for name in NAMES)
    return tuple(each for each in found if each is not None)


def read_one(workspace: str, name: str) -> NoteFile | None:
    """Return one of them, or None if there is no such file or it says nothing."""
    path = os.path.join(workspace, name)
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            return NoteFile(name, problem=LINK)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return NoteFile(name, problem=f"it cannot be read ({error.strerror})")
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return NoteFile(name, problem="it is not a regular file")
        try:
            body = file.read(LARGEST_READ + 1)
        except OSError as error:
            return NoteFile(name, problem=f"it cannot be read ({error.strerror})")
    if len(body) > LARGEST_READ:
        return NoteFile(name, problem=f"it is larger than {LARGEST_READ >> 10} KiB; shorten it")
    return NoteFile(name, body, sha256(body).hexdigest()) if body.strip() else None
