"""Arguments of a call in the person's own editor. What is not changed, or not valid, decides
nothing.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from palyra.cli import lookup
from palyra.client import Client
from palyra.core import events
from palyra.core.errors import InvalidInput, NotFound
from palyra.core.events import ToolProposed


def edit(arguments: dict[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """The arguments as the person saved them; InvalidInput if nothing usable came back."""
    editor = env.get("VISUAL") or env.get("EDITOR") or "vi"
    before = msgspec.json.format(msgspec.json.encode(arguments), indent=2)
    descriptor, name = tempfile.mkstemp(prefix="palyra-", suffix=".json")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(before + b"\n")
        try:
            done = subprocess.run([*shlex.split(editor), name], check=False)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"the editor {editor!r} cannot be started ({error}): set EDITOR"
            ) from error
        after = path.read_bytes()
    finally:
        path.unlink(missing_ok=True)
    if done.returncode != 0:
        raise InvalidInput(f"the editor ended with {done.returncode}: nothing was decided")
    if after.strip() == before.strip():
        raise InvalidInput("the arguments were not changed: nothing was decided")
    try:
        return msgspec.json.decode(after, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"what was saved is not a JSON object ({error}): nothing was decided"
        ) from error


def proposed(api: Client, session_id: str, call_id: str) -> dict[str, Any]:
    """The arguments of a call as they stand on the tape."""
    for entry in lookup.entries(api, session_id):
        if entry.kind == "tool.proposed":
            event = events.decode(bytes(entry.event))
            if isinstance(event, ToolProposed) and event.call_id == call_id:
                return event.arguments
    raise NotFound(f"there is no call {call_id} on the tape of {session_id}")
