"""The clients' HTTP: what is cut off while it is read is the daemon's end, and not a defect."""

import socket
import threading

import pytest

from palyra.client import Client
from palyra.client.discovery import DaemonAddress, Unreachable
from palyra.client.http import Api

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize(
    "sent", [b"3\r\n{}\n\r\n", b"50\r\n{}\n"], ids=["between two pieces", "in the middle of one"]
)
def test_an_export_that_is_cut_off_says_that_the_daemon_went_away(sent: bytes) -> None:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(HEAD + sent)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        api = Api(
            lambda: DaemonAddress(
                f"http://127.0.0.1:{listener.getsockname()[1]}", "token", "start it"
            )
        )
        with pytest.raises(Unreachable, match="start it"):
            list(Client.over(api).export_journal())
        serving.join(20)
