"""A wire between a client and a server on loopback that a test cuts at a chosen moment."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

Watch = Callable[[bytes], bool]


class CutWire:
    """Forwards every connection to a port. `before` looks at what a client sends and cuts the wire
    instead of passing it on; `after` passes it on and cuts the wire once the server has answered.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.before: Watch = lambda data: False
        self.after: Watch = lambda data: False
        self.cuts = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """End every connection that is open now."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                self._open += [client, server]
                threading.Thread(target=self._forth, args=(client, server), daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        swallows = threading.Event()
        threading.Thread(target=self._back, args=(client, server, swallows), daemon=True).start()
        with suppress(OSError):
            while data := client.recv(65_536):
                if self.before(data):
                    break
                if self.after(data):
                    swallows.set()
                server.sendall(data)
        if not swallows.is_set():
            self._end(client, server)

    def _back(
        self, client: socket.socket, server: socket.socket, swallows: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if swallows.is_set():
                    break
                client.sendall(data)
        self._end(client, server)

    def _end(self, client: socket.socket, server: socket.socket) -> None:
        self.cuts += 1
        for each in (client, server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
