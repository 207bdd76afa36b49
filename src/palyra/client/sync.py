"""The daemon for a program that waits."""

import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from palyra.client.calling import Gives, address, read
from palyra.client.discovery import DaemonAddress, discover
from palyra.client.http import Api, ServerSentEvent, StopSignal, with_query
from palyra.client.verbs import Verbs

if TYPE_CHECKING:
    from palyra.core.events import Entry, LiveEvent

_PATIENCE_S = 60.0
_ANSWER_S = 30.0
_PIECE = 1 << 16


class Answered(Struct, frozen=True):
    text: str
    session_id: str
    run_id: str


def finder(url: str, token: str, home: str | Path, authority: str) -> Callable[[], DaemonAddress]:
    """Return how the daemon is found, each time anew: it may have another port by then."""
    if url:
        given = DaemonAddress(url.rstrip("/"), token, "check the address", authority=authority)
        return lambda: given
    folder = Path(home or os.environ.get("PALYRA_HOME") or "~/.palyra").expanduser()
    return lambda: discover(folder, {**os.environ, **({"PALYRA_TOKEN": token} if token else {})})


class Client(Verbs):
    """Client for one thread at a time. Without an address it finds the daemon of this machine's
    user, as the command line does.
    """

    def __init__(
        self, url: str = "", token: str = "", *, home: str | Path = "", authority: str = ""
    ) -> None:
        """`authority`: the PEM file of who signed the daemon's certificate, if it is not one that
        the system trusts.
        """
        self.http = Api(finder(url, token, home, authority))
        self._answer_s = _ANSWER_S

    @classmethod
    def over(cls, api: Api) -> "Client":
        """Return a client that asks over this connection."""
        made = cls.__new__(cls)
        made.http, made._answer_s = api, _ANSWER_S
        return made

    def within(self, seconds: float) -> "Client":
        """Return the same client, but with so much time for an answer: some verbs take longer than
        the usual 30 seconds.
        """
        other = copy.copy(self)
        other._answer_s = seconds
        return other

    def call(self, method: str, path: str, given: Any, gives: Gives) -> Any:
        where, body = address(method, path, given)
        return read(self.http.request(method, where, body, timeout_s=self._answer_s), gives)

    def upload(
        self, method: str, path: str, given: Any, data: bytes, media: str, gives: Gives
    ) -> Any:
        where = with_query(path, given or {})
        return read(
            self.http.request(method, where, data, timeout_s=self._answer_s, media=media), gives
        )

    def fetch(self, method: str, path: str, given: Any) -> bytes:
        where, body = address(method, path, given)
        return self.http.request(method, where, body, timeout_s=self._answer_s).body

    def pieces(self, method: str, path: str, given: Any) -> Iterator[bytes]:
        with self.http.open(address(method, path, given)[0], accept="*/*") as response:
            while piece := response.read(_PIECE):
                yield piece

    def events(self, method: str, path: str, given: Any) -> Iterator[ServerSentEvent]:
        where, body = address(method, path, given)
        for message in self.http.messages(
            where, data=None if body is None else msgspec.json.encode(body)
        ):
            if isinstance(message, ServerSentEvent):
                yield message

    def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Any endpoint, with plain JSON both ways."""
        answer = self.http.request(
            method, with_query(path, query), body, timeout_s=self._answer_s
        ).body
        return msgspec.json.decode(answer) if answer else None

    def watch(
        self,
        session_id: str,
        after: int = 0,
        *,
        until: str = "",
        patience_s: float | None = _PATIENCE_S,
    ) -> "Iterator[Entry | LiveEvent]":
        """Everything behind a cursor, then as it happens, over any number of broken connections; no
        gap, no duplicate entry.

        `until`: ends with this run. `patience_s`: how long to try while nobody answers; None is for
        ever.
        """
        from palyra.client.http import decode, ends
        from palyra.core.events import Entry, LiveEvent

        path = f"/v1/sessions/{session_id}/events"
        messages = self.http.watch(
            f"{path}?until={until}" if until else path, after, StopSignal(), patience_s=patience_s
        )
        for message in messages:
            item = decode(message)
            if isinstance(item, Entry | LiveEvent):
                yield item
                if until and ends(item, until):
                    return

    def ask(
        self,
        text: str,
        session_id: str = "",
        *,
        on: "Callable[[Entry | LiveEvent], object] | None" = None,
        **more: Any,
    ) -> Answered:
        """Say something and wait for the answer. `on` is told of everything that happens; `more`
        goes with the message.
        """
        from palyra.client.http import answer_of, ends
        from palyra.core.events import Entry

        session_id = session_id or self.resolve_session().session_id
        submitted = self.submit(session_id, text=text, **more)
        for item in self.watch(session_id, submitted.seq, until=submitted.run_id):
            if on is not None:
                on(item)
            if isinstance(item, Entry) and ends(item, submitted.run_id):
                return Answered(answer_of(item), session_id, submitted.run_id)
        raise AssertionError("a watch ends with its run")

    def close(self) -> None:
        self.http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
