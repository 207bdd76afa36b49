"""Places where conversations of calling programs go on: the end of a session, a branch of it, or a
new session.

The rule: a history goes on where the newest of its answers that is known was given. If the session
stands there still, it goes on itself; if something was said in it since, a branch does, from that
very place. What follows that answer in the history is what the program tells, and no record.
"""

from collections.abc import Sequence

from msgspec import Struct

from palyra.agent import client_tokens
from palyra.agent.sessions import Sessions
from palyra.core.errors import Conflict, PalyraError
from palyra.core.events import InputReceived, RunAccepted
from palyra.features.openai_api import history, rows
from palyra.features.openai_api.answers import Answering, wanted_by
from palyra.features.openai_api.history import History, HistoryTurn
from palyra.features.openai_api.names import CallerRun, run_of_call
from palyra.features.openai_api.rows import AnsweredHistory
from palyra.store import runs, sessions
from palyra.store.database import Database, Tx
from palyra.store.runs import SubmissionRow
from palyra.store.tokens import Token

# One exchange may be the same in two programs with other instructions; two are one conversation.
_SURELY = 2
_TAIL = 32


class AnswerPlace(Struct, frozen=True):
    """An answer that a conversation goes on from, and how many turns of the history it ends."""

    session_id: str
    run_id: str
    end: int
    known: int = 0


class SessionPlace(Struct, frozen=True):
    """`told`: earlier turns that the session does not hold. `after`: what it must still end with
    when the message is taken in.
    """

    session_id: str
    told: tuple[HistoryTurn, ...] = ()
    after: AnswerPlace | None = None


class WentOn(Conflict):
    """Error: something else was said in the session in the meantime."""


class SessionPlaces:
    def __init__(self, db: Database, sessions_: Sessions) -> None:
        self._db = db
        self._sessions = sessions_

    async def of(self, token: Token, said: History) -> SessionPlace | None:
        """Return where a history goes on; None: nobody here knows any of it."""
        if not said.answered:
            return None
        found = await self._db.read(lambda tx: _known(tx, token, said))
        if found is None:
            return None
        after, stands, put_away = found
        left = said.turns[after.known : said.behind]
        if not stands:
            return await self.branch(token.principal, after, left)
        if put_away:
            await self.bring_back(token.principal, after.session_id)
        return SessionPlace(after.session_id, left, after)

    async def bring_back(self, principal: str, session_id: str) -> None:
        """Unarchive a session that only rested."""
        await self._sessions.change(principal, session_id, title=None, archived=False)

    async def branch(
        self, principal: str, after: AnswerPlace, told: Sequence[HistoryTurn] = ()
    ) -> SessionPlace:
        branched = await self._sessions.branch(principal, after.session_id, after.end, "")
        return SessionPlace(branched.session_id, tuple(told))

    async def again(self, principal: str, known: SubmissionRow, said: History) -> SessionPlace:
        """Return where a message was taken in before, with what was told with it then."""

        def read(tx: Tx) -> int:
            runs.get(tx, known.run_id, principal)
            for event in runs.events_of(tx, known.run_id):
                if isinstance(event, InputReceived) and event.submission_id == known.submission_id:
                    return len(event.given.turns) if event.given else 0
            return 0

        count = await self._db.read(read)
        return SessionPlace(known.session_id, said.turns[max(0, said.behind - count) : said.behind])


def check(tx: Tx, after: AnswerPlace, run_id: str) -> None:
    """Raise WentOn if a message that was just taken in does not follow this answer."""
    if rows.went_on(tx, after.session_id, after.run_id, after.end, but=run_id):
        raise WentOn(
            "something else was said in this session in the meantime", session_id=after.session_id
        )


def _known(tx: Tx, token: Token, said: History) -> tuple[AnswerPlace, bool, bool] | None:
    """The newest answer of a history that a run gave; whether its session stands there, and whether
    it was archived because nobody used it. One that stands is preferred.
    """
    places = said.answered
    known: tuple[AnswerPlace, bool, bool] | None = None
    at = {said.digests[place]: place for place in places}
    for each in rows.find(tx, [said.digests[place] for place in places]):
        place = at[each.digest]
        if known is not None and place + 1 < known[0].known:
            break
        if each.instructions != said.instructed and places.index(place) > len(places) - _SURELY:
            continue
        found = _stood(tx, token, each, said.turns[place], place + 1)
        if found is None:
            continue
        stands, put_away = _stands(tx, found[0], calls=found[1], last=place + 1 == said.behind)
        if stands:
            return found[0], True, put_away
        known = known or (found[0], False, False)
    return known


def _stood(
    tx: Tx, token: Token, answered: AnsweredHistory, turn: HistoryTurn, known: int
) -> tuple[AnswerPlace, bool] | None:
    """Return where an answer stands, if it is what the program remembers; and whether it handed
    calls over.
    """
    try:
        client_tokens.check_run(tx, token, answered.run_id)
        sessions.get(tx, answered.session_id, token.principal)
    except PalyraError:
        # It was sealed, or is not the caller's any more: then nothing is known.
        return None
    if not _likely(tx, answered.run_id, turn):
        return None
    told = recorded(tx, answered.run_id, answered.seq)
    if told is None or not history.repeats(turn, told[0]):
        return None
    return AnswerPlace(answered.session_id, answered.run_id, told[1], known), bool(told[0].calls)


def _likely(tx: Tx, run_id: str, turn: HistoryTurn) -> bool:
    """Return whether a run may have answered this. Many conversations begin alike, and reading all
    of their runs would take long.
    """
    if turn.calls:
        return all(run_of_call(call.call_id) == run_id for call in turn.calls)
    ends = rows.final_text(tx, run_id)
    return ends is None or turn.text.strip().endswith(ends.strip()[-_TAIL:])


def _stands(tx: Tx, after: AnswerPlace, *, calls: bool, last: bool) -> tuple[bool, bool]:
    """Return whether a session still ends with an answer, and whether it was archived because
    nobody used it.
    """
    session = sessions.find(tx, session_id=after.session_id)
    run = runs.find(tx, after.run_id)
    if session is None or run is None:
        return False, False
    put_away = rows.rests(tx, after.session_id)
    if session.archived and not put_away:
        return False, False
    if calls:
        # A run that waits for its caller goes on with what comes next, and with nothing between.
        behind = any(seq > after.end for seq, _ in runs.numbered(tx, after.run_id))
        stands = run.reason == "client" and last and not behind
    else:
        stands = run.ended_ms > 0
    return stands and not rows.went_on(tx, after.session_id, after.run_id, after.end), put_away


def recorded(tx: Tx, run_id: str, seq: int) -> tuple[Answering, int] | None:
    """An answer as the journal has it, and where it ends; None if there is no such run."""
    entries = runs.numbered(tx, run_id)
    accepted = next((event for _, event in entries if isinstance(event, RunAccepted)), None)
    if accepted is None:
        return None
    since = [(at, event) for at, event in entries if at > seq]
    wanted = wanted_by(accepted, [event for _, event in since])
    begun = CallerRun("", run_id, seq, named=True)
    answering = Answering(begun, formed=wanted is not None and wanted.form != "text")
    end = seq
    for at, event in since:
        answering.told(event)
        end = at
        if answering.over:
            break
    return answering, end
