"""Addresses of mail servers, parsed from what somebody wrote: always encrypted, except on this
machine itself.
"""

import ssl
from dataclasses import dataclass
from typing import Literal

from palyra.core.errors import InvalidInput

Security = Literal["tls", "starttls", "none"]
_STARTTLS = (143, 587, 25)
_TLS = (993, 465)
_HERE = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class MailServer:
    host: str
    port: int
    security: Security
    ca: str = ""

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca or None)


def server(text: str, usual: int, ca: str = "") -> MailServer:
    """Parse `host` or `host:port`; the port says how it is encrypted. On this machine other ports
    are not.
    """
    host, colon, number = text.strip().rpartition(":")
    if not colon or not number.isdecimal():
        host, number = text.strip(), str(usual)
    host, port = host.strip("[]"), int(number)
    if not host or "/" in host or not 0 < port < 65536:
        raise InvalidInput(
            f"{text[:60]!r} is no mail server: write it as mail.example.org or"
            f" mail.example.org:{usual}"
        )
    if port in _STARTTLS:
        return MailServer(host, port, "starttls", ca)
    if host in _HERE and port not in _TLS and not ca:
        return MailServer(host, port, "none")
    return MailServer(host, port, "tls", ca)
