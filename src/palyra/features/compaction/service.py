"""Condensing what a model is shown of a long session: before a turn that would be too long, and
when a person asks for it.

The rule: a compaction is one entry, applied whole or not at all, and nothing is lost by it. Taking
it back gives the conversation as it would be without it. Rules of the session are kept elsewhere
and are no part of it.
"""

from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from palyra.agent import durable_write
from palyra.agent.active_run import ActiveRun, Interrupted
from palyra.agent.prompt.token_sizes import text_of
from palyra.agent.session_cache import LiveSession, SessionCache
from palyra.core import ids
from palyra.core.budgets import Spender
from palyra.core.conversation import Conversation
from palyra.core.errors import Conflict, NotFound
from palyra.core.events import ModelUsed, Point, SessionCompacted
from palyra.core.run_progress import Summary
from palyra.features.compaction import model, rows, rule_summary
from palyra.features.compaction.model import Material
from palyra.features.compaction.model_summary import Summariser, Written
from palyra.features.compaction.rows import CompactionRow
from palyra.models import usage_estimate
from palyra.models.routing import Models, Target
from palyra.store import runs, sessions, tape
from palyra.store.database import Appended, Database, Tx
from palyra.store.sessions import Session
from palyra.system import thread_pool

DEFAULT_SHARE = 0.6
_BYTES_PER_TOKEN = 4
# After one that was not worth it, the conversation must have grown by this much before another is
# tried.
_GROWTH = 1.1
_MOST_REMEMBERED = 512
# The prompt begins anew with each compaction, and no provider has that beginning in its cache: let
# it be worth that.
_LEAST_SHARE = 0.1


class Compact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`preview` only says what would be done."""

    preview: bool = False


class Compaction(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One compaction as it is told. `seq` is 0 as long as it was not applied, and `why` says why it
    was not.
    """

    seq: int = 0
    time_ms: int = 0
    applied: bool = False
    stands: bool = False
    automatic: bool = False
    why: str = ""
    summary: str = ""
    from_seq: int = 0
    upto_seq: int = 0
    turns: int = 0
    records: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    written_by: Literal["extractive", "model", ""] = ""
    fallback: str = ""


class Uncompacted(Struct, frozen=True):
    """The compactions that count as never made: the one that was named, and those that were built
    on it.
    """

    compactions: tuple[int, ...]


class Pinned(Struct, frozen=True):
    """Positions at which the pinned runs were accepted; these stay whole."""

    pins: tuple[int, ...]


class _Draft(Struct, frozen=True):
    """A compaction that was worked out for the conversation as of an entry, and is not applied
    yet.
    """

    event: SessionCompacted
    seen_seq: int


Kept = Callable[[LiveSession, Appended], Awaitable[None]]


class CompactionSettings(Struct, frozen=True):
    """`model` writes summaries; empty: rules do. `share`: of the window, from which on a session is
    condensed; None: only on demand. `notes`: what was found is noted in the workspace.
    """

    model: str = ""
    share: float | None = None
    notes: bool = False


class Compacting:
    def __init__(
        self,
        db: Database,
        lives: SessionCache,
        models: Models,
        summariser: Summariser,
        *,
        share: float | None = DEFAULT_SHARE,
        keep: Kept | None = None,
    ) -> None:
        """`share` of a model's budget is where it begins by itself, None: nowhere. `keep` is told
        of each one, to take notes.
        """
        self._db = db
        self._lives = lives
        self._models = models
        self._summariser = summariser
        self._share = share
        self._keep = keep
        # How much there was to condense when it was not worth it, by session.
        self._declined: dict[str, int] = {}

    async def before_turn(self, run: ActiveRun, target: Target, tokens: int = 0) -> bool:
        """Condense if the next input would pass the threshold. True: the conversation is another
        one now.

        `tokens` is the size of that input where the caller knows it; otherwise it is measured.
        """
        budget = target.budget
        if self._share is None or max(tokens, _size(run.live, run)) <= model.threshold(
            budget, self._share
        ):
            return False
        if not self._worth_trying(run.live, budget):
            return False
        try:
            draft = await self._draft(run.live, budget, automatic=True, run=run)
            if isinstance(draft, str):
                self._decline(run.live)
                return False
            return await self._apply(run.live, draft) is not None
        except Interrupted:
            return False  # There is something new to read first; the next turn tries again.
        finally:
            self._summariser.done(_spender(run.live))

    def _worth_trying(self, live: LiveSession, budget: int) -> bool:
        """Return whether there is enough to condense, and more than when it was last found not to
        be worth it.
        """
        weight = _weight(live)
        refused = self._declined.get(live.session.session_id)
        if weight < budget * _LEAST_SHARE or refused is None or weight >= refused * _GROWTH:
            return weight >= budget * _LEAST_SHARE
        # Smaller than before: it was condensed, taken back or left out meanwhile, and grows anew
        # from here.
        self._declined[live.session.session_id] = min(refused, weight)
        return False

    async def make_room(self, run: ActiveRun, target: Target) -> bool:
        """Condense whatever can be, because a provider said that the input is too long for it."""
        try:
            draft = await self._draft(run.live, target.budget, automatic=True)
            return not isinstance(draft, str) and await self._apply(run.live, draft) is not None
        finally:
            self._summariser.done(_spender(run.live))

    def _decline(self, live: LiveSession) -> None:
        if len(self._declined) >= _MOST_REMEMBERED:
            del self._declined[next(iter(self._declined))]
        self._declined[live.session.session_id] = _weight(live)

    async def compact(self, principal: str, session_id: str, wanted: Compact) -> Compaction:
        """Condense now what can be, or say what that would be."""
        await self._session(principal, session_id)
        live = await self._lives.hold(session_id)
        try:
            draft = await self._draft(live, self._models.targets[0].budget, automatic=False)
            if isinstance(draft, str):
                return Compaction(why=draft)
            if wanted.preview:
                await self._paid_for_nothing(live, draft.event)
                return _told(draft.event, why="only looked at")
            applied = await self._apply(live, draft)
            if applied is None:
                raise Conflict("the conversation changed meanwhile: try again")
            return _told(draft.event, seq=applied.seq, time_ms=applied.time_ms, stands=True)
        finally:
            self._summariser.done(_spender(live))
            self._lives.release(live)

    async def listing(self, principal: str, session_id: str) -> list[Compaction]:
        """Return the compactions of the session, oldest first, undone ones too."""
        ids.check(session_id, "session_id")

        def query(tx: Tx) -> list[CompactionRow]:
            return rows.of_session(tx, sessions.get(tx, session_id, principal))

        made = await self._db.read(query)
        return [
            _told(each.event, seq=each.seq, time_ms=each.time_ms, stands=each.stands)
            for each in made
        ]

    async def undo(self, principal: str, session_id: str, seq: int) -> Uncompacted:
        """Go on from the conversation as it was not condensed. It is not condensed again before it
        has grown.
        """
        ids.check(session_id, "session_id")

        def step(tx: Tx) -> tuple[int, ...]:
            session = sessions.get(tx, session_id, principal)
            _refuse_while_working(tx, session_id)
            return rows.undo(tx, session, seq)

        taken_back = await self._db.write(step)
        live = await self._lives.hold(session_id)
        try:
            self._decline(live)
        finally:
            self._lives.release(live)
        return Uncompacted(taken_back)

    async def pin(
        self, principal: str, session_id: str, seq: int, *, removed: bool = False
    ) -> Pinned:
        """Keep the exchange that an entry belongs to out of every summary, or no longer."""
        await self._session(principal, session_id)
        live = await self._lives.hold(session_id)
        try:
            accepted_seq = _exchange(live.conversation, seq)

            def step(tx: Tx) -> None:
                session = sessions.get(tx, session_id, principal)
                rows.pin(tx, session, accepted_seq, live.conversation.pins, removed=removed)

            await self._db.write(step)
            return Pinned(tuple(sorted(live.conversation.pins)))
        finally:
            self._lives.release(live)

    async def _session(self, principal: str, session_id: str) -> Session:
        ids.check(session_id, "session_id")
        return await self._db.read(lambda tx: sessions.get(tx, session_id, principal))

    async def _draft(
        self, live: LiveSession, budget: int, *, automatic: bool, run: ActiveRun | None = None
    ) -> _Draft | str:
        """The compaction of a conversation as it is now, or why there is none."""
        conversation = live.conversation
        material = model.material(conversation)
        if material is None:
            return (
                f"there is nothing to condense: the last {model.TAIL} turns, pins and unfinished"
                " runs stay as they are"
            )
        seen, label, most = conversation.seq, conversation.label, model.most_tokens(budget)
        points, text, before = await thread_pool.everyday.run(_condensed, material, most)
        event = SessionCompacted(
            summary=text,
            upto_seq=material.upto_seq,
            tokens_before=before,
            tokens_after=usage_estimate.tokens(text),
            label=label,
            from_seq=material.from_seq,
            records=material.records,
            turns=len(material.turns),
            points=points,
            pins=material.pins,
            kept_from=material.kept_from,
            automatic=automatic,
        )
        if self._summariser.configured:
            event = await self._rewritten(live, event, material, most, run)
        if not model.is_smaller(before, event.tokens_after):
            await self._paid_for_nothing(live, event)
            return f"it would not be worth it: {before} tokens would become {event.tokens_after}"
        return _Draft(event, seen)

    async def _rewritten(
        self,
        live: LiveSession,
        event: SessionCompacted,
        material: Material,
        most: int,
        run: ActiveRun | None,
    ) -> SessionCompacted:
        """The same, in the words of a model, if those will do. What it cost is said either way."""
        required = rule_summary.constraints(event.points)

        def broken_off(so_far: Written | str) -> None:
            if isinstance(so_far, Written):
                durable_write.soon(
                    self._db, self._using(live, _paid(event, so_far)), "what a summary cost"
                )

        writing = self._summariser.write(
            material, required, most, _spender(live), event.label, broken_off
        )
        written = await (run.interruptible(writing) if run is not None else writing)
        if isinstance(written, str):
            return replace(event, fallback=written)
        after = usage_estimate.tokens(written.text)
        event = _paid(event, written)
        if written.why_not:
            return replace(event, fallback=written.why_not)
        if not model.is_smaller(event.tokens_before, after):
            return replace(event, fallback=f"{written.provider}/{written.model} saved too little")
        return replace(event, summary=written.text, tokens_after=after, written_by="model")

    async def _paid_for_nothing(self, live: LiveSession, event: SessionCompacted) -> None:
        """A model was asked, and the compaction is not made: what was used counts all the same."""
        if event.provider:
            await durable_write.write_until_stored(
                self._db, self._using(live, event), "what a summary cost"
            )

    def _using(self, live: LiveSession, event: SessionCompacted) -> Callable[[Tx], list[Appended]]:
        used = ModelUsed(
            provider=event.provider,
            model=event.model,
            task="summary",
            purpose="a summary that was not used",
            usage=event.usage,
            cost_microusd=event.cost_microusd,
            priced=event.priced,
            estimated=event.estimated,
            duration_ms=event.duration_ms,
        )
        session = live.session
        return lambda tx: tape.append(tx, session.session_id, session.owner, [used])

    async def _apply(self, live: LiveSession, draft: _Draft) -> Appended | None:
        session_id, owner = live.session.session_id, live.session.owner

        def step(tx: Tx) -> Appended | None:
            session = sessions.get(tx, session_id, owner)
            return rows.make(
                tx, session, replace(draft.event, checkpoint=session.fold_from), draft.seen_seq
            )

        paid = bool(draft.event.provider)
        applied = await (
            durable_write.write_until_stored(self._db, step, "a summary")
            if paid
            else self._db.write(step)
        )
        if applied is None:
            await self._paid_for_nothing(live, draft.event)
        else:
            self._declined.pop(session_id, None)
            if self._keep is not None:
                await self._keep(live, applied)
        return applied


def _paid(event: SessionCompacted, written: Written) -> SessionCompacted:
    bill = written.bill
    return replace(
        event,
        provider=written.provider,
        model=written.model,
        usage=bill.usage,
        cost_microusd=bill.microusd,
        priced=bill.priced,
        estimated=bill.estimated,
        duration_ms=written.duration_ms,
    )


def _spender(live: LiveSession) -> Spender:
    return Spender(principal=live.session.owner, session_id=live.session.session_id)


def _condensed(material: Material, most_tokens: int) -> tuple[tuple[Point, ...], str, int]:
    """Points, text, and the tokens of what they stand for. Work for a thread: it reads all that is
    condensed.
    """
    before = material.summary.points if material.summary else ()
    room = most_tokens * _BYTES_PER_TOKEN - 200
    points = rule_summary.condense(before, material.turns, room)
    text = rule_summary.render(points, material.records, material.from_seq, material.upto_seq)
    sizes = [usage_estimate.tokens(text_of(turn)) for turn in material.turns]
    return (
        points,
        text,
        sum(sizes) + (usage_estimate.tokens(material.summary.text) if material.summary else 0),
    )


def _size(live: LiveSession, run: ActiveRun) -> int:
    """Estimate how many tokens the next input has."""
    conversation = live.conversation
    fresh = sum([usage_estimate.tokens(event.text) for _, event in run.progress.inputs])
    return live.sizes.tokens(conversation.turns) + fresh + conversation.overhead


def _weight(live: LiveSession) -> int:
    """The tokens of what a compaction would condense now."""
    material = model.material(live.conversation)
    if material is None:
        return 0
    return live.sizes.tokens((*material.turns, *((material.summary,) if material.summary else ())))


def _exchange(conversation: Conversation, seq: int) -> int:
    """Return where the exchange was accepted that an entry belongs to."""
    found = [
        turn.accepted_seq
        for turn in conversation.turns
        if not isinstance(turn, Summary) and turn.accepted_seq <= seq
    ]
    if not found or seq > conversation.seq:
        raise NotFound(
            f"no exchange that the model is shown has entry {seq}: a compaction may have taken its"
            " place",
            seq=seq,
        )
    return max(found)


def _refuse_while_working(tx: Tx, session_id: str) -> None:
    if any(run.state == "in_progress" for run in runs.unfinished_of_session(tx, session_id)):
        raise Conflict("a run is working in this session: stop it, or wait for it")


def _told(
    event: SessionCompacted, *, seq: int = 0, time_ms: int = 0, stands: bool = False, why: str = ""
) -> Compaction:
    return Compaction(
        seq=seq,
        time_ms=time_ms,
        applied=seq > 0,
        stands=stands,
        automatic=event.automatic,
        why=why,
        summary=event.summary,
        from_seq=event.from_seq,
        upto_seq=event.upto_seq,
        turns=event.turns,
        records=event.records,
        tokens_before=event.tokens_before,
        tokens_after=event.tokens_after,
        written_by=event.written_by,
        fallback=event.fallback,
    )
