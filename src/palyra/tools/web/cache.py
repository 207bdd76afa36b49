"""Answers that their servers allow to be used again, for as long as they allow it. Bounded in
number, bytes and time.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from palyra.tools.net.http_request import FetchedResponse
from palyra.tools.net.urls import Url

_MOST_ENTRIES = 64
_MOST_BYTES = 4 << 20
_LONGEST_S = 600.0
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
_NEVER = re.compile(r"(?:^|[,\s])(?:no-store|no-cache|private)\b", re.IGNORECASE)


class Cache:
    """Knows only answers to plain GET requests: nothing that depended on a credential or on headers
    of a call.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._entries: OrderedDict[str, tuple[float, FetchedResponse]] = OrderedDict()
        self._bytes = 0

    def get(self, url: Url) -> FetchedResponse | None:
        found = self._entries.get(str(url))
        if found is None:
            return None
        if found[0] <= self._clock():
            self._forget(str(url))
            return None
        self._entries.move_to_end(str(url))
        return found[1]

    def put(self, url: Url, response: FetchedResponse) -> None:
        lasting = freshness(response)
        if not lasting or len(response.body) > _MOST_BYTES // 4:
            return
        self._forget(str(url))
        self._entries[str(url)] = (self._clock() + lasting, response)
        self._bytes += len(response.body)
        while len(self._entries) > _MOST_ENTRIES or self._bytes > _MOST_BYTES:
            self._forget(next(iter(self._entries)))

    def _forget(self, key: str) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._bytes -= len(found[1].body)


def freshness(response: FetchedResponse) -> float:
    """Return for how many seconds an answer may be used again; 0 if it may not."""
    headers = response.headers
    control = headers.get("cache-control", "")
    if response.status != 200 or response.cut or _NEVER.search(control) or "set-cookie" in headers:
        return 0.0
    if headers.get("vary", "accept-encoding").strip().lower() != "accept-encoding":
        return 0.0
    age = _MAX_AGE.search(control)
    passed = headers.get("age", "0").strip()
    used = int(passed[:9]) if passed.isascii() and passed.isdecimal() else 0
    return min(max(float(age[1]) - used, 0.0), _LONGEST_S) if age else 0.0
