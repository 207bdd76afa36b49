"""What an editor's prompt is made of: words, files that it only names, and files that it brings.

The rule: what is only named, the daemon reads itself, under its policies; what is brought is
attached like a file in a chat.
"""

import base64
import os
from typing import Any
from urllib.parse import unquote, urlsplit

from acp import schema

from palyra.client import Client
from palyra.client.types.sessions import Attaching, Session
from palyra.core.errors import InvalidInput

_UPLOAD_S = 60.0


def message(api: Client, session: Session, blocks: list[Any]) -> tuple[str, list[Attaching]]:
    """A prompt as text and attached files."""
    words: list[str] = []
    files: list[Attaching] = []

    def attach(name: str, data: bytes) -> None:
        stored = api.within(_UPLOAD_S).store_file(session.session_id, data, name=name[:200])
        files.append(Attaching(artifact=stored.artifact, name=stored.name))

    for number, block in enumerate(blocks, 1):
        match block:
            case schema.TextContentBlock(text=text):
                words.append(text)
            case schema.ResourceContentBlock(uri=uri):
                words.append(_named(uri, session.workspace))
            case schema.EmbeddedResourceContentBlock(
                resource=schema.TextResourceContents(uri=uri, text=text)
            ):
                words.append(_shown(uri, session.workspace))
                attach(os.path.basename(urlsplit(uri).path) or f"text-{number}.txt", text.encode())
            case schema.EmbeddedResourceContentBlock(
                resource=schema.BlobResourceContents(uri=uri, blob=blob)
            ):
                words.append(_shown(uri, session.workspace))
                attach(os.path.basename(urlsplit(uri).path) or f"file-{number}", _decoded(blob))
            case schema.ImageContentBlock(data=data, mime_type=media):
                attach(f"image-{number}.{media.rpartition('/')[2]}", _decoded(data))
            case _:
                raise InvalidInput(f"a prompt cannot have {getattr(block, 'type', 'this')} here")
    return " ".join(each for each in words if each).strip() or "(see what is attached)", files


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise InvalidInput("what is attached is not Base64") from error


def _path(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else ""


def _named(uri: str, workspace: str) -> str:
    path = _path(uri)
    if path.startswith(workspace + "/") and '"' not in path:
        return f'@file:"{path[len(workspace) + 1 :]}"'
    return path or uri


def _shown(uri: str, workspace: str) -> str:
    path = _path(uri)
    return path[len(workspace) + 1 :] if path.startswith(workspace + "/") else path or uri
