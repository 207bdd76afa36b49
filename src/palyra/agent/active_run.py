"""A run that is being worked on: the handle that its model turns and tool calls share."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from palyra.agent import durable_write
from palyra.agent.prompt.run_context import RunContext
from palyra.agent.session_cache import LiveSession
from palyra.core.events import AnyEvent, ModelFailed, ModelReplied, ModelUsed, RunCompleted
from palyra.core.ids import RunId
from palyra.core.run_progress import CallProgress, RunProgress
from palyra.core.run_state import TERMINAL
from palyra.store import runs, tape
from palyra.store.database import Appended, Database, Tx

T = TypeVar("T")


class RunEnded(Exception):
    """The run is over, by another's doing: there is nothing left to work on."""


class Interrupted(Exception):
    """A person's input ended what was going on; the run itself goes on."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """A model call that was broken off together with its run's task, in the words of the tape.

    `replied` is for a run that ends here, `failed` for one that the next daemon goes on with.
    `events` are to be told before it.
    """

    events: tuple[AnyEvent, ...]
    beside: Callable[[Tx], None] | None
    replied: ModelReplied
    failed: ModelFailed


class RunEnding(NamedTuple):
    """The end of a run, unless something was said to it behind the last entry that its model was
    shown: then there is more to say.
    """

    text: str
    upto_seq: int

    def events(self, tx: Tx, run_id: str) -> tuple[AnyEvent, ...]:
        return (
            () if runs.inputs_after(tx, run_id, self.upto_seq) else (RunCompleted(text=self.text),)
        )


class ActiveRun:
    def __init__(self, db: Database, live: LiveSession, run_id: RunId) -> None:
        self._db = db
        self.live = live
        self.run_id = run_id
        self._inner: asyncio.Future[Any] | None = None
        self._interrupting = False
        # Which surroundings of the prompt this run's steps have put into the store.
        self.surroundings = ""
        # Counts signs of life that leave no entry: words of a model, output of a tool.
        self.pulse = 0
        self._broken_off: Exception | None = None
        self._breakable = False
        # True while something runs that must not be cut short by an interrupt or a shutdown.
        self.in_effect = False
        # What goes around the conversation in this run, once it has been looked up.
        self.around: RunContext | None = None
        # The model call that the end of the task broke off, until it is handed to the store.
        self.cut_off: CutOff | None = None

    @property
    def session_id(self) -> str:
        return self.live.session.session_id

    @property
    def principal(self) -> str:
        return self.live.session.owner

    @property
    def workspace(self) -> str:
        return self.live.session.workspace

    @property
    def progress(self) -> RunProgress:
        try:
            return self.live.conversation.runs[self.run_id]
        except KeyError:
            raise RunEnded from None

    def call(self, call_id: str) -> CallProgress:
        found = self.live.conversation.find_call(call_id)
        assert found is not None, f"no call {call_id} on the tape of {self.session_id}"
        return found[1]

    def append(
        self, *events: AnyEvent, beside: Callable[[Tx], None] | None = None
    ) -> asyncio.Future[list[Appended]]:
        """Append to the run's tape. Await it where durability matters; otherwise the order alone is
        kept.

        `beside` is done in the same step.
        """
        return self._db.write(self._appending(events, beside))

    async def insist(
        self,
        *events: AnyEvent,
        beside: Callable[[Tx], None] | None = None,
        ending: RunEnding | None = None,
    ) -> None:
        """Append what cannot be had again for nothing, however long the store refuses it."""
        await durable_write.write_until_stored(
            self._db, self._appending(events, beside, ending), f"an answer to run {self.run_id}"
        )

    def _appending(
        self,
        events: tuple[AnyEvent, ...],
        beside: Callable[[Tx], None] | None,
        ending: RunEnding | None = None,
    ) -> Callable[[Tx], list[Appended]]:
        def step(tx: Tx) -> list[Appended]:
            if beside is not None:
                beside(tx)
            last = ending.events(tx, self.run_id) if ending is not None else ()
            new = (*events, *last)
            return tape.append(tx, self.session_id, self.principal, new, self.run_id)

        return step

    def record_cut_off(self, *, going_on: bool) -> None:
        """Hand what was broken off to the store, if anything was. The store has it before whatever
        is handed over after this.

        If the run has ended in the meantime, by another's doing, what was used counts all the same.
        """
        cut, self.cut_off = self.cut_off, None
        if cut is None:
            return
        last = cut.failed if going_on else cut.replied
        appending = self._appending((*cut.events, last), cut.beside)

        def step(tx: Tx) -> list[Appended]:
            run = runs.find(tx, self.run_id)
            if run is None or run.state not in TERMINAL:
                return appending(tx)
            return tape.append(
                tx, self.session_id, self.principal, [_used(cut.replied)], self.run_id
            )

        durable_write.soon(self._db, step, f"a part of an answer to run {self.run_id}")

    @property
    def closing(self) -> bool:
        """Return whether nothing can be written any more."""
        return self._db.closed

    def interrupt(self) -> None:
        """End the model call or pure tools that run now, if any; an effect in progress is left
        alone.
        """
        if self._inner is not None and not self._inner.done():
            self._interrupting = True
            self._inner.cancel()

    def break_off(self, error: Exception) -> bool:
        """End the model call that runs now, as if it had failed with this error; whether there is
        one.
        """
        if self._inner is None or self._inner.done() or not self._breakable:
            return False
        self._broken_off = error
        self._inner.cancel()
        return True

    async def interruptible(
        self, work: "Coroutine[Any, Any, T] | asyncio.Future[T]", *, breakable: bool = False
    ) -> T:
        """Do something that an interrupt may end; raises Interrupted then, and CancelledError when
        the run is cancelled.

        What is `breakable` may also be broken off: then it raises the error it was broken off with.
        """
        task = asyncio.ensure_future(work)
        self._inner, self._interrupting, self._breakable = task, False, breakable
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._interrupting and not (current and current.cancelling()):
                raise Interrupted from None
            if self._broken_off is not None and not (current and current.cancelling()):
                raise self._broken_off from None
            raise
        finally:
            self._inner = self._broken_off = None


def _used(replied: ModelReplied) -> ModelUsed:
    return ModelUsed(
        provider=replied.provider,
        model=replied.model,
        task=replied.task,
        purpose="a reply that was broken off",
        usage=replied.usage,
        cost_microusd=replied.cost_microusd,
        priced=replied.priced,
        estimated=replied.estimated,
        first_delta_ms=replied.first_delta_ms,
        duration_ms=replied.duration_ms,
    )
