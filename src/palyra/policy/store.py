"""Keeps the set of policies in force. A set is whole or it is not loaded: a broken file leaves the
last good set in force.

Puts on the system tape what a reload of the policies did, also when it did nothing because a
file is wrong.

Policies that are in force for single runs.

A second set of policies that is asked beside the one in force. It is recorded where it differs
and enforced nowhere.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM_TAPE
from palyra.core.ports import Policy
from palyra.core.verdicts import Question, Verdict
from palyra.policy import judge, policy_set, sources
from palyra.policy.policy_set import PRESETS, PolicySet
from palyra.policy.reports import Explanation, explain
from palyra.policy.sources import PolicyProblem
from palyra.store import policy_sets, tape
from palyra.store.database import Database
from palyra.store.policy_sets import PolicyTexts

T = TypeVar("T")


class Reloaded(Struct, frozen=True, kw_only=True):
    """Result of a reload, by policy id. With problems nothing changed and `version` is the one
    still in force.
    """

    version: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problems: tuple[PolicyProblem, ...] = ()


def load(folder: Path | None, preset: str) -> PolicySet:
    """The shipped preset with the operator's files, or ConfigInvalid with every problem. No folder:
    the preset alone.
    """
    found, problems = policy_set.build(folder, preset)
    if found is None:
        raise sources.refuse(problems)
    return found


def check(folder: Path | None, preset: str) -> list[PolicyProblem]:
    """Everything wrong with the folder; empty means it would load."""
    return policy_set.build(folder, preset)[1]


class PolicyStore:
    """The Policy port over files. Reading it is safe from any thread: the set in force is one
    reference, swapped whole.
    """

    def __init__(self, folder: Path | None, preset: str) -> None:
        self.folder = folder
        self.preset = preset
        self.current = load(folder, preset)
        # One reload at a time: a slow one must not put back what another has replaced meanwhile.
        self._reloading = threading.Lock()

    @property
    def version(self) -> str:
        return self.current.version

    def judge(self, question: Question) -> Verdict:
        return judge.judge(self.current, question)

    def may_approve(self, question: Question) -> bool:
        return judge.may_approve(self.current, question)

    def explain(self, question: Question) -> Explanation:
        return explain(self.current, question)

    def reload(self, preset: str = "") -> Reloaded:
        """Read the folder again, and go over to another preset if one is named. Reads files: call
        it from a thread.
        """
        with self._reloading:
            return self._reload(preset or self.preset)

    def change(self, act: Callable[[], T]) -> tuple[T, Reloaded]:
        """Do something to the files, and read them with nobody else doing so in between: what is
        told is what that changed.
        """
        with self._reloading:
            return act(), self._reload(self.preset)

    def _reload(self, wanted: str) -> Reloaded:
        before = self.current
        after, problems = policy_set.build(self.folder, wanted)
        if after is None:
            return Reloaded(version=before.version, problems=tuple(problems))
        self.current, self.preset = after, wanted
        kept = before.by_id.keys() & after.by_id.keys()
        return Reloaded(
            version=after.version,
            added=tuple(sorted(after.by_id.keys() - kept)),
            removed=tuple(sorted(before.by_id.keys() - kept)),
            changed=tuple(
                sorted(each for each in kept if before.by_id[each].text != after.by_id[each].text)
            ),
        )


log = logging.getLogger("palyra")


async def keep(db: Database, texts: PolicyTexts) -> None:
    """Keep the texts of the policies in force: decisions on the tape name them by their digest."""
    if await db.read(lambda tx: policy_sets.find(tx, texts.version)) is None:
        await db.write(lambda tx: policy_sets.keep(tx, texts))


async def record(
    db: Database, principal: str, change: Reloaded, in_force: PolicyTexts | None = None
) -> None:
    """Put a reload on the tape. Without `in_force` it was of the second set, which is asked beside
    the one in force.
    """
    shadow = in_force is None
    if in_force is not None:
        await keep(db, in_force)
    which = "shadow policies" if shadow else "policies"
    if change.problems:
        log.error(
            "the %s have problems, the last good set stays: %s",
            which,
            "; ".join(map(str, change.problems)),
        )
    event = AdminChanged(
        what="policy",
        action="rejected" if change.problems else "reloaded",
        subject=change.version,
        details={
            "added": list(change.added),
            "removed": list(change.removed),
            "changed": list(change.changed),
            "problems": [str(problem) for problem in change.problems],
            **({"shadow": True} if shadow else {}),
        },
    )
    await db.write(lambda tx: tape.append(tx, SYSTEM_TAPE, principal, [event]))


class OtherPolicies:
    """Policies that are in force for single runs, by folder; with the preset of the daemon."""

    def __init__(self, preset: Callable[[], str]) -> None:
        self._preset = preset
        self._loaded: dict[str, PolicyStore] = {}

    def load(self, named: str) -> str:
        """Read a folder as it is now; its full path. InvalidInput or ConfigInvalid if it does not
        load.
        """
        path = Path(named).expanduser().resolve()
        if not path.is_dir():
            raise InvalidInput(f"{named} is not a folder of policies", policy=named)
        self._loaded[str(path)] = PolicyStore(path, self._preset())
        return str(path)

    def of(self, folder: str) -> Policy:
        return self._loaded[folder if folder in self._loaded else self.load(folder)]


class ShadowPolicy(PolicyStore):
    """The policies on trial."""


class ShadowSlot:
    """Slot of the shadow policies, or none. They are exchanged while runs continue."""

    def __init__(self, current: ShadowPolicy | None = None) -> None:
        self.current = current
        self.exchanged = asyncio.Event()

    def use(self, shadow: ShadowPolicy | None) -> None:
        self.current = shadow
        self.exchanged.set()


def open_shadow(named: str, folder: Path | None, preset: str) -> ShadowPolicy | None:
    """The set that `named` means: a preset with the folder in force, or another folder with the
    preset in force.

    ConfigInvalid if it does not load: a trial that silently tries nothing would be misread.
    """
    if not named:
        return None
    return (
        ShadowPolicy(folder, named)
        if named in PRESETS
        else ShadowPolicy(Path(named).expanduser(), preset)
    )


def name(shadow: PolicyStore) -> str:
    """Return which set it is, for people."""
    return f"preset {shadow.preset}" + (f" with {shadow.folder}" if shadow.folder else "")
