"""Standing by, as a process: the home is announced, people are served by passing on what they ask,
until this node leads or is told to end.
"""

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import palyra
from palyra.api.limits import ApiLimits
from palyra.core.errors import ConfigInvalid
from palyra.serve import config, listeners, process_files, restart
from palyra.serve.cluster.node import ClusterNode, node_of
from palyra.serve.config import Loaded
from palyra.serve.wiring import foundation, settings
from palyra.system.clock import Clock

log = logging.getLogger("palyra.cluster")

_CERTIFICATE_S = 30.0
_LOOK_S = 0.5


async def until_it_leads(
    loaded: Loaded,
    env: Mapping[str, str],
    listener: socket.socket,
    limits: ApiLimits,
    say: Callable[[str], None],
    started: Callable[[], None],
    stack: AsyncExitStack,
) -> tuple[ClusterNode | None, Loaded | None]:
    """Return the node, and the settings with which it leads; None for them: it was told to end.

    What the stack closes ends the node.
    """
    if not loaded.config.journal.store:
        raise ConfigInvalid(
            "cluster.secret is set, and the journal is a file of this home: nodes share a journal"
            " in PostgreSQL; set journal.store as well",
            key="cluster.secret",
        )
    port = listener.getsockname()[1]
    restart.tell_port(port)
    policies = foundation.folders(loaded.home, loaded.config)

    def ends(why: str) -> None:
        """Nothing that was under way may go on: not a thread, not a tool, not a stream."""
        sys.stderr.write(f"this node leads no more: {why}\n")
        restart.end_to_begin_anew()

    address = foundation.server_address(loaded.config, env)
    foundation.refuse_two_journals(loaded.home, loaded.config)
    node = node_of(loaded, env, policies, address, ends)
    await node.join()
    stack.push_async_callback(node.close)
    await node.pull()
    if not node.leads:
        exposed = settings.exposure(loaded.config)
        tls = await _certificate(node, loaded)
        url = listeners.url_of(exposed.host, port, secure=exposed.tls)
        with ExitStack() as announced:

            def ready() -> None:
                running = process_files.DaemonFile(
                    restart.service_pid(),
                    url,
                    Clock().now_ms(),
                    palyra.__version__,
                    str(loaded.home / "tls" / "served.pem") if exposed.tls else "",
                )
                announced.enter_context(process_files.announced(loaded.home, running))
                started()
                log.info("stands by at %s", url)
                say(f"Palyra {palyra.__version__} stands by at {url} as node {node.name}")
                say("Another node leads; this one passes requests on, and takes over from it.")

            if not await node.stand_by(listener, exposed, limits, tls, ready):
                return node, None
        await node.pull()
    return node, await asyncio.to_thread(config.load, loaded.home, env)


async def _certificate(node: ClusterNode, loaded: Loaded) -> ssl.SSLContext | None:
    """Return the context of HTTP over TLS, with the certificate that the nodes have in common or
    with the operator's own.
    """
    given = loaded.config.server.tls
    if not given.enabled:
        return None
    path = Path(given.cert) if given.cert else loaded.home / "tls" / "server.pem"
    try:
        async with asyncio.timeout(_CERTIFICATE_S):
            while not path.exists():
                await asyncio.sleep(_LOOK_S)
                await node.pull()
    except TimeoutError:
        raise ConfigInvalid(
            f"there is no certificate for this node: {path} is missing, and the node that leads"
            " has none; turn TLS on there first, or name server.tls.cert"
        ) from None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(path, given.key or None)
    return context
