"""Which addresses and names may be reached."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.tools.net import addresses

REFUSED = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "169.254.1.1": "link-local",
    "100.64.0.1": "carrier-grade NAT",
    "100.127.255.255": "carrier-grade NAT",
    "192.0.0.1": "reserved",
    "192.0.2.1": "documentation",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "198.18.0.1": "benchmarking",
    "198.19.255.255": "benchmarking",
    "192.88.99.1": "a 6to4 relay",
    "224.0.0.1": "multicast",
    "239.255.255.250": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "169.254.169.254": "a cloud metadata address",
    "169.254.170.2": "a cloud metadata address",
    "100.100.100.200": "a cloud metadata address",
    "192.0.0.192": "a cloud metadata address",
    "168.63.129.16": "a cloud metadata address",
    "fd00:ec2::254": "a cloud metadata address",
    "::1": "loopback",
    "::": "unspecified",
    "::127.0.0.1": "an IPv4 address in disguise",
    "::8.8.8.8": "an IPv4 address in disguise",
    "::ffff:127.0.0.1": "loopback, inside an IPv6 address",
    "::ffff:169.254.169.254": "a cloud metadata address, inside an IPv6 address",
    "64:ff9b::10.0.0.1": "private, inside an IPv6 address",
    "64:ff9b:1::8.8.8.8": "local NAT64",
    "2002:7f00:1::": "6to4",
    "2001:0:53aa:64c::": "Teredo",
    "2001:db8::1": "documentation",
    "3fff::1": "documentation",
    "2001:2::1": "benchmarking",
    "2001:10::1": "reserved",
    "2600::5efe:127.0.0.1": "loopback, inside an IPv6 address",
    "2600::200:5efe:10.0.0.1": "private, inside an IPv6 address",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "fe80::1": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "100::1": "reserved",
    "4000::1": "reserved",
    "5f00::1": "reserved",
}
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "172.15.255.255",
    "172.32.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "192.167.255.255",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450:4001:80b::200e",
    "64:ff9b::8.8.8.8",
    "::ffff:1.1.1.1",
]


@pytest.mark.parametrize("text", REFUSED)
def test_an_address_that_is_not_public_is_refused_and_the_reason_named(text: str) -> None:
    assert addresses.refusal(ip_address(text)) == REFUSED[text]


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_may_be_reached(text: str) -> None:
    assert addresses.refusal(ip_address(text)) is None


@given(st.ip_addresses())
def test_whatever_the_standard_library_knows_to_be_private_is_refused(
    address: IPv4Address | IPv6Address,
) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved:
        carried = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        if carried is None and address not in addresses._NAT64:
            assert addresses.refusal(address)


@given(st.ip_addresses(v=4))
def test_an_ipv6_address_is_never_better_than_the_ipv4_address_inside_it(
    inner: IPv4Address,
) -> None:
    for prefix in ("::ffff:", "64:ff9b::", "2600::5efe:", "::", "2600::200:5efe:"):
        carrying = IPv6Address(f"{prefix}{inner}")
        assert addresses.refusal(inner) is None or addresses.refusal(carrying)


@pytest.mark.parametrize(
    "text",
    [
        "fe80::1%eth0",
        "127.1",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "2130706433",
        "localhost",
        "",
        "[::1]",
        " ::1",
    ],
)
def test_only_the_usual_spelling_is_an_address(text: str) -> None:
    assert addresses.parse(text) is None


@pytest.mark.parametrize(
    "name",
    [
        "localhost",
        "foo.localhost",
        "printer.local",
        "metadata.google.internal",
        "anything.internal",
        "host.docker.internal",
        "metadata.tencentyun.com",
        "instance-data",
        "router.lan",
        "box.localdomain",
        "nas.home",
        "gw.home.arpa",
        "intranet",
        "test",
    ],
)
def test_a_name_for_something_near_is_not_even_looked_up(name: str) -> None:
    assert addresses.name_refusal(name)


@pytest.mark.parametrize(
    "name",
    [
        "example.org",
        "localhost.example.org",
        "internal.example.com",
        "xn--fa-hia.example",
        "local.news",
    ],
)
def test_an_ordinary_name_is_looked_up(name: str) -> None:
    assert addresses.name_refusal(name) is None


@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254",
        "::ffff:169.254.1.1",
        "fd00:ec2::254",
        "fe80::1",
        "224.0.0.1",
        "ff02::1",
        "0.0.0.0",
        "::",
    ],
)
def test_some_addresses_cannot_even_be_listed(text: str) -> None:
    assert addresses.last_resort(ip_address(text))


@pytest.mark.parametrize("text", ["127.0.0.1", "10.1.2.3", "::1", "fd12::1"])
def test_a_private_address_can_be_listed(text: str) -> None:
    assert not addresses.last_resort(ip_address(text))
