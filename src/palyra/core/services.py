"""The services of a daemon, each found by its class.

The kernel and every feature add what they offer; a handler asks for the one it calls. Nobody holds
a list of all of them.
"""

from typing import Any, TypeVar

from palyra.core.errors import NotFound

T = TypeVar("T")


class Services:
    """Services by class. A service is added once, when it is made."""

    def __init__(self) -> None:
        self._by_class: dict[type[Any], Any] = {}

    def add(self, service: T, kind: type[Any] | None = None) -> T:
        """Offer a service under its own class, or under `kind`, and return it."""
        key = kind or type(service)
        assert key not in self._by_class, f"{key.__name__} is there already"
        self._by_class[key] = service
        return service

    def get(self, kind: type[T]) -> T:
        """Return the service of this class. Raise NotFound if the daemon runs without it."""
        try:
            service: T = self._by_class[kind]
        except KeyError:
            raise NotFound(f"this daemon runs without {kind.__name__}") from None
        return service

    def find(self, kind: type[T]) -> T | None:
        return self._by_class.get(kind)
