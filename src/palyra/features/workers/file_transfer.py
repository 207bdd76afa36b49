"""Files that go along with a call to another machine, and those that come back: named, known by
their content, bounded.

The rule: what the file tools would refuse is not sent and not written. What arrives is put in place
as a whole or not at all.
"""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput, LimitExceeded, NotFound
from palyra.core.events import FileChange
from palyra.features.workers.protocol import MOST_CALL_BYTES, MOST_FILE_BYTES, MOST_FILES, Shipped
from palyra.tools import blocking, paths, protected_names
from palyra.tools.files import content as files_content
from palyra.tools.files.content import ContentChange
from palyra.tools.paths import PathGuard, WorkspacePath

_EXECUTABLE = 0o755
_PLAIN = 0o644


class Parcel(Struct, frozen=True):
    """A file with its content."""

    about: Shipped
    content: bytes


def pack(
    fence: PathGuard, workspace: str, given: Sequence[str], *, missing_ok: bool = False
) -> tuple[Parcel, ...]:
    """The named files, and all below named folders. Blocks on files."""
    found: dict[str, Parcel] = {}
    total = 0
    for name in given:
        place = fence.place(name, workspace)
        with blocking.family(place.shown):
            inside = _below(fence, place) if os.path.isdir(place.absolute) else [place]
            for each in inside:
                content = files_content.read(each, MOST_FILE_BYTES)
                if content is None:
                    if missing_ok:
                        continue
                    raise NotFound(f"{each.shown} is not there, so it cannot be sent along")
                total += len(content.data)
                about = Shipped(
                    each.relative,
                    digest(content.data),
                    len(content.data),
                    bool(content.mode & 0o100),
                )
                found[each.relative] = Parcel(about, content.data)
                if len(found) > MOST_FILES or total > MOST_CALL_BYTES:
                    raise LimitExceeded(
                        f"a call carries at most {MOST_FILES} files of {MOST_CALL_BYTES >> 20} MiB"
                        " in all: name fewer"
                    )
    return tuple(found.values())


def check(sender: str, given: Sequence[Shipped]) -> None:
    """Check what a sender announces, before it is asked for: no more than we would send, each place
    once.
    """
    if len(given) > MOST_FILES or sum(each.size for each in given) > MOST_CALL_BYTES:
        raise LimitExceeded(
            f"{sender} sends more than {MOST_FILES} files or {MOST_CALL_BYTES >> 20} MiB in all;"
            " nothing was written: name fewer"
        )
    if len({each.path for each in given}) != len(given):
        raise InvalidInput(f"{sender} names the same file twice; nothing was written")


def unpack(
    fence: PathGuard,
    workspace: str,
    given: Sequence[Shipped],
    contents: Mapping[str, bytes],
    *,
    executable: bool = True,
) -> tuple[FileChange, ...]:
    """Put files in place; those that are as they should be are left alone. Says what changed.
    Blocks on files.

    Without `executable` a file can be run afterwards only if it could before.
    """
    changes: list[ContentChange] = []
    for about in given:
        place = fence.place(about.path, workspace, writing=True)
        with blocking.family(place.shown):
            before = files_content.read(place, MOST_FILE_BYTES)
        if not executable:
            about = msgspec.structs.replace(
                about, executable=before is not None and bool(before.mode & 0o100)
            )
        mode = _EXECUTABLE if about.executable else _PLAIN
        if (
            before is None
            or digest(before.data) != about.sha256
            or bool(before.mode & 0o100) != about.executable
        ):
            kept = (
                before.mode
                if before is not None and bool(before.mode & 0o100) == about.executable
                else mode
            )
            changes.append(ContentChange(place, before, contents[about.sha256], kept))
    with blocking.family("the files of the call could not be written"):
        files_content.apply(changes)
    return tuple(
        FileChange(each.place.relative, "modified" if each.before else "created")
        for each in changes
    )


def known(fence: PathGuard, workspace: str, given: Sequence[Shipped]) -> dict[str, bytes]:
    """Contents that need not be sent: they lie where they are to be put. Blocks on files."""
    found = {}
    for about in given:
        place = fence.place(about.path, workspace, writing=True)
        with blocking.family(place.shown):
            there = files_content.read(place, MOST_FILE_BYTES)
        if (
            there is not None
            and len(there.data) == about.size
            and digest(there.data) == about.sha256
        ):
            found[about.sha256] = there.data
    return found


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _below(fence: PathGuard, top: WorkspacePath) -> list[WorkspacePath]:
    """Return every file below a folder that a file tool would open; links are passed over."""
    found: list[WorkspacePath] = []
    for folder, folders, names in os.walk(top.absolute):
        at = os.path.relpath(folder, top.root)
        at = "" if at == "." else f"{at}/"
        folders[:] = sorted(name for name in folders if protected_names.why(f"{at}{name}") is None)
        for name in sorted(names):
            place = WorkspacePath(top.root, f"{at}{name}")
            if (
                protected_names.why(place.relative) is None
                and fence.opens(place)
                and _regular(place)
            ):
                found.append(place)
        if len(found) > MOST_FILES:
            raise LimitExceeded(
                f"{top.shown} holds more than {MOST_FILES} files: name those that are needed"
            )
    return found


def _regular(place: WorkspacePath) -> bool:
    try:
        paths.check_regular(place, os.lstat(place.absolute))
    except (OSError, paths.PathRefused):
        return False
    return True
