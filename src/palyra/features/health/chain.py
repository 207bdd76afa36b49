"""The watchdog's check of the journal's chain: a few entries at each look, round and round, so that
it costs next to nothing.
"""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from palyra.core.errors import NotFound, Unavailable
from palyra.features.health import rows
from palyra.features.health.doctor import DoctorCheck
from palyra.features.health.watchdog import HealthFinding, LookTime, Remedy
from palyra.store import sqlite_files, tape, verify
from palyra.store.database import Database, Tx
from palyra.store.upkeep import Upkeep
from palyra.store.verify import Bad
from palyra.system.thread_pool import everyday
from palyra.tools.sandbox.cgroups import free

AT_ONCE = 500
ROUND_MS = 24 * 3_600_000
# Between two walks over everything.
PAUSE_MS = 3_600_000
_KEY = "chain"
_FIX = "palyra stop --daemon, then palyra journal restore the newest backup that verifies"
# What was set aside because it was wrong, or replaced.
_NO_BACKUPS = ("broken-", "replaced-")
_MOST_BACKUPS = 5
_LEAST_FREE = 64 << 20


class ChainWatched:
    """Look of the watchdog at new entries soon after they came, and at all of them once a day. A
    suspicion is confirmed by walking everything.
    """

    def __init__(self, db: Database, journal: Upkeep) -> None:
        self._db = db
        self._journal = journal
        self._cursor = 0
        self._tape = ""
        self._entries = 0
        self._began_ms = 0
        # What is wrong, once something is.
        self._problem = ""
        self._doubt = False
        self._inspected_ms = 0

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        if not self._began_ms:
            self._began_ms = moment.now_ms
            # An incident that an earlier process left open is over when a walk says so, and not
            # because this one knows nothing yet.
            self._doubt = await self._db.read(lambda tx: rows.find_open(tx, _KEY)) is not None
        await self._go_on(moment.now_ms)
        if not self._problem:
            return []
        return [
            HealthFinding(
                key=_KEY,
                domain="journal",
                summary=f"the journal's chain is broken: {self._problem}",
                severity="critical",
                fix=_FIX,
                remedies=(
                    Remedy("keep the evidence", partial(everyday.run, self._secure, moment.now_ms)),
                ),
                tries=1,
                stays=True,
            )
        ]

    async def _go_on(self, now_ms: int) -> None:
        damage = ""
        try:
            self._doubt |= bool(self._problem) or await self._db.read(self._suspicious)
        except Unavailable as error:
            damage = _damage(error)
        if (self._doubt or damage) and now_ms - self._inspected_ms >= PAUSE_MS:
            # Tapes that are being archived look odd for a while: everything is walked for that now
            # and then, not at each look.
            self._problem = await everyday.run(self._second_opinion, damage)
            self._doubt, self._inspected_ms = False, now_ms
        if self._cursor >= self._entries and now_ms - self._began_ms >= ROUND_MS:
            self._cursor, self._began_ms = 0, now_ms

    def _second_opinion(self, damage: str) -> str:
        """Return what walking everything, twice if need be, finds wrong; empty if the journal is
        whole.

        `damage` is what SQLite said of a page. The walk may not have read that page, so SQLite is
        asked about all of them.
        """
        try:
            bad = self._journal.inspect().bad
        except Unavailable as error:
            return _damage(error)
        if bad is not None:
            return _where(bad)
        return damage if damage and self._journal.page_problems() else ""

    def _secure(self, now_ms: int) -> str:
        """A copy of the journal as it is, before anything else becomes of it; and the backup to go
        back to, looked for now.

        Going back loses what came since: that is for a person to decide.
        """
        home = self._journal.path.parent
        folder, size = home / "backups", self._journal.size()
        if free(str(home)) < 2 * size + _LEAST_FREE:
            raise Unavailable(
                f"there is no room for a copy of the journal ({size} bytes): copy"
                f" {self._journal.place}"
                " yourself"
            )
        folder.mkdir(mode=0o700, exist_ok=True)
        target = folder / time.strftime("broken-%Y%m%d-%H%M%S.db", time.gmtime(now_ms / 1000))
        self._journal.keep_evidence(target)
        return f"a copy as it is: {target}; {_way_back(folder)}"

    def _suspicious(self, tx: Tx) -> bool:
        """Go a little further; whether something is not as it must be."""
        passed = verify.pass_over(tx, self._cursor, AT_ONCE)
        self._cursor, self._entries = passed.position, tape.last_position(tx)
        self._tape, wrong = verify.wrong_heads(tx, self._tape, AT_ONCE)
        return wrong or passed.suspect > 0

    def check(self) -> DoctorCheck:
        """Return the check for the doctor."""
        if self._problem:
            return DoctorCheck(
                id="journal", title="journal", state="fail", detail=self._problem, fix=_FIX
            )
        if self._cursor < self._entries or not self._began_ms:
            detail = (
                f"whole as far as it was looked at: {self._cursor} of {self._entries} entries since"
                " the start"
            )
            return DoctorCheck(
                id="journal",
                title="journal",
                state="ok",
                detail=detail,
                fix="palyra journal verify looks at all of it",
            )
        return DoctorCheck(
            id="journal", title="journal", state="ok", detail=f"{self._entries} entries, verified"
        )


def _way_back(folder: Path) -> str:
    """The newest backup that verifies."""
    kept = [path for path in folder.glob("*.db") if not path.name.startswith(_NO_BACKUPS)]
    for path in sorted(kept, key=lambda each: each.stat().st_mtime_ns, reverse=True)[
        :_MOST_BACKUPS
    ]:
        try:
            report = sqlite_files.inspect(path)
        except (NotFound, Unavailable):
            continue
        if report.ok:
            return f"the newest backup that verifies is {path.name}, with {report.entries} entries"
    return "there is no backup that verifies"


def _damage(error: Unavailable) -> str:
    """Return what is damaged, or raise what only kept us from looking."""
    if not error.details.get("damaged"):
        raise error
    return error.message


def _where(bad: Bad) -> str:
    return f"position {bad.position}, tape {bad.tape}, number {bad.seq}: {bad.problem}"
