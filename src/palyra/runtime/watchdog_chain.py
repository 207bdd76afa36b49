"""What the watchdog sees of the journal's chain: a few entries at each look, round and round, so that it costs next to nothing."""

from collections.abc import Sequence
from pathlib import Path

from palyra.domain.hands import everyday
from palyra.journal import sqlite_files, tape, verify_slowly
from palyra.journal.database import Database, Tx
from palyra.journal.verify import Bad
from palyra.runtime.doctor import Check
from palyra.runtime.watchdog import Finding, Moment

AT_ONCE = 500
ROUND_MS = 24 * 3_600_000
# Between two walks over everything.
PAUSE_MS = 3_600_000


class ChainWatched:
    """New entries soon after they came, all of them once a day. A suspicion is confirmed by walking everything."""

    def __init__(self, db: Database, journal: Path) -> None:
        self._db = db
        self._journal = journal
        self._cursor = 0
        self._tape = ""
        self._entries = 0
        self._began_ms = 0
        self._bad: Bad | None = None
        self._doubt = False
        self._inspected_ms = 0

    async def look(self, moment: Moment) -> Sequence[Finding]:
        self._began_ms = self._began_ms or moment.now_ms
        self._doubt |= self._bad is None and await self._db.read(self._suspicious)
        if self._doubt and moment.now_ms - self._inspected_ms >= PAUSE_MS:
            # Tapes that are being archived look odd for a while: everything is walked for that now and then, not at each look.
            self._bad = (await everyday.do(sqlite_files.inspect, self._journal)).bad
            self._doubt, self._inspected_ms = False, moment.now_ms
        if self._cursor >= self._entries and moment.now_ms - self._began_ms >= ROUND_MS:
            self._cursor, self._began_ms = 0, moment.now_ms
        if self._bad is None:
            return []
        return [
            Finding(
                key="chain",
                domain="journal",
                summary=f"the journal's chain is broken: {_where(self._bad)}",
                severity="critical",
                fix="palyra stop --daemon, then palyra journal restore the newest backup that verifies",
            )
        ]

    def _suspicious(self, tx: Tx) -> bool:
        """Go a little further; whether something is not as it must be."""
        passed = verify_slowly.pass_over(tx, self._cursor, AT_ONCE)
        self._cursor, self._entries = passed.position, tape.last_position(tx)
        self._tape, wrong = verify_slowly.wrong_heads(tx, self._tape, AT_ONCE)
        return wrong or passed.suspect > 0

    def check(self) -> Check:
        """For the doctor."""
        if self._bad is not None:
            fix = "palyra stop --daemon, then palyra journal restore the newest backup that verifies"
            return Check(id="journal", title="journal", state="fail", detail=_where(self._bad), fix=fix)
        if self._cursor < self._entries or not self._began_ms:
            detail = f"whole as far as it was looked at: {self._cursor} of {self._entries} entries since the start"
            return Check(id="journal", title="journal", state="ok", detail=detail, fix="palyra journal verify looks at all of it")
        return Check(id="journal", title="journal", state="ok", detail=f"{self._entries} entries, whole")


def _where(bad: Bad) -> str:
    return f"position {bad.position}, tape {bad.tape}, number {bad.seq}: {bad.problem}"
