"""Conversations in memory: folded from the tape once, then kept in step by every commit.

Whoever works on a session asks for its live form. It is loaded when first needed and forgotten when nobody works on it, so a
waiting or finished session costs nothing.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from palyra.domain.conversation import Conversation
from palyra.domain.errors import NotFound
from palyra.domain.events import AnyEvent
from palyra.journal import sessions, tape
from palyra.journal.database import Appended, Database, Tx
from palyra.journal.sessions import Session

MOST_IDLE = 64


class LiveSession:
    """One session's conversation, exact as of the last commit. `users` counts those who need it to stay."""

    __slots__ = ("conversation", "session", "users")

    def __init__(self, session: Session, conversation: Conversation) -> None:
        self.session = session
        self.conversation = conversation
        self.users = 0

    def apply(self, entry: Appended) -> None:
        if entry.seq > self.conversation.seq:
            self.conversation.apply(entry.seq, entry.run_id, entry.time_ms, entry.event)


class LiveSessions:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._loaded: OrderedDict[str, LiveSession] = OrderedDict()
        self._loading: dict[str, asyncio.Future[LiveSession]] = {}
        # Entries committed while their session is being loaded.
        self._missed: dict[str, list[Appended]] = {}

    def on_commit(self, appended: Iterable[Appended]) -> None:
        for entry in appended:
            live = self._loaded.get(entry.tape)
            if live is not None:
                live.apply(entry)
            elif entry.tape in self._missed:
                self._missed[entry.tape].append(entry)

    def peek(self, session_id: str) -> LiveSession | None:
        return self._loaded.get(session_id)

    def born(self, session: Session) -> None:
        """A session that was just created has nothing to be read: it is live from its first entry."""
        self._loaded.setdefault(session.session_id, LiveSession(session, Conversation(session.session_id)))
        self._forget_idle()

    async def hold(self, session_id: str) -> LiveSession:
        """The live session, to be given back with `release`."""
        live = self._loaded.get(session_id)
        if live is None:
            live = await self._load(session_id)
        self._loaded.move_to_end(session_id)
        live.users += 1
        return live

    def release(self, live: LiveSession) -> None:
        live.users -= 1
        self._forget_idle()

    def _forget_idle(self) -> None:
        while len(self._loaded) > MOST_IDLE:
            idle = next((key for key, live in self._loaded.items() if live.users == 0), None)
            if idle is None:
                return
            del self._loaded[idle]

    async def _load(self, session_id: str) -> LiveSession:
        loading = self._loading.get(session_id)
        if loading is not None:
            return await asyncio.shield(loading)
        future: asyncio.Future[LiveSession] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._loading[session_id] = future
        self._missed[session_id] = []
        try:
            session, segments = await self._db.read(lambda tx: _read(tx, session_id))
            conversation = Conversation(session_id)
            for offset, entries in segments:
                for seq, run_id, time_ms, event in entries:
                    conversation.apply(seq + offset, run_id, time_ms, event)
            live = LiveSession(session, conversation)
            for entry in self._missed[session_id]:
                live.apply(entry)
            self._loaded[session_id] = live
            future.set_result(live)
            return live
        except BaseException as error:
            future.set_exception(error)
            raise
        finally:
            del self._loading[session_id]
            del self._missed[session_id]


Segment = tuple[int, list[tuple[int, str, int, AnyEvent]]]


def _read(tx: Tx, session_id: str) -> tuple[Session, list[Segment]]:
    session = sessions.find(tx, session_id=session_id)
    if session is None:
        raise NotFound(f"there is no session {session_id}", session_id=session_id)
    return session, read_segments(tx, sessions.lineage(tx, session))


def read_segments(tx: Tx, stretches: list[sessions.Stretch]) -> list[Segment]:
    return [(part.offset, tape.events_between(tx, part.tape, part.first, part.last)) for part in stretches]
