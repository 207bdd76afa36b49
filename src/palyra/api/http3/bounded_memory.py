"""A QUIC connection and an HTTP/3 one whose memory is bounded, whatever the peer sends.

aioquic lets a peer send twice as much each time it has used half, whether or not anybody read it,
and leaves room for what is missing in between: a few datagrams at high offsets would cost us
gigabytes. Here the window only moves on with what was read.
"""

from typing import Any

import pylsqpack
from aioquic.h3.connection import H3Connection
from aioquic.quic.connection import QuicConnection

STREAM_WINDOW = 256 << 10
CONNECTION_WINDOW = 1 << 20


class BoundedConnection(QuicConnection):
    """Connection made from what aioquic's server makes, which knows no other class; so it has no
    state of its own but this.
    """

    # Bytes by stream that were passed to a request and that it has not taken yet.
    held: dict[int, int]

    @classmethod
    def bind(cls, plain: QuicConnection) -> "BoundedConnection":
        plain.__class__ = cls
        assert isinstance(plain, cls)
        plain.held = {}
        return plain

    def unsent(self, stream_id: int) -> int:
        """Bytes of a stream that the peer has not acknowledged."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else len(stream.sender._buffer)

    @property
    def peer(self) -> tuple[str, int]:
        """Return where the peer is now, proven by an answer from there. It may move."""
        path = self._network_paths[0]
        return path.addr[0], path.addr[1]

    def _write_connection_limits(self, builder: Any, space: Any) -> None:
        limit = self._local_max_data
        if limit.value - limit.used < CONNECTION_WINDOW // 2:
            receivers = [
                stream.receiver
                for stream in self._streams.values()
                if not stream.receiver.is_finished
            ]
            waiting = sum(each.highest_offset - each.starting_offset() for each in receivers) + sum(
                self.held.values()
            )
            limit.value = max(limit.value, limit.used - waiting + CONNECTION_WINDOW)
        # Nothing is used, as far as the doubling is concerned.
        used, limit.used = limit.used, 0
        try:
            super()._write_connection_limits(builder, space)
        finally:
            limit.used = used

    def _write_stream_limits(self, builder: Any, space: Any, stream: Any) -> None:
        receiver = stream.receiver
        if stream.max_stream_data_local:
            wanted = receiver.starting_offset() - self.held.get(stream.stream_id, 0) + STREAM_WINDOW
            if wanted - stream.max_stream_data_local >= STREAM_WINDOW // 2:
                stream.max_stream_data_local = wanted
        highest, receiver.highest_offset = receiver.highest_offset, 0
        try:
            super()._write_stream_limits(builder, space, stream)
        finally:
            receiver.highest_offset = highest


class BoundedH3(H3Connection):
    """HTTP/3 without a table that the peer fills: with one, a few bytes stand for kilobytes of
    headers, again and again.
    """

    def _init_connection(self) -> None:
        self._max_table_capacity = self._blocked_streams = 0
        self._decoder = pylsqpack.Decoder(0, 0)
        super()._init_connection()

    def buffered(self, stream_id: int) -> int:
        """Bytes of a frame that is not complete yet."""
        stream = self._stream.get(stream_id)
        return 0 if stream is None else len(stream.buffer)
