"""Admitting people: a stranger who writes gets a code, the owner approves it; or the owner gives
somebody a code to write.

Every step of it is durable and told to both sides. Codes are kept as digests. Whoever guesses is
locked out, and whoever only writes again does not get code after code.
"""

import secrets
from functools import partial
from hashlib import sha256
from typing import Any

from palyra.core import ids
from palyra.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from palyra.core.events import AdminChanged
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.features.channels import texts
from palyra.features.channels.model import Sender
from palyra.features.channels.outbox import Posting
from palyra.features.channels.registry import Book
from palyra.features.channels.rows import messages
from palyra.features.channels.rows import people as people_rows
from palyra.features.channels.rows.people import Pairing, PairingState, Person
from palyra.features.channels.views import ChatPlace, Invitation
from palyra.features.notices.service import Notices
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 8
LIFE_MS = 10 * 60_000
MOST_WRONG = 5
LOCK_MS = 15 * 60_000
# How many codes one sender gets in an hour, and how many may wait on one channel.
MOST_CODES, CODES_MS = 3, 3_600_000
MOST_PENDING = 100
_LOOKALIKES = str.maketrans({"O": "0", "I": "1", "L": "1", "-": "", " ": ""})


def normal(code: str) -> str:
    """A code as it was made, however it was typed. InvalidInput if it cannot be one."""
    found = code.strip().upper().translate(_LOOKALIKES)
    if len(found) != LENGTH or any(char not in ALPHABET for char in found):
        raise InvalidInput(f"a pairing code has {LENGTH} letters and digits, as ABCD-2345")
    return found


def looks_like_code(text: str) -> bool:
    try:
        return bool(normal(text))
    except InvalidInput:
        return False


def _digest(code: str) -> bytes:
    return sha256(f"palyra pairing {code}".encode()).digest()


class PairingDesk:
    def __init__(
        self, db: Database, clock: Clock, book: Book, posting: Posting, notices: Notices
    ) -> None:
        self._db = db
        self._clock = clock
        self._book = book
        self._posting = posting
        self._notices = notices

    def stranger(self, tx: Tx, place: ChatPlace, sender: Sender, message_id: str) -> str:
        """Give a stranger a code, unless they have one, in the step that refuses their message.
        Return what was done, in words.
        """
        connector = place.connector
        if people_rows.locked_until(tx, connector, sender.handle):
            return "no code was sent: the sender is locked out after too many wrong codes"
        people_rows.expire(tx)
        recent = people_rows.requests_of(tx, connector, sender.handle, tx.now_ms - CODES_MS)
        waiting = next((each for each in recent if each.state == "pending"), None)
        if waiting is not None:
            minutes = max(1, (waiting.expires_ms - tx.now_ms) // 60_000)
            return self._remind(
                tx,
                place,
                message_id,
                texts.still_pairing(minutes),
                "the sender has one that is still good",
            )
        if len(recent) >= MOST_CODES:
            return self._remind(
                tx,
                place,
                message_id,
                texts.NO_MORE_CODES,
                f"the sender had {MOST_CODES} in the last hour",
            )
        if len(people_rows.pending(tx, connector)) >= MOST_PENDING:
            return f"no code was sent: {MOST_PENDING} requests wait on this channel"
        code, pairing_id = _new_code(), self._clock.new_id()
        request = Pairing(
            pairing_id=pairing_id,
            connector=connector,
            kind="request",
            sender=sender.handle,
            display=sender.display,
            conversation=place.conversation,
            thread=place.thread,
            state="pending",
            created_ms=tx.now_ms,
            expires_ms=tx.now_ms + LIFE_MS,
        )
        told_at = self._record(tx, sender.handle, "requested", request)
        people_rows.add(tx, request, _digest(code), told_at)
        said = texts.pairing(code, LIFE_MS // 60_000)
        self._posting.post(tx, place, said, "pairing", reply_id=pairing_id, message_id=message_id)
        name = f"{sender.display} ({sender.handle})" if sender.display else sender.handle
        told = (
            f"{name} would like to talk to the agent on {connector}. Approve with the code they"
            " were sent, or in the console."
        )
        self._notices.telling("channel", f"pairing:{pairing_id}", told, "#/channels")(tx)
        return "a code was sent"

    def _remind(self, tx: Tx, place: ChatPlace, message_id: str, said: str, why: str) -> str:
        """Tell a stranger who writes again how it stands; one who goes on and on is told at most
        once a minute.
        """
        message = messages.get(tx, message_id)
        if messages.refused_lately(tx, message, "pairing_required", times=2):
            return f"no code was sent: {why}"
        self._posting.post(tx, place, said, "told", message_id=message_id)
        return f"no code was sent: {why}; they were told"

    def enter(self, tx: Tx, by: str, place: ChatPlace, sender: Sender, code: str) -> str:
        """`pair CODE` in a chat: the owner approves a request, anybody else uses an invitation.
        What to say to them.
        """
        connector = place.connector
        until = people_rows.locked_until(tx, connector, sender.handle)
        if until:
            minutes = max(1, -(-(until - tx.now_ms) // 60_000))
            return f"Too many wrong codes: try again in {minutes} minutes."
        found = people_rows.by_code(tx, _digest(normal(code)))
        if found is not None and found.kind == "request" and by == OWNER:
            people_rows.forgive(tx, connector, sender.handle)
            person = self._approve(tx, by, found, 0)
            return f"{person.display or person.sender} on {person.connector} is paired now."
        if found is not None and found.kind == "invitation" and found.connector == connector:
            people_rows.forgive(tx, connector, sender.handle)
            self._approve(tx, by, found, 0, sender=sender)
            return "Welcome: you are paired now. Write `help` to see what you can do, or just ask."
        left = people_rows.wrong_try(tx, connector, sender.handle, MOST_WRONG, LOCK_MS)
        if left:
            return (
                "This code is not good: it may be mistyped, used, too old or somebody else's."
                f" {left} tries are left."
            )
        self._record(tx, sender.handle, "locked", None, connector=connector, sender=sender.handle)
        told = (
            f"Somebody ({sender.handle}) entered {MOST_WRONG} wrong pairing codes on {connector}"
            " and is locked out for a while."
        )
        self._notices.telling(
            "channel",
            f"locked:{connector}:{sender.handle}:{tx.now_ms // LOCK_MS}",
            told,
            "#/channels",
        )(tx)
        return f"Too many wrong codes: try again in {LOCK_MS // 60_000} minutes."

    async def approve(self, by: str, code_or_id: str, *, for_ms: int = 0) -> Person:
        """The owner says yes, by the code that the stranger told them or by the request's id."""
        _only_owner(by)

        def step(tx: Tx) -> Person:
            return self._approve(tx, by, self._pending(tx, code_or_id), for_ms)

        return await self._db.write(step)

    async def deny(self, by: str, code_or_id: str) -> Pairing:
        _only_owner(by)

        def step(tx: Tx) -> Pairing:
            found = self._pending(tx, code_or_id)
            self._settle(tx, found, "denied", by)
            if found.kind == "request":
                self._tell(tx, found, "Your request was not accepted.")
            return people_rows.pairing(tx, found.pairing_id)

        return await self._db.write(step)

    async def invite(self, by: str, channel: str, *, for_ms: int = 0) -> Invitation:
        """A code for somebody to write on a channel; they are paired with it, for so long or
        without end.
        """
        _only_owner(by)
        self._book.get(channel)
        code, pairing_id = _new_code(), self._clock.new_id()

        def step(tx: Tx) -> Invitation:
            people_rows.expire(tx)
            made = Pairing(
                pairing_id=pairing_id,
                connector=channel,
                kind="invitation",
                state="pending",
                grant_ms=for_ms,
                created_ms=tx.now_ms,
                expires_ms=tx.now_ms + LIFE_MS,
            )
            people_rows.add(tx, made, _digest(code), self._record(tx, by, "invited", made))
            return Invitation(pairing_id, channel, f"{code[:4]}-{code[4:]}", made.expires_ms)

        return await self._db.write(step)

    async def revoke(self, by: str, channel: str, sender: str) -> Person:
        """Take back that somebody is paired. They are told, and what they write from now on is a
        stranger's.
        """
        _only_owner(by)

        def step(tx: Tx) -> Person:
            people_rows.get(tx, channel, sender)
            told = self._record(tx, by, "revoked", None, connector=channel, sender=sender)
            person = people_rows.revoke(tx, channel, sender, told)
            if person.conversation:
                self._posting.post(
                    tx,
                    ChatPlace(channel, person.conversation),
                    "You are no longer paired with this agent.",
                    "told",
                )
            return person

        return await self._db.write(step)

    async def link(self, by: str, channel: str, sender: str, principal: str) -> Person:
        """Say that a sender is a person of the daemon: from now on they act as that person. Empty:
        they are themselves again.
        """
        _only_owner(by)
        self._book.get(channel)
        if principal and not ids.check_principal(principal).startswith("user:"):
            raise InvalidInput("an identity is linked to a user, as user:owner or user:anna")

        def step(tx: Tx) -> Person:
            before = people_rows.find(tx, channel, sender)
            details: dict[str, Any] = {
                "connector": channel,
                "sender": sender,
                "before": before.principal if before else "",
            }
            action = "linked" if principal else "unlinked"
            told = self._record(tx, by, action, None, subject=principal, **details)
            return people_rows.link(tx, channel, sender, principal, told)

        return await self._db.write(step)

    async def pending(self) -> list[Pairing]:
        return await self._db.read(people_rows.pending)

    async def people(self, channel: str = "") -> list[Person]:
        return await self._db.read(partial(people_rows.listing, connector=channel))

    def _pending(self, tx: Tx, code_or_id: str) -> Pairing:
        if looks_like_code(code_or_id):
            found = people_rows.by_code(tx, _digest(normal(code_or_id)))
            if found is None:
                raise NotFound(
                    "no pairing waits for this code: it may be mistyped, used or older than ten"
                    " minutes"
                )
        else:
            found = people_rows.pairing(tx, code_or_id)
        if found.state != "pending" or found.expires_ms <= tx.now_ms:
            state = "expired" if found.state == "pending" else found.state
            raise Conflict(
                f"this pairing is {state} already: they can write again for a new code",
                pairing_id=found.pairing_id,
            )
        return found

    def _approve(
        self, tx: Tx, by: str, found: Pairing, for_ms: int, sender: Sender | None = None
    ) -> Person:
        if found.kind == "invitation" and sender is None:
            raise Conflict(
                "this is a code to be written in the chat by whom you invited: give it to them"
            )
        handle = sender.handle if sender is not None else found.sender
        life = for_ms or found.grant_ms
        told_at = self._settle(tx, found, "approved", by, handle)
        until_ms = tx.now_ms + life if life else 0
        person = people_rows.grant(tx, found.connector, handle, until_ms, by, told_at)
        if found.kind == "request":
            self._tell(
                tx, found, "You are paired now: write to me again. `help` says what you can do."
            )
        name = person.display or (sender.display if sender else "") or handle
        told = f"{name} ({handle}) is paired on {found.connector}."
        self._notices.telling("channel", f"paired:{found.pairing_id}", told, "#/channels")(tx)
        return person

    def _settle(
        self, tx: Tx, found: Pairing, state: PairingState, by: str, sender: str = ""
    ) -> int:
        people_rows.settle(tx, found.pairing_id, state, by, sender)
        return self._record(tx, by, state, people_rows.pairing(tx, found.pairing_id))

    def _tell(self, tx: Tx, found: Pairing, text: str) -> None:
        self._posting.post(
            tx, ChatPlace(found.connector, found.conversation, found.thread), text, "told"
        )

    def _record(
        self, tx: Tx, by: str, action: str, about: Pairing | None, subject: str = "", **details: Any
    ) -> int:
        """Append what was done, and return the position of that."""
        if about is not None:
            details |= {"connector": about.connector, "sender": about.sender, "kind": about.kind}
            subject = about.pairing_id
        principal = by if by.startswith(("user:", "channel:", "worker:", "system")) else "system"
        (entry,) = tape.append(
            tx,
            SYSTEM_TAPE,
            principal,
            [AdminChanged(what="pairing", action=action, subject=subject, details=details)],
        )
        return entry.position


def _new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def _only_owner(by: str) -> None:
    if by != OWNER:
        raise Forbidden("only the owner admits people")
