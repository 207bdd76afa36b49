"""Signals between parts: one small type for commits, changes and endings."""

import logging
from collections.abc import Callable
from inspect import isawaitable
from typing import Generic, ParamSpec

P = ParamSpec("P")

log = logging.getLogger(__name__)


class Signal(Generic[P]):
    """Something that happens again and again, and who is told of it, in the order of connecting."""

    __slots__ = ("_listeners", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        # A tuple: whoever connects or leaves while a signal is sent changes the next one.
        self._listeners: tuple[Callable[P, object], ...] = ()

    def connect(self, listener: Callable[P, object], *, first: bool = False) -> Callable[[], None]:
        """Tell the listener from now on; what is returned ends it. `first`: before the others."""
        self._listeners = (listener, *self._listeners) if first else (*self._listeners, listener)
        return lambda: self.disconnect(listener)

    def disconnect(self, listener: Callable[P, object]) -> None:
        """Tell the listener no more. One that is not connected is no mistake."""
        self._listeners = tuple(each for each in self._listeners if each != listener)

    def send(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Tell everybody. What happened has happened: a listener that fails keeps nobody else from
        hearing of it.
        """
        for listener in self._listeners:
            try:
                listener(*args, **kwargs)
            except Exception:
                log.exception("a listener of %s failed", self._name)

    async def send_and_wait(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Tell everybody, one after the other, and wait for each. The first that fails ends it: the
        sender tells all of them again.
        """
        for listener in self._listeners:
            done = listener(*args, **kwargs)
            if isawaitable(done):
                await done
