"""Becoming a worker: a key of its own, which never leaves this machine; a code from the owner; a
certificate from the daemon.
"""

import os
import time

from palyra.api.listen_sockets import Pair
from palyra.core import ids
from palyra.core.errors import InvalidInput
from palyra.features.workers.node import dial
from palyra.features.workers.node.home import Home, Identity
from palyra.features.workers.protocol import Enrol, Enrolled


async def enrol(folder: Home, address: str, code: str, fingerprint: str) -> Identity:
    """Redeem a code. What was here before of an older enrolment is replaced when the new one is
    there, and not before.
    """
    from palyra.features.tls.authority import new_request

    host, port = parse_address(address)
    folder.make()
    with folder.locked():
        authority = await dial.authority_at(host, port, fingerprint)
        request = new_request("worker")
        line = await dial.dial(host, port, dial.trusting(authority))
        try:
            said = await line.ask(Enrol(code=code, request=request.certificate.decode()))
        finally:
            line.close()
        if not isinstance(said, Enrolled):
            raise InvalidInput(f"{address} does not speak the worker protocol")
        folder.begin(authority, Pair(said.certificate.encode(), request.key))
        # A new worker knows nothing of calls that an older one here was given.
        for path in (folder.state / "calls").iterdir():
            path.unlink()
        instance = ids.make(time.time_ns() // 1_000_000, os.urandom(10))
        identity = Identity(name=said.name, host=host, port=port, instance=instance)
        folder.keep(identity)
    return identity


def parse_address(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise InvalidInput(
            f"{address!r} is no address: it is HOST:PORT, such as home.example.org:7445"
        )
    return host.removeprefix("[").removesuffix("]"), int(port)
