"""Common part of providers of every dialect: build a request, send it, and leave out what a server
refuses.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import msgspec

from palyra.core.messages import Channel, Emit, ModelFailure, ModelReply, ModelRequest, ToolSchema
from palyra.models import model_list
from palyra.models import request as models_request
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.request import Adapting, Parser
from palyra.models.tool_schemas import Offers
from palyra.models.wire_format import ToolNames


class MakesParser(Protocol):
    """A parser for one reply."""

    def __call__(
        self, names: ToolNames, emit: Emit, endpoint: ProviderEndpoint, dialect: str, /
    ) -> Parser: ...


class ReadPieces:
    """Passes on what a parser emits: text that one read brought as one piece, however many tokens
    it is.
    """

    __slots__ = ("_came", "_channel", "_emit", "_pieces")

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._came = False
        self._channel: Channel = "text"
        self._pieces: list[str] = []

    def emit(self, channel: Channel, piece: str) -> None:
        if channel == self._channel:
            self._pieces.append(piece)
            return
        self.flush()
        if channel in ("text", "reasoning"):
            self._channel = channel
            self._pieces.append(piece)
        else:
            self._came = self._came or channel != "progress"
            self._emit(channel, piece)

    def flush(self) -> bool:
        """Pass on what waits; say if the model has said anything yet."""
        if self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._came = True
            self._emit(self._channel, text)
        return self._came


class Speaking(ABC):
    """One configured provider. Its dialect is kept per host: what one server adds to its turns,
    another one refuses.
    """

    speaks: ClassVar[str]
    parser: ClassVar[MakesParser]

    def __init__(
        self,
        endpoint: ProviderEndpoint,
        http: HttpClient,
        *,
        path: str,
        headers: Mapping[str, str],
        adapting: Adapting,
    ) -> None:
        self._endpoint = endpoint
        self._http = http
        self._dialect = f"{self.speaks}@{endpoint.host}"
        self._path = path
        self._headers = headers
        self._adapting = adapting
        self._offers = Offers(self._tool)

    @property
    def name(self) -> str:
        return self._endpoint.name

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        names, tools = self._offers.of(request)
        path = self._path_of(request)

        def build(without: frozenset[str]) -> dict[str, Any]:
            return self._body(request, names, tools, without)

        async def send(body: bytes) -> ModelReply:
            pieces = ReadPieces(emit)
            parser = self.parser(names, pieces.emit, self._endpoint, self._dialect)
            try:
                return await models_request.ask(
                    self._http,
                    self._endpoint,
                    path,
                    self._headers,
                    body,
                    parser,
                    pieces.flush,
                )
            except (ModelFailure, asyncio.CancelledError):
                _tell_so_far(parser, emit)
                raise

        try:
            return await self._adapting.ask(request.model, build, send, request.required)
        except ModelFailure as failure:
            if failure.failure != "model_not_found":
                raise
            listed = await model_list.names(self._http, self._endpoint, self._headers)
            raise model_list.told(failure, listed) from None

    def _path_of(self, request: ModelRequest) -> str:
        return self._path

    @abstractmethod
    def _body(
        self, request: ModelRequest, names: ToolNames, tools: msgspec.Raw, without: frozenset[str]
    ) -> dict[str, Any]:
        """The request in this dialect, without the parts that the server refused before."""

    @staticmethod
    @abstractmethod
    def _tool(tool: ToolSchema, name: str) -> dict[str, Any]:
        """A tool in this dialect, under the name that the provider accepts."""


def told(values: Mapping[str, Any], without: frozenset[str]) -> dict[str, Any]:
    """Return the values that are set, without those that the server refused before."""
    return {
        name: value
        for name, value in values.items()
        if value not in (None, "", ()) and name not in without
    }


def _tell_so_far(parser: Parser, emit: Emit) -> None:
    """Emit what a reply that breaks off has used beside what was shown of it."""
    usage, arguments = parser.so_far()
    if arguments:
        emit("arguments", arguments)
    if usage.input_tokens:
        emit("usage", msgspec.json.encode(usage).decode())
