"""A worker's next certificate: asked for with a new key when the daemon says that it is time, used
when it is safely here.

The rule: the key is on disk before it is asked about, and the certificate with its key before it is
shown. Whatever is lost on the way is asked for again with the same request, which gets the same
answer.

What a worker does not do, whatever its daemon asks for: it decides by itself, from how it was
started.
"""

import logging

import msgspec
from msgspec import Struct

from palyra.api.listen_sockets import Pair
from palyra.core.errors import PalyraError
from palyra.core.input_checks import DEEPEST, too_deep
from palyra.core.tools import Outcome
from palyra.features.workers import file_transfer
from palyra.features.workers.node import home
from palyra.features.workers.node.dial import DaemonConnection
from palyra.features.workers.node.home import Home
from palyra.features.workers.protocol import Assign, Finished, Renew, Renewed
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday


def why(assign: Assign, offered: tuple[str, ...], slots: int, busy: int) -> str:
    """Return why a call is refused, or an empty text. `busy`: other calls that this worker has."""
    if assign.tool not in offered:
        return (
            f"this worker does not offer {assign.tool[:100]}: start it with --offer to change that"
        )
    if busy >= slots:
        return (
            f"this worker does {slots} calls at once and has them: start it with --slots to change"
            " that"
        )
    if too_deep(assign.arguments):
        return f"the arguments are nested deeper than {DEEPEST} levels"
    try:
        file_transfer.check("the daemon", assign.files)
    except PalyraError as error:
        return error.message
    return ""


def not_begun(assign: Assign, reason: str, outcome: Outcome = "error") -> Finished:
    """The result of a call that left no trace here."""
    return Finished(
        call_id=assign.call_id, attempt=assign.attempt, outcome=outcome, text=reason[:2_000]
    )


log = logging.getLogger("palyra.features.workers.node")

_AGAIN_MS = 3_600_000


class _Asked(Struct):
    key: str
    request: str


async def ask(line: DaemonConnection, folder: Home, clock: Clock, in_ms: int) -> None:
    """Ask when it is time, and then until there is an answer."""
    await clock.sleep(in_ms)
    while True:
        line.post(Renew(request=await everyday.run(_request, folder)))
        await clock.sleep(_AGAIN_MS)


async def take(folder: Home, said: Renewed) -> bool:
    """Keep what the daemon has signed; whether it can be used from now on."""
    if said.refused:
        log.warning("the daemon gave no new certificate: %s", said.refused)
        return False
    return await everyday.run(_keep, folder, said.certificate.encode())


def _request(folder: Home) -> str:
    from palyra.features.tls import authority

    asked = _asked(folder)
    if asked is None:
        made = authority.new_request("worker")
        asked = _Asked(key=made.key.decode(), request=made.certificate.decode())
        home.write(folder.asked, msgspec.json.encode(asked))
    return asked.request


def _keep(folder: Home, certificate: bytes) -> bool:
    from palyra.features.tls import authority

    asked = _asked(folder)
    if asked is None:
        return False
    pair = Pair(certificate, asked.key.encode())
    if not authority.belongs(pair) or not authority.signed_by(
        certificate, folder.authority.read_bytes()
    ):
        log.error(
            "the daemon sent a certificate that is not for this worker's key, or not by its"
            " authority: it is not used"
        )
        return False
    home.write(folder.renewed, pair.together)
    folder.asked.unlink()
    return True


def _asked(folder: Home) -> _Asked | None:
    try:
        return msgspec.json.decode(folder.asked.read_bytes(), type=_Asked)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
