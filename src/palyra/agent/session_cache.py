"""Conversations in memory: folded from the tape once, then kept in step by every commit.

Whoever works on a session asks for its live form. It is loaded when first needed and forgotten when
nobody works on it, so a waiting or finished session costs nothing.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Iterable

from palyra.agent.prompt.token_sizes import Measure
from palyra.core.conversation import Conversation, Segment, fold_segments
from palyra.core.errors import NotFound
from palyra.core.events import (
    InputReceived,
    SessionBranched,
    SessionCreated,
    SessionReset,
    SessionRestored,
    SessionRuled,
    SessionUncompacted,
)
from palyra.core.ids import SessionId
from palyra.core.verdicts import SessionRule
from palyra.store import session_rules, sessions, tape
from palyra.store.database import Appended, Database, Tx
from palyra.store.sessions import Session
from palyra.system import thread_pool

log = logging.getLogger("palyra.runtime")

MOST_IDLE = 64
# Of a session's newest entries, what is kept for watchers who come a moment later.
_TAIL_ENTRIES = 32
_TAIL_BYTES = 32 << 10
# A tape up to this long is read along by a step that was looking at its session anyway.
_SHORT_TAPE = 128
# Characters that are indexed on the event loop; more would hold it up.
_INDEXED_AT_ONCE = 16 << 10


class LiveSession:
    """One session's conversation and rules, exact as of the last commit. `users` counts those who
    need it to stay.
    """

    __slots__ = (
        "_indexing",
        "_tail",
        "_tail_bytes",
        "conversation",
        "rules",
        "session",
        "sizes",
        "users",
    )

    def __init__(
        self, session: Session, conversation: Conversation, laid_down: tuple[SessionRule, ...] = ()
    ) -> None:
        self.session = session
        self.conversation = conversation
        # Beside the conversation, not folded from it: a window that slides past a rule does not
        # lift it.
        self.rules = laid_down
        self.sizes = Measure()
        self.users = 0
        self._tail: deque[tuple[int, bytes]] = deque()
        self._tail_bytes = 0
        self._indexing = asyncio.Lock()

    async def index_shown(self) -> None:
        """Bring the index of what the model was shown up to date; much text, off the loop."""
        shown = self.conversation.shown
        if not shown.waiting and not self._indexing.locked():
            return
        async with self._indexing:
            waiting = shown.take()
            if sum(len(each.text) for each in waiting) <= _INDEXED_AT_ONCE:
                shown.index.add(waiting)
            else:
                await thread_pool.everyday.run(shown.index.add, waiting)
            if shown.index.unread_bytes > _INDEXED_AT_ONCE:
                await thread_pool.everyday.run(shown.index.read)

    def after(self, seq: int) -> list[tuple[int, bytes]] | None:
        """The entries behind this one as (seq, wire), if all of them are at hand."""
        newest = self.conversation.seq
        if seq >= newest:
            return [] if seq == newest else None
        if not self._tail or self._tail[0][0] > seq + 1:
            return None
        return [item for item in self._tail if item[0] > seq]

    def apply(self, entry: Appended) -> None:
        if entry.seq <= self.conversation.seq:
            return
        self.conversation.apply(entry.seq, entry.run_id, entry.time_ms, entry.event)
        self._tail.append((entry.seq, entry.wire))
        self._tail_bytes += len(entry.wire)
        while len(self._tail) > _TAIL_ENTRIES or self._tail_bytes > _TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft()[1])
        match entry.event:
            case SessionRuled() as ruled:
                others = tuple(rule for rule in self.rules if rule.rule_id != ruled.rule_id)
                self.rules = (
                    others if ruled.removed else (*others, SessionRule(ruled.rule_id, ruled.words))
                )
            case SessionReset():
                self.rules = ()
            case _:
                pass


class SessionCache:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._loaded: OrderedDict[str, LiveSession] = OrderedDict()
        self._loading: dict[str, asyncio.Future[None]] = {}
        # Entries committed while their session is being loaded.
        self._missed: dict[str, list[Appended]] = {}
        self._expected: dict[str, Prefetch] = {}

    def on_commit(self, appended: Iterable[Appended]) -> None:
        for entry in appended:
            try:
                self._keep_in_step(entry)
            except Exception:
                # One session's defect is not the others': it is read anew, and whoever needs it
                # hears what is wrong with it.
                log.exception("session %s could not be kept in step with its tape", entry.tape)
                self._loaded.pop(entry.tape, None)

    def _keep_in_step(self, entry: Appended) -> None:
        if _taken_back(entry):
            # What it was like before has to be read.
            self._loaded.pop(entry.tape, None)
        expected = self._expected.get(entry.tape)
        if expected is not None and expected.came_with(entry):
            self._take_over(expected)
        live = self._loaded.get(entry.tape)
        if live is not None:
            live.apply(entry)
        elif entry.tape in self._missed:
            self._missed[entry.tape].append(entry)
        elif isinstance(entry.event, SessionCreated):
            # Nothing to be read: it is live from its first entry.
            self._born(entry, entry.event)
        if isinstance(entry.event, SessionBranched) and entry.event.child == entry.tape:
            # A branch begins with its parent's conversation, which has to be read.
            self._loaded.pop(entry.tape, None)

    def _born(self, entry: Appended, event: SessionCreated) -> None:
        session = Session(
            session_id=SessionId(entry.tape),
            owner=event.owner,
            device=event.device,
            channel=event.channel,
            workspace=event.workspace,
            created_ms=entry.time_ms,
            updated_ms=entry.time_ms,
        )
        live = self._loaded[entry.tape] = LiveSession(session, Conversation(entry.tape))
        live.apply(entry)
        self._forget_idle()

    def peek(self, session_id: str) -> LiveSession | None:
        return self._loaded.get(session_id)

    async def hold(self, session_id: str) -> LiveSession:
        """The live session, to be given back with `release`."""
        while (live := self._loaded.get(session_id)) is None:
            # Loaded is not held: by the time we go on it may have been forgotten again.
            await asyncio.shield(self._loading.get(session_id) or self._begin_loading(session_id))
        self._loaded.move_to_end(session_id)
        live.users += 1
        return live

    def release(self, live: LiveSession) -> None:
        live.users -= 1
        self._forget_idle()

    def _forget_idle(self, but: str = "") -> None:
        while len(self._loaded) > MOST_IDLE:
            idle = next(
                (key for key, live in self._loaded.items() if live.users == 0 and key != but), None
            )
            if idle is None:
                return
            del self._loaded[idle]

    def expect(self, session_id: str, submission_id: str) -> "Prefetch | None":
        """Announce that a step about to be written takes an input and reads the session along, if
        it is not in memory.

        What it reads is taken over when the input is committed. `expect_no_more` follows, however
        the step ends.
        """
        if session_id in self._loaded or session_id in self._loading:
            return None
        self._missed[session_id] = []
        self._loading[session_id] = asyncio.get_running_loop().create_future()
        expected = self._expected[session_id] = Prefetch(session_id, submission_id)
        return expected

    def expect_no_more(self, expected: "Prefetch") -> None:
        """Drop a prefetch that came to nothing; whoever needs the session loads it."""
        if self._expected.get(expected.session_id) is expected:
            expected.found = None
            self._take_over(expected)

    def _take_over(self, expected: "Prefetch") -> None:
        session_id = expected.session_id
        del self._expected[session_id]
        loading, missed = self._loading.pop(session_id), self._missed.pop(session_id)
        try:
            if expected.found is not None:
                session, segments, laid_down = expected.found
                live = LiveSession(session, fold_segments(session_id, segments), laid_down)
                if not any(
                    _taken_back(entry) and entry.seq > live.conversation.seq for entry in missed
                ):
                    for entry in missed:
                        live.apply(entry)
                    self._loaded[session_id] = live
                    self._forget_idle(but=session_id)
        finally:
            # Without a result that counts: `hold` looks whether the session is there.
            loading.set_result(None)

    def _begin_loading(self, session_id: str) -> "asyncio.Task[None]":
        """A task of its own: several may wait for it, and one of them who goes away must not take
        it from the others.
        """
        self._missed[session_id] = []
        loading = self._loading[session_id] = asyncio.create_task(self._load(session_id))
        # It may fail when nobody waits any more.
        loading.add_done_callback(lambda done: done.cancelled() or done.exception())
        return loading

    async def _load(self, session_id: str) -> None:
        try:
            while True:
                session, segments, laid_down = await self._db.read(
                    lambda tx: _look_up(tx, session_id)
                )
                live = LiveSession(session, fold_segments(session_id, segments), laid_down)
                if not any(
                    _taken_back(entry) and entry.seq > live.conversation.seq
                    for entry in self._missed[session_id]
                ):
                    break
            for entry in self._missed[session_id]:
                live.apply(entry)
            self._loaded[session_id] = live
        finally:
            del self._loading[session_id]
            del self._missed[session_id]


_Found = tuple[Session, list[Segment], tuple[SessionRule, ...]]


class Prefetch:
    """A session that a step reads along, before it appends anything to it."""

    __slots__ = ("found", "session_id", "submission_id")

    def __init__(self, session_id: str, submission_id: str) -> None:
        self.session_id = session_id
        self.submission_id = submission_id
        self.found: _Found | None = None

    def read(self, tx: Tx, session: Session) -> None:
        self.found = _read(tx, session) if session.head_seq <= _SHORT_TAPE else None

    def came_with(self, entry: Appended) -> bool:
        return (
            isinstance(entry.event, InputReceived)
            and entry.event.submission_id == self.submission_id
        )


def _taken_back(entry: Appended) -> bool:
    """Return whether the conversation cannot go on from what is in memory: what it needs now lies
    further back on the tape.
    """
    match entry.event:
        case SessionRestored(conversation=conversation):
            return conversation
        case SessionUncompacted():
            return True
        case _:
            return False


def _read(tx: Tx, session: Session) -> _Found:
    return session, _segments(tx, session), session_rules.laid_down(tx, session.session_id)


def _look_up(tx: Tx, session_id: str) -> _Found:
    session = sessions.find(tx, session_id=session_id)
    if session is None:
        raise NotFound(f"there is no session {session_id}", session_id=session_id)
    return _read(tx, session)


def _segments(tx: Tx, session: Session, upto: int | None = None) -> list[Segment]:
    stretches = sessions.lineage(tx, session, upto)
    return [
        (part.offset, tape.events_between(tx, part.tape, part.first, part.last))
        for part in stretches
    ]


def conversation_at(tx: Tx, session: Session, seq: int) -> Conversation:
    """The conversation as it was after an entry of the session's tape."""
    return fold_segments(session.session_id, _segments(tx, session, seq))
