"""The daemon's verbs for skills, over HTTP. Shapes as in `client`."""

from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from msgspec import Struct

from palyra.client.http import Api
from palyra.core.errors import InvalidInput
from palyra.features.skills.front_matter import check_name
from palyra.features.skills.manifest import Permission, ToolEntry
from palyra.features.skills.package import MOST_ARCHIVE

T = TypeVar("T")
_ZIP = "application/zip"
# Every module of a skill is compiled before anybody is asked.
_COMPILING_S = 600.0


class Record(Struct, frozen=True, kw_only=True):
    name: str
    description: str = ""
    version: str = ""
    digest: str = ""
    files: dict[str, str] = {}
    granted: tuple[Permission, ...] = ()
    signer: str = ""
    installed_ms: int = 0


class Listed(Struct, frozen=True, kw_only=True):
    record: Record
    state: str
    publisher: str = ""
    problem: str = ""


class Shown(Struct, frozen=True, kw_only=True):
    skill: Listed
    permissions: tuple[str, ...] = ()
    tools: tuple[ToolEntry, ...] = ()
    instructions: str = ""


class Proposal(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    version: str
    digest: str
    permissions: tuple[Permission, ...]
    added: tuple[Permission, ...]
    dropped: tuple[Permission, ...] = ()
    changes: dict[str, str] = {}
    updates: bool
    signer: str
    publisher: str
    state: str
    older_than: str = ""


class Publisher(Struct, frozen=True):
    name: str
    key: str


class _Skills(Struct):
    skills: list[Listed]


class _Publishers(Struct):
    publishers: list[Publisher]


def listing(api: Api) -> list[Listed]:
    return api.get("/v1/skills", _Skills).skills


def show(api: Api, name: str) -> Shown:
    return api.get(_path(name), Shown)


def look(api: Api, source: Path) -> Proposal:
    return _send(api, source, Proposal)


def install(api: Api, source: Path, confirm: str) -> Shown:
    return _send(api, source, Shown, confirm=confirm)


def set_state(api: Api, name: str, state: str) -> Shown:
    return api.post(f"{_path(name)}/state", Shown, {"state": state})


def remove(api: Api, name: str) -> None:
    api.delete(_path(name))


def export(api: Api, name: str) -> bytes:
    return api.request("GET", f"{_path(name)}/export")


def publishers(api: Api) -> list[Publisher]:
    return api.get("/v1/publishers", _Publishers).publishers


def add_publisher(api: Api, name: str, key: str) -> Publisher:
    return api.post("/v1/publishers", Publisher, {"name": name, "key": key})


def remove_publisher(api: Api, name: str) -> None:
    api.delete("/v1/publishers?" + urlencode({"name": name}))


def _path(name: str) -> str:
    return f"/v1/skills/{check_name(name)}"


def _send(api: Api, source: Path, type: type[T], **more: Any) -> T:
    """A folder is read by the daemon, a zip file is sent to it."""
    if not source.exists():
        raise InvalidInput(f"there is no folder or zip file {str(source)!r}")
    if source.is_dir():
        return api.post(
            "/v1/skills", type, {"path": str(source.absolute()), **more}, timeout_s=_COMPILING_S
        )
    if not source.is_file():
        raise InvalidInput(f"{str(source)!r} is neither a folder nor a zip file")
    with source.open("rb") as file:
        data = file.read(MOST_ARCHIVE + 1)
    if len(data) > MOST_ARCHIVE:
        raise InvalidInput(f"the archive is larger than {MOST_ARCHIVE >> 20} MiB")
    return api.upload("/v1/skill-archives", type, data, _ZIP, timeout_s=_COMPILING_S, **more)
