"""A model that says what a script says, shipped for tests of every kind, also of a daemon in
another process.

Its place in the script is read off the request, never remembered: a crash between two turns changes
nothing. Only "fail the first n times" counts in memory, because a failure leaves no trace in the
conversation.
"""

import asyncio
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.messages import (
    AssistantMessage,
    Emit,
    FailureClass,
    Message,
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    StopReason,
    Text,
    Usage,
    UserMessage,
)
from palyra.models import usage_estimate

ANY = "*"
_POLL_S = 0.005
_KEPT_REQUESTS = 64


class ScriptedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`arguments` as an object, or as text where a test wants a model that writes broken JSON."""

    name: str
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)
    id: str = ""


class ScriptedFailure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Failure of a turn: the first `times` times it is asked for, or always; after `after` text
    deltas were shown.
    """

    failure: FailureClass
    message: str = "the script says so"
    times: int | None = None
    after: int = 0
    retry_after_ms: int | None = None


class Turn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reply. `hold` names a point to wait at, reached after `hold_after` text deltas (and
    before any call).
    """

    text: tuple[str, ...] | str = ()
    reasoning: tuple[str, ...] | str = ()
    calls: tuple[ScriptedCall, ...] = ()
    stop: StopReason | None = None
    usage: Usage | None = None
    fail: ScriptedFailure | None = None
    hold: str = ""
    hold_after: int = 0


class StreamPause:
    """A point in a stream where a test in the same process makes the model wait."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.released = asyncio.Event()


Turns = tuple[Turn, ...]
_decoder: msgspec.json.Decoder[dict[str, Turns]] = msgspec.json.Decoder(dict[str, Turns])


class Script(Struct, frozen=True):
    """Turns by the first line of the user message that sets them off; the entry `*` is for
    everything else.

    Messages that set nothing off continue the script that is under way.
    """

    by_trigger: dict[str, Turns]

    @classmethod
    def load(cls, path: Path) -> "Script":
        """From a JSON file: `{"script: three-writes": [{"calls": [...]}, {"text": ["do", "ne"]}],
        "*": [...]}`.
        """
        try:
            return cls(_decoder.decode(path.read_bytes()))
        except OSError as error:
            raise InvalidInput(f"the script {path} cannot be read: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise InvalidInput(f"the script {path} is not valid: {error}") from error

    @classmethod
    def of(cls, turns: Iterable[Turn]) -> "Script":
        """One list for the whole conversation, whatever is said in it."""
        return cls({ANY: tuple(turns)})

    def turn(self, request: ModelRequest) -> tuple[str, int, Turn]:
        """The trigger, the number and the turn that this request is at."""
        trigger, since = self._under_way(request.messages)
        turns = self.by_trigger.get(trigger)
        if turns is None:
            known = ", ".join(sorted(self.by_trigger)) or "none"
            raise ModelFailure(
                "bad_request", f"no script is set off by the conversation; there are: {known}"
            )
        number = sum(isinstance(message, AssistantMessage) for message in since)
        if number >= len(turns):
            raise ModelFailure(
                "bad_request",
                f"the script {trigger!r} has {len(turns)} turns and is asked for one more",
            )
        return trigger, number, turns[number]

    def _under_way(self, messages: tuple[Message, ...]) -> tuple[str, tuple[Message, ...]]:
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            if isinstance(message, UserMessage):
                for part in message.parts:
                    line = (
                        part.text.strip().partition("\n")[0].strip()
                        if isinstance(part, Text)
                        else ""
                    )
                    if line != ANY and line in self.by_trigger:
                        return line, messages[at + 1 :]
        return ANY, messages


class ScriptedModel:
    """Plays a Script, a list of turns, or what a function of the request returns.

    A hold whose name is in `holds` waits for that Hold; any other name is a path: the model writes
    `<path>.reached` and waits until `<path>` exists. `requests` keeps the last requests for tests
    to look at.
    """

    def __init__(
        self,
        script: Script | Iterable[Turn] | Callable[[ModelRequest], Turn],
        *,
        name: str = "scripted",
        holds: Mapping[str, StreamPause] | None = None,
    ) -> None:
        self._script = (
            script if isinstance(script, Script) or callable(script) else Script.of(script)
        )
        self._name = name
        self._holds = dict(holds or {})
        self._failures: Counter[tuple[str, int]] = Counter()
        self.requests: deque[ModelRequest] = deque(maxlen=_KEPT_REQUESTS)

    @property
    def name(self) -> str:
        return self._name

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        self.requests.append(request)
        if isinstance(self._script, Script):
            trigger, number, turn = self._script.turn(request)
        else:
            trigger, turn = ANY, self._script(request)
            number = _said(request)
        failure = self._failure(turn, (trigger, number))
        deltas = _pieces(turn.text)
        for delta in _pieces(turn.reasoning):
            emit("reasoning", delta)
            await asyncio.sleep(0)
        for shown in range(len(deltas) + 1):
            if turn.hold and shown == min(turn.hold_after, len(deltas)):
                await self._wait(turn.hold)
            if failure is not None and shown == min(failure.after, len(deltas)):
                raise ModelFailure(
                    failure.failure, failure.message, retry_after_ms=failure.retry_after_ms
                )
            if shown < len(deltas):
                emit("text", deltas[shown])
                await asyncio.sleep(0)
        return self._reply(request, turn, emit)

    def _failure(self, turn: Turn, place: tuple[str, int]) -> ScriptedFailure | None:
        if turn.fail is None:
            return None
        self._failures[place] += 1
        return (
            turn.fail
            if turn.fail.times is None or self._failures[place] <= turn.fail.times
            else None
        )

    def _reply(self, request: ModelRequest, turn: Turn, emit: Emit) -> ModelReply:
        said = _said(request)
        calls = tuple(
            ModelCall(
                id=call.id or f"call_{said}_{at}",
                name=call.name,
                arguments=_written(call.arguments),
            )
            for at, call in enumerate(turn.calls)
        )
        for call in calls:
            emit("call", call.name)
        text, reasoning = "".join(_pieces(turn.text)), "".join(_pieces(turn.reasoning))
        return ModelReply(
            text=text,
            reasoning=reasoning,
            calls=calls,
            stop=turn.stop or ("tool_calls" if calls else "end"),
            usage=turn.usage
            or usage_estimate.usage(
                request,
                text=text,
                reasoning=reasoning,
                arguments="".join(call.arguments for call in calls),
            ),
            model=request.model,
        )

    async def _wait(self, name: str) -> None:
        hold = self._holds.get(name)
        if hold is not None:
            hold.reached.set()
            await hold.released.wait()
            return
        path = Path(name)
        path.with_name(path.name + ".reached").touch()
        # A file is the only signal a test can give to a daemon in another process, and it must be
        # seen on every platform.
        while not os.path.exists(path):  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(_POLL_S)


def _pieces(text: tuple[str, ...] | str) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) and text else tuple(text)


def _said(request: ModelRequest) -> int:
    return sum(isinstance(message, AssistantMessage) for message in request.messages)


def _written(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
