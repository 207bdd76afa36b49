"""The daemon from Python: `Client` waits, `AsyncClient` is awaited. Documented in
docs/reference/clients.md.

with Client() as palyra:
    print(palyra.ask("what is in this folder?").text)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palyra.client.aio import AsyncClient
    from palyra.client.discovery import Unreachable
    from palyra.client.http import RunBroke, event_of
    from palyra.client.sync import Answered, Client

__all__ = ["Answered", "AsyncClient", "Client", "RunBroke", "Unreachable", "event_of"]
_PLACES = {
    "AsyncClient": "aio",
    "Unreachable": "discovery",
    "RunBroke": "http",
    "event_of": "http",
}


def __getattr__(name: str) -> Any:
    """Load a name when it is wanted: the command line uses parts of this package and starts in no
    time.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES.get(name, 'sync')}"), name)
