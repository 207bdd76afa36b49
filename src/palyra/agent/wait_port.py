"""Ports of runs that wait: what a model turn asks of them, and what they ask of the notices."""

from collections.abc import Callable, Mapping
from typing import Protocol

from palyra.agent.active_run import ActiveRun
from palyra.core.events import ModelFailed, NoticeAbout, RunWaiting
from palyra.core.messages import Emit, ModelFailure
from palyra.models.routing import ModelRoute, Target
from palyra.store.database import Tx


class OwnerNotices(Protocol):
    """Port that tells the owner something, once for its key."""

    def telling(
        self, about: NoticeAbout, key: str, text: str, link: str = ""
    ) -> Callable[[Tx], bool]: ...


class NoNotices:
    def telling(
        self, about: NoticeAbout, key: str, text: str, link: str = ""
    ) -> Callable[[Tx], bool]:
        return lambda tx: False


class WaitPort(Protocol):
    """Port for a model turn: may this run ask now, and does it wait when it got no answer."""

    def first_free(self, run: ActiveRun, route: ModelRoute) -> int | None:
        """Return which target of the route may be asked first; None: the run has to wait."""

    async def hold(self, run: ActiveRun, target: Target) -> None:
        """Let the run wait without asking. Raise ProviderUnavailable if it is not to wait."""

    async def plan(
        self, run: ActiveRun, failures: Mapping[Target, ModelFailure]
    ) -> RunWaiting | None:
        """Return how the run waits after these failures; None: it has failed."""

    async def begin(self, run: ActiveRun, failed: ModelFailed | None, waiting: RunWaiting) -> None:
        """Record the wait. How long it is, `failed` does not say yet."""

    def listening(self, run: ActiveRun, emit: Emit) -> Emit:
        """The same `emit`, heard by who wants to know that the model answers again."""
