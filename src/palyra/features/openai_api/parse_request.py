"""Parser of OpenAI's requests: what is new in them, what was before, what tools gave.

The rule: the messages behind the last one of the assistant are new; all others are what the program
remembers.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from palyra.core.call_options import NOTHING, CallOptions
from palyra.core.errors import InvalidInput
from palyra.core.events import ClientTool, Wanted
from palyra.features.openai_api import answer_options, model_options
from palyra.features.openai_api.answer_options import refuse
from palyra.features.openai_api.file_parts import file, files_of, text_of
from palyra.features.openai_api.history import HistoryCall, HistoryTurn
from palyra.features.openai_api.names import (
    CallName,
    named_call,
    named_conversation,
    named_response,
)
from palyra.features.openai_api.sessions import CallerRequest
from palyra.features.openai_api.wire_types import (
    ChatMessage,
    ChatRequest,
    Content,
    FunctionCalled,
    ResponseItem,
    ResponseRequest,
)

AGENT = "palyra"
SESSION = b"x-palyra-session"
KEY = b"idempotency-key"
# Its dated names, and that of the preview, begin so.
_WEB_SEARCH = "web_search"
_FIELD = re.compile(rb"[!-~]{1,200}")


def chat(body: ChatRequest, headers: dict[bytes, bytes]) -> CallerRequest:
    if (body.n or 1) != 1:
        refuse("n", "there is one answer to a message: leave n out")
    if body.logprobs:
        refuse("logprobs", "an agent's answer has no log probabilities: leave logprobs out")
    if body.modalities and body.modalities != ["text"]:
        refuse("modalities", "answers are text: leave modalities out")
    if body.functions:
        refuse("functions", "functions became tools: use tools")
    if body.logit_bias:
        refuse("logit_bias", "models here cannot be told logit_bias: leave it out")
    tools = tuple(
        ClientTool(
            each.function.name, each.function.description or "", each.function.parameters or {}
        )
        for each in body.tools or ()
    )
    offered, wanted = answer_options.of_chat(body.response_format, body.tool_choice, tools)
    read = _Read.of_chat(body.messages)
    return _asked(
        read,
        headers,
        model=body.model,
        user=body.user or "",
        offered=offered,
        wanted=_with(wanted, model_options.of_chat(body)),
        searches="" if body.web_search_options is None else "web_search_options",
        names=model_options.CHAT_NAMES,
    )


def responses(body: ResponseRequest, headers: dict[bytes, bytes]) -> CallerRequest:
    conversation = conversation_of(body)
    if conversation and body.previous_response_id:
        refuse("conversation", "a response goes on from another one, or in a conversation")
    searches = [each for each in body.tools or () if each.type.startswith(_WEB_SEARCH)]
    if any(each.filters for each in searches):
        refuse("tools", "a web search here has no filters: name the site in the question")
    functions = [each for each in body.tools or () if each not in searches]
    for each in functions:
        if each.type != "function":
            refuse(
                "tools",
                f"the agent has tools of its own and cannot be given {each.type[:40]!r}: offer"
                " functions and web_search only",
            )
    tools = tuple(
        ClientTool(each.name, each.description or "", each.parameters or {}) for each in functions
    )
    offered, wanted = answer_options.of_response(body.text, body.tool_choice, tools)
    items = [ResponseItem(content=body.input)] if isinstance(body.input, str) else body.input
    return _asked(
        _Read.of_items(items),
        headers,
        instructions=body.instructions or "",
        model=body.model,
        user=body.user or "",
        background=bool(body.background),
        conversation=named_conversation(conversation) if conversation else "",
        previous=named_response(body.previous_response_id)[0] if body.previous_response_id else "",
        offered=offered,
        wanted=_with(wanted, model_options.of_response(body)),
        searches="tools" if searches else "",
        names=model_options.RESPONSES_NAMES,
    )


def conversation_of(body: ResponseRequest) -> str:
    """The conversation that a response belongs to, if it names one."""
    named = body.conversation
    if isinstance(named, dict):
        named = named.get("id")
    if named is not None and not isinstance(named, str):
        refuse("conversation", "name a conversation by its id")
    return named or ""


def _with(wanted: Wanted | None, options: CallOptions) -> Wanted | None:
    if options == NOTHING:
        return wanted
    return msgspec.structs.replace(wanted or Wanted(), options=options)


def _asked(
    read: "_Read",
    headers: dict[bytes, bytes],
    *,
    model: str,
    instructions: str = "",
    conversation: str = "",
    **more: Any,
) -> CallerRequest:
    if not (read.text or read.files or read.results):
        raise InvalidInput(
            "there is nothing new to answer: the last message must be the user's, or a result of a"
            " tool"
        )
    return CallerRequest(
        text="\n\n".join(read.text),
        instructions="\n\n".join(filter(None, (instructions, *read.instructions))),
        earlier=tuple(read.turns[: read.behind]),
        new=tuple(read.turns[read.behind :]),
        files=tuple(read.files),
        results=read.results,
        model="" if model == AGENT else model,
        session=conversation or _header(headers, SESSION),
        key=_header(headers, KEY),
        **more,
    )


def _header(headers: dict[bytes, bytes], name: bytes) -> str:
    value = headers.get(name)
    if value is None:
        return ""
    if not _FIELD.fullmatch(value):
        raise InvalidInput(
            f"the header {name.decode()} takes 1 to 200 characters of ASCII, without spaces"
        )
    return value.decode("ascii")


class _Read:
    """A conversation, sorted: all of its turns, and what is new of them."""

    def __init__(self) -> None:
        self.instructions: list[str] = []
        self.turns: list[HistoryTurn] = []
        self.text: list[str] = []
        self.files: list[tuple[str, bytes | str]] = []
        self.results: dict[CallName, str] = {}
        self.behind = 0

    @classmethod
    def of_chat(cls, messages: Sequence[ChatMessage]) -> "_Read":
        read = cls()
        for message in messages:
            text = text_of(message.content)
            match message.role:
                case "system" | "developer":
                    read.instructions.append(text)
                case "assistant":
                    calls = message.tool_calls or ()
                    read._said(text, [(call.id, call.function) for call in calls])
                case "tool":
                    read._add("tool", message.content, message.tool_call_id)
                case "user":
                    read._add("user", message.content)
        return read._sorted()

    @classmethod
    def of_items(cls, items: Sequence[ResponseItem]) -> "_Read":
        read = cls()
        for item in items:
            match item.type:
                case "message" if item.role in ("system", "developer"):
                    read.instructions.append(text_of(item.content))
                case "message" if item.role == "assistant":
                    read._said(text_of(item.content), [])
                case "message":
                    read._add("user", item.content)
                case "function_call":
                    called = FunctionCalled(name=item.name, arguments=item.arguments)
                    read._said("", [(item.call_id, called)])
                case "function_call_output":
                    read._add("tool", item.output, item.call_id)
                case "reasoning":
                    continue
                case other:
                    raise InvalidInput(
                        f"an item of type {other[:40]!r} cannot be taken: send messages and results"
                        " of functions"
                    )
        return read._sorted()

    def _add(self, role: Literal["user", "tool"], content: Content, call_id: str = "") -> None:
        files = files_of(content)
        self.turns.append(HistoryTurn(role, text_of(content), files=files, call_id=call_id))

    def _said(self, text: str, calls: Sequence[tuple[str, FunctionCalled]]) -> None:
        """Add the assistant's words and calls. What stands side by side is one turn."""
        made = tuple(HistoryCall(call_id, each.name, each.arguments) for call_id, each in calls)
        last = self.turns[-1] if self.turns else None
        if last is None or last.role != "assistant":
            self.turns.append(HistoryTurn("assistant", text, made))
            return
        joined = "\n\n".join(filter(None, (last.text, text)))
        self.turns[-1] = HistoryTurn("assistant", joined, (*last.calls, *made))

    def _sorted(self) -> "_Read":
        spoken = [at for at, turn in enumerate(self.turns) if turn.role == "assistant"]
        self.behind = spoken[-1] + 1 if spoken else 0
        for turn in self.turns[self.behind :]:
            if turn.role == "tool":
                self.results[named_call(turn.call_id)] = turn.text
                continue
            if turn.text:
                self.text.append(turn.text)
            for part in turn.files:
                self.files.append(file(part, len(self.files) + 1))
        return self
