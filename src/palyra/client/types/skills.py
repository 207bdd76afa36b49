"""Written by scripts/clients.py from the route table: types of the verbs about skills."""

from typing import Any, Literal

from msgspec import Struct

__all__ = [
    "Bounds",
    "Listed",
    "Permission",
    "Proposal",
    "Publisher",
    "PublisherList",
    "Record",
    "ShownSkill",
    "SkillList",
    "ToolEntry",
    "Wants",
]


class Permission(Struct, frozen=True, kw_only=True):
    """One thing a skill asks for, as a person reads it."""

    tool: str
    kind: Literal["effect", "host", "limit", "read", "secret", "write"]
    value: str


class Record(Struct, frozen=True, kw_only=True):
    """One installed skill. `vouched` says who lifted the quarantine: a publisher's key, or the
    operator.
    """

    name: str
    description: str
    version: str = ""
    digest: str
    folder: str
    files: dict[str, str]
    granted: tuple[Permission, ...] = ()
    state: Literal["enabled", "quarantined", "trusted"] = "quarantined"
    vouched: Literal["", "operator", "publisher"] = ""
    signer: str = ""
    signature: str = ""
    generated: bool = False
    installed_ms: int = 0


class Listed(Struct, frozen=True, kw_only=True):
    """A skill as it is now. `problem` says why it is not offered although its state would allow
    it.
    """

    record: Record
    state: Literal["enabled", "quarantined", "trusted"]
    publisher: str
    problem: str = ""


class SkillList(Struct, frozen=True, kw_only=True):
    skills: list[Listed]


class Proposal(Struct, frozen=True, kw_only=True):
    """Preview of an installation. To install, give the same source with `confirm` set to
    `digest`.
    """

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
    state: Literal["enabled", "quarantined", "trusted"]
    older_than: str = ""


class Wants(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Paths are relative to the workspace and stand for themselves and everything below; "." is all
    of it.
    """

    hosts: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


class Bounds(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits of one call."""

    fuel: int = 100000000
    memory_bytes: int = 16777216
    time_ms: int = 2000
    output_bytes: int = 131072


class ToolEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    description: str
    module: str
    effect: Literal["idempotent", "once", "pure"]
    arguments: dict[str, Any] = {}
    wants: Wants = Wants()
    limits: Bounds = Bounds()


class ShownSkill(Struct, frozen=True, kw_only=True):
    """Details of one skill. `permissions` are what it was granted, in words."""

    skill: Listed
    permissions: tuple[str, ...]
    tools: tuple[ToolEntry, ...] = ()
    instructions: str = ""


class Publisher(Struct, frozen=True, kw_only=True):
    """Publisher whose signed skills are trusted. `key` is an Ed25519 public key in base64."""

    name: str
    key: str


class PublisherList(Struct, frozen=True, kw_only=True):
    publishers: list[Publisher]
