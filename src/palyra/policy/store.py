"""Keeps the set of policies in force. A set is whole or it is not loaded: a broken file leaves the
last good set in force.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from palyra.core.verdicts import Question, Verdict
from palyra.policy import judge, policy_set, sources
from palyra.policy.explain import Explanation, explain
from palyra.policy.policy_set import PolicySet
from palyra.policy.sources import PolicyProblem

T = TypeVar("T")


class Reloaded(Struct, frozen=True, kw_only=True):
    """What a reload did, by policy id. With problems nothing changed and `version` is the one still
    in force.
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
