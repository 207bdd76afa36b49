"""Calls of a verb over either kind of connection. The generated verbs know nothing but this."""

import os
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from palyra.client.http import decoded, with_query
from palyra.core import ids

if TYPE_CHECKING:
    from palyra.client.http import HttpReply, ServerSentEvent

# The type of an answer, as area:Name of palyra.client.types; or several, by status; or "" where
# there is no answer.
Gives = str | Mapping[int, str]


class Calling(Protocol):
    """`given` is a verb's query or its body."""

    def call(self, method: str, path: str, given: Any, gives: Gives) -> Any: ...

    def upload(
        self, method: str, path: str, given: Any, data: bytes, media: str, gives: Gives
    ) -> Any: ...

    def fetch(self, method: str, path: str, given: Any) -> bytes: ...

    def pieces(self, method: str, path: str, given: Any) -> Iterator[bytes]: ...

    def events(self, method: str, path: str, given: Any) -> "Iterator[ServerSentEvent]": ...


class AsyncCalling(Protocol):
    def call(self, method: str, path: str, given: Any, gives: Gives) -> Awaitable[Any]: ...

    def upload(
        self, method: str, path: str, given: Any, data: bytes, media: str, gives: Gives
    ) -> Awaitable[Any]: ...

    def fetch(self, method: str, path: str, given: Any) -> Awaitable[bytes]: ...

    def pieces(self, method: str, path: str, given: Any) -> AsyncIterator[bytes]: ...

    def events(self, method: str, path: str, given: Any) -> "AsyncIterator[ServerSentEvent]": ...


def part(value: str | int) -> str:
    """A part of a path, whatever it is made of."""
    return quote(str(value), safe="")


def sent(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given, without what is the default."""
    return {
        name: value
        for name, value in given.items()
        if name not in defaults or value != defaults[name]
    }


def address(method: str, path: str, given: Any) -> tuple[str, Any]:
    """Return where a request goes and what it carries: what has no effects says everything in its
    address.
    """
    return (with_query(path, given or {}), None) if method in ("GET", "DELETE") else (path, given)


def new_id() -> str:
    return ids.make(int(time.time() * 1000), os.urandom(10))


def read(reply: "HttpReply", gives: Gives) -> Any:
    """Decode an answer into its type, which is loaded now."""
    place = gives if isinstance(gives, str) else gives.get(reply.status, "")
    if not place:
        return None
    area, _, name = place.partition(":")
    return decoded(reply.body, getattr(import_module(f"palyra.client.types.{area}"), name))
