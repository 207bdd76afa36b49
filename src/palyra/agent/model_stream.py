"""One call of a model while it lasts: what was prepared for it, and what it has said so far."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from palyra.agent.active_run import ActiveRun, RunEnding
from palyra.agent.broadcast import Broadcast
from palyra.agent.turn_cost import CallUsage
from palyra.core.errors import Unavailable
from palyra.core.events import AnyEvent, ModelDelta, ModelReplied, encode
from palyra.core.messages import Channel, ModelRequest
from palyra.core.next_step import ends_with
from palyra.core.repetition import RepeatsItself, RepetitionDetector
from palyra.store.database import Tx
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

# Long enough for a question to leave.
_TOLD_AFTER_S = 0.01
# Of a later turn, whose route people know: one that is answered sooner is told with its answer, in
# one commit.
_TOLD_LATER_S = 0.25


class Stream(CallUsage):
    """Output of one provider call so far.

    Pieces that arrive in the same moment go out together: one redaction, one message, however many
    tokens a read brought.
    """

    def __init__(
        self, hub: Broadcast, clock: Clock, redactor: Redactor, run: ActiveRun, turn: int
    ) -> None:
        super().__init__()
        self._hub = hub
        self._clock = clock
        self._run = run
        self._run_id = run.run_id
        self._tape = run.session_id
        self._turn = turn
        self._safe_text = redactor.stream()
        self._safe_reasoning = redactor.stream()
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[Channel, str]] = []
        self.started_ms = clock.ticks_ms()
        self.first_ms = 0
        self._shown: list[tuple[str, str]] = []
        self._watch_text = RepetitionDetector("text")
        self._watch_reasoning = RepetitionDetector("reasoning")
        self._repeated: RepeatsItself | None = None
        hub.stream_opened(self._tape, self._run_id, self._so_far)

    def emit(self, channel: Channel, piece: str) -> None:
        if self._repeated is not None:
            raise self._repeated
        if channel == "text":
            self.text.append(piece)
        elif channel == "reasoning":
            self.reasoning.append(piece)
        elif channel == "progress":
            self._read(int(piece))
            return
        else:
            super().emit(channel, piece)
            self._run.pulse += 1
            return
        self._waiting.append((channel, piece))
        if not self.first_ms:
            # Nobody who waits for the first word waits for a second one.
            self._flush()
        elif len(self._waiting) == 1:
            self._loop.call_soon(self._flush)

    def _read(self, percent: int) -> None:
        """The server reads the prompt: a sign of life that is on no tape."""
        self._run.pulse += 1
        if self._hub.watched(self._tape):
            delta = ModelDelta(run_id=self._run_id, turn=self._turn, progress=percent)
            self._hub.publish_live(self._tape, encode(delta))

    def _flush(self) -> None:
        if not self._waiting:
            return
        self._run.pulse += 1
        if not self.first_ms:
            self.first_ms = self._clock.ticks_ms()
        text = "".join([piece for channel, piece in self._waiting if channel == "text"])
        reasoning = "".join([piece for channel, piece in self._waiting if channel == "reasoning"])
        self._waiting.clear()
        self._show(
            self._safe_text.feed(text) if text else "",
            self._safe_reasoning.feed(reasoning) if reasoning else "",
        )
        try:
            if text:
                self._watch_text.feed(text)
            if reasoning:
                self._watch_reasoning.feed(reasoning)
        except RepeatsItself as repeated:
            # Raised to the provider with the next piece, or by `check`.
            self._repeated = repeated

    def _show(self, text: str, reasoning: str) -> None:
        if not text and not reasoning:
            return
        self._shown.append((text, reasoning))
        if self._hub.watched(self._tape):
            delta = ModelDelta(run_id=self._run_id, turn=self._turn, text=text, reasoning=reasoning)
            self._hub.publish_live(self._tape, encode(delta))

    def _so_far(self) -> bytes:
        if not self._shown:
            return b""
        text, reasoning = ("".join(pieces) for pieces in zip(*self._shown, strict=True))
        return encode(
            ModelDelta(
                run_id=self._run_id, turn=self._turn, text=text, reasoning=reasoning, whole=True
            )
        )

    def check(self) -> None:
        """Raise RepeatsItself if what has come repeats itself."""
        if self._repeated is not None:
            raise self._repeated

    def cut_back(self, repeated: RepeatsItself) -> None:
        """Keep of a channel only what came before it began to repeat itself."""
        kept = self.text if repeated.channel == "text" else self.reasoning
        kept[:] = ["".join(kept)[: repeated.keep]]

    def finish(self) -> None:
        """Show what was held back as a possible secret: complete, it is safe to show."""
        self._flush()
        self._show(self._safe_text.finish(), self._safe_reasoning.finish())


@dataclass(slots=True)
class Prepared:
    """A request, the events about it that are still to be told, and those that are on their way to
    the tape.
    """

    request: ModelRequest
    events: tuple[AnyEvent, ...]
    # Our own count of what is sent.
    tokens: int
    # The last entry of the tape that it shows.
    upto_seq: int
    # Why it cannot be sent: the model's window is too small for it.
    too_small: str = ""
    # What goes into the store with the events.
    beside: Callable[[Tx], None] | None = None
    # None: they are told with the answer.
    told: "asyncio.Future[Any] | None" = None
    _soon: asyncio.TimerHandle | None = None

    def tell_soon(self, run: ActiveRun) -> None:
        """Record the question once it is on its way: writing must not delay the first word."""
        after_s = _TOLD_AFTER_S if len(self.events) > 1 else _TOLD_LATER_S
        self._soon = asyncio.get_running_loop().call_later(after_s, self._begin, run)

    def _begin(self, run: ActiveRun) -> None:
        self.told = run.append(*self.events, beside=self.beside)

    def not_now(self) -> None:
        """Cancel the planned record: the question is not recorded behind what comes next on the
        tape.
        """
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None

    async def tell(self, run: ActiveRun) -> None:
        self.not_now()
        if self.told is None:
            self._begin(run)
        assert self.told is not None
        await self.told

    @property
    def untold(self) -> tuple[AnyEvent, ...]:
        """The events that are not on their way to the tape."""
        failed = (
            self.told is not None
            and self.told.done()
            and (self.told.cancelled() or self.told.exception() is not None)
        )
        return self.events if self.told is None or failed else ()

    async def answered(self, run: ActiveRun, replied: ModelReplied, now_ms: int) -> None:
        """The answer, behind what was asked, and the run's end with it if it is one. It was paid
        for: while the store refuses it is held, and nobody is asked again.
        """
        self.not_now()
        progress, upto = run.live.conversation.runs.get(run.run_id), self.upto_seq
        ends = progress is not None and ends_with(progress, replied, upto, now_ms)
        ending = RunEnding(replied.text, upto) if ends else None
        try:
            if self.told is not None:
                await self.told
                await run.insist(replied, ending=ending)
                return
        except Unavailable:
            if run.closing:
                raise
        await run.insist(*self.events, replied, beside=self.beside, ending=ending)
