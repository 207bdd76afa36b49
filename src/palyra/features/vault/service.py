"""The vault: secrets by scope and name, sealed at rest, handed out at execution only, and known to
the redactor while they exist.

Memory and disk change together or not at all: a change is carried to its end even if whoever asked
for it goes away, and after one that failed everything is read again.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from palyra.core.errors import Conflict, Forbidden, InvalidInput, NotFound, PalyraError, Unavailable
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.signals import Signal
from palyra.features.vault import rows as vault_rows
from palyra.features.vault import rules
from palyra.features.vault.keys import KeySource, Sealing, Unopened
from palyra.features.vault.rows import Secret, SecretReference
from palyra.features.vault.rules import NewSecret
from palyra.store import sessions, tape
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

T = TypeVar("T")
_DATA_KEY = b"palyra vault data key"
_USED_EVERY_MS = 60_000

log = logging.getLogger("palyra.vault")


class VaultState(Struct, frozen=True):
    """`why` says why it is locked and what to do."""

    state: Literal["empty", "open", "locked"]
    why: str
    secrets: list[Secret]


class _Place(NamedTuple):
    scope: str
    name: str


@dataclass(frozen=True, repr=False)
class _Held:
    secret: Secret
    value: str | None  # None: it cannot be read


@dataclass(frozen=True, repr=False)
class _Keys:
    master: bytes
    sealing: Sealing
    wrapped: bytes


class Vault:
    def __init__(self, db: Database, redactor: Redactor, clock: Clock, source: KeySource) -> None:
        self._db = db
        self._redactor = redactor
        self._clock = clock
        self._source = source
        self._held: dict[_Place, _Held] = {}
        self._keys: _Keys | None = None
        self._locked = ""
        self._stale = False
        self._changing = asyncio.Lock()
        self._working: set[asyncio.Task[Any]] = set()
        # Told the name of a secret that has another value now.
        self.on_change = Signal[[str]]("a changed secret")

    async def open(self) -> None:
        """Read what is stored and let the redactor know the values. A vault that cannot be opened
        stays locked and says why.
        """
        async with self._changing:
            await self._load()

    async def close(self) -> None:
        await asyncio.gather(*self._working, return_exceptions=True)

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"the vault is locked: {self._locked}",) if self._locked else ()

    async def look(self, principal: str) -> VaultState:
        """The secrets that a principal may know of, without their values."""
        await self._fresh()
        mine = f"principal:{principal}"
        shown = [
            msgspec.structs.replace(held.secret, readable=held.value is not None)
            for place, held in sorted(self._held.items())
            if place.scope == mine or not place.scope.startswith("principal:")
        ]
        return VaultState(
            "locked" if self._locked else "open" if self._keys else "empty", self._locked, shown
        )

    def allowed_for(
        self,
        reference: str,
        host: str | None,
        *,
        principal: str,
        tool: str = "",
        channel: str = "",
        skill: str = "",
    ) -> bool:
        """Return whether `resolve` would hand the secret out for this host, as far as its own
        restrictions say.
        """
        try:
            held = self._find(vault_rows.parse(reference), rules.reach(principal, channel, skill))
            rules.check_use(held.secret, tool, host)
        except PalyraError:
            return False
        return held.value is not None

    async def resolve(
        self,
        reference: str,
        *,
        principal: str,
        session: str,
        tool: str,
        host: str | None = None,
        skill: str = "",
    ) -> str:
        """The value behind `vault:NAME` or `vault:SCOPE/NAME`, for a call that is being executed
        and for nothing else.
        """
        wanted = vault_rows.parse(reference)
        await self._fresh()
        channel = (
            await self._channel_of(session, principal) if self._channel_matters(wanted) else ""
        )
        held = self._find(wanted, rules.reach(principal, channel, skill))
        rules.check_use(held.secret, tool, host)
        if held.value is None:
            self._check_open()
            raise Conflict(
                f"the secret {held.secret.label} cannot be read, its row was damaged or changed:"
                " remove it and set it again"
            )
        self._note_use(held)
        return held.value

    def _find(self, wanted: SecretReference, reach: dict[str, str]) -> _Held:
        """The secret in the narrowest scope that the asker has. What belongs to others is refused
        whether it exists or not.
        """
        kind, _, whose = wanted.scope.partition(":")
        if kind and (kind not in reach or (whose and reach[kind] != wanted.scope)):
            raise Forbidden(
                f"secrets of the scope {wanted.scope} are not for this call", name=wanted.name
            )
        for scope in [reach[kind]] if kind else reach.values():
            held = self._held.get(_Place(scope, wanted.name))
            if held is not None:
                return held
        raise NotFound(
            f"there is no secret {wanted.name} here: `palyra vault set {wanted.name}` stores it",
            name=wanted.name,
        )

    def _channel_matters(self, wanted: SecretReference) -> bool:
        return wanted.scope.partition(":")[0] in ("", "channel") and any(
            place.name == wanted.name and place.scope.startswith("channel:") for place in self._held
        )

    async def _channel_of(self, session_id: str, principal: str) -> str:
        return (
            (await self._db.read(lambda tx: sessions.get(tx, session_id, principal))).channel
            if session_id
            else ""
        )

    def _note_use(self, held: _Held) -> None:
        now, secret = self._clock.now_ms(), held.secret
        if now - secret.used_ms > _USED_EVERY_MS:
            self._held[_Place(secret.scope, secret.name)] = _Held(
                msgspec.structs.replace(secret, used_ms=now), held.value
            )
            self._db.write(lambda tx: vault_rows.used(tx, secret))

    async def put(self, by: str, new: NewSecret) -> Secret:
        """Store a secret, also in place of the one that has its name."""
        place = self._place(by, new.scope, new.name)
        hosts = None if new.hosts is None else tuple(map(rules.host, new.hosts))
        tools = None if new.tools is None else tuple(map(rules.tool, new.tools))
        if self._redactor.find(new.name):
            raise InvalidInput(
                "this name looks like a secret itself: it would be shown; the value goes where it"
                " is asked for"
            )

        async def change() -> Secret:
            before = self._trusted(place)
            hosts_then, tools_then = (before.hosts, before.tools) if before else ((), ())
            return await self._store(
                by,
                "set",
                place,
                new.value,
                hosts_then if hosts is None else hosts,
                tools_then if tools is None else tools,
            )

        stored = await self._whole(change)
        await self._tell(new.name)
        return stored

    async def _tell(self, name: str) -> None:
        await self.on_change.send_and_wait(name)

    async def rotate(self, by: str, scope: str, name: str, value: str) -> Secret:
        """Give a secret another value; where it may be used stays as it is."""
        place = self._place(by, scope, name)

        async def change() -> Secret:
            before = self._trusted(place)
            if before is None:
                raise _missing(place)
            return await self._store(by, "rotated", place, value, before.hosts, before.tools)

        stored = await self._whole(change)
        await self._tell(name)
        return stored

    async def remove(self, by: str, scope: str, name: str) -> None:
        """Remove a secret. That needs no key, so that a vault whose key is lost can be emptied and
        begun anew.
        """
        place = self._place(by, scope, name)

        async def change() -> None:
            held = self._held.get(place)
            if held is None:
                raise _missing(place)
            event = AdminChanged(what="secret", action="removed", subject=held.secret.label)

            def step(tx: Tx) -> None:
                vault_rows.remove(tx, held.secret)
                tape.append(tx, SYSTEM_TAPE, by, [event])

            await self._commit(step)
            del self._held[place]
            if not self._held:
                self._keys, self._locked = None, ""

        await self._whole(change)

    async def rotate_key(self, by: str) -> int:
        """Seal everything anew, in one transaction, under a data key and a master key that nobody
        has seen; how many that were.
        """

        async def change() -> int:
            self._check_open()
            old = self._keys
            if old is None:
                raise Conflict("the vault is empty: there is no key to rotate yet")
            unreadable = [held.secret.label for held in self._held.values() if held.value is None]
            if unreadable:
                raise Conflict(
                    f"{', '.join(unreadable)} cannot be read: remove it first, or it would be lost"
                    " without a word"
                )
            new = await asyncio.to_thread(self._next_keys, old)

            def step(tx: Tx) -> int:
                rows = vault_rows.stored(tx)
                for secret, sealed in rows:
                    vault_rows.reseal(
                        tx,
                        secret,
                        new.sealing.seal(old.sealing.open(sealed, secret.bound), secret.bound),
                    )
                vault_rows.put_wrapped_key(tx, new.wrapped)
                event = AdminChanged(
                    what="secret",
                    action="rotated",
                    subject="master key",
                    details={"secrets": len(rows)},
                )
                tape.append(tx, SYSTEM_TAPE, by, [event])
                return len(rows)

            count = await self._commit(step)
            self._keys = new
            await asyncio.to_thread(self._source.settle, new.master)
            return count

        return await self._whole(change)

    async def _store(
        self,
        by: str,
        action: str,
        place: _Place,
        value: str,
        hosts: tuple[str, ...],
        tools: tuple[str, ...],
    ) -> Secret:
        rules.check_value(value, (*place, *hosts, *tools))
        first = None if self._keys else await asyncio.to_thread(self._first_keys)
        keys = self._keys or first
        assert keys is not None
        now, before = self._clock.now_ms(), self._held.get(place)
        created_ms, used_ms = (
            (before.secret.created_ms, before.secret.used_ms) if before else (now, 0)
        )
        secret = Secret(*place, rules.size(value), hosts, tools, created_ms, now, used_ms)
        sealed = keys.sealing.seal(value.encode(), secret.bound)
        limits = {"hosts": list(hosts), "tools": list(tools)}
        event = AdminChanged(
            what="secret",
            action=action,
            subject=secret.label,
            details={k: v for k, v in limits.items() if v},
        )

        def step(tx: Tx) -> None:
            if first is not None:
                vault_rows.put_wrapped_key(tx, first.wrapped)
            vault_rows.put(tx, secret, sealed)
            tape.append(tx, SYSTEM_TAPE, by, [event])

        await self._commit(step, value)
        self._held[place] = _Held(secret, value)
        if first is not None:
            self._keys = first
            await asyncio.to_thread(self._source.settle, first.master)
        return secret

    async def _whole(self, change: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Make a change, one at a time and to its end."""

        async def alone() -> T:
            async with self._changing:
                if self._stale or self._locked:
                    await self._load()
                try:
                    return await change()
                finally:
                    if not self._stale:
                        self._redactor.learn(self._values())

        task = asyncio.ensure_future(alone())
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return await asyncio.shield(task)

    async def _commit(self, step: Callable[[Tx], T], value: str = "") -> T:
        # Known before it is stored: nothing may see it unredacted in between.
        self._redactor.learn([*self._values(), value])
        try:
            return await self._db.write(step)
        except BaseException:
            self._stale = True
            raise

    async def _fresh(self) -> None:
        if self._stale or self._locked:
            await self.open()

    async def _load(self) -> None:
        wrapped, rows = await self._db.read(
            lambda tx: (vault_rows.wrapped_key(tx), vault_rows.stored(tx))
        )
        said, self._locked, self._keys = self._locked, "", None
        if wrapped is not None:
            try:
                self._keys = await asyncio.to_thread(self._unlock, wrapped)
            except PalyraError as error:
                self._locked = error.message
        elif rows:
            self._locked = (
                "the journal holds secrets but not their key: restore it from a backup, or remove"
                " the secrets"
            )
        if self._locked and self._locked != said:
            log.warning("the vault is locked: %s", self._locked)
        self._held = {
            _Place(secret.scope, secret.name): _Held(secret, self._opened(secret, sealed))
            for secret, sealed in rows
        }
        self._stale = False
        if not self._locked:
            self._redactor.learn(self._values())

    def _opened(self, secret: Secret, sealed: bytes) -> str | None:
        if self._keys is None:
            return None
        try:
            return self._keys.sealing.open(sealed, secret.bound).decode()
        except Unopened:
            log.warning(
                "the secret %s cannot be read, its row was damaged or changed: remove it and set it"
                " again",
                secret.label,
            )
            return None

    def _unlock(self, wrapped: bytes) -> _Keys:
        candidates = self._source.candidates()
        for master in candidates:
            try:
                data = Sealing(master).open(wrapped, _DATA_KEY)
            except Unopened:
                continue
            self._source.settle(master)
            return _Keys(master, Sealing(data), wrapped)
        where = self._source.describe()
        if not candidates:
            raise Unavailable(
                f"{where} is missing or damaged: put it back from a backup, or remove all secrets"
                " and set them again"
            )
        raise Unavailable(
            f"{where} belongs to another vault: put the right one back, or remove all secrets and"
            " set them again"
        )

    def _first_keys(self) -> _Keys:
        # A key that is there already may be all that opens a backup: it is used, never replaced.
        candidates = self._source.candidates()
        return _made(candidates[0] if candidates else self._source.stage())

    def _next_keys(self, old: _Keys) -> _Keys:
        # First nothing but the old key may be there: staging would write over the only good one.
        self._source.settle(old.master)
        return _made(self._source.stage())

    def _check_open(self) -> None:
        if self._locked:
            raise Unavailable(f"the vault is locked: {self._locked}")

    def _values(self) -> Iterable[str]:
        return [held.value for held in self._held.values() if held.value is not None]

    def _trusted(self, place: _Place) -> Secret | None:
        """Return the stored secret. What is said of one whose seal is broken may have been changed
        with it.
        """
        self._check_open()
        held = self._held.get(place)
        if held is not None and held.value is None:
            raise Conflict(
                f"the secret {held.secret.label} cannot be read, so nothing said of it can be"
                " trusted: remove it first"
            )
        return held.secret if held else None

    def _place(self, by: str, scope: str, name: str) -> _Place:
        kind, _, whose = vault_rows.check_scope(scope).partition(":")
        if kind == "principal":
            if whose and whose != by:
                raise Forbidden(
                    "a principal's secrets are its own: nobody else can see or change them"
                )
            whose = by
        elif kind != "global" and not whose:
            raise InvalidInput(f"say which {kind}: {kind}:NAME")
        return _Place(f"{kind}:{whose}" if whose else kind, vault_rows.check_name(name))


def _made(master: bytes) -> _Keys:
    data = os.urandom(32)
    return _Keys(master, Sealing(data), Sealing(master).seal(data, _DATA_KEY))


def _missing(place: _Place) -> NotFound:
    return NotFound(
        f"there is no secret {place.name} in the scope {place.scope}: see `palyra vault list`"
    )
