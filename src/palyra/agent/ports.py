"""Ports of the loop to features. Each port has a stand-in for a daemon that runs without one."""

from collections.abc import Sequence
from typing import Protocol

from palyra.agent.active_run import ActiveRun
from palyra.agent.prompt.run_context import Recall, RecalledMemory
from palyra.agent.prompt.sources import EMPTY, NONE, Index, Project
from palyra.models.routing import Target


class MemoryRecall(Protocol):
    """Port to memory: finds what is remembered and belongs to what the user says."""

    async def look(self, run: ActiveRun) -> Recall: ...

    async def again(self, run: ActiveRun, memory_ids: Sequence[str]) -> tuple[RecalledMemory, ...]:
        """Return these items as far as they are still remembered."""


class NotesForAgents(Protocol):
    """Reader of a workspace's notes for agents."""

    async def of(self, workspace: str) -> Project: ...


class Compactor(Protocol):
    """Port that condenses a conversation that does not fit."""

    async def before_turn(self, run: ActiveRun, target: Target) -> bool:
        """Condense if the next turn would not fit well; whether that was done."""

    async def make_room(self, run: ActiveRun, target: Target) -> bool:
        """Condense because the provider refused; whether there is room now."""


class SkillIndex(Protocol):
    """Port that tells the model which skills there are."""

    def index(self) -> Index: ...


class JournalCheckpoints(Protocol):
    """Signer of the journal as it is, before and after something that could go wrong. A journal
    that cannot be signed for is told of elsewhere, and keeps nobody from a backup.
    """

    async def try_checkpoint(self) -> bool: ...


class NoSkills:
    def index(self) -> Index:
        return EMPTY


class NoMemory:
    async def look(self, run: ActiveRun) -> Recall:
        return Recall()

    async def again(self, run: ActiveRun, memory_ids: Sequence[str]) -> tuple[RecalledMemory, ...]:
        return ()


class NoNotes:
    async def of(self, workspace: str) -> Project:
        return NONE


class NoCompaction:
    async def before_turn(self, run: ActiveRun, target: Target) -> bool:
        return False

    async def make_room(self, run: ActiveRun, target: Target) -> bool:
        return False
