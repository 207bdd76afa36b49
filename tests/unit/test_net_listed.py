"""Lists of hosts that a sandbox may reach: an entry covers exactly what it says."""

import pytest

from palyra.domain.errors import PalyraError
from palyra.tools.net.listed import Listed


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
    assert Listed([entry]).covers(host, port) is covered


def test_an_empty_list_covers_nothing() -> None:
    assert not Listed([]).covers("example.org", 443)


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
        Listed([entry])
