"""Reading URLs: the same host as a browser, or a refusal."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palyra.core.errors import Forbidden, InvalidInput, PalyraError
from palyra.tools.net import addresses, hosts, urls
from palyra.tools.net.urls import Url
from tests.material import material

# Each can only grow: a change that refuses what was read before must say so here.
LEAST_AGREEING = 179


def cases() -> list[dict[str, Any]]:
    return [
        case
        for case in json.loads(material("injection", "whatwg_urltestdata_BSD3.json").read_text())
        if isinstance(case, dict)
    ]


def read(case: dict[str, Any]) -> Url | None:
    try:
        return urls.parse(case["input"], urls.parse(case["base"]) if case["base"] else None)
    except PalyraError:
        return None


def test_every_whatwg_case_is_read_as_the_standard_says_or_refused() -> None:
    agreed = refused = 0
    for case in cases():
        url = read(case)
        if url is None:
            refused += 1
            continue
        port = "" if url.port == urls.PORTS[url.scheme] else str(url.port)
        ours = {
            "protocol": f"{url.scheme}:",
            "hostname": hosts.written(url.host),
            "port": port,
            "pathname": url.path,
        }
        ours["search"] = f"?{url.query}" if url.query else ""
        assert not case.get("failure"), case
        assert ours == {key: case[key] for key in ours}, case
        agreed += 1
    print(f"WHATWG: {agreed} agree, {refused} refused")
    assert agreed >= LEAST_AGREEING


def test_what_the_standard_takes_for_a_web_address_is_refused_only_for_a_reason_of_safety() -> None:
    """Credentials, odd spellings of addresses, ports that are not the web's, names that IDNA does
    not know.
    """
    unexplained = []
    for case in cases():
        if (
            case.get("failure")
            or case["protocol"] not in ("http:", "https:")
            or read(case) is not None
        ):
            continue
        text = f"{case['input']} {case['base']}"
        address = case["hostname"].replace(".", "").isdecimal()
        odd = (
            case["hostname"].endswith(".")
            or "xn--" in case["hostname"].lower()
            or not case["hostname"][0].isalnum()
        )
        if not ("@" in text or address or odd or case["port"] in ("0", "21")):
            unexplained.append(case["input"])
    assert unexplained == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://Example.ORG", "https://example.org/"),
        ("http://example.org:80/a/../b/./c?d e#f", "http://example.org/b/c?d%20e"),
        ("https://example.org:8443\\a\\b", "https://example.org:8443/a/b"),
        ("ht\ntps://exa\tmple.org/", "https://example.org/"),
        ("https://ex%41mple.org/%41", "https://example.org/%41"),
        ("https://bücher.example/ü?ö", "https://xn--bcher-kva.example/%C3%BC?%C3%B6"),
        ("https://1.1.1.1/", "https://1.1.1.1/"),
        ("https://[2606:4700:0:0::1111]/", "https://[2606:4700::1111]/"),
        ("https:////example.org", "https://example.org/"),
    ],
)
def test_a_good_url_has_one_spelling(text: str, expected: str) -> None:
    assert str(urls.parse(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://example.org/",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://user@example.org/",
        "https://user:pass@example.org/",
        "https://@example.org/",
        "https://example.org./",
        "https://127.1/",
        "https://0177.0.0.1/",
        "https://0x7f.0.0.1/",
        "https://2130706433/",
        "https://１２７.0.0.1/",
        "https://127。0。0。1/",
        "https://127.0.0.1./",
        "https://%31%32%37.0.0.1/",
        "https://[::1%25lo]/",
        "https://[::1%lo]/",
        "https://[::1/",
        "https://[example.org]/",
        "https://exa mple.org/",
        "https://example.org:port/",
        "https://example.org:99999/",
        "https://example.org:22/",
        "https://example.org:6379/",
        "https://example.org:-1/",
        "https://example.org,other.example/",
        "https://a..b/",
        "https://" + "a" * 64 + ".example/",
        "https://" + "a." * 130 + "example/",
        "https://%ff/",
        "https://xn--a/",
    ],
)
def test_a_dangerous_url_is_refused(text: str) -> None:
    with pytest.raises(Forbidden):
        urls.parse(text)


@pytest.mark.parametrize(
    "text",
    ["", "example.org", "//example.org/", "/path", "https://", "https:///", "\ud800", "x" * 9000],
)
def test_what_is_no_url_is_called_so(text: str) -> None:
    with pytest.raises(InvalidInput):
        urls.parse(text)


def test_no_loopback_payload_is_read_as_a_place_that_may_be_reached() -> None:
    payloads = (
        material("injection", "ssrf_loopback_payloads_port18099.txt").read_text().splitlines()
    )
    passed = set()
    for payload in payloads:
        try:
            url = urls.parse(payload)
        except PalyraError:
            continue
        literal = addresses.parse(url.host)
        if literal is None or addresses.refusal(literal) is None:
            passed.add(url.host)
    # Names that really are what they say; where they lead is for the resolver to judge.
    assert passed <= {"xn--zca.localdomain.pw", "allowed.example"}
    assert len(payloads) == 370


@given(
    st.text(alphabet=st.sampled_from("htps:/\\.@#?%[]0123456789abcdefx-_ \t\n。１é"), max_size=60)
)
@example("http://[::ffff:127.0.0.1]/")
def test_reading_gives_a_url_or_a_refusal_and_reading_again_changes_nothing(text: str) -> None:
    for spelt in (text, f"http://{text}", f"https://example.org/{text}"):
        try:
            url = urls.parse(spelt)
        except PalyraError:
            continue
        assert urls.parse(str(url)) == url
        assert str(url).isascii()
        assert str(url).isprintable()
        assert " " not in str(url)


@given(st.integers(0, (1 << 128) - 1))
def test_an_ipv6_address_survives_being_written(number: int) -> None:
    written = hosts.ipv6_text(number)
    assert hosts.parse(f"[{written}]") == written
    assert urls.parse(f"http://[{written}]:8080/").authority == f"[{written}]:8080"


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/b", "https://example.org/b"),
        ("b", "https://example.org/a/b"),
        ("../b", "https://example.org/b"),
        ("?q", "https://example.org/a/x?q"),
        ("//other.example/b", "https://other.example/b"),
        ("\\\\other.example\\b", "https://other.example/b"),
        ("https:b", "https://example.org/a/b"),
        ("http:b", "http://b/"),
        ("", "https://example.org/a/x?y"),
    ],
)
def test_a_location_is_read_relative_to_where_it_came_from(location: str, expected: str) -> None:
    assert str(urls.parse(location, urls.parse("https://example.org/a/x?y"))) == expected
