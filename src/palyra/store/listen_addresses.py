"""Listen addresses that the daemon last recorded on the tape, so that it records them again only
when they change.
"""

from palyra.store.database import Tx


def told(tx: Tx) -> str:
    row = tx.one("SELECT told FROM listening")
    return str(row[0]) if row else ""


def tell(tx: Tx, what: str) -> None:
    tx.run(
        """INSERT INTO listening ("only", told) VALUES (1, :what)
        ON CONFLICT ("only") DO UPDATE SET told = excluded.told""",
        what=what,
    )
