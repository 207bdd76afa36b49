"""One WebSocket: uvicorn's protocol behind the intake budget.

uvicorn parses every frame of a read at once, and keeps every piece of a message. Here frames come
slice by slice, a message has so many pieces and no more, and nothing is read while the application
has a message to take or the client does not read its answers.
"""

from asyncio import BaseTransport, Transport
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from palyra.api.intake import Budget, Feed

_TOO_BIG = 1009


class WebSocketConnection(WebSocketsSansIOProtocol):
    def __init__(self, budget: Budget, **options: Any) -> None:
        super().__init__(**options)
        self._budget = budget
        self._feed: Feed | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._feed = Feed(cast("Transport", transport), self._parse, self._wants, self._budget)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._feed is not None:
            self._feed.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        assert self._feed is not None
        self._feed.take(data)

    def _wants(self) -> bool:
        """One message at a time; none before the upgrade is answered, none while answers pile
        up.
        """
        answered = self.handshake_complete or not self.handshake_initiated
        return answered and not self.read_paused and self.writable.is_set()

    def _parse(self, piece: memoryview) -> float:
        self.conn.receive_data(cast("bytes", piece))
        cost = self._budget.frame * len(self.conn.events)
        if self.conn.parser_exc is not None:
            self.handle_parser_exception()
            return cost
        waiting = self.queue.qsize()
        self.handle_events()
        if len(self.frames) > self._budget.fragments:
            self.frames = []
            self.conn.fail(_TOO_BIG, f"a message may come in {self._budget.fragments} pieces")
            self.handle_parser_exception()
        return cost + self._budget.message * (self.queue.qsize() - waiting)

    def send_receive_event_to_app(self) -> None:
        paused, self.read_paused = self.read_paused, True
        super().send_receive_event_to_app()
        # The feed pauses the connection; a message that was dropped leaves it as it was.
        self.read_paused = paused or not self.queue.empty()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._wake()

    async def send(self, message: Any) -> None:
        await super().send(message)
        self._wake()

    async def receive(self) -> Any:
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self._wake()
        return message

    def _wake(self) -> None:
        if self._feed is not None:
            self._feed.wake()
