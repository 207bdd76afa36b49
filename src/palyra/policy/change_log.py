"""Puts on the system tape what a reload of the policies did, also when it did nothing because a
file is wrong.
"""

import logging

from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.policy.store import Reloaded
from palyra.store import tape
from palyra.store.database import Database

log = logging.getLogger("palyra")


async def record(db: Database, principal: str, change: Reloaded, *, shadow: bool = False) -> None:
    """`shadow`: it was the second set, which is asked and not in force."""
    which = "shadow policies" if shadow else "policies"
    if change.problems:
        log.error(
            "the %s have problems, the last good set stays: %s",
            which,
            "; ".join(map(str, change.problems)),
        )
    event = AdminChanged(
        what="policy",
        action="rejected" if change.problems else "reloaded",
        subject=change.version,
        details={
            "added": list(change.added),
            "removed": list(change.removed),
            "changed": list(change.changed),
            "problems": [str(problem) for problem in change.problems],
            **({"shadow": True} if shadow else {}),
        },
    )
    await db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, principal, [event]))
