"""How a verb is asked over either kind of connection. The generated verbs know nothing but this."""

import os
import time
from collections.abc import Awaitable, Mapping
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import quote

from palyra.client.http import decoded, with_query
from palyra.core import ids


class Calling(Protocol):
    def call(self, method: str, path: str, given: Any, gives: str) -> Any:
        """Ask for a verb. `given` is its query or its body; `gives` names the type of the answer,
        as module:name.
        """
        ...


class AsyncCalling(Protocol):
    def call(self, method: str, path: str, given: Any, gives: str) -> Awaitable[Any]: ...


def part(text: str) -> str:
    """A part of a path, whatever it is made of."""
    return quote(text, safe="")


def sent(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """What was said; what is as it would be anyway is left out."""
    return {
        name: value
        for name, value in given.items()
        if name not in defaults or value != defaults[name]
    }


def address(method: str, path: str, given: Any) -> tuple[str, Any]:
    """Where a request goes and what it carries: what has no effects says everything in its
    address.
    """
    return (with_query(path, given or {}), None) if method in ("GET", "DELETE") else (path, given)


def new_id() -> str:
    return ids.make(int(time.time() * 1000), os.urandom(10))


def read(body: bytes, gives: str) -> Any:
    if not gives:
        return None
    module, _, name = gives.partition(":")
    return decoded(body, getattr(import_module(module), name))
