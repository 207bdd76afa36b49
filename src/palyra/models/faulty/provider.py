"""The provider of kind `faulty`: the faulty server, spoken to as any other server is."""

from palyra.core.messages import Emit, ModelReply, ModelRequest
from palyra.core.ports import ModelProvider
from palyra.models.call_limits import CallLimits
from palyra.models.faulty.server import FaultyServer
from palyra.models.http import HttpClient, ProviderEndpoint
from palyra.models.openai_chat import OpenAIChat


class FaultyModel:
    """Opens the server with the first request."""

    def __init__(self, name: str, http: HttpClient, limits: CallLimits) -> None:
        self.name = name
        self._http = http
        self._limits = limits
        self._server = FaultyServer()
        self._provider: ModelProvider | None = None

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        if self._provider is None:
            endpoint = ProviderEndpoint(
                name=self.name, base_url=await self._server.address(), limits=self._limits
            )
            self._provider = OpenAIChat(endpoint, self._http)
        return await self._provider.stream(request, emit)
