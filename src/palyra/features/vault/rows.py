"""Secrets at rest: what may be said about them, and their sealed values. Nothing in this file can
open one.
"""

import re
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput, NotFound
from palyra.core.ids import PRINCIPAL_PATTERN
from palyra.store.database import Tx
from palyra.store.dialect import Row

Size = Literal["short", "medium", "long"]
NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
_SCOPES = (
    "global",
    f"principal(:{PRINCIPAL_PATTERN[1:-1]})?",
    r"channel(:[A-Za-z0-9][^/\s]{0,127})?",
    r"skill(:[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?",
)
SCOPE_PATTERN = f"^({'|'.join(_SCOPES)})$"
PREFIX = "vault:"
_NAME = re.compile(NAME_PATTERN)
_SCOPE = re.compile(SCOPE_PATTERN)
_COLUMNS = "scope, name, size, hosts, tools, created_ms, updated_ms, used_ms"


class Secret(Struct, frozen=True, omit_defaults=True):
    """Secret as a listing shows it. `size` is a class, not a length: short below 16 characters,
    medium below 64, long.

    No `hosts` or `tools`: any. Not `readable`: its row was damaged, or the vault is locked.
    """

    scope: str
    name: str
    size: Size
    hosts: tuple[str, ...]
    tools: tuple[str, ...]
    created_ms: int
    updated_ms: int
    used_ms: int = 0
    readable: bool = True

    @property
    def label(self) -> str:
        return f"{self.scope}/{self.name}"

    @property
    def bound(self) -> bytes:
        """Return what the seal covers beside the value: a value cannot be moved to another name, or
        let out to another host.
        """
        return msgspec.json.encode(["palyra secret", self.scope, self.name, self.hosts, self.tools])


class SecretReference(Struct, frozen=True):
    """`vault:NAME` or `vault:SCOPE/NAME`. No scope: whichever of the asker's scopes has it, the
    narrowest first.
    """

    name: str
    scope: str = ""


def is_reference(text: str) -> bool:
    return text.startswith(PREFIX)


def parse(reference: str) -> SecretReference:
    scope, slash, name = reference.removeprefix(PREFIX).rpartition("/")
    if (
        not is_reference(reference)
        or not _NAME.fullmatch(name)
        or (slash and not _SCOPE.fullmatch(scope))
    ):
        # What was written here may be a secret put in the wrong place: it is not repeated.
        raise InvalidInput(
            "a reference to a secret is vault:NAME or vault:SCOPE/NAME; `palyra vault list` shows"
            " them"
        )
    return SecretReference(name, scope)


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            "the name of a secret has 1 to 64 letters, digits, dots, dashes and underscores"
        )
    return name


def check_scope(scope: str) -> str:
    if not _SCOPE.fullmatch(scope):
        raise InvalidInput("the scope of a secret is global, principal, channel:NAME or skill:NAME")
    return scope


def wrapped_key(tx: Tx) -> bytes | None:
    row = tx.one("SELECT wrapped FROM vault_key")
    return bytes(row[0]) if row else None


def put_wrapped_key(tx: Tx, wrapped: bytes) -> None:
    tx.run(
        """INSERT INTO vault_key (id, wrapped, created_ms) VALUES (1, :wrapped, :now)
        ON CONFLICT (id) DO UPDATE SET wrapped = excluded.wrapped, created_ms =
        excluded.created_ms""",
        wrapped=wrapped,
        now=tx.now_ms,
    )


def put(tx: Tx, secret: Secret, sealed: bytes) -> None:
    """Store a secret, also in place of one of the same name."""
    tx.run(
        f"""INSERT INTO secrets ({_COLUMNS}, sealed)
        VALUES (:scope, :name, :size, :hosts, :tools, :created_ms, :updated_ms, :used_ms, :sealed)
        ON CONFLICT (scope, name) DO UPDATE SET size = excluded.size, hosts = excluded.hosts, tools
        = excluded.tools,
            updated_ms = excluded.updated_ms, sealed = excluded.sealed""",
        scope=secret.scope,
        name=secret.name,
        size=secret.size,
        hosts=msgspec.json.encode(secret.hosts).decode(),
        tools=msgspec.json.encode(secret.tools).decode(),
        created_ms=secret.created_ms,
        updated_ms=secret.updated_ms,
        used_ms=secret.used_ms,
        sealed=sealed,
    )


def reseal(tx: Tx, secret: Secret, sealed: bytes) -> None:
    tx.run(
        "UPDATE secrets SET sealed = :sealed WHERE scope = :scope AND name = :name",
        sealed=sealed,
        **_at(secret),
    )


def stored(tx: Tx) -> list[tuple[Secret, bytes]]:
    rows = tx.all(f"SELECT {_COLUMNS}, sealed FROM secrets ORDER BY scope, name")
    return [(_secret(row[:-1]), bytes(row[-1])) for row in rows]


def remove(tx: Tx, secret: Secret) -> None:
    """Remove a secret; with the last one goes the key, so that a vault whose master key is lost can
    be begun anew.
    """
    if tx.one("SELECT 1 FROM secrets WHERE scope = :scope AND name = :name", **_at(secret)) is None:
        raise NotFound(f"there is no secret {secret.label}")
    tx.run("DELETE FROM secrets WHERE scope = :scope AND name = :name", **_at(secret))
    if tx.one("SELECT 1 FROM secrets LIMIT 1") is None:
        tx.run("DELETE FROM vault_key")


def used(tx: Tx, secret: Secret) -> None:
    tx.run(
        "UPDATE secrets SET used_ms = :now WHERE scope = :scope AND name = :name",
        now=tx.now_ms,
        **_at(secret),
    )


def _at(secret: Secret) -> dict[str, str]:
    return {"scope": secret.scope, "name": secret.name}


def _secret(row: Row) -> Secret:
    scope, name, size, hosts, tools, *times = row
    return Secret(scope, name, size, _texts(hosts), _texts(tools), *times)


def _texts(raw: str) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(raw, type=tuple[str, ...])
    except msgspec.DecodeError:
        # A damaged restriction must not become none; the seal does not fit it either.
        return ("?",)
