"""Access tokens at rest: a digest, a scope, a name. The token itself is shown once and kept
nowhere.
"""

from typing import Literal

from msgspec import Struct

from palyra.core.errors import NotFound
from palyra.store import rights
from palyra.store.database import Tx
from palyra.store.rights import TOKENS

TokenScope = Literal["owner", "operator", "viewer", "client", "connector", "worker"]
_COLUMNS = (
    "token_id, name, principal, scope, created_ms, expires_ms, used_ms, revoked_ms, workspace"
)


class Token(Struct, frozen=True, omit_defaults=True):
    token_id: str
    name: str
    principal: str
    scope: TokenScope
    created_ms: int
    expires_ms: int = 0
    used_ms: int = 0
    revoked_ms: int = 0
    # Of a client: the only folder that its sessions work in; empty: the daemon's default workspace.
    workspace: str = ""

    @property
    def device(self) -> str:
        """Return the mark of the sessions that a client may use. Tokens of the same name share
        them, so one can replace another.
        """
        return f"client:{self.name}" if self.scope == "client" else ""


def add(tx: Tx, token: Token, digest: bytes, entry: int = 0) -> None:
    tx.run(
        """INSERT INTO tokens (token_id, digest, name, principal, scope, created_ms, expires_ms,
        workspace)
        VALUES (:token_id, :digest, :name, :principal, :scope, :created_ms, :expires_ms,
        :workspace)""",
        token_id=token.token_id,
        digest=digest,
        name=token.name,
        principal=token.principal,
        scope=token.scope,
        created_ms=token.created_ms,
        expires_ms=token.expires_ms,
        workspace=token.workspace,
    )
    rights.seal(tx, TOKENS, entry, token_id=token.token_id)


def valid(tx: Tx) -> list[tuple[bytes, Token]]:
    """Every token that may still be used, by its digest. One whose seal does not hold is none."""
    rows = tx.all(
        f"SELECT {TOKENS.columns}, digest, {_COLUMNS} FROM tokens WHERE revoked_ms = 0 AND"
        " (expires_ms = 0 OR expires_ms > :now)",
        now=tx.now_ms,
    )
    sealed = TOKENS.width
    return [
        (bytes(row[sealed]), Token(*row[sealed + 1 :]))
        for row in rows
        if rights.holds(tx, TOKENS, row[:sealed])
    ]


def listing(tx: Tx) -> list[Token]:
    return [Token(*row) for row in tx.all(f"SELECT {_COLUMNS} FROM tokens ORDER BY token_id")]


def get(tx: Tx, token_id: str) -> Token:
    row = tx.one(f"SELECT {_COLUMNS} FROM tokens WHERE token_id = :token_id", token_id=token_id)
    if row is None:
        raise NotFound(f"there is no token {token_id}: see `palyra token list`", token_id=token_id)
    return Token(*row)


def revoke(tx: Tx, token_id: str, entry: int = 0) -> Token:
    tx.run(
        "UPDATE tokens SET revoked_ms = :now WHERE token_id = :token_id AND revoked_ms = 0",
        now=tx.now_ms,
        token_id=token_id,
    )
    rights.seal(tx, TOKENS, entry, token_id=token_id)
    return get(tx, token_id)


def used(tx: Tx, token_id: str) -> None:
    tx.run(
        "UPDATE tokens SET used_ms = :now WHERE token_id = :token_id",
        now=tx.now_ms,
        token_id=token_id,
    )


def addresses(tx: Tx) -> list[tuple[str, str]]:
    """Return the addresses beyond this machine that used tokens."""
    return [
        (str(token_id), str(address))
        for token_id, address in tx.all("SELECT token_id, address FROM token_addresses")
    ]


def seen_from(tx: Tx, token_id: str, address: str, *, most: int) -> bool:
    """Remember the address of a token, and whether it is new. Of more than `most`, the oldest are
    forgotten.
    """
    known = tx.one(
        "SELECT 1 FROM token_addresses WHERE token_id = :token_id AND address = :address",
        token_id=token_id,
        address=address,
    )
    if known:
        return False
    tx.run(
        """DELETE FROM token_addresses WHERE token_id = :token_id AND address NOT IN (
            SELECT address FROM token_addresses WHERE token_id = :token_id ORDER BY first_ms DESC
            LIMIT :keep)""",
        token_id=token_id,
        keep=most - 1,
    )
    tx.run(
        "INSERT INTO token_addresses (token_id, address, first_ms) VALUES (:token_id, :address,"
        " :now)",
        token_id=token_id,
        address=address,
        now=tx.now_ms,
    )
    return True
