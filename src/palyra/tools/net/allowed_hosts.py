"""The hosts a sandboxed process may reach, as somebody listed them. Exactly those: a name never
covers more than it says.

`example.org` is that host on the ports of the web, `example.org:8443` on that port, `*.example.org`
every host below it but not itself. An address is listed as it is written in a URL, `192.0.2.1:8080`
or `[2001:db8::1]`.
"""

from collections.abc import Iterable

from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.tools.net import addresses, hosts, urls

_WEB = frozenset(urls.PORTS.values())


class AllowedHost(Struct, frozen=True):
    """`below`: every host below `host`, instead of itself."""

    host: str
    ports: frozenset[int]
    below: bool = False

    def covers(self, host: str, port: int) -> bool:
        return port in self.ports and (
            host.endswith("." + self.host) if self.below else host == self.host
        )


class AllowedHosts:
    """A list of hosts that has been read. Raises InvalidInput or Refused for an entry that does not
    say exactly one thing.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self.entries = tuple(_entry(text) for text in sorted(entries))

    def covers(self, host: str, port: int) -> bool:
        return any(entry.covers(host, port) for entry in self.entries)


def _entry(text: str) -> AllowedHost:
    spelt, port = urls.split_port(text.strip(), 0)
    below = spelt.startswith("*.")
    host = hosts.parse(spelt.removeprefix("*."))
    if below and (addresses.parse(host) is not None or "." not in host):
        raise InvalidInput(
            f"{hosts.shown(text)} covers too much: a star stands before a domain of at least two"
            " parts"
        )
    return AllowedHost(host, frozenset({port}) if port else _WEB, below)
