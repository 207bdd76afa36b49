"""Reading the record and making the score of it, off the event loop."""

import asyncio

from msgspec.structs import replace

from palyra.core import labels
from palyra.features.security_score import rows
from palyra.features.security_score.model import MetSource, SecurityScore, score_of
from palyra.policy import suggest
from palyra.policy.store import PolicyStore
from palyra.store import decisions
from palyra.store.database import Database
from palyra.store.decisions import AnsweredCall
from palyra.system.clock import Clock

_MONTH_MS = 30 * 24 * 3_600_000
_MOST_SOURCES = 20
# Instructions stand where a reader sees them; of a larger text the beginning is looked at.
_LONGEST = 64 << 10


class SecurityScores:
    def __init__(self, db: Database, policies: PolicyStore, clock: Clock) -> None:
        self._db = db
        self._policies = policies
        self._clock = clock

    async def score(self, since_ms: int) -> SecurityScore:
        """Score everything that was decided since then; without a time: in 30 days."""
        since = since_ms or self._clock.now_ms() - _MONTH_MS
        return await asyncio.to_thread(self._read, since)

    def _read(self, since_ms: int) -> SecurityScore:
        read = self._db.read_from_thread
        record = [each for page in decisions.pages(read, since_ms) for each in page]
        answers = [each for each in record if isinstance(each, AnsweredCall)]
        suggestion = suggest.of_answers(answers, self._policies.current)
        return score_of(since_ms, record, suggestion, self._met(since_ms))

    def _met(self, since_ms: int) -> list[MetSource]:
        """Sources with words that look like an instruction to the agent, most frequent first."""
        found: dict[str, MetSource] = {}
        times: dict[str, int] = {}
        results = rows.untrusted_results(self._db.read_from_thread, since_ms)
        for time_ms, session_id, seq, event in results:
            words = labels.commands(event.text[:_LONGEST], by_a_person=True)
            for source in event.label.sources if words else ():
                times[source] = times.get(source, 0) + 1
                if source not in found:
                    found[source] = MetSource(
                        source=source,
                        times=1,
                        words=words,
                        session_id=session_id,
                        seq=seq,
                        time_ms=time_ms,
                    )
        most = sorted(found, key=lambda source: (-times[source], source))[:_MOST_SOURCES]
        return [replace(found[source], times=times[source]) for source in most]
