"""Files and references of a message, from the command line: files are sent before it, references
are completed while it is written.
"""

import os
from pathlib import Path

from palyra.cli import formatting, lookup
from palyra.cli.safe_text import clean
from palyra.client import Client
from palyra.client.types.sessions import (
    Attaching,
    PreviewedReference,
    ReferencesPreview,
    StoredFile,
)
from palyra.core.errors import InvalidInput

MOST_BYTES = 16 << 20
_READING_S = 60.0
_KINDS = ("file", "folder", "diff", "staged", "url", "memory", "run")
_WITH_PATHS = ("file", "folder", "diff", "staged")
_MOST_SHOWN = 200


def attaching(stored: StoredFile) -> Attaching:
    return Attaching(artifact=stored.artifact, name=stored.name)


def said(stored: StoredFile) -> str:
    match stored.reads_as:
        case "image":
            what = f"an image of {stored.width} × {stored.height} pixels"
        case "text":
            what = f"{stored.characters:,} characters of text"
        case _:
            what = f"{stored.size:,} bytes; the agent gets its name, size and hash"
    return f"{clean(stored.name)}: {what}" + (f" ({clean(stored.note)})" if stored.note else "")


def find(given: str) -> Path:
    """The file that these words name. It is looked for here, not where the daemon works."""
    path = Path(given).expanduser()
    if not path.exists():
        raise InvalidInput(f"there is no file {given!r}")
    if not path.is_file():
        raise InvalidInput(f"{given!r} is not a file")
    return path


def send(api: Client, session_id: str, given: str) -> StoredFile:
    """Hand a file over."""
    path = find(given)
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InvalidInput(
            f"{given!r} is larger than {MOST_BYTES >> 20} MiB: put it into the workspace and name"
            " it with @file:"
        )
    return api.within(_READING_S).store_file(lookup.checked(session_id), data, name=path.name[:200])


def preview(api: Client, session_id: str, text: str) -> ReferencesPreview:
    return api.within(_READING_S).preview_references(lookup.checked(session_id), text=text)


def shown(found: PreviewedReference) -> str:
    if found.error:
        return clean(found.error)
    part = f", the first {found.characters:,} characters" if found.truncated else ""
    return f"{found.size:,} {found.unit}, {formatting.count(found.tokens)} tokens{part}"


def complete(text: str, workspace: str) -> list[str]:
    """Return what the unfinished reference could become, each with everything before it."""
    at = max(text.rfind(blank) for blank in (" ", "\n", "\t", "("))
    while at > 0 and text[at - 1] == "\\":
        # An escaped blank is part of a name.
        at = max(text.rfind(blank, 0, at) for blank in (" ", "\n", "\t", "("))
    before, word = text[: at + 1], text[at + 1 :]
    if not word.startswith("@") or word.startswith("@@"):
        return []
    kind, colon, target = word[1:].partition(":")
    if not colon:
        found = [
            f"@{each}" if each in ("diff", "staged") else f"@{each}:"
            for each in _KINDS
            if each.startswith(kind)
        ]
        return [before + each for each in found]
    if kind not in _WITH_PATHS or target[:1] in ("'", '"') or not workspace:
        return []
    return [
        f"{before}@{kind}:{path}"
        for path in _paths(target.replace("\\", ""), workspace, folders=kind == "folder")
    ]


def _paths(begun: str, workspace: str, *, folders: bool) -> list[str]:
    """Names below the folder that is being written, as far as they begin like it; hidden ones if
    that was asked for.
    """
    folder, slash, name = begun.rpartition("/")
    if begun.startswith(("/", "~")) or ".." in folder.split("/"):
        return []
    found = []
    try:
        with os.scandir(os.path.join(workspace, folder)) as listing:
            for entry in listing:
                wanted = entry.name.startswith(name) and (
                    name.startswith(".") or not entry.name.startswith(".")
                )
                if wanted and entry.name.isprintable() and (entry.is_dir() or not folders):
                    found.append(
                        _escaped(f"{folder}{slash}{entry.name}") + ("/" if entry.is_dir() else "")
                    )
    except OSError:
        return []
    return sorted(found)[:_MOST_SHOWN]


def _escaped(path: str) -> str:
    return "".join(f"\\{char}" if char in " \\\"'()[]{}<>" else char for char in path)
