"""Written by scripts/clients.py from the route table: types of the verbs about openai."""

from typing import Any, Literal

from msgspec import Struct, field

from palyra.client.types.status import ModelInfo

__all__ = [
    "CachedTokens",
    "CalledFunction",
    "ChatCompletion",
    "ChatMessage",
    "ChatTool",
    "ChatUsage",
    "Choice",
    "CompletionMessage",
    "ContentPart",
    "Deleted",
    "EmbeddingList",
    "EmbeddingUsage",
    "FilePart",
    "Function",
    "FunctionCalled",
    "ImageUrl",
    "ItemList",
    "ModelList",
    "OneEmbedding",
    "OpenAIModel",
    "Reasoning",
    "ReasoningTokens",
    "Response",
    "ResponseItem",
    "ResponseTool",
    "ResponseUsage",
    "StreamOptions",
    "ToolCall",
    "ToolCalled",
]


class CalledFunction(Struct, frozen=True, kw_only=True):
    name: str
    arguments: str


class ToolCall(Struct, frozen=True, kw_only=True):
    """`index` stands in streams only."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"
    index: int | None = None


class CompletionMessage(Struct, frozen=True, kw_only=True):
    content: str | None
    role: Literal["assistant"] = "assistant"
    refusal: None = None
    tool_calls: list[ToolCall] | None = None


class Choice(Struct, frozen=True, kw_only=True):
    message: CompletionMessage
    finish_reason: str
    index: int = 0
    logprobs: None = None


class CachedTokens(Struct, frozen=True, kw_only=True):
    cached_tokens: int = 0


class ReasoningTokens(Struct, frozen=True, kw_only=True):
    reasoning_tokens: int = 0


class ChatUsage(Struct, frozen=True, kw_only=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens
    completion_tokens_details: ReasoningTokens


class ChatCompletion(Struct, frozen=True, kw_only=True):
    id: str
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    object: Literal["chat.completion"] = "chat.completion"
    palyra_session: str = ""


class ImageUrl(Struct, frozen=True, kw_only=True):
    url: str


class FilePart(Struct, frozen=True, kw_only=True):
    filename: str = ""
    file_data: str = ""


class ContentPart(Struct, frozen=True, kw_only=True):
    """`type`: text, image_url, file or refusal in chats; input_text, output_text, input_image or
    input_file in responses.
    """

    type: str
    text: str = ""
    refusal: str = ""
    image_url: ImageUrl | str | None = None
    file: FilePart | None = None
    filename: str = ""
    file_data: str = ""


class FunctionCalled(Struct, frozen=True, kw_only=True):
    name: str = ""
    arguments: str = ""


class ToolCalled(Struct, frozen=True, kw_only=True):
    id: str = ""
    function: FunctionCalled = FunctionCalled()


class ChatMessage(Struct, frozen=True, kw_only=True):
    role: Literal["assistant", "developer", "system", "tool", "user"]
    content: str | list[ContentPart] | None = None
    tool_calls: list[ToolCalled] | None = None
    tool_call_id: str = ""


class StreamOptions(Struct, frozen=True, kw_only=True):
    include_usage: bool = False


class Function(Struct, frozen=True, kw_only=True):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ChatTool(Struct, frozen=True, kw_only=True):
    type: Literal["function"]
    function: Function


class ResponseUsage(Struct, frozen=True, kw_only=True):
    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: CachedTokens
    output_tokens_details: ReasoningTokens


class Response(Struct, frozen=True, kw_only=True):
    id: str
    created_at: int
    model: str
    status: Literal["cancelled", "completed", "failed", "in_progress", "incomplete"]
    output: list[dict[str, Any]]
    previous_response_id: str | None
    instructions: str | None
    usage: ResponseUsage | None = None
    error: dict[str, Any] | None = None
    incomplete_details: dict[str, Any] | None = None
    metadata: dict[str, str] = {}
    parallel_tool_calls: bool = True
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    service_tier: str | None = None
    reasoning: dict[str, str | None] | None = None
    tool_choice: Any = "auto"
    tools: list[dict[str, Any]] = []
    text: dict[str, Any] = field(default_factory=lambda: {"format": {"type": "text"}})
    background: bool | None = None
    conversation: dict[str, str] | None = None
    object: Literal["response"] = "response"
    palyra_session: str = ""


class ResponseItem(Struct, frozen=True, kw_only=True):
    """`type`: message, function_call, function_call_output; reasoning is passed over."""

    type: str = "message"
    role: Literal["assistant", "developer", "system", "user"] = "user"
    content: str | list[ContentPart] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: str | list[ContentPart] | None = None


class ResponseTool(Struct, frozen=True, kw_only=True):
    type: str
    name: str = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None
    filters: dict[str, Any] | None = None


class Reasoning(Struct, frozen=True, kw_only=True):
    effort: str | None = None
    summary: Any = None
    generate_summary: Any = None


class Deleted(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["response"] = "response"
    deleted: bool = True


class ItemList(Struct, frozen=True, kw_only=True):
    data: list[dict[str, Any]]
    first_id: str
    last_id: str
    has_more: bool = False
    object: Literal["list"] = "list"


class OpenAIModel(Struct, frozen=True, kw_only=True):
    id: str
    created: int
    owned_by: str
    object: Literal["model"] = "model"


class ModelList(Struct, frozen=True, kw_only=True):
    """`models` is for our own screens, `data` for programs that know OpenAI's."""

    models: list[ModelInfo]
    data: list[OpenAIModel]
    object: Literal["list"] = "list"


class OneEmbedding(Struct, frozen=True, kw_only=True):
    index: int
    embedding: list[float] | str
    object: Literal["embedding"] = "embedding"


class EmbeddingUsage(Struct, frozen=True, kw_only=True):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(Struct, frozen=True, kw_only=True):
    data: list[OneEmbedding]
    model: str
    usage: EmbeddingUsage
    object: Literal["list"] = "list"
