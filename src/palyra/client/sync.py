"""The daemon for a program that waits."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from palyra.client.calling import address, read
from palyra.client.discovery import DaemonAddress, discover
from palyra.client.http import Api, StopSignal, with_query
from palyra.client.stream import answer_of, decode, ends
from palyra.client.verbs import Verbs
from palyra.core.events import Entry, LiveEvent

_PATIENCE_S = 60.0


class Answered(Struct, frozen=True):
    text: str
    session_id: str
    run_id: str


def finder(url: str, token: str, home: str | Path, authority: str) -> Callable[[], DaemonAddress]:
    """How the daemon is found, each time anew: it may have another port by then."""
    if url:
        given = DaemonAddress(url.rstrip("/"), token, "check the address", authority=authority)
        return lambda: given
    folder = Path(home or os.environ.get("PALYRA_HOME") or "~/.palyra").expanduser()
    return lambda: discover(folder, {**os.environ, **({"PALYRA_TOKEN": token} if token else {})})


class Client(Verbs):
    """For one thread at a time. Without an address it is the daemon of this machine's user, as the
    command line finds it.
    """

    def __init__(
        self, url: str = "", token: str = "", *, home: str | Path = "", authority: str = ""
    ) -> None:
        """`authority`: the PEM file of who signed the daemon's certificate, if it is not one that
        the system trusts.
        """
        self._api = Api(finder(url, token, home, authority))

    def call(self, method: str, path: str, given: Any, gives: str) -> Any:
        where, body = address(method, path, given)
        return read(self._api.request(method, where, body), gives)

    def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Any endpoint, with plain JSON both ways."""
        answer = self._api.request(method, with_query(path, query), body)
        return msgspec.json.decode(answer) if answer else None

    def watch(
        self,
        session_id: str,
        after: int = 0,
        *,
        until: str = "",
        patience_s: float | None = _PATIENCE_S,
    ) -> Iterator[Entry | LiveEvent]:
        """Everything behind a cursor, then as it happens, over any number of broken connections; no
        gap, no duplicate entry.

        `until`: ends with this run. `patience_s`: how long to try while nobody answers; None is for
        ever.
        """
        path = f"/v1/sessions/{session_id}/events"
        messages = self._api.watch(
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
        on: Callable[[Entry | LiveEvent], object] | None = None,
        **more: Any,
    ) -> Answered:
        """Say something and wait for the answer. `on` is told of everything that happens; `more`
        goes with the message.
        """
        session_id = session_id or self.resolve_session().session_id
        submitted = self.submit(session_id, text=text, **more)
        for item in self.watch(session_id, submitted.seq, until=submitted.run_id):
            if on is not None:
                on(item)
            if isinstance(item, Entry) and ends(item, submitted.run_id):
                return Answered(answer_of(item), session_id, submitted.run_id)
        raise AssertionError("a watch ends with its run")

    def close(self) -> None:
        self._api.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
