"""HTTP to the daemon and nothing else: one request, or a stream of events that goes on behind its
cursor when a connection breaks.

Small on purpose: the standard client starts in milliseconds where a full one takes longer than the
whole command.

What the messages of a session's stream say.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from palyra.client.discovery import DaemonAddress, Unreachable
from palyra.core import errors, events
from palyra.core.errors import Conflict, PalyraError, Unavailable
from palyra.core.events import AnyEvent, Entry, LiveEvent, RunCancelled, RunCompleted, RunFailed
from palyra.core.sse import EventReader, ServerEvent

T = TypeVar("T")
ServerSentEvent = ServerEvent
_BROKEN = (OSError, http.client.HTTPException)
_FAMILY = {
    each.code: each for each in PalyraError.__subclasses__() if each.__module__ == errors.__name__
}
_CONNECT_S = 5.0
# The daemon sends a heartbeat every 15 seconds: three missed ones are a dead connection.
_SILENCE_S = 45.0
_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 2.0
_TRIES = 5
_PIECE = 1 << 16
_JSON = "application/json"


class HttpReply(Struct, frozen=True):
    """An answer that is not an error."""

    status: int
    body: bytes


class LinkState(Struct, frozen=True):
    """State of the connection, between messages: it is up, or was lost and is being made again."""

    state: Literal["up", "lost"]
    why: str = ""


class _Problem(Struct):
    code: str = "internal"
    message: str = ""
    details: dict[str, Any] = {}


class _Refusal(Struct):
    error: _Problem


class Api:
    """The daemon as seen over HTTP. `find` is asked again for each connection: a restarted daemon
    may have another port.
    """

    def __init__(self, find: Callable[[], DaemonAddress]) -> None:
        self._find = find
        self._kept: http.client.HTTPConnection | None = None

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        timeout_s: float = 30.0,
        tries: int = _TRIES,
        media: str = _JSON,
    ) -> HttpReply:
        """The answer, or the daemon's error as one of the family. With another `media` the body is
        bytes.
        """
        endpoint = self._find()
        data = None if body is None else msgspec.json.encode(body) if media == _JSON else body
        reused = self._kept is not None
        connection = self._kept or _connect(endpoint, timeout_s)
        self._kept = None
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout_s)
            connection.request(method, path, data, headers_for(endpoint, data, media))
            response = connection.getresponse()
            answer = response.read()
        except _BROKEN as error:
            connection.close()
            if reused and not isinstance(error, TimeoutError):
                # A kept connection may have been closed meanwhile; only a fresh one can tell.
                return self.request(
                    method, path, body, timeout_s=timeout_s, tries=tries, media=media
                )
            raise unreachable(endpoint, error) from error
        if response.will_close:
            connection.close()
        else:
            self._kept = connection
        try:
            check(response.status, answer)
        except errors.LimitExceeded as error:
            # Too many at once: nothing was done, and the daemon says how long to wait.
            pause_ms = error.details.get("retry_after_ms", 0)
            if not pause_ms or not tries:
                raise
            time.sleep(pause_ms / 1000)
            return self.request(
                method, path, body, timeout_s=timeout_s, tries=tries - 1, media=media
            )
        return HttpReply(response.status, answer)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    @contextmanager
    def open(
        self,
        path: str,
        *,
        accept: str,
        last_id: str = "",
        on_socket: Callable[[socket.socket], None] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        checked: bool = True,
    ) -> Iterator[Any]:
        """A response that is read while it comes. With `data`, that is posted. Not `checked`:
        refusals are the caller's to read.
        """
        endpoint = self._find()
        connection = _connect(endpoint, _CONNECT_S)
        try:
            try:
                connection.connect()
                assert connection.sock is not None
                connection.sock.settimeout(_SILENCE_S)
                if on_socket:
                    on_socket(connection.sock)
                sent = headers_for(endpoint, data) | {"Accept": accept} | dict(headers or {})
                sent |= {"Last-Event-ID": last_id} if last_id else {}
                connection.request("GET" if data is None else "POST", path, data, sent)
                response = connection.getresponse()
                if checked and response.status != 200:
                    check(response.status, response.read())
            except _BROKEN as error:
                raise unreachable(endpoint, error) from error
            try:
                yield response
            except http.client.HTTPException as error:
                # It was cut off while it was read. Other errors may be the caller's own, such as
                # those of a pipe it writes to.
                raise unreachable(endpoint, error) from error
        finally:
            connection.close()

    def messages(
        self,
        path: str,
        *,
        last_id: str = "",
        on_socket: Callable[[socket.socket], None] | None = None,
        data: bytes | None = None,
    ) -> Iterator[ServerSentEvent | LinkState]:
        """The events of one connection, until it ends, however it ends. With `data`, that is
        posted.
        """
        with self.open(
            path, accept="text/event-stream", last_id=last_id, on_socket=on_socket, data=data
        ) as response:
            yield LinkState("up")
            try:
                yield from events_of(response)
            except _BROKEN as error:
                yield LinkState("lost", str(error) or type(error).__name__)

    def watch(
        self,
        path: str,
        after: int,
        stopped: "StopSignal",
        *,
        overlap: int = 0,
        patience_s: float | None = None,
    ) -> Iterator[ServerSentEvent | LinkState]:
        """Events behind a cursor for ever: no gap and no duplicate, however often the connection
        breaks.

        `patience_s` is how long to try while nobody answers, or only that it cannot now; None is
        until `stopped`. With an `overlap`, events that we have are asked for again: when one of
        them comes we know that the daemon listens for us, and only then is the link up.
        """
        cursor, waited, wait = after, 0.0, _FIRST_WAIT_S
        while not stopped.is_set():
            again, up = max(0, cursor - overlap), False
            try:
                for message in self.messages(path, last_id=str(again), on_socket=stopped.holds):
                    if not up and (again == cursor or isinstance(message, ServerSentEvent)):
                        waited, wait, up = 0.0, _FIRST_WAIT_S, True
                        yield LinkState("up")
                    if isinstance(message, ServerSentEvent) and not (
                        message.id and int(message.id) <= cursor
                    ):
                        cursor = int(message.id) if message.id else cursor
                        yield message
                why = "the connection ended"
            except (errors.Unavailable, errors.LimitExceeded) as error:
                why = error.message
                if patience_s is not None and waited >= patience_s:
                    raise
            if stopped.is_set():
                return
            yield LinkState("lost", why)
            stopped.wait(wait)
            waited, wait = waited + wait, min(wait * 2, _LONGEST_WAIT_S)


def events_of(response: http.client.HTTPResponse) -> Iterator[ServerSentEvent]:
    """Server-sent events as they come."""
    reader = EventReader()
    while piece := response.read1(_PIECE):
        yield from reader.feed(piece)


class StopSignal(threading.Event):
    """Signal that ends a watch from another thread, also one that waits in a read."""

    def __init__(self) -> None:
        super().__init__()
        self._socket: socket.socket | None = None

    def holds(self, held: socket.socket) -> None:
        self._socket = held
        if self.is_set():
            self.stop()

    def stop(self) -> None:
        self.set()
        self.cut()

    def cut(self) -> None:
        """End the connection that is being read, not the watch. Takes no lock: a signal's handler
        may call it.
        """
        if self._socket is not None:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # It was closed already, which is what we want.


def _connect(endpoint: DaemonAddress, timeout_s: float) -> http.client.HTTPConnection:
    parts = urlsplit(endpoint.url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise errors.ConfigInvalid(f"{endpoint.url} is not an address: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise errors.ConfigInvalid(
            f"{endpoint.url} is not an address such as http://127.0.0.1:7142"
        )
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=trust(endpoint))
    return http.client.HTTPConnection(host, port, timeout=timeout_s)


def trust(endpoint: DaemonAddress) -> ssl.SSLContext:
    """The certificates we accept there. The daemon of this home names its own in a file that only
    its user can write.
    """
    pinned = endpoint.certificate
    try:
        context = ssl.create_default_context(cafile=pinned or endpoint.authority or None)
    except (OSError, ssl.SSLError) as error:
        advice = (
            "restart the daemon"
            if pinned
            else (
                "PALYRA_CA names the PEM file of the daemon's authority: see `palyra tls export-ca`"
            )
        )
        raise errors.ConfigInvalid(
            f"{pinned or endpoint.authority} holds no certificate that can be read: {advice}"
        ) from error
    if pinned:
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def headers_for(endpoint: DaemonAddress, data: bytes | None, media: str = _JSON) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {endpoint.token}"} if endpoint.token else {}
    return headers if data is None else headers | {"Content-Type": media}


def unreachable(endpoint: DaemonAddress, error: Exception) -> Unreachable:
    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError) and not endpoint.certificate:
        advice = (
            "get its authority with `palyra tls export-ca` on its machine and name the file in"
            " PALYRA_CA"
        )
        return Unreachable(
            f"the certificate of {endpoint.url} is not trusted ({error.verify_message.lower()}):"
            f" {advice}"
        )
    return Unreachable(f"no answer from {endpoint.url} ({str(why).lower()}): {endpoint.advice}")


def check(status: int, body: bytes) -> None:
    if status < 400:
        return
    try:
        problem = msgspec.json.decode(body, type=_Refusal).error
    except msgspec.DecodeError:
        raise PalyraError(
            f"the daemon answered {status} without saying why; is there a palyra at this address?"
        ) from None
    raise _FAMILY.get(problem.code, PalyraError)(
        problem.message,
        **{key: value for key, value in problem.details.items() if key != "message"},
    )


def decoded(body: bytes, type: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type)
    except msgspec.DecodeError as error:
        raise PalyraError(
            f"the daemon's answer cannot be read ({error}): is it of another version? restart it"
        ) from error


def with_query(path: str, query: Mapping[str, Any]) -> str:
    given = {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in query.items()
        if value not in (None, "")
    }
    return f"{path}?{urlencode(given)}" if given else path


_entry = msgspec.json.Decoder(Entry)
_live: msgspec.json.Decoder[LiveEvent] = msgspec.json.Decoder(LiveEvent)
_ENDS = ("run.completed", "run.failed", "run.cancelled")


class RunBroke(Unavailable):
    """The run failed; `details` says why, and where to look."""

    retryable = False


def decode(message: ServerSentEvent | LinkState) -> Entry | LiveEvent | LinkState | None:
    """Return what a message of a session's stream says; None for what a newer daemon sends and we
    do not know.
    """
    if isinstance(message, LinkState):
        return message
    try:
        match message.event:
            case "entry":
                return _entry.decode(message.data)
            case "live":
                return _live.decode(message.data)
            case _:
                return None
    except msgspec.ValidationError:
        return None


def event_of(entry: Entry) -> AnyEvent:
    """Return what happened, as one of the kinds of events."""
    return events.decode(entry.event)


def ends(item: Entry | LiveEvent, run_id: str) -> bool:
    return isinstance(item, Entry) and item.run_id == run_id and item.kind in _ENDS


def answer_of(entry: Entry) -> str:
    """The answer that a run's last entry holds, or why there is none."""
    match event_of(entry):
        case RunCompleted(text=text):
            return text
        case RunFailed(reason=reason, message=message):
            raise RunBroke(message, reason=reason, run_id=entry.run_id, session_id=entry.tape)
        case RunCancelled(reason=reason):
            raise Conflict(
                f"the run was cancelled: {reason}", run_id=entry.run_id, session_id=entry.tape
            )
        case _:
            raise ValueError(f"{entry.kind} is not the end of a run")
