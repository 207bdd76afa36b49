"""The seams with more than one real implementation behind them. Each has one contract test
suite.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from palyra.core.messages import Emit, ModelReply, ModelRequest
from palyra.core.tools import Preview, Scope, Subject, ToolResult, ToolSpec
from palyra.core.verdicts import Question, Verdict


class ModelProvider(Protocol):
    """One configured provider. `stream` hands pieces to `emit` as they arrive and returns the
    finished turn.

    It raises ModelFailure and nothing else for a call that gave no reply. Cancelling the task
    aborts the call. A stream that ends early never yields a completed tool call.
    """

    @property
    def name(self) -> str: ...

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply: ...


class Policy(Protocol):
    """Decides calls. Anything that goes wrong inside is a Deny, never an exception."""

    @property
    def version(self) -> str: ...

    def judge(self, question: Question) -> Verdict: ...


class CallContext(Struct, frozen=True, kw_only=True):
    """Context of a call, for the tool that serves it. `workspace` is the session's root folder,
    resolved.
    """

    principal: str
    session_id: str
    run_id: str
    call_id: str
    workspace: str
    key: str = ""
    # How often it has been started, this time included.
    attempt: int = 1
    progress: Callable[[str], None] = lambda text: None


class InDoubt(Exception):
    """Raised by a tool that cannot know whether its call happened: whoever did it is gone. The call
    is settled by its effect.
    """


class Tool(Protocol):
    """One tool. Arguments are a validated instance of its own argument type; see
    `palyra.tools.catalogue`.
    """

    @property
    def spec(self) -> ToolSpec: ...

    def scope(self, arguments: object, workspace: str) -> Scope: ...

    def subjects(self, scope: Scope) -> tuple[Subject, ...]: ...

    def preview(self, arguments: object, workspace: str) -> Preview: ...

    async def execute(self, arguments: object, context: CallContext) -> ToolResult: ...


class Embedder(Protocol):
    """Texts as vectors whose angles say how near they are in meaning. It raises Unavailable, and
    nothing else, if it cannot.
    """

    @property
    def name(self) -> str:
        """The model: vectors of one model are never compared with those of another."""
        ...

    @property
    def running(self) -> bool:
        """Return whether the embedder can answer now, without being started first."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """One vector of length 1 for each text: 384 numbers, float32, little endian."""
        ...

    async def close(self) -> None: ...
