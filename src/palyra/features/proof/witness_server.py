"""A witness over HTTP: one route, a small body, threads. TLS is for the proxy before it."""

import logging
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from palyra.features.proof.witness import MOST_BYTES, Witness, WitnessReply

log = logging.getLogger("palyra.witness")
_SECONDS = 10.0


def serve(witness: Witness, host: str, port: int) -> ThreadingHTTPServer:
    """Return a server that is bound and not yet running."""
    return ThreadingHTTPServer((host, port), _handler(witness))


def _handler(witness: Witness) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _SECONDS
        server_version = "palyra-witness"
        sys_version = ""

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if self.path.rpartition("/")[2] != "add-checkpoint":
                self._answer(WitnessReply(404, "there is only add-checkpoint here\n"))
            elif not length.isdecimal() or int(length) > MOST_BYTES:
                self._answer(WitnessReply(413, "this is too long, or has no length\n"))
            else:
                self._answer(witness.add_checkpoint(self.rfile.read(int(length))))

        def _answer(self, reply: WitnessReply) -> None:
            body = reply.text.encode()
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.media)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            log.info(format, *args)

    return Handler
