"""Requests for a vendor's own address, caught on loopback: what is sent depends on whose it is."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

from palyra.core.messages import ModelRequest
from palyra.models.dialects import Dialect, open_provider
from palyra.models.http import HttpClient, ProviderEndpoint, ProviderResponse
from tests.fake_provider import Answer, Answering, FakeProvider, Request


class Elsewhere(HttpClient):
    """Sends everything to a server on loopback, whatever its address says."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._server = urlsplit(url).netloc

    @asynccontextmanager
    async def post(
        self, endpoint: ProviderEndpoint, url: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[ProviderResponse]:
        meant = urlsplit(url)
        here = meant._replace(scheme="http", netloc=self._server).geturl()
        async with super().post(endpoint, here, headers, body) as answer:
            yield answer


async def sent_to(
    dialect: Dialect, base_url: str, request: ModelRequest, answer: Answer, **endpoint: Any
) -> Request:
    """The request as it would arrive at this address."""
    async with FakeProvider(answer) as server:
        http = Elsewhere(server.url)
        try:
            provider = open_provider(
                dialect,
                ProviderEndpoint(name="far", base_url=base_url, api_key="sk-test", **endpoint),
                http,
            )
            await provider.stream(request, lambda channel, text: None)
        finally:
            await http.close()
        return server.requests[0]


@contextmanager
def beside(answer: Answering) -> Iterator[FakeProvider]:
    """A provider on a thread of its own, for a daemon in another process."""
    server, ready, over = FakeProvider(answer), Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with server:
            ready.set()
            await over.wait()

    thread = Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(20)
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(20)
        loop.close()
