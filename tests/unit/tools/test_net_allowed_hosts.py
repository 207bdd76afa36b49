"""Lists of hosts that a sandbox may reach: an entry covers exactly what it says."""

import pytest

from palyra.core.errors import PalyraError
from palyra.tools.net.egress import AllowedHosts, Egress
from palyra.tools.net.hosts import HostRefused
from palyra.tools.net.resolve import Resolver, private_place


@pytest.mark.parametrize(
    ("entry", "host", "port", "covered"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "example.org", 80, True),
        ("example.org", "example.org", 22, False),
        ("Example.ORG", "example.org", 443, True),
        ("example.org", "www.example.org", 443, False),
        ("example.org", "badexample.org", 443, False),
        ("example.org:8443", "example.org", 8443, True),
        ("example.org:8443", "example.org", 443, False),
        ("*.example.org", "a.example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "badexample.org", 443, False),
        ("*.example.org:22", "git.example.org", 22, True),
        ("127.0.0.1:8000", "127.0.0.1", 8000, True),
        ("127.0.0.1:8000", "127.0.0.1", 80, False),
        ("[::1]:8000", "::1", 8000, True),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
    ],
)
def test_an_entry_covers_what_it_says(entry: str, host: str, port: int, covered: bool) -> None:
    assert AllowedHosts([entry]).covers(host, port) is covered


def test_an_empty_list_covers_nothing() -> None:
    assert not AllowedHosts([]).covers("example.org", 443)


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "*",
        "*.org",
        "*.",
        "**.example.org",
        "a*.example.org",
        "*.1.2.3.4",
        "https://example.org",
        "example.org/x",
        "a b",
        "127.1",
        "u@h.example",
    ],
)
def test_an_entry_that_says_nothing_exact_is_refused(entry: str) -> None:
    with pytest.raises(PalyraError):
        AllowedHosts([entry])


@pytest.mark.parametrize(
    "place",
    [
        "169.254.169.254:80",
        "[fe80::1]:80",
        "metadata.google.internal:80",
        "127.0.0.1",
        "0.0.0.0:80",
        "*.lan:80",
        "",
        "a b:1",
    ],
)
def test_what_nobody_may_reach_is_no_private_host_of_the_settings(place: str) -> None:
    assert private_place(place) == ""


def test_the_settings_open_a_place_for_every_tool_and_nothing_else_does() -> None:
    strict, opened = (
        Resolver(),
        Resolver().allowing(["127.0.0.1:3000", "nas.lan:443", "169.254.169.254:80"]),
    )
    for place in (
        "127.0.0.1:3000",
        "nas.lan:443",
        "10.0.0.1:80",
        "169.254.1.1:80",
        "[fe80::1]:80",
        "localhost:80",
    ):
        with pytest.raises(HostRefused):
            Egress(strict).check([place])
    Egress(opened).check(["127.0.0.1:3000", "nas.lan:443", "example.org"])
    for place in ("127.0.0.1:3001", "169.254.169.254:80", "127.0.0.1"):
        with pytest.raises(HostRefused):
            Egress(opened).check([place])
