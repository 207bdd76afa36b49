"""Authentication: tokens, browser sessions and login links. A token is random, shown once, and kept
only as its digest.

Every valid token is known in memory, so that checking one costs no query and revoking one takes
effect at once.

Wrong credentials, for the tape: by address, at most one entry a minute for each, and never the
credential.

Anybody can send wrong ones, so what they leave behind is bounded: many addresses in one minute are
one entry.
"""

import asyncio
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from msgspec import Struct

from palyra.agent.approval_steps import Answer as ApprovalAnswer
from palyra.api.limits import Failures
from palyra.core.errors import Forbidden, InvalidInput, LimitExceeded, Unauthenticated
from palyra.core.events import AccessRefused, AccessWidened, AdminChanged
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.core.input_checks import check_line
from palyra.core.signals import Signal
from palyra.store import tape, tokens
from palyra.store.database import Database, Tx
from palyra.store.tokens import Token, TokenScope
from palyra.system.clock import Clock

_AUTH_FAILURE_LOG_MOST_ADDRESSES = 32


class AuthFailureLog:
    def __init__(
        self, record: Callable[[list[AccessRefused]], object], *, every_s: float = 60.0
    ) -> None:
        self._record = record
        self._every_s = every_s
        # Attempts by address since its last entry. Who is here had one less than a minute ago.
        self._since: dict[str, int] = {}
        self._timer: asyncio.TimerHandle | None = None

    def note(self, address: str) -> None:
        if address in self._since:
            self._since[address] += 1
        elif len(self._since) < _AUTH_FAILURE_LOG_MOST_ADDRESSES:
            self._since[address] = 0
            self._record([AccessRefused(address=address, attempts=1)])
        else:
            self._since[""] = self._since.get("", 0) + 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._look)

    def close(self) -> None:
        """Tell what was counted."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._tell()

    def _look(self) -> None:
        self._timer = None
        # Who came again is counted for another minute; who did not is forgotten.
        self._since = dict.fromkeys(self._tell(), 0)
        if self._since:
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._look)

    def _tell(self) -> list[str]:
        again = [(address, attempts) for address, attempts in self._since.items() if attempts]
        if again:
            self._record(
                [AccessRefused(address=address, attempts=attempts) for address, attempts in again]
            )
        self._since = {}
        return [address for address, _ in again]


PREFIX = "plr_"
LOGIN_MS = 10 * 60_000
BROWSER_MS = 30 * 24 * 3_600_000
_USED_EVERY_MS = 60_000
_MOST_CODES = 64
_LONGEST_NAME = 100
_BROWSER = "browser"
_MOST_ADDRESSES = 64
# The daemon itself, looking at its own token's file.
LOCAL = "local"
_HERE = frozenset({LOCAL, "127.0.0.1", "::1", "unknown"})
# A scope includes what those below it may do. Connectors and workers have surfaces of their own; a
# client gets the routes that are marked for it, and no others.
_RANK: dict[TokenScope, int] = {
    "owner": 3,
    "operator": 2,
    "viewer": 1,
    "client": 0,
    "connector": 0,
    "worker": 0,
}


def allows(scope: TokenScope, needed: TokenScope) -> bool:
    return _RANK[scope] >= _RANK[needed]


def check_standing(token: Token, answer: ApprovalAnswer) -> None:
    """Raise Forbidden for an answer that holds for good, unless an owner gives it."""
    if answer.scope == "always" and token.scope != "owner":
        raise Forbidden(
            "only an owner's token may allow something permanently: answer once, for the session,"
            " or for a time"
        )


def digest_of(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()


class _Code(Struct, frozen=True):
    principal: str
    expires_ms: int


class Access:
    def __init__(self, db: Database, clock: Clock, redact: Callable[[str], str]) -> None:
        self._db = db
        self._clock = clock
        self._redact = redact
        self._tokens: dict[bytes, Token] = {}
        # The id of the token that the command line on this machine has by itself.
        self.local = ""
        self._codes: dict[bytes, _Code] = {}
        self._used_ms: dict[str, int] = {}
        self._failures = Failures()
        self._refusals = AuthFailureLog(self._refused)
        self._recording: asyncio.Future[Any] | None = None
        # Addresses beyond this machine, by token, that the tape knows of.
        self._seen: dict[str, set[str]] = {}
        # Told the token's id when it stops being good, so that what was opened with it can be
        # closed.
        self.on_revoked = Signal[[str]]("a revoked token")

    async def open(self) -> None:
        self._tokens = dict(await self._db.read(tokens.valid))
        for token_id, address in await self._db.read(tokens.addresses):
            self._seen.setdefault(token_id, set()).add(address)

    async def close(self) -> None:
        """Wait until what was counted is on the tape."""
        self._refusals.close()
        if self._recording is not None:
            await asyncio.wait([self._recording])

    def has_others(self) -> bool:
        """Return whether somebody made a token, beside the command line's here and what browsers
        have.
        """
        return any(
            token.token_id != self.local and token.name != _BROWSER
            for token in self._tokens.values()
        )

    def knows(self, secret: str) -> bool:
        """Return whether there is such a token, without anything that follows from asking."""
        return digest_of(secret) in self._tokens

    def identify(self, secret: str, address: str) -> Token:
        """The token behind a secret, or Unauthenticated that says what to do; `address` is where
        the caller sits.
        """
        digest = digest_of(secret)
        token = self._tokens.get(digest)
        if token is None:
            self._refuse(address, digest)
            raise Unauthenticated(
                "this token is not valid: it is mistyped, or it was revoked; see `palyra token"
                " create`"
            )
        now = self._clock.now_ms()
        if 0 < token.expires_ms <= now:
            del self._tokens[digest]
            self.on_revoked.send(token.token_id)
            self._refuse(address, digest)
            raise Unauthenticated(
                "this token has expired: log in again, or see `palyra token create`"
            )
        if now - self._used_ms.get(token.token_id, 0) > _USED_EVERY_MS:
            self._used_ms[token.token_id] = now
            self._db.write(lambda tx: tokens.used(tx, token.token_id))
        if address not in _HERE and address not in self._seen.get(token.token_id, ()):
            self._widen(token, address)
        return token

    def _widen(self, token: Token, address: str) -> None:
        """Record, once for each, that a token is used from an address that is new for it."""
        seen = self._seen.setdefault(token.token_id, set())
        if len(seen) >= _MOST_ADDRESSES:
            seen.clear()
        seen.add(address)
        event = AccessWidened(token_id=token.token_id, address=address)

        def step(tx: Tx) -> None:
            if tokens.seen_from(tx, token.token_id, address, most=_MOST_ADDRESSES):
                tape.append(tx, SYSTEM_TAPE, token.principal, [event])

        self._db.write(step)

    def _refuse(self, address: str, digest: bytes) -> None:
        if address != LOCAL:
            self._refusals.note(address)
        self._failures.note(address, digest)

    def _refused(self, events: list[AccessRefused]) -> None:
        self._recording = self._db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, SYSTEM, events))

    async def mint(
        self,
        by: str,
        name: str,
        scope: TokenScope,
        *,
        principal: str,
        expires_ms: int = 0,
        workspace: str = "",
    ) -> tuple[str, Token]:
        """A new token and its secret, which is known to nobody else from now on."""
        check_line("name", name)
        name = self._redact(name).strip()
        if not name or len(name) > _LONGEST_NAME:
            raise InvalidInput(
                f"a token needs a name of at most {_LONGEST_NAME} characters, so that it can be"
                " told from others"
            )
        now = self._clock.now_ms()
        if expires_ms and expires_ms <= now:
            raise InvalidInput(
                "expires_ms lies in the past; it is a time in milliseconds since 1970, 0 for never"
            )
        secret = PREFIX + secrets.token_urlsafe(32)
        digest = digest_of(secret)
        token = Token(
            self._clock.new_id(), name, principal, scope, now, expires_ms, workspace=workspace
        )
        details: dict[str, Any] = {"name": name, "scope": scope, "principal": principal}
        details |= {"workspace": workspace} if workspace else {}
        details |= {"expires_ms": expires_ms} if expires_ms else {}
        event = AdminChanged(
            what="token", action="created", subject=token.token_id, details=details
        )

        def step(tx: Tx) -> None:
            (entry,) = tape.append(tx, SYSTEM_TAPE, by, [event])
            tokens.add(tx, token, digest, entry.position)

        await self._db.write(step)
        self._tokens[digest] = token
        return secret, token

    async def revoke(self, by: str, token_id: str) -> Token:
        event = AdminChanged(what="token", action="revoked", subject=token_id)

        def step(tx: Tx) -> Token:
            before = tokens.get(tx, token_id)
            if before.revoked_ms:
                return before
            (entry,) = tape.append(tx, SYSTEM_TAPE, by, [event])
            return tokens.revoke(tx, token_id, entry.position)

        # Forgotten first: nobody gets in with it while the step is on its way to the disk.
        kept, self._tokens = (
            self._tokens,
            {digest: token for digest, token in self._tokens.items() if token.token_id != token_id},
        )
        try:
            revoked = await self._db.write(step)
        except BaseException:
            self._tokens = {**kept, **self._tokens}
            raise
        self._used_ms.pop(token_id, None)
        self.on_revoked.send(token_id)
        return revoked

    async def listing(self) -> list[Token]:
        return await self._db.read(tokens.listing)

    def login_code(self, principal: str) -> str:
        """A code that opens one browser session, once, within ten minutes."""
        now = self._clock.elapsed_ms()
        self._codes = {
            digest: code for digest, code in self._codes.items() if code.expires_ms > now
        }
        if len(self._codes) >= _MOST_CODES:
            raise LimitExceeded(
                f"{_MOST_CODES} login links are waiting to be used: use one, or wait ten minutes"
            )
        code = secrets.token_urlsafe(32)
        self._codes[digest_of(code)] = _Code(principal, now + LOGIN_MS)
        return code

    async def redeem(self, code: str, address: str) -> tuple[str, Token]:
        """A browser session for a login code, which is then used up."""
        digest = digest_of(code)
        found = self._codes.pop(digest, None)
        # A clock that is set back must not make a link live longer.
        if found is None or found.expires_ms <= self._clock.elapsed_ms():
            self._refuse(address, digest)
            raise Unauthenticated(
                "this login link was used already or is older than ten minutes: get a new one with"
                " `palyra up`"
            )
        return await self.mint(
            found.principal,
            _BROWSER,
            "owner",
            principal=found.principal,
            expires_ms=self._clock.now_ms() + BROWSER_MS,
        )
