"""Keeping models within what they may cost: reserve before a call, settle with what the tape says,
let go in any case.

The rule: a call goes out only if every limit that it counts for has room for the most it can use
beside what others have reserved. Only a call that is alone before a limit may begin with too little
room left, so a limit is never passed by more than one call.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from palyra.agent.turn_cost import BudgetQuestion, Reservation
from palyra.core.budgets import (
    Key,
    Limit,
    Spender,
    Terms,
    amount,
    check,
    described,
    key_of,
    period_end,
    period_name,
)
from palyra.core.errors import Conflict, NotFound, PalyraError
from palyra.core.events import BudgetAsked, ModelFailed, ModelReplied, ModelUsed, SessionCompacted
from palyra.features.budgets import rows as stored
from palyra.features.budgets.ledger import Account, Ledger, LedgerReservation
from palyra.features.notices.service import Notices
from palyra.models.prices import Prices
from palyra.models.routing_plan import Target
from palyra.store.database import Appended, Database
from palyra.store.usage import Spent
from palyra.system.clock import Clock

log = logging.getLogger("palyra.budgets")

# Of a reply, when a budget has to be kept and nothing else is configured.
MOST_OUTPUT = 16_384
# How far a yes to going on reaches, as a part of the limit.
_TRANCHE = 10
# Counting by characters may be too low by this much; what a provider reports corrects it upwards.
_COUNT_ERROR = 1.25
_MOST_ERROR = 4.0
_MOST_TOLD = 10_000
# Those that were asked for longest ago are forgotten first: their calls have long been settled.
_MOST_SPENDERS = 4_096
_BILLED = (ModelReplied, ModelFailed, ModelUsed, SessionCompacted)
_ENDS = ("run.completed", "run.failed", "run.cancelled")


@dataclass(frozen=True)
class BudgetSettings:
    """`most_output`: so many tokens an answer may have where nothing else limits it."""

    limits: Sequence[Limit]
    most_output: int


class BudgetSpent(PalyraError):
    """A limit is used up and nobody is to be asked."""

    code = "budget_spent"


class BudgetState(Struct, frozen=True, kw_only=True):
    """A limit and one account that is held against it. `until_ms` is when it begins anew, 0 for
    never.
    """

    name: str
    source: str
    terms: Terms
    says: str
    who: str
    period: str
    until_ms: int
    unit: str
    limit: int
    spent: int
    reserved: int
    left: int


class BudgetService:
    def __init__(
        self,
        db: Database,
        prices: Prices,
        notices: Notices,
        clock: Clock,
        *,
        most_output: int = MOST_OUTPUT,
        limits: Sequence[Limit] = (),
    ) -> None:
        """`limits` are those of the configuration."""
        self._db = db
        self.prices = prices
        self._notices = notices
        self._clock = clock
        self._most_output = most_output
        self._configured = tuple(limits)
        self._set: tuple[Limit, ...] = ()
        self.limits: tuple[Limit, ...] = self._configured
        self.ledger = Ledger(db)
        self._holds: dict[str, LedgerReservation] = {}
        # Whose calls are whose, by run: what commits is counted for them, also after a call was
        # given up.
        self._spenders: dict[str, Spender] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._told: set[str] = set()
        # How far counts were below what providers reported, by model.
        self._errors: dict[str, float] = {}

    async def start(self) -> None:
        self._set = tuple(await self._db.read(stored.stored))
        self._combine()

    def configure(self, limits: Sequence[Limit], most_output: int) -> None:
        """The configuration was read again."""
        self._configured, self._most_output = tuple(limits), most_output
        self._combine()

    def _combine(self) -> None:
        named = {limit.name for limit in self._configured}
        self.limits = (
            *self._configured,
            *(limit for limit in self._set if limit.name not in named),
        )
        self._wake()

    async def reserve(
        self,
        holder: str,
        spender: Spender,
        target: Target,
        tokens: int,
        *,
        own: Sequence[Limit] = (),
        raised: Mapping[str, int] = {},
        fresh: bool = False,
        most_output: int = 0,
    ) -> Reservation:
        """Reserve what a call can use at most, in place of what `holder` had reserved. Waits while
        others' are in the way.

        `own` are limits of the run itself, `raised` how far a person let it go on, by account;
        `fresh`: it has used nothing yet. Raises BudgetSpent or BudgetQuestion.
        """
        self.release(holder)
        self._spenders.pop(holder, None)
        self._spenders[holder] = spender
        if len(self._spenders) > _MOST_SPENDERS:
            del self._spenders[next(iter(self._spenders))]
        if not self.limits and not own:
            return Reservation()
        output = most_output or min(self._most_output, target.context_tokens // 4)
        need_tokens = int(tokens * self._errors.get(target.name, _COUNT_ERROR)) + output
        price = self.prices.of(target.provider, target.model).price
        need_usd = price.most(need_tokens - output, output) if price is not None else 0
        while True:
            applying = await self._applying((*self.limits, *own), spender, fresh=fresh)
            if not applying:
                return Reservation()
            if not all(self.ledger.keeps(key, account) for _, key, account in applying):
                # One was forgotten while another was read: what is held there would count for nobody.  # noqa: E501
                continue
            if price is None:
                _refuse_unpriced(applying, target)
            room = True
            for limit, key, account in applying:
                need = need_tokens if limit.unit == "tokens" else need_usd
                room = self._has_room(limit, key, account, need, raised) and room
            if room:
                accounts = tuple({id(account): account for _, _, account in applying}.values())
                self._holds[holder] = LedgerReservation(accounts, need_tokens, need_usd)
                return Reservation(output)
            await self._something_freed()

    async def _applying(
        self, limits: Sequence[Limit], spender: Spender, *, fresh: bool
    ) -> list[tuple[Limit, Key, Account]]:
        now_ms = self._clock.now_ms()
        applying = []
        for limit in limits:
            key = key_of(limit.terms, spender, now_ms)
            if key is not None:
                account = (
                    self.ledger.begin(key)
                    if fresh and key.per == "run"
                    else await self.ledger.account(key)
                )
                applying.append((limit, key, account))
        return applying

    def _has_room(
        self, limit: Limit, key: Key, account: Account, need: int, raised: Mapping[str, int]
    ) -> bool:
        """Return whether a call may begin. False: not before others have settled. Raises if there
        is nothing left.
        """
        ceiling = max(limit.amount, raised.get(_account_name(limit, key), 0))
        spent, held = account.spent(limit.unit), account.held(limit.unit)
        if not need or spent + held + need <= ceiling:
            return True
        if spent < ceiling:
            return not held
        # What was spent before the limit was set, or before the daemon started, has passed it
        # unnoticed.
        self._warn(limit, key, spent)
        used = f"{described(limit)} is used up: {amount(spent, limit.unit)} were spent"
        if limit.terms.then == "block":
            how = (
                "raise budgets.tokens or budgets.usd"
                if limit.source == "run"
                else "raise it with `palyra usage budgets set`"
            )
            again = (
                ", or wait until it resets"
                if limit.terms.every != "ever"
                else ", or send another message to go on"
            )
            raise BudgetSpent(
                f"{used};"
                f" {how}{again if limit.terms.every != 'ever' or limit.terms.per == 'run' else ''}"
            )
        upto = spent + max(limit.amount // _TRANCHE, need)
        asked = BudgetAsked(
            name=limit.name,
            account=_account_name(limit, key),
            unit=limit.unit,
            limit=limit.amount,
            spent=spent,
            upto=upto,
        )
        raise BudgetQuestion(
            asked,
            f"{used}. Approving lets this run continue until {amount(upto, limit.unit)} are spent.",
        )

    async def _something_freed(self) -> None:
        freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(freed)
        await freed

    def release(self, holder: str) -> None:
        """Release what a call had reserved, whatever came of it. What it used is counted when it is
        on the tape.
        """
        hold = self._holds.pop(holder, None)
        if hold is not None:
            hold.release()
            self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def on_commit(self, appended: Iterable[Appended]) -> None:
        for entry in appended:
            if isinstance(entry.event, _BILLED):
                self._settle(entry, entry.event)
            if entry.kind in _ENDS:
                # Of a call that was broken off: what it used was on the tape before this.
                self.release(entry.run_id)

    def _settle(
        self, entry: Appended, event: ModelReplied | ModelFailed | ModelUsed | SessionCompacted
    ) -> None:
        used = event.usage
        new = Spent(used.input_tokens + used.output_tokens, event.cost_microusd, entry.position)
        spender = self._spenders.get(entry.run_id) if entry.run_id else None
        if spender is None:
            spender = Spender(principal=entry.principal, session_id=entry.tape, run_id=entry.run_id)
        self.ledger.add(spender, entry.time_ms, new)
        for limit in self.limits:
            key = key_of(limit.terms, spender, entry.time_ms)
            account = self.ledger.peek(key) if key is not None else None
            if key is not None and account is not None:
                self._warn(limit, key, account.spent(limit.unit))

    def _warn(self, limit: Limit, key: Key, spent: int) -> None:
        if not limit.warn_from or spent < limit.warn_from or key.per == "run":
            return
        full = spent >= limit.amount
        name = f"budget:{limit.name}:{limit.amount}:{key.text}:{'full' if full else 'near'}"
        if name in self._told:
            return
        if len(self._told) > _MOST_TOLD:
            # The journal knows too what was told.
            self._told.clear()
        self._told.add(name)
        whose = f" of {key.who}" if key.who else ""
        what = "is used up" if full else f"is {spent * 100 // limit.amount} % used"
        text = f"{described(limit)}{whose} {what}: {amount(spent, limit.unit)}"
        telling = self._db.write(self._notices.telling("budget", name, text, "#/usage"))
        telling.add_done_callback(
            lambda told: self._told.discard(name) if told.cancelled() or told.exception() else None
        )

    def learn(self, target: Target, counted: int, reported: int) -> None:
        """Learn from a provider's token count of an input that was counted here."""
        if counted > 0 and reported > counted * self._errors.get(target.name, _COUNT_ERROR):
            self._errors[target.name] = min(_MOST_ERROR, reported / counted)

    async def look(self, spender: Spender) -> None:
        """Read the accounts that `left` and `broke` look at."""
        await self._applying(self.limits, spender, fresh=False)

    def left(self, spender: Spender) -> float:
        """The share that is left of the tightest limit, from 1 down to 0."""
        found = [
            1 - account.spent(limit.unit) / limit.amount
            for limit, account in self._in_memory(spender)
        ]
        return max(0.0, min(found, default=1.0))

    def broke(self, spender: Spender) -> bool:
        """Return whether a limit in money is used up."""
        return any(
            limit.unit == "microusd" and account.microusd >= limit.amount
            for limit, account in self._in_memory(spender)
        )

    def _in_memory(self, spender: Spender) -> Iterable[tuple[Limit, Account]]:
        now_ms = self._clock.now_ms()
        for limit in self.limits:
            key = key_of(limit.terms, spender, now_ms)
            account = self.ledger.peek(key) if key is not None else None
            if account is not None:
                yield limit, account

    async def put(self, name: str, terms: Terms, by: str) -> Limit:
        limit = check(name, terms)
        if any(each.name == name for each in self._configured):
            raise Conflict(
                f"the budget {name} is set in the configuration file: change it there", name=name
            )
        await self._db.write(lambda tx: stored.put(tx, limit, by))
        self._set = (*(each for each in self._set if each.name != name), limit)
        self._combine()
        return limit

    async def remove(self, name: str, by: str) -> None:
        if any(each.name == name for each in self._configured):
            raise Conflict(
                f"the budget {name} is set in the configuration file: change it there", name=name
            )
        if not any(each.name == name for each in self._set):
            raise NotFound(
                f"there is no budget {name}: `palyra usage budgets` lists them", name=name
            )
        await self._db.write(lambda tx: stored.remove(tx, name, by))
        self._set = tuple(each for each in self._set if each.name != name)
        self._combine()

    async def states(self, spender: Spender) -> list[BudgetState]:
        """Return each limit with the account of this spender, or of the one that it is about;
        without one where it is about many.
        """
        now_ms = self._clock.now_ms()
        states = []
        for limit in self.limits:
            terms = limit.terms
            whose = (
                Spender(
                    principal=terms.who,
                    session_id=terms.who,
                    schedule_id=terms.who,
                    run_id=terms.who,
                )
                if terms.who
                else spender
            )
            key = key_of(terms, whose, now_ms)
            account = await self.ledger.account(key) if key is not None else None
            spent = account.spent(limit.unit) if account is not None else 0
            states.append(
                BudgetState(
                    name=limit.name,
                    source=limit.source,
                    terms=terms,
                    says=described(limit),
                    who=key.who if key is not None else "",
                    period=period_name(terms.every, key.since_ms) if key is not None else "",
                    until_ms=period_end(terms.every, now_ms),
                    unit=limit.unit,
                    limit=limit.amount,
                    spent=spent,
                    reserved=account.held(limit.unit) if account is not None else 0,
                    left=max(0, limit.amount - spent),
                )
            )
        return states


def _account_name(limit: Limit, key: Key) -> str:
    return f"{limit.name}:{key.text}"


def _refuse_unpriced(applying: Sequence[tuple[Limit, Key, Account]], target: Target) -> None:
    for limit, _, _ in applying:
        if limit.unit == "microusd":
            raise BudgetSpent(
                f"{target.name} has no known price, so {described(limit)} cannot be kept: add its"
                " price to prices.toml in the home folder, or choose another model",
                budget=limit.name,
            )
