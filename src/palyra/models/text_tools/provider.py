"""Stands before a provider and gives its models tools in the way that they can take them."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from palyra.core.messages import (
    NO_CALL,
    Emit,
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    Text,
    ToolMessage,
    ToolSchema,
    UserMessage,
)
from palyra.core.ports import ModelProvider
from palyra.models import wire_format
from palyra.models.text_tools import described, prompt
from palyra.models.text_tools.calls import Offered, TextCall
from palyra.models.text_tools.modes import FoundModes, ToolMode
from palyra.models.text_tools.scan import Read, Scanner
from palyra.models.wire_format import ToolNames

_NOTHING: Final = Offered({}, {})


class ToolProtocols:
    """A provider whose models take tools natively, as text, or not at all.

    `settings` stands for the settings that decide it: what was found out under others is
    forgotten.
    """

    def __init__(
        self,
        inner: ModelProvider,
        configured: Callable[[str], ToolMode],
        found: FoundModes,
        settings: str,
    ) -> None:
        self._inner = inner
        self._configured = configured
        self._found = found
        self._settings = settings
        self._tools: tuple[ToolSchema, ...] = ()
        self._offered = _NOTHING

    @property
    def name(self) -> str:
        return self._inner.name

    def mode(self, model: str) -> ToolMode:
        configured = self._configured(model)
        if configured == "auto" and self._found.wants_text(self.name, model, self._settings):
            return "text"
        return configured

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        match self.mode(request.model):
            case "native":
                return await self._inner.stream(request, emit)
            case "text":
                return await self._as_text(request, emit)
            case "none":
                scanner = Scanner(emit, _NOTHING, "none", bare=False)
                return await self._read(prompt.without_tools(request), scanner)
            case "auto":
                return await self._auto(request, emit)

    async def _auto(self, request: ModelRequest, emit: Emit) -> ModelReply:
        try:
            scanner = Scanner(emit, self._offers(request), "unambiguous", bare=False)
            return await self._read(request, scanner)
        except ModelFailure as failure:
            if failure.failure != "tools_unsupported" or not _has_tools(request):
                raise
            why = failure.message
        await self._found.learn(self.name, request.model, self._settings, why)
        return await self._as_text(request, emit)

    async def _as_text(self, request: ModelRequest, emit: Emit) -> ModelReply:
        # An answer in JSON is asked for: an object alone is that, and not a call.
        bare = not request.json_mode and request.json_schema is None
        asked = bare and prompt.asks_for_object(request)
        offered = self._offers(request, asked=asked)

        def shown(tool: str) -> bool:
            return any(
                name in text for text in _read_by_model(request) for name in offered.names_of(tool)
            )

        scanner = Scanner(emit, offered, "every", bare=bare, shown=shown)
        reply = await self._read(prompt.as_text(request, asked=asked), scanner)
        ended = bare and reply.stop == "end" and not reply.calls
        if ended and described.describes(reply.text, request, offered):
            return msgspec.structs.replace(reply, stop="described")
        return reply

    def _offers(self, request: ModelRequest, *, asked: bool = False) -> Offered:
        if not request.tools or request.tool_choice == NO_CALL:
            return _NOTHING
        if request.tools is not self._tools or asked != self._offered.asked:
            # Whoever offers the same tools passes the same tuple.
            names = ToolNames(tool.name for tool in request.tools)
            spelled = {names.to_wire(tool.name): tool.name for tool in request.tools}
            self._offered = Offered(
                spelled | {tool.name: tool.name for tool in request.tools},
                {tool.name: tool.parameters for tool in request.tools},
                asked=asked,
            )
            self._tools = request.tools
        return self._offered

    async def _read(self, request: ModelRequest, scanner: Scanner) -> ModelReply:
        try:
            reply = await self._inner.stream(request, scanner.hear)
        except (ModelFailure, asyncio.CancelledError):
            scanner.break_off()
            raise
        return _told(reply, scanner.end(reply.stop))


def mode_of(provider: ModelProvider, model: str) -> ToolMode:
    """Return how a provider gives a model its tools."""
    return provider.mode(model) if isinstance(provider, ToolProtocols) else "native"


def _read_by_model(request: ModelRequest) -> Iterator[str]:
    """Return what the model was shown that it did not write itself: messages and results."""
    for message in request.messages:
        if isinstance(message, ToolMessage):
            yield message.text
        elif isinstance(message, UserMessage):
            yield from (part.text for part in message.parts if isinstance(part, Text))


def _has_tools(request: ModelRequest) -> bool:
    return bool(request.tools) or any(isinstance(each, ToolMessage) for each in request.messages)


def _told(reply: ModelReply, read: Read) -> ModelReply:
    """The reply as it was read. One with nothing special in it is the provider's own."""
    if read.stray and not reply.calls and reply.stop == "end":
        reply = msgspec.structs.replace(reply, stop="stray_call")
    if not read.changed:
        return reply
    if reply.calls or not read.calls:
        # A server that gives the calls as calls and as text means them once.
        return msgspec.structs.replace(reply, text=read.text, reasoning=read.reasoning)
    ids = wire_format.unique_ids([""] * len(read.calls))
    return msgspec.structs.replace(
        reply,
        text=read.text,
        reasoning=read.reasoning,
        calls=tuple(_call(id, call) for id, call in zip(ids, read.calls, strict=True)),
        stop="tool_calls" if reply.stop == "end" else reply.stop,
        native=None,
    )


def _call(id: str, call: TextCall) -> ModelCall:
    return ModelCall(
        id=id,
        name=call.name,
        # What JSON can say that UTF-8 cannot is left to whoever parses it.
        arguments="{}" if call.malformed else json.dumps(call.arguments, ensure_ascii=True),
        repaired=", ".join(call.repaired),
        malformed=call.malformed,
    )
