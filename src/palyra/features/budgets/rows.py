"""Limits that were set while the daemon ran, as rows; each change of them is an entry of the
system's tape.
"""

import msgspec

from palyra.core.budgets import Limit, Terms
from palyra.core.errors import NotFound
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.store import tape
from palyra.store.database import Tx


def stored(tx: Tx) -> list[Limit]:
    rows = tx.all("SELECT name, body FROM budgets ORDER BY name")
    return [Limit(name=name, terms=msgspec.json.decode(body, type=Terms)) for name, body in rows]


def put(tx: Tx, limit: Limit, by: str) -> None:
    tx.run(
        """INSERT INTO budgets (name, body, updated_ms) VALUES (:name, :body, :now)
        ON CONFLICT (name) DO UPDATE SET body = :body, updated_ms = :now""",
        name=limit.name,
        body=msgspec.json.encode(limit.terms),
        now=tx.now_ms,
    )
    changed = AdminChanged(
        what="budget", action="set", subject=limit.name, details=msgspec.to_builtins(limit.terms)
    )
    tape.append(tx, SYSTEM_TAPE, by, [changed])


def remove(tx: Tx, name: str, by: str) -> None:
    if tx.one("SELECT 1 FROM budgets WHERE name = :name", name=name) is None:
        raise NotFound(f"there is no budget {name} that was set here", name=name)
    tx.run("DELETE FROM budgets WHERE name = :name", name=name)
    tape.append(tx, SYSTEM_TAPE, by, [AdminChanged(what="budget", action="removed", subject=name)])
