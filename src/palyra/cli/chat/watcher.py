"""Watcher of a session on a thread of its own, so that the chat can wait for keys and for events at
once.
"""

import os
import threading
from collections import deque

from palyra.cli import lookup
from palyra.client import Client
from palyra.client.http import LinkState, StopSignal, decode
from palyra.core.errors import PalyraError
from palyra.core.events import Entry, LiveEvent

Item = Entry | LiveEvent | LinkState | PalyraError


class Watcher:
    """`wakes` can be read when there is something to take."""

    def __init__(self, api: Client, session_id: str, after: int) -> None:
        self.wakes, self._wake = os.pipe()
        self._items: deque[Item] = deque()
        self._stopped = StopSignal()
        self._thread = threading.Thread(
            target=self._watch, args=(api, session_id, after), daemon=True
        )
        self._thread.start()

    def take(self) -> list[Item]:
        os.read(self.wakes, 4096)
        items: list[Item] = []
        while self._items:
            items.append(self._items.popleft())
        return items

    def close(self) -> None:
        self._stopped.stop()
        self._thread.join(2.0)
        if not self._thread.is_alive():
            os.close(self.wakes)
            os.close(self._wake)

    def _watch(self, api: Client, session_id: str, after: int) -> None:
        try:
            for message in lookup.watch(api, session_id, after, self._stopped):
                item = decode(message)
                if item is not None:
                    self._put(item)
        except PalyraError as error:
            self._put(error)

    def _put(self, item: Item) -> None:
        self._items.append(item)
        os.write(self._wake, b".")
