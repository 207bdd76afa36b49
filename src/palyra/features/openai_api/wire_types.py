"""Types of OpenAI's requests and answers, as far as they mean something here. What is not declared
is ignored, as its programs expect.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Words = Annotated[str, Meta(max_length=256 << 10)]
Short = Annotated[str, Meta(max_length=200)]


class OpenAIInput(Struct, frozen=True, kw_only=True):
    """Base of what comes in."""


class ImageUrl(OpenAIInput, frozen=True, kw_only=True):
    url: str


class FilePart(OpenAIInput, frozen=True, kw_only=True):
    filename: Short = ""
    file_data: str = ""


class ContentPart(OpenAIInput, frozen=True, kw_only=True):
    """`type`: text, image_url, file or refusal in chats; input_text, output_text, input_image or
    input_file in responses.
    """

    type: str
    text: Words = ""
    refusal: Words = ""
    image_url: ImageUrl | str | None = None
    file: FilePart | None = None
    filename: Short = ""
    file_data: str = ""


Content = Words | list[ContentPart] | None


class FunctionCalled(OpenAIInput, frozen=True, kw_only=True):
    name: str = ""
    arguments: str = ""


class ToolCalled(OpenAIInput, frozen=True, kw_only=True):
    id: str = ""
    function: FunctionCalled = FunctionCalled()


class ChatMessage(OpenAIInput, frozen=True, kw_only=True):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content = None
    tool_calls: list[ToolCalled] | None = None
    tool_call_id: str = ""


class Function(OpenAIInput, frozen=True, kw_only=True):
    name: Annotated[str, Meta(pattern="^[a-zA-Z0-9_-]{1,64}$")]
    description: Words | None = None
    parameters: dict[str, Any] | None = None


class ChatTool(OpenAIInput, frozen=True, kw_only=True):
    type: Literal["function"]
    function: Function


class StreamOptions(OpenAIInput, frozen=True, kw_only=True):
    include_usage: bool = False


class ChatRequest(OpenAIInput, frozen=True, kw_only=True):
    """Fields that change the answer. `temperature` and its like go to the model."""

    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=20_000)]
    model: Short = ""
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[ChatTool] | None = None
    tool_choice: Any = None
    user: Short | None = None
    n: int | None = None
    logprobs: bool | None = None
    modalities: list[str] | None = None
    response_format: dict[str, Any] | None = None
    functions: list[Any] | None = None
    reasoning_effort: Short | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    service_tier: Short | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    verbosity: Short | None = None
    parallel_tool_calls: bool | None = None
    logit_bias: dict[str, float] | None = None
    web_search_options: dict[str, Any] | None = None


class ResponseItem(OpenAIInput, frozen=True, kw_only=True):
    """`type`: message, function_call, function_call_output; reasoning is passed over."""

    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] = "user"
    content: Content = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: Content = None


class ResponseTool(OpenAIInput, frozen=True, kw_only=True):
    type: str
    name: str = ""
    description: Words | None = None
    parameters: dict[str, Any] | None = None
    # Of a web search.
    filters: dict[str, Any] | None = None


class Reasoning(OpenAIInput, frozen=True, kw_only=True):
    effort: Short | None = None
    summary: Any = None
    generate_summary: Any = None


class ResponseRequest(OpenAIInput, frozen=True, kw_only=True):
    input: Words | Annotated[list[ResponseItem], Meta(min_length=1, max_length=20_000)]
    model: Short = ""
    instructions: Words | None = None
    previous_response_id: Short | None = None
    stream: bool | None = False
    tools: list[ResponseTool] | None = None
    tool_choice: Any = None
    user: Short | None = None
    text: dict[str, Any] | None = None
    background: bool | None = None
    conversation: Any = None
    reasoning: Reasoning | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    service_tier: Short | None = None
    parallel_tool_calls: bool | None = None
    include: list[str] | None = None


class ConversationRequest(OpenAIInput, frozen=True, kw_only=True):
    items: list[Any] | None = None


class EmbeddingRequest(OpenAIInput, frozen=True, kw_only=True):
    input: str | Annotated[list[str | int | list[int]], Meta(min_length=1, max_length=8_192)]
    model: Short = ""
    user: Short | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


class CalledFunction(Struct, frozen=True):
    name: str
    arguments: str


class ToolCall(Struct, frozen=True, kw_only=True):
    """`index` stands in streams only."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"
    index: int | UnsetType = UNSET


class CompletionMessage(Struct, frozen=True, kw_only=True):
    content: str | None
    role: Literal["assistant"] = "assistant"
    refusal: None = None
    tool_calls: list[ToolCall] | UnsetType = UNSET


class Choice(Struct, frozen=True, kw_only=True):
    message: CompletionMessage
    finish_reason: str
    index: int = 0
    logprobs: None = None


class CachedTokens(Struct, frozen=True):
    cached_tokens: int = 0


class ReasoningTokens(Struct, frozen=True):
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
    # Where it was said: X-Palyra-Session of the next request.
    palyra_session: str = ""


class OneEmbedding(Struct, frozen=True, kw_only=True):
    index: int
    embedding: list[float] | str
    object: Literal["embedding"] = "embedding"


class EmbeddingUsage(Struct, frozen=True):
    prompt_tokens: int
    total_tokens: int


class EmbeddingList(Struct, frozen=True, kw_only=True):
    data: list[OneEmbedding]
    model: str
    usage: EmbeddingUsage
    object: Literal["list"] = "list"
