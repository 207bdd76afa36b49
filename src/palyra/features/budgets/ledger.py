"""Spent and reserved amounts by account, in memory. The spent amount always equals the journal's
usage, to the token.

An account is read from the journal when it is first needed, and from then on grows with every
commit. A reservation is in memory only. If the process dies with it, the next one finds on the tape
what was sent and never answered, and counts that as spent.
"""

import asyncio
from functools import partial

from palyra.core.budgets import Every, Key, Per, Spender, Unit, account_of, period_end
from palyra.store import usage
from palyra.store.database import Database
from palyra.store.usage import Spent, UsageFilter

_MOST_ACCOUNTS = 4_096


class Account:
    __slots__ = ("held_microusd", "held_tokens", "loading", "microusd", "missed", "tokens", "upto")

    def __init__(self) -> None:
        self.tokens = 0
        self.microusd = 0
        # Everything up to this position is in the two above.
        self.upto = 0
        self.held_tokens = 0
        self.held_microusd = 0
        self.loading: asyncio.Task[None] | None = None
        # What was committed while the account was being read.
        self.missed: list[Spent] = []

    def spent(self, unit: Unit) -> int:
        return self.tokens if unit == "tokens" else self.microusd

    def held(self, unit: Unit) -> int:
        return self.held_tokens if unit == "tokens" else self.held_microusd

    def add(self, new: Spent) -> None:
        if self.loading is not None:
            self.missed.append(new)
        elif new.position > self.upto:
            self.tokens += new.tokens
            self.microusd += new.microusd
            self.upto = new.position


class LedgerReservation:
    """Reservation of one call, in every account that it counts for."""

    __slots__ = ("accounts", "microusd", "tokens")

    def __init__(self, accounts: tuple[Account, ...], tokens: int, microusd: int) -> None:
        self.accounts = accounts
        self.tokens = tokens
        self.microusd = microusd
        for account in accounts:
            account.held_tokens += tokens
            account.held_microusd += microusd

    def release(self) -> None:
        for account in self.accounts:
            account.held_tokens -= self.tokens
            account.held_microusd -= self.microusd
        self.accounts = ()


class Ledger:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._accounts: dict[Key, Account] = {}
        # Which kinds of accounts there have been: what is committed is counted in those of its
        # spender.
        self._kinds: set[tuple[Per, Every]] = set()

    def peek(self, key: Key) -> Account | None:
        """An account that is in memory, complete."""
        found = self._accounts.get(key)
        return found if found is not None and found.loading is None else None

    def keeps(self, key: Key, account: Account) -> bool:
        """Return whether this is the account that others see."""
        return self._accounts.get(key) is account

    def begin(self, key: Key) -> Account:
        """The account of somebody who has spent nothing so far: there is nothing to be read."""
        found = self._accounts.get(key)
        if found is None:
            self._forget_some()
            self._kinds.add((key.per, key.every))
            found = self._accounts[key] = Account()
        return found

    async def account(self, key: Key) -> Account:
        found = self._accounts.get(key)
        if found is None:
            self._forget_some()
            self._kinds.add((key.per, key.every))
            found = self._accounts[key] = Account()
            found.loading = asyncio.create_task(self._load(key, found))
            # It may fail when nobody waits any more.
            found.loading.add_done_callback(lambda done: done.cancelled() or done.exception())
        if found.loading is not None:
            await asyncio.shield(found.loading)
        return found

    async def _load(self, key: Key, account: Account) -> None:
        try:
            spent = await self._db.read(partial(usage.spent, asked=asked(key)))
        except BaseException:
            self._accounts.pop(key, None)
            raise
        account.tokens, account.microusd, account.upto = (
            spent.tokens,
            spent.microusd,
            spent.position,
        )
        account.loading = None
        missed, account.missed = account.missed, []
        for each in missed:
            account.add(each)

    def add(self, spender: Spender, time_ms: int, new: Spent) -> None:
        """Add a committed entry. An account that is not in memory reads it when it is needed."""
        for per, every in self._kinds:
            key = account_of(per, every, spender, time_ms)
            account = self._accounts.get(key) if key is not None else None
            if account is not None:
                account.add(new)

    def _forget_some(self) -> None:
        """Drop accounts without reservations: everything else can be read again."""
        if len(self._accounts) >= _MOST_ACCOUNTS:
            kept = {
                key: each
                for key, each in self._accounts.items()
                if each.held_tokens or each.loading is not None
            }
            self._accounts = kept


def asked(key: Key) -> UsageFilter:
    """The usage that an account holds."""
    until_ms = period_end(key.every, key.since_ms) or 1 << 53
    who = {
        "all": Spender(),
        "principal": Spender(principal=key.who),
        "session": Spender(session_id=key.who),
        "schedule": Spender(schedule_id=key.who),
        "run": Spender(run_id=key.who),
    }[key.per]
    return UsageFilter(
        principal=who.principal,
        session_id=who.session_id,
        run_id=who.run_id,
        schedule_id=who.schedule_id,
        since_ms=key.since_ms,
        until_ms=until_ms,
    )
