"""Webhooks: a signed call from outside fires a schedule. Whoever cannot sign learns nothing, and no
call counts twice.

What a call brings is untrusted: it goes to the model as an attached file with that label, never as
words of the owner.
"""

import hmac
from hashlib import sha256

from msgspec import Struct

from palyra.core.errors import Conflict, InvalidInput, PalyraError, Unauthenticated
from palyra.features.references.attachments import Attachments
from palyra.features.schedules import rows, steps
from palyra.features.schedules.model import Firing, HookTrigger, Schedule
from palyra.features.schedules.scheduler import Scheduler
from palyra.features.schedules.service import HOOK_TOOL, hook_secret
from palyra.features.vault.service import Vault
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock

MOST_BYTES = 64 << 10
# How far a caller's clock may be off; a call is remembered for longer than its time stamp is taken.
SKEW_MS = 5 * 60_000
_LONGEST_STAMP = 12


class Called(Struct, frozen=True):
    schedule_id: str
    due_ms: int
    state: str


class Hooks:
    def __init__(
        self,
        db: Database,
        scheduler: Scheduler,
        attachments: Attachments,
        vault: Vault,
        clock: Clock,
    ) -> None:
        self._db = db
        self._scheduler = scheduler
        self._attachments = attachments
        self._vault = vault
        self._clock = clock

    async def call(self, schedule_id: str, timestamp: str, signature: str, body: bytes) -> Called:
        """`signature`: `sha256=` and the hexadecimal HMAC-SHA256, by the schedule's secret, of time
        stamp, dot and body.
        """
        schedule = await self._signed(schedule_id, timestamp, signature, body)
        digest = sha256(signature.encode()).digest()
        # Looked at before anything is kept of it, and again in the step: whoever repeats a call
        # leaves nothing behind.
        if await self._db.read(lambda tx: rows.was_called(tx, schedule_id, digest)):
            raise _taken(schedule_id)
        artifact = session_id = ""
        if body.strip():
            # A schedule with a session for each firing cannot know the firing yet: what came
            # belongs to the moment it came.
            session_id = (
                await self._scheduler.session_for(schedule, self._clock.now_ms())
            ).session_id
            try:
                artifact = (
                    await self._attachments.keep(schedule.owner, session_id, "webhook", body)
                ).artifact
            except InvalidInput as error:
                raise InvalidInput(f"the body cannot be taken: {error.message}") from error

        def step(tx: Tx) -> Firing:
            now = rows.find(tx, schedule_id)
            if now is None or now.state != "active":
                raise Unauthenticated(_REFUSED)
            if not rows.note_call(tx, schedule_id, digest, 2 * SKEW_MS):
                raise _taken(schedule_id)
            return steps.happened(tx, now, "called", artifact=artifact, session_id=session_id)

        firing = await self._db.write(step)
        return Called(schedule_id, firing.due_ms, firing.state)

    async def _signed(
        self, schedule_id: str, timestamp: str, signature: str, body: bytes
    ) -> Schedule:
        """One refusal for everything: who cannot sign does not learn which schedules there are."""
        schedule = await self._db.read(lambda tx: rows.find(tx, schedule_id))
        known = (
            schedule is not None
            and isinstance(schedule.trigger, HookTrigger)
            and schedule.state == "active"
        )
        key = "nobody's"
        if schedule is not None and known:
            try:
                key = await self._vault.resolve(
                    f"vault:global/{hook_secret(schedule_id)}",
                    principal=schedule.owner,
                    session="",
                    tool=HOOK_TOOL,
                )
            except PalyraError:
                known = False
        expected = sign(key, timestamp, body)
        same = hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))
        # Python does not read a number of some thousand digits.
        number = (
            int(timestamp)
            if len(timestamp) <= _LONGEST_STAMP and timestamp.isascii() and timestamp.isdecimal()
            else 0
        )
        fresh = abs(number * 1000 - self._clock.now_ms()) <= SKEW_MS
        if schedule is None or not (known and same and fresh):
            raise Unauthenticated(_REFUSED)
        return schedule


def sign(key: str, timestamp: str, body: bytes) -> str:
    return (
        "sha256="
        + hmac.new(
            key.encode(), timestamp.encode("utf-8", "replace") + b"." + body, sha256
        ).hexdigest()
    )


def _taken(schedule_id: str) -> Conflict:
    return Conflict(
        "this call was taken before: a new one needs its own time stamp", schedule_id=schedule_id
    )


_REFUSED = (
    "this call is not signed for an active webhook: send x-palyra-timestamp (seconds, at most five"
    " minutes off) and x-palyra-signature (sha256= and the HMAC-SHA256 of the time stamp, a dot and"
    " the body)"
)
