"""Which addresses and names on a network may be reached: only those that belong to the public
internet.

Pure. An address that carries another one inside it is as bad as the one it carries, and what no
rule knows is refused.
"""

from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network

_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), why)
    for network, why in (
        ("127.0.0.0/8", "loopback"),
        ("10.0.0.0/8", "private"),
        ("172.16.0.0/12", "private"),
        ("192.168.0.0/16", "private"),
        ("169.254.0.0/16", "link-local"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("0.0.0.0/8", "unspecified"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("198.18.0.0/15", "benchmarking"),
        ("192.31.196.0/24", "reserved"),
        ("192.52.193.0/24", "reserved"),
        ("192.175.48.0/24", "reserved"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_V6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), why)
    for network, why in (
        ("::1/128", "loopback"),
        ("::/128", "unspecified"),
        ("::/96", "an IPv4 address in disguise"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "reserved"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("2001::/32", "Teredo"),
        ("2001:2::/48", "benchmarking"),
        ("2001::/23", "reserved"),
        ("2002::/16", "6to4"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_MAPPED = IPv6Network("::ffff:0:0/96")
# The second half of an ISATAP address is this and an IPv4 address; the bit in front tells whether
# that one is public.
_ISATAP = (0x00005EFE, 0x02005EFE)

# Where clouds answer questions about the machine, keys included. Some of these lie in ranges that
# look public.
METADATA = frozenset(
    {
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    }
)
_METADATA_NAMES = frozenset(
    {
        "metadata",
        "instance-data",
        "metadata.google.internal",
        "metadata.goog",
        "metadata.tencentyun.com",
        "metadata.packet.net",
        "metadata.platformequinix.com",
        "rancher-metadata",
    }
)
# Names that never mean a place on the public internet.
_LOCAL_NAMES = frozenset(
    {
        "localhost",
        "local",
        "localdomain",
        "internal",
        "intranet",
        "lan",
        "home",
        "corp",
        "private",
        "arpa",
    }
)


def parse(text: str) -> IPv4Address | IPv6Address | None:
    """The address if `text` is one, without a zone and in its usual spelling; otherwise nothing."""
    try:
        return IPv4Address(text)
    except AddressValueError:
        pass
    try:
        return IPv6Address(text) if "%" not in text else None
    except AddressValueError:
        return None


def refusal(address: IPv4Address | IPv6Address) -> str | None:
    """Return why an address must not be reached, in a few words; nothing if it may."""
    if str(address) in METADATA:
        return "a cloud metadata address"
    if isinstance(address, IPv4Address):
        return next((why for network, why in _V4 if address in network), None)
    return _refusal_v6(address)


def _refusal_v6(address: IPv6Address) -> str | None:
    carried = _carried(address)
    if carried is not None:
        inner = refusal(carried)
        return f"{inner}, inside an IPv6 address" if inner else None
    listed = next((why for network, why in _V6 if address in network), None)
    if listed or address in _PUBLIC_V6:
        return listed
    return "reserved"


def _carried(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to this one end up at."""
    number = int(address)
    if address in _MAPPED or address in _NAT64 or (number >> 32) & 0xFFFFFFFF in _ISATAP:
        return IPv4Address(number & 0xFFFFFFFF)
    return None


def last_resort(address: IPv4Address | IPv6Address) -> bool:
    """Return whether not even an operator who names the address may have it: metadata, link-local,
    multicast, unspecified.
    """
    if isinstance(address, IPv6Address):
        carried = _carried(address)
        if carried is not None:
            return last_resort(carried)
    return (
        str(address) in METADATA
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
    )


def metadata_name(name: str) -> bool:
    return name in _METADATA_NAMES


def name_refusal(name: str) -> str | None:
    """Return why a host name must not even be looked up; nothing if it may. `name` is lower case
    and without a dot at its end.
    """
    if metadata_name(name):
        return "a cloud metadata host"
    labels = name.split(".")
    if labels[-1] in _LOCAL_NAMES:
        return "a name for this machine or its local network"
    if len(labels) == 1:
        return "a name without a dot, which only a local network knows"
    return None
