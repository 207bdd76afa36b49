"""Where the daemon listened when it last said so on the tape, so that it says so again only when
that changes.
"""

from palyra.store.database import Tx


def told(tx: Tx) -> str:
    row = tx.one("SELECT told FROM listening")
    return str(row[0]) if row else ""


def tell(tx: Tx, what: str) -> None:
    tx.run(
        "INSERT INTO listening (only, told) VALUES (1, :what) ON CONFLICT (only) DO UPDATE SET told"
        " = excluded.told",
        what=what,
    )
