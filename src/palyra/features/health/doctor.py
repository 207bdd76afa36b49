"""Looking at everything and saying what is wrong, with a fix for each; mending what can be mended
without asking.

A check says what it found. That it could not look is a finding too, never a failure of the whole.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from palyra.core.errors import Conflict, NotFound, PalyraError, Unavailable
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.store import tape
from palyra.store.database import Database

_LONG_S = 10.0
_SHORT_S = 1.5
State = Literal["ok", "warn", "fail"]


class DoctorCheck(Struct, frozen=True, kw_only=True):
    """`warn` is worth knowing; `fail` must be mended, by `fix`. `repairable`: the daemon can do
    that itself, when it is told to.
    """

    id: str
    title: str
    state: State
    detail: str
    fix: str = ""
    repairable: bool = False


class Diagnosis(Struct, frozen=True):
    ok: bool
    checks: list[DoctorCheck]


class Repair(Struct, frozen=True):
    """Outcome of repairing one check."""

    id: str
    title: str
    worked: bool
    detail: str


class Repaired(Struct, frozen=True):
    """Repairs that were made, and all checks afterwards."""

    ok: bool
    repairs: list[Repair]
    checks: list[DoctorCheck]


# Looks at one thing; `deep` also where that takes long.
Look = Callable[[bool], Awaitable[Sequence[DoctorCheck]]]
# Mends one check and says what it did; PalyraError if it cannot.
Mend = Callable[[DoctorCheck], Awaitable[str]]


def diagnosis(checks: Sequence[DoctorCheck]) -> Diagnosis:
    return Diagnosis(all(each.state != "fail" for each in checks), list(checks))


def unseen(name: str, error: OSError | PalyraError) -> DoctorCheck:
    """The finding that a check could not look."""
    fix = "check who may read it, or name another home folder with --home or PALYRA_HOME"
    if isinstance(error, PalyraError):
        detail = error.message
    else:
        detail = f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}"
    return DoctorCheck(id=name.replace(" ", "_"), title=name, state="fail", detail=detail, fix=fix)


class Doctor:
    """`looks` by name, in the order in which they are shown; `mends` by the first word of a check's
    id.
    """

    def __init__(self, db: Database, looks: Mapping[str, Look], mends: Mapping[str, Mend]) -> None:
        self._db = db
        self._looks = looks
        self._mends = mends

    async def examine(self, *, deep: bool = False) -> Diagnosis:
        found: list[DoctorCheck] = []
        for name, look in self._looks.items():
            # A look that waits for a disk that does not answer is a finding as well.
            patience_s = _SHORT_S if self._db.standing.is_silent else None if deep else _LONG_S
            try:
                async with asyncio.timeout(patience_s):
                    found += await look(deep)
            except TimeoutError:
                found.append(
                    unseen(
                        name, Unavailable(self._db.standing.problem or "the disk does not answer")
                    )
                )
            except (OSError, PalyraError) as error:
                found.append(unseen(name, error))
        return diagnosis(found)

    async def repair(self, by: str, check_id: str = "") -> Repaired:
        """Mend one check, or all that are not well and can be mended. Each is recorded."""
        checks = (await self.examine()).checks
        if check_id and not any(each.id == check_id for each in checks):
            raise NotFound(f"there is no check {check_id[:64]!r}: GET /v1/doctor lists them")
        # What somebody names is mended also where it is nothing worse than worth a word, as a file
        # that was left behind.
        chosen = [
            each
            for each in checks
            if each.repairable and (each.id == check_id if check_id else each.state != "ok")
        ]
        if check_id and not chosen:
            one = next(each for each in checks if each.id == check_id)
            why = "is well" if one.state == "ok" else "cannot be repaired by the daemon"
            raise Conflict(f"{one.title} {why}: {one.fix or one.detail}")
        repairs = [await self._mend(by, each) for each in chosen]
        after = await self.examine()
        return Repaired(after.ok, repairs, after.checks)

    async def _mend(self, by: str, check: DoctorCheck) -> Repair:
        try:
            repair = Repair(
                check.id, check.title, True, await self._mends[check.id.partition(":")[0]](check)
            )
        except PalyraError as error:
            repair = Repair(check.id, check.title, False, error.message)
        except OSError as error:
            repair = Repair(
                check.id,
                check.title,
                False,
                f"{error.filename or check.title}: {(error.strerror or '').lower()}",
            )
        details = {"worked": repair.worked, "detail": repair.detail}
        event = AdminChanged(what="daemon", action="repaired", subject=check.id, details=details)
        await self._db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, by, [event]))
        return repair
