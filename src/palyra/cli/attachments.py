"""What goes with a message, from the command line: files are sent before it, references are
completed while it is written.
"""

import os
from pathlib import Path

from msgspec import Struct

from palyra.cli import formatting
from palyra.cli.client import checked
from palyra.cli.safe_text import clean
from palyra.client.http import Api
from palyra.core.errors import InvalidInput

MOST_BYTES = 16 << 20
_MEDIA = "application/octet-stream"
_READING_S = 60.0
_KINDS = ("file", "folder", "diff", "staged", "url", "memory", "run")
_WITH_PATHS = ("file", "folder", "diff", "staged")
_MOST_SHOWN = 200


class UploadedFile(Struct, frozen=True):
    """A file that the daemon has; as the API's StoredFile."""

    artifact: str
    name: str
    media_type: str
    size: int
    reads_as: str
    width: int = 0
    height: int = 0
    characters: int = 0
    note: str = ""

    @property
    def attaching(self) -> dict[str, str]:
        return {"artifact": self.artifact, "name": self.name}

    @property
    def said(self) -> str:
        match self.reads_as:
            case "image":
                what = f"an image of {self.width} × {self.height} pixels"
            case "text":
                what = f"{self.characters:,} characters of text"
            case _:
                what = f"{self.size:,} bytes; the agent gets its name, size and hash"
        return f"{clean(self.name)}: {what}" + (f" ({clean(self.note)})" if self.note else "")


def find(given: str) -> Path:
    """The file that these words name. It is looked for here, not where the daemon works."""
    path = Path(given).expanduser()
    if not path.exists():
        raise InvalidInput(f"there is no file {given!r}")
    if not path.is_file():
        raise InvalidInput(f"{given!r} is not a file")
    return path


def send(api: Api, session_id: str, given: str) -> UploadedFile:
    """Hand a file over."""
    path = find(given)
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InvalidInput(
            f"{given!r} is larger than {MOST_BYTES >> 20} MiB: put it into the workspace and name"
            " it with @file:"
        )
    where = f"/v1/sessions/{checked(session_id)}/files"
    return api.upload(where, UploadedFile, data, _MEDIA, timeout_s=_READING_S, name=path.name[:200])


class ReferencePreview(Struct, frozen=True):
    reference: str
    kind: str
    target: str = ""
    size: int = 0
    unit: str = "characters"
    characters: int = 0
    tokens: int = 0
    truncated: bool = False
    warnings: tuple[str, ...] = ()
    error: str = ""
    policies: tuple[str, ...] = ()


class ReferencePreviews(Struct, frozen=True):
    references: tuple[ReferencePreview, ...]
    characters: int
    tokens: int
    errors: tuple[str, ...] = ()


def preview(api: Api, session_id: str, text: str) -> ReferencePreviews:
    where = f"/v1/sessions/{checked(session_id)}/references/preview"
    return api.post(where, ReferencePreviews, {"text": text}, timeout_s=_READING_S)


def shown(found: ReferencePreview) -> str:
    if found.error:
        return clean(found.error)
    part = f", the first {found.characters:,} characters" if found.truncated else ""
    return f"{found.size:,} {found.unit}, {formatting.count(found.tokens)} tokens{part}"


def complete(text: str, workspace: str) -> list[str]:
    """What the reference that is being written could become, each with everything before it."""
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
