"""The texts of policies that were in force, each set by its version.

A version is the SHA-256 of the texts, and a decision on the tape names it. So a set needs no entry
of its own to be proven: whoever has the texts makes the version anew.
"""

from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec import Struct

from palyra.store.database import Tx


class PolicyText(Struct, frozen=True):
    name: str
    text: str


class PolicyTexts(Struct, frozen=True):
    """The files of a set, in the order in which its version covers them."""

    version: str
    files: tuple[PolicyText, ...]


def version_of(files: Iterable[PolicyText]) -> str:
    """Return the same for the same content, wherever the folder is."""
    digest = sha256()
    for file in files:
        for part in (file.name.encode(), file.text.encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def keep(tx: Tx, texts: PolicyTexts) -> None:
    tx.run(
        "INSERT INTO policy_sets (version, files) VALUES (:version, :files) ON CONFLICT DO NOTHING",
        version=texts.version,
        files=msgspec.json.encode(texts.files),
    )


def find(tx: Tx, version: str) -> PolicyTexts | None:
    """Return the set of a version if its texts were kept, and are those."""
    row = tx.one("SELECT files FROM policy_sets WHERE version = :version", version=version)
    try:
        files = msgspec.json.decode(row[0], type=tuple[PolicyText, ...]) if row else ()
    except (msgspec.MsgspecError, TypeError):
        return None
    return PolicyTexts(version, files) if version_of(files) == version else None


def versions(tx: Tx) -> list[str]:
    """Return those that are kept; a backup from before any were has none."""
    if not tx.connection.has_table("policy_sets"):
        return []
    return [str(version) for (version,) in tx.all("SELECT version FROM policy_sets")]
