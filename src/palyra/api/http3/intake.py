"""QUIC behind the intake budget: nobody takes more of the event loop than their share, and no
datagram is larger than a path's.

A datagram costs a hundred times what reading it from the socket costs, and what is inside may cost
more. Nothing can be paused here: a datagram that is too much is dropped, as a busy network would
drop it, and whoever means it sends it again.
"""

from typing import Any

from aioquic.asyncio.server import QuicServer

from palyra.api.intake import BUDGET, Share

_LONG_HEADER = 0x80


class MeteredServer(QuicServer):
    """Datagrams of no connection share one meter: answering them takes a key, and they have no
    other.
    """

    strangers: Share

    def datagram_received(self, data: Any, addr: Any) -> None:
        if not data or len(data) > BUDGET.datagram_bytes:
            return
        if self._addressed(data) in self._protocols:
            super().datagram_received(data, addr)
        elif not self.strangers.spent:
            with self.strangers.taking():
                super().datagram_received(data, addr)

    def _addressed(self, data: bytes) -> bytes:
        """The connection that a datagram names."""
        if data[0] & _LONG_HEADER:
            return bytes(data[6 : 6 + data[5]]) if len(data) > 6 else b""
        return bytes(data[1 : 1 + self._configuration.connection_id_length])
