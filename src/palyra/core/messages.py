"""Messages to a model and its replies, in no vendor's dialect."""

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

from palyra.core.call_options import NOTHING, CallOptions

StopReason = Literal[
    "end",
    "tool_calls",
    "length",
    "content_filter",
    "interrupted",
    # The stream ended without a finish reason: the text is what had come.
    "cut",
    # The reply repeated itself without end and was stopped.
    "repetition",
    # A call was written as text with something behind it, so it was not taken for one.
    "stray_call",
    # The reply tells how a tool would be called, and calls none.
    "described",
]
# `arguments` and `usage` come only from a reply that breaks off: the arguments of its calls so far,
# and what the provider has said so far about the tokens, as JSON of `Usage`.
# `progress` is how much of the prompt a server has read, in percent, before it answers.
Channel = Literal["text", "reasoning", "call", "arguments", "usage", "progress"]
# How a provider hands over a piece of a reply while it streams. Called on the event loop; must not
# block.
Emit = Callable[[Channel, str], None]


class Text(Struct, frozen=True, tag="text"):
    text: str


class Image(Struct, frozen=True, tag="image"):
    media_type: str
    data: bytes


Part = Text | Image


class Native(Struct, frozen=True):
    """A provider's own record of a turn (signed thinking, encrypted reasoning), sent back only to
    the same dialect.
    """

    dialect: str
    items: list[Any]


class ModelCall(Struct, frozen=True, omit_defaults=True):
    """A tool call as the model wrote it: the arguments are its text, not yet parsed.

    Of a call that was written as text: what had to be repaired in it, or why it cannot be read.
    """

    id: str
    name: str
    arguments: str
    repaired: str = ""
    malformed: str = ""


class UserMessage(Struct, frozen=True, tag="user"):
    parts: tuple[Part, ...]


class AssistantMessage(Struct, frozen=True, tag="assistant", omit_defaults=True):
    text: str = ""
    reasoning: str = ""
    calls: tuple[ModelCall, ...] = ()
    native: Native | None = None


class ToolMessage(Struct, frozen=True, tag="tool", omit_defaults=True):
    call_id: str
    name: str
    text: str
    is_error: bool = False
    images: tuple[Image, ...] = ()


Message = UserMessage | AssistantMessage | ToolMessage


class ToolSchema(Struct, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]


class AnswerSchema(Struct, frozen=True, omit_defaults=True):
    """Schema of an answer in JSON. `strict`: the provider may be told to enforce it."""

    name: str
    schema: dict[str, Any]
    strict: bool = False


# Instead of a tool's name, where a request says which one is to be called.
NO_CALL: Final = "-"
ANY_CALL: Final = "*"


class ModelRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    model: str
    instructions: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    max_output_tokens: int | None = None
    # `max_tokens` of these is said by `max_output_tokens`, which a budget may lower.
    options: CallOptions = NOTHING
    # Those of the options that a caller asked for: they are not left out for a server's sake.
    required: tuple[str, ...] = ()
    json_mode: bool = False
    json_schema: AnswerSchema | None = None
    # The tool that must be called, ANY_CALL, or NO_CALL; empty: the model chooses.
    tool_choice: str = ""
    # The prompt was fitted to a small window. Models that have one follow short, late and repeated
    # instructions better than long and early ones.
    fitted: bool = False
    # Stable over a session: providers that cache prompts by key get it.
    cache_key: str = ""


class Usage(Struct, frozen=True, omit_defaults=True):
    """`input_tokens` counts everything sent, cached parts included; `output_tokens` everything
    produced, reasoning included.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


class ModelReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A finished model turn."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ModelCall, ...] = ()
    stop: StopReason = "end"
    usage: Usage = Usage()
    model: str = ""
    native: Native | None = None


FailureClass = Literal[
    "auth",
    "permission",
    "rate_limited",
    "quota",
    "overloaded",
    "context_too_long",
    "model_not_found",
    # The model, or its server, takes no tools as tools.
    "tools_unsupported",
    # The address answers, but not as a model server does.
    "not_a_model_server",
    # The stream ended without a finish reason.
    "cut",
    "content_blocked",
    "malformed",
    "network",
    "timeout",
    "bad_request",
    # The daemon ended while the reply was on its way.
    "interrupted",
]


class ModelFailure(Exception):
    """A provider call that gave no reply. Raised by adapters, translated once by the model turn.

    `sent`: the request has left and the provider did not refuse it, so it may be billed. A status
    other than 2xx is a refusal.
    """

    def __init__(
        self,
        failure: FailureClass,
        message: str,
        *,
        retry_after_ms: int | None = None,
        sent: bool = False,
    ) -> None:
        super().__init__(f"{failure}: {message}")
        self.failure = failure
        self.message = message
        self.retry_after_ms = retry_after_ms
        self.sent = sent
