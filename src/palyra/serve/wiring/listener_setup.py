"""Settings that open and close listeners, and what is refused before it is written: a daemon that
others could read, or that could not start again.
"""

from palyra.api import exposure
from palyra.core.errors import ConfigInvalid, Conflict, InvalidInput
from palyra.features.setup.model import ListenerChanges
from palyra.serve.config import Config


def settings(changes: ListenerChanges) -> dict[str, bool | str]:
    """The settings that these changes are, by their keys."""
    named = {
        "server.grpc": changes.grpc,
        "workers.listen": changes.workers,
        "server.quic": changes.quic,
        "server.tls.enabled": changes.tls,
        "server.host": changes.host,
    }
    wanted = {key: value for key, value in named.items() if value is not None}
    if not wanted:
        raise InvalidInput("name a listener to change")
    return wanted


def check(given: Config, changes: ListenerChanges, *, others: bool) -> None:
    """`others`: somebody made a token, beside the one of the command line on this machine."""
    server = given.server
    host = server.host if changes.host is None else changes.host
    tls = server.tls.enabled if changes.tls is None else changes.tls
    try:
        exposure.address_of(host, tls=tls)
    except ConfigInvalid as error:
        raise InvalidInput(error.message) from error
    if not exposure.is_loopback(host) and not others:
        raise Conflict(
            "create a token for the other machine first: nobody there could log in without one"
        )
