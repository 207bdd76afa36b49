"""What providers of every dialect do alike: build a request, send it, and leave out what a server
refuses.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Protocol

import msgspec

from palyra.core.messages import Emit, ModelFailure, ModelReply, ModelRequest, ToolSchema
from palyra.models import request as models_request
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.request import Adapting, Parser
from palyra.models.tool_schemas import Offers
from palyra.models.wire_format import ToolNames

OPENAI_HOST: Final = "api.openai.com"


class MakesParser(Protocol):
    """A parser for one reply."""

    def __call__(
        self, names: ToolNames, emit: Emit, endpoint: ProviderEndpoint, dialect: str, /
    ) -> Parser: ...


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

        def build(without: frozenset[str]) -> dict[str, Any]:
            return self._body(request, names, tools, without)

        async def send(body: bytes) -> ModelReply:
            parser = self.parser(names, emit, self._endpoint, self._dialect)
            try:
                return await models_request.ask(
                    self._http, self._endpoint, self._path, self._headers, body, parser
                )
            except (ModelFailure, asyncio.CancelledError):
                _tell_so_far(parser, emit)
                raise

        return await self._adapting.ask(request.model, build, send)

    @abstractmethod
    def _body(
        self, request: ModelRequest, names: ToolNames, tools: msgspec.Raw, without: frozenset[str]
    ) -> dict[str, Any]:
        """The request in this dialect, without the parts that the server refused before."""

    @staticmethod
    @abstractmethod
    def _tool(tool: ToolSchema, name: str) -> dict[str, Any]:
        """A tool in this dialect, under the name that the provider accepts."""


def bearer(endpoint: ProviderEndpoint) -> dict[str, str]:
    return {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}


def takes_cache_key(endpoint: ProviderEndpoint) -> bool:
    return endpoint.send_cache_key or endpoint.host == OPENAI_HOST


def _tell_so_far(parser: Parser, emit: Emit) -> None:
    """What a reply that breaks off has used beside what was shown of it."""
    usage, arguments = parser.so_far()
    if arguments:
        emit("arguments", arguments)
    if usage.input_tokens:
        emit("usage", msgspec.json.encode(usage).decode())
