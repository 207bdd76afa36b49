"""How the tests of the tools call a tool: parsed like a model's call, in a workspace, to the
end.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from palyra.core.labels import CLEAN, Label
from palyra.core.ports import CallContext
from palyra.core.tools import ToolResult
from palyra.tools import crash_test_tools, standard
from palyra.tools.catalogue import Arguments, Catalogue, TypedTool
from palyra.tools.paths import PathGuard

ARTIFACTS: dict[tuple[str, str], bytes] = {}


def _artifact(artifact_id: str, session_id: str) -> tuple[bytes, Label] | None:
    found = ARTIFACTS.get((session_id, artifact_id))
    return None if found is None else (found, CLEAN)


def catalogue(*forbidden: str) -> Catalogue:
    fence = PathGuard(forbidden)
    return Catalogue([*standard.tools(fence, _artifact), *crash_test_tools.tools(fence)])


def context(workspace: Path, call_id: str = "call") -> CallContext:
    return CallContext(
        principal="user:owner",
        session_id="session",
        run_id="run",
        call_id=call_id,
        workspace=str(workspace),
        key=f"key-{call_id}",
    )


def parsed(name: str, arguments: dict[str, Any]) -> tuple[TypedTool, Arguments]:
    tool, typed, _ = catalogue().parse(name, arguments)
    return tool, typed


def call(workspace: Path, name: str, **arguments: Any) -> ToolResult:
    tool, typed = parsed(name, arguments)
    return asyncio.run(tool.execute(typed, context(workspace)))


def tree(folder: Path) -> dict[str, bytes | str]:
    """Everything below a folder: contents of files, targets of links, nothing for folders."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_bytes()
        elif path.is_dir():
            found[name] = "folder"
    return found


@contextmanager
def without_privileges(own_folder: Path) -> Iterator[None]:
    """As an ordinary user who owns the folder, so that permissions mean something even where tests
    run as root.
    """
    if os.geteuid() != 0:
        yield
        return
    for path in [own_folder, *own_folder.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
