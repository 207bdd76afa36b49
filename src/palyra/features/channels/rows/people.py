"""People who write to us from chats, as rows: whose identity a sender is, who is paired and until
when, codes, and wrong tries.

The rule: a code works once, for the one it was made for, and not for long; what it grants can end
and can be revoked.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import NotFound
from palyra.features.channels.model import Standing
from palyra.store import rights
from palyra.store.database import Tx
from palyra.store.rights import PAIRINGS, PEOPLE

PairingKind = Literal["request", "invitation"]
PairingState = Literal["pending", "approved", "denied", "expired", "replaced"]
_PERSON = (
    "connector, sender, display, principal, paired_ms, paired_until_ms, revoked_ms, granted_by,"
    " conversation, seen_ms"
)
_PAIRING = """pairing_id, connector, kind, sender, display, conversation, thread, state, grant_ms,
    created_ms, expires_ms,
    settled_ms, settled_by"""


class Person(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sender. `principal` is the person of the daemon whose identity it is, if it was linked.

    `conversation`: where they wrote to us directly the last time. `paired_until_ms` 0: without end.
    """

    connector: str
    sender: str
    display: str = ""
    principal: str = ""
    paired_ms: int = 0
    paired_until_ms: int = 0
    revoked_ms: int = 0
    granted_by: str = ""
    conversation: str = ""
    seen_ms: int = 0

    def standing(self, now_ms: int) -> Standing:
        if self.principal:
            return "person"
        lasts = (
            self.paired_ms
            and not self.revoked_ms
            and (not self.paired_until_ms or self.paired_until_ms > now_ms)
        )
        return "paired" if lasts else "stranger"


class Pairing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A code that waits, or what became of it. A `request` is a stranger's; an `invitation` is
    given to somebody by the owner.
    """

    pairing_id: str
    connector: str
    kind: PairingKind
    sender: str = ""
    display: str = ""
    conversation: str = ""
    thread: str = ""
    state: PairingState
    grant_ms: int = 0
    created_ms: int
    expires_ms: int
    settled_ms: int = 0
    settled_by: str = ""


def _person(row: tuple[Any, ...]) -> Person:
    return Person(**dict(zip(Person.__struct_fields__, row, strict=True)))


def _pairing(row: tuple[Any, ...]) -> Pairing:
    return Pairing(**dict(zip(Pairing.__struct_fields__, row, strict=True)))


def find(tx: Tx, connector: str, sender: str) -> Person | None:
    row = tx.one(
        f"SELECT {PEOPLE.columns}, {_PERSON} FROM channel_people WHERE connector = :c AND sender ="
        " :s",
        c=connector,
        s=sender,
    )
    return _known(tx, row) if row else None


def _known(tx: Tx, row: tuple[Any, ...]) -> Person:
    """Return who a row is of. Somebody whose seal does not hold is a stranger."""
    sealed = PEOPLE.width
    person = _person(row[sealed:])
    if not (person.principal or person.paired_ms) or rights.holds(tx, PEOPLE, row[:sealed]):
        return person
    return msgspec.structs.replace(person, principal="", paired_ms=0, paired_until_ms=0)


def get(tx: Tx, connector: str, sender: str) -> Person:
    found = find(tx, connector, sender)
    if found is None:
        raise NotFound(
            f"nobody called {sender} has written on {connector}", connector=connector, sender=sender
        )
    return found


def seen(tx: Tx, connector: str, sender: str, display: str, conversation: str) -> None:
    """Record that somebody wrote. `conversation` is given only if it was to us alone."""
    tx.run(
        """INSERT INTO channel_people (connector, sender, display, conversation, seen_ms)
        VALUES (:c, :s, :display, :conversation, :now)
        ON CONFLICT (connector, sender) DO UPDATE SET seen_ms = :now,
            display = CASE WHEN :display = '' THEN channel_people.display ELSE :display END,
            conversation = CASE WHEN :conversation = '' THEN channel_people.conversation
                ELSE :conversation END""",
        c=connector,
        s=sender,
        display=display,
        conversation=conversation,
        now=tx.now_ms,
    )


def listing(tx: Tx, connector: str = "", limit: int = 500) -> list[Person]:
    rows = tx.all(
        f"""SELECT {PEOPLE.columns}, {_PERSON} FROM channel_people WHERE (:c = '' OR connector = :c)
        ORDER BY seen_ms DESC, connector, sender LIMIT :limit""",
        c=connector,
        limit=limit,
    )
    return [_known(tx, row) for row in rows]


def of_principal(tx: Tx, principal: str) -> list[Person]:
    """The identities of a person, last seen first."""
    rows = tx.all(
        f"""SELECT {PEOPLE.columns}, {_PERSON} FROM channel_people WHERE principal = :p
        AND principal <> '' ORDER BY seen_ms DESC""",
        p=principal,
    )
    return [person for row in rows if (person := _known(tx, row)).principal]


def heard_in(tx: Tx, connector: str, conversation: str) -> list[str]:
    """Return whose messages were taken in a conversation."""
    rows = tx.all(
        """SELECT DISTINCT sender FROM channel_messages
        WHERE connector = :connector AND conversation = :conversation AND state <> 'refused'""",
        connector=connector,
        conversation=conversation,
    )
    return [str(sender) for (sender,) in rows]


def _ensure(tx: Tx, connector: str, sender: str) -> None:
    """Have a row to change. What a broken seal pretended is taken out first: it must not be sealed
    along.
    """
    before = find(tx, connector, sender)
    if before is not None and not (before.principal or before.paired_ms):
        tx.run(
            """UPDATE channel_people SET principal = '', paired_ms = 0, paired_until_ms = 0
            WHERE connector = :c AND sender = :s""",
            c=connector,
            s=sender,
        )
    tx.run(
        "INSERT INTO channel_people (connector, sender, display) VALUES (:c, :s, '') ON CONFLICT DO"
        " NOTHING",
        c=connector,
        s=sender,
    )


def link(tx: Tx, connector: str, sender: str, principal: str, entry: int = 0) -> Person:
    """Say whose identity a sender is; an empty principal: nobody's any more."""
    _ensure(tx, connector, sender)
    tx.run(
        "UPDATE channel_people SET principal = :p WHERE connector = :c AND sender = :s",
        c=connector,
        s=sender,
        p=principal,
    )
    rights.seal(tx, PEOPLE, entry, connector=connector, sender=sender)
    return get(tx, connector, sender)


def grant(tx: Tx, connector: str, sender: str, until_ms: int, by: str, entry: int = 0) -> Person:
    _ensure(tx, connector, sender)
    tx.run(
        """UPDATE channel_people SET paired_ms = :now, paired_until_ms = :until, revoked_ms = 0,
        granted_by = :by
        WHERE connector = :c AND sender = :s""",
        c=connector,
        s=sender,
        now=tx.now_ms,
        until=until_ms,
        by=by,
    )
    rights.seal(tx, PEOPLE, entry, connector=connector, sender=sender)
    return get(tx, connector, sender)


def revoke(tx: Tx, connector: str, sender: str, entry: int = 0) -> Person:
    """Make a sender a stranger from now on, also one who was somebody's identity."""
    get(tx, connector, sender)
    _ensure(tx, connector, sender)
    tx.run(
        "UPDATE channel_people SET revoked_ms = :now, principal = '' WHERE connector = :c AND"
        " sender = :s",
        c=connector,
        s=sender,
        now=tx.now_ms,
    )
    rights.seal(tx, PEOPLE, entry, connector=connector, sender=sender)
    return get(tx, connector, sender)


def forget_strangers(tx: Tx, before_ms: int) -> None:
    """Drop who wrote before a time and never was anybody to us, with their requests and wrong
    tries.
    """
    gone = (
        "SELECT connector, sender FROM channel_people WHERE seen_ms < :before AND principal = ''"
        " AND paired_ms = 0"
    )
    tx.run(f"DELETE FROM channel_tries WHERE (connector, sender) IN ({gone})", before=before_ms)
    tx.run(
        "DELETE FROM channel_pairings WHERE created_ms < :before AND (connector, sender) IN"
        f" ({gone})",
        before=before_ms,
    )
    tx.run(
        "DELETE FROM channel_people WHERE seen_ms < :before AND principal = '' AND paired_ms = 0",
        before=before_ms,
    )


def add(tx: Tx, pairing: Pairing, code: bytes, entry: int = 0) -> None:
    tx.run(
        f"""INSERT INTO channel_pairings ({_PAIRING}, code)
        VALUES (:pairing_id, :connector, :kind, :sender, :display, :conversation, :thread, :state,
        :grant_ms, :created_ms,
            :expires_ms, :settled_ms, :settled_by, :code)""",
        code=code,
        **{name: getattr(pairing, name) for name in Pairing.__struct_fields__},
    )
    rights.seal(tx, PAIRINGS, entry, pairing_id=pairing.pairing_id)


def pairing(tx: Tx, pairing_id: str) -> Pairing:
    row = tx.one(f"SELECT {_PAIRING} FROM channel_pairings WHERE pairing_id = :id", id=pairing_id)
    if row is None:
        raise NotFound(
            f"there is no pairing {pairing_id}: `palyra channels pair` lists those that wait",
            pairing_id=pairing_id,
        )
    return _pairing(row)


def by_code(tx: Tx, code: bytes) -> Pairing | None:
    """Return the pairing of a code while it can be used; None for one that we did not make."""
    row = tx.one(
        f"SELECT {_PAIRING} FROM channel_pairings WHERE code = :code AND state = 'pending' AND"
        " expires_ms > :now",
        code=code,
        now=tx.now_ms,
    )
    if row is None or not rights.genuine(tx, PAIRINGS, "pairing_id = :id", id=row[0]):
        return None
    return _pairing(row)


def requests_of(tx: Tx, connector: str, sender: str, since_ms: int) -> list[Pairing]:
    """Return what a sender asked for since then, newest first."""
    rows = tx.all(
        f"""SELECT {_PAIRING} FROM channel_pairings WHERE connector = :c AND sender = :s AND
        created_ms > :since
            AND kind = 'request' ORDER BY created_ms DESC, pairing_id DESC""",
        c=connector,
        s=sender,
        since=since_ms,
    )
    return [_pairing(row) for row in rows]


def pending(tx: Tx, connector: str = "") -> list[Pairing]:
    rows = tx.all(
        f"""SELECT {_PAIRING} FROM channel_pairings WHERE state = 'pending' AND expires_ms > :now
        AND (:c = '' OR connector = :c)
        ORDER BY created_ms DESC LIMIT 500""",
        c=connector,
        now=tx.now_ms,
    )
    return [_pairing(row) for row in rows]


def settle(tx: Tx, pairing_id: str, state: PairingState, by: str, sender: str = "") -> None:
    """End a pairing. Its seal goes, so that a code is never used twice, whatever becomes of its
    row.
    """
    tx.run(
        """UPDATE channel_pairings SET state = :state, settled_ms = :now, settled_by = :by,
            mac = x'',
            sender = CASE WHEN :sender = '' THEN sender ELSE :sender END WHERE pairing_id = :id""",
        id=pairing_id,
        state=state,
        now=tx.now_ms,
        by=by,
        sender=sender,
    )


def expire(tx: Tx) -> None:
    """Expire codes whose time is over, to make room for others like them."""
    tx.run(
        "UPDATE channel_pairings SET state = 'expired', settled_ms = :now WHERE state = 'pending'"
        " AND expires_ms <= :now",
        now=tx.now_ms,
    )


def locked_until(tx: Tx, connector: str, sender: str) -> int:
    """Return until when a sender's tries do not count; 0: they count."""
    row = tx.one(
        "SELECT locked_until_ms FROM channel_tries WHERE connector = :c AND sender = :s",
        c=connector,
        s=sender,
    )
    return int(row[0]) if row and row[0] > tx.now_ms else 0


def wrong_try(tx: Tx, connector: str, sender: str, most: int, lock_ms: int) -> int:
    """Count a wrong code; how many more there may be before the sender is locked out."""
    row = tx.one(
        "SELECT wrong, locked_until_ms FROM channel_tries WHERE connector = :c AND sender = :s",
        c=connector,
        s=sender,
    )
    over = row is not None and 0 < row[1] <= tx.now_ms
    wrong = 1 if row is None or over else int(row[0]) + 1
    tx.run(
        """INSERT INTO channel_tries (connector, sender, wrong, locked_until_ms) VALUES (:c, :s,
        :wrong, :until)
        ON CONFLICT (connector, sender) DO UPDATE SET wrong = :wrong, locked_until_ms = :until""",
        c=connector,
        s=sender,
        wrong=wrong,
        until=tx.now_ms + lock_ms if wrong >= most else 0,
    )
    return max(0, most - wrong)


def forgive(tx: Tx, connector: str, sender: str) -> None:
    tx.run("DELETE FROM channel_tries WHERE connector = :c AND sender = :s", c=connector, s=sender)
