"""What the loop asks of features. Each port has a stand-in for a daemon that runs without one."""

from typing import Protocol

from palyra.agent.active_run import ActiveRun
from palyra.agent.prompt.run_context import RecalledMemory
from palyra.agent.prompt.sources import EMPTY, NONE, Index, Project
from palyra.models.routing import Target


class MemoryRecall(Protocol):
    """Finds what is remembered and belongs to what the user says."""

    async def look(self, run: ActiveRun) -> tuple[RecalledMemory, ...]: ...


class NotesForAgents(Protocol):
    """Reads a workspace's notes for agents."""

    async def of(self, workspace: str) -> Project: ...


class Compactor(Protocol):
    """Condenses a conversation that does not fit."""

    async def before_turn(self, run: ActiveRun, target: Target) -> bool:
        """Condense if the next turn would not fit well; whether that was done."""

    async def make_room(self, run: ActiveRun, target: Target) -> bool:
        """Condense because the provider refused; whether there is room now."""


class SkillIndex(Protocol):
    """Tells the model which skills there are."""

    def index(self) -> Index: ...


class NoSkills:
    def index(self) -> Index:
        return EMPTY


class NoMemory:
    async def look(self, run: ActiveRun) -> tuple[RecalledMemory, ...]:
        return ()


class NoNotes:
    async def of(self, workspace: str) -> Project:
        return NONE


class NoCompaction:
    async def before_turn(self, run: ActiveRun, target: Target) -> bool:
        return False

    async def make_room(self, run: ActiveRun, target: Target) -> bool:
        return False
