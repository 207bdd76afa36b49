"""Notices that the owner got without asking: one row for each, once for each key. The tape says the
same, permanently.
"""

from typing import Any

from msgspec import Struct

from palyra.core.errors import NotFound
from palyra.core.events import NoticeAbout, OwnerNotified
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.store import tape
from palyra.store.database import Tx

_COLUMNS = "notice_id, about, key, text, link, created_ms, read_ms"


class Notice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`link` is a page of the console; `read_ms` is 0 while it is unread."""

    notice_id: str
    about: NoticeAbout
    key: str
    text: str
    link: str = ""
    created_ms: int
    read_ms: int = 0


class StoredNotice(Struct, frozen=True):
    """A notice, whom it is for, and where in the journal it stands."""

    position: int
    to: str
    notice: Notice


def _notice(row: tuple[Any, ...]) -> Notice:
    return Notice(**dict(zip(Notice.__struct_fields__, row, strict=True)))


def tell(tx: Tx, event: OwnerNotified) -> bool:
    """Tell it, unless this key was told to this principal before; whether it was told now."""
    if tx.one(
        "SELECT 1 FROM notices WHERE principal = :principal AND key = :key",
        principal=event.to,
        key=event.key,
    ):
        return False
    (entry,) = tape.append(tx, SYSTEM_TAPE, SYSTEM, [event])
    tx.run(
        """INSERT INTO notices (notice_id, principal, about, key, text, link, position, created_ms)
        VALUES (:notice_id, :principal, :about, :key, :text, :link, :position, :now)""",
        notice_id=event.notice_id,
        principal=event.to,
        about=event.about,
        key=event.key,
        text=event.text,
        link=event.link,
        position=entry.position,
        now=tx.now_ms,
    )
    return True


def listing(
    tx: Tx, principal: str, *, unread: bool | None = None, before: int = 1 << 62, limit: int = 100
) -> list[Notice]:
    """Return notices, newest first, paged by position."""
    rows = tx.all(
        f"""SELECT {_COLUMNS} FROM notices WHERE principal = :principal AND position < :before
            AND (:unread < 0 OR (read_ms = 0) = (:unread > 0))
        ORDER BY position DESC LIMIT :limit""",
        principal=principal,
        before=before,
        unread=-1 if unread is None else int(unread),
        limit=limit,
    )
    return [_notice(row) for row in rows]


def told_after(tx: Tx, position: int, limit: int = 500) -> list[StoredNotice]:
    """Return everybody's notices behind a position, oldest first."""
    rows = tx.all(
        f"SELECT position, principal, {_COLUMNS} FROM notices WHERE position > :position ORDER BY"
        " position LIMIT :limit",
        position=position,
        limit=limit,
    )
    return [StoredNotice(row[0], row[1], _notice(row[2:])) for row in rows]


def unread(tx: Tx, principal: str) -> int:
    row = tx.one(
        "SELECT count(*) FROM notices WHERE principal = :principal AND read_ms = 0",
        principal=principal,
    )
    return int(row[0]) if row else 0


def position_of(tx: Tx, notice_id: str, principal: str) -> int:
    """Return where a notice stands in the listing, for the page after it."""
    row = tx.one(
        "SELECT position FROM notices WHERE notice_id = :id AND principal = :principal",
        id=notice_id,
        principal=principal,
    )
    if row is None:
        raise NotFound(f"there is no notice {notice_id}", notice_id=notice_id)
    return int(row[0])


def mark_read(tx: Tx, principal: str, notice_id: str = "") -> int:
    """Mark one notice as read, or all of them; how many were unread."""
    if notice_id:
        position_of(tx, notice_id, principal)
    rows = tx.all(
        """UPDATE notices SET read_ms = :now WHERE principal = :principal AND read_ms = 0 AND (:id =
        '' OR notice_id = :id)
        RETURNING notice_id""",
        now=tx.now_ms,
        principal=principal,
        id=notice_id,
    )
    return len(rows)


def last_position(tx: Tx) -> int:
    """The position of the newest notice."""
    row = tx.one("SELECT coalesce(max(position), 0) FROM notices")
    return int(row[0]) if row else 0
