"""Nothing near this machine can be reached through http.fetch, however it is spelt, redirected to
or named.

A canary listens on loopback. Every test here ends with the canary not having heard anything.
"""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from palyra.core.errors import PalyraError
from palyra.tools.net.resolve import Resolver
from tests.material import ROOT, material
from tests.net_world import Names, Site, Web, answer, local, redirect, run

CANARY_PORT = 18099
NEAR = Names({"*": [["127.0.0.1"]]})


@asynccontextmanager
async def canary() -> AsyncIterator[list[Site]]:
    """On the port that the payloads name, over IPv4 and IPv6. Heard nothing by the end."""
    async with Site({"": answer("you reached me")}, port=CANARY_PORT) as four:
        six = Site({"": answer("you reached me")}, port=CANARY_PORT, address="::1")
        if not socket.has_ipv6:
            yield [four]
        else:
            async with six:
                yield [four, six]
        assert [site.connections for site in (four, six)] == [0, 0]


def payloads() -> list[str]:
    found = material("injection", "ssrf_loopback_payloads_port18099.txt").read_text().splitlines()
    spelt_out = [payload.replace("\\t", "\t") for payload in found if "\\t" in payload]
    return [*found, *spelt_out]


def test_the_canary_would_be_heard() -> None:
    """The same call with the same server is answered once it is allowed: what keeps others away is
    the guard.
    """

    async def work() -> None:
        async with Site(
            {"": answer("you reached me", content_type="text/plain")}, port=CANARY_PORT
        ) as site:
            web = Web(
                Resolver(
                    NEAR,
                    allow_private=frozenset(
                        {f"127.0.0.1:{CANARY_PORT}", f"near.example:{CANARY_PORT}"}
                    ),
                )
            )
            for host in ("127.0.0.1", "near.example"):
                assert (await web.fetch(f"http://{host}:{CANARY_PORT}/")).outcome == "ok"
            assert site.connections == 2

    run(work())


def test_no_payload_reaches_the_canary_even_if_every_name_leads_there() -> None:
    async def work() -> None:
        async with canary():
            web = Web(Resolver(NEAR))
            tried = 0
            for payload in payloads():
                for call in (
                    {"url": payload},
                    {"url": "https://site.example/", "hosts": [payload.split("/")[2]]},
                ):
                    result = await web.call("http.fetch", **call)
                    assert result.outcome in ("denied", "error"), payload
                    tried += 1
            print(f"payloads tried as URL and as host: {tried}")
            assert tried >= 740

    run(work())


def test_no_payload_reaches_the_canary_as_a_redirect() -> None:
    async def work() -> None:
        location = ""

        async def pages(asked: object, writer: asyncio.StreamWriter) -> None:
            writer.write(
                b"HTTP/1.1 302 x\r\nContent-Length: 0\r\nLocation: "
                + location.encode()
                + b"\r\n\r\n"
            )

        async with canary(), Site(pages) as site:
            # The most generous call there can be: every host that a payload names is one it may be
            # redirected to.
            web = Web(local("site.example", port=site.port))
            for payload in payloads():
                location = payload
                result = await web.fetch(
                    f"http://site.example:{site.port}/",
                    hosts=["allowed.example", "allowed.example:80", "xn--zca.localdomain.pw"],
                )
                assert result.outcome in ("denied", "error"), payload
            assert site.connections >= len(payloads())

    run(work())


@pytest.mark.parametrize(
    "location",
    [
        f"http://127.0.0.1:{CANARY_PORT}/",
        f"http://localhost:{CANARY_PORT}/",
        f"http://[::1]:{CANARY_PORT}/",
        f"http://[::ffff:7f00:1]:{CANARY_PORT}/",
        f"//127.0.0.1:{CANARY_PORT}/",
        f"\\\\127.0.0.1:{CANARY_PORT}\\",
        f"/\\127.0.0.1:{CANARY_PORT}/",
        f"http:////127.0.0.1:{CANARY_PORT}",
        f"http://near.example:{CANARY_PORT}/",
        f"http://user:pass@near.example:{CANARY_PORT}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:18099/_x",
        "data:text/plain,hello",
        "ftp://near.example/",
    ],
)
def test_a_redirect_to_something_near_is_denied(location: str) -> None:
    async def work() -> None:
        async with canary(), Site({"": redirect(location)}) as site:
            web = Web(local("site.example", port=site.port))
            result = await web.fetch(
                f"http://site.example:{site.port}/",
                hosts=[f"near.example:{CANARY_PORT}", "near.example"],
            )
            assert result.outcome == "denied"
            assert site.connections == 1

    run(work())


@pytest.mark.parametrize(
    "url",
    [
        f"http://127.0.0.1:{CANARY_PORT}/",
        f"http://localhost:{CANARY_PORT}/",
        f"http://LOCALHOST:{CANARY_PORT}/",
        f"http://a.localhost:{CANARY_PORT}/",
        f"http://0.0.0.0:{CANARY_PORT}/",
        f"http://0:{CANARY_PORT}/",
        f"http://[::]:{CANARY_PORT}/",
        f"http://[::1]:{CANARY_PORT}/",
        f"http://[0:0:0:0:0:0:0:1]:{CANARY_PORT}/",
        f"http://[::ffff:127.0.0.1]:{CANARY_PORT}/",
        f"http://[::ffff:7f00:1]:{CANARY_PORT}/",
        f"http://[64:ff9b::7f00:1]:{CANARY_PORT}/",
        f"http://[2002:7f00:1::]:{CANARY_PORT}/",
        "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
        "http://metadata.google.internal/",
        "http://metadata/",
        "http://[fe80::1]/",
        "http://user:secret@example.org/",
        "http://example.org:25/",
        "http://10.0.0.1/",
        "http://intranet/",
    ],
)
def test_it_is_refused_before_anybody_is_asked(url: str) -> None:
    """`scope` is what a decision is made about; a place that no policy can permit does not get as
    far as a prompt.
    """
    web = Web(Resolver(NEAR))
    for name in ("http.fetch", "http.post"):
        tool, typed, _ = web.catalogue.parse(name, {"url": url})
        with pytest.raises(PalyraError) as refused:
            tool.scope(typed, "")
        assert refused.value.code == "forbidden"


def test_one_private_answer_among_public_ones_is_enough_to_refuse() -> None:
    async def work() -> None:
        async with canary():
            for answers in (
                ["93.184.216.34", "127.0.0.1"],
                ["::1"],
                ["::ffff:127.0.0.1"],
                ["fe80::1%1"],
                ["169.254.169.254"],
            ):
                web = Web(Resolver(Names({"*": [answers]})))
                result = await web.fetch(f"http://site.example:{CANARY_PORT}/")
                assert (result.outcome, result.data) == ("denied", {"code": "forbidden"})

    run(work())


def test_a_name_that_does_not_exist_is_an_error_that_says_so() -> None:
    async def work() -> None:
        result = await Web(Resolver(Names({}))).fetch("http://nowhere.example/")
        assert result.outcome == "error"
        assert "nowhere.example" in result.text

    run(work())


def test_each_hop_is_looked_up_once_and_judged_again() -> None:
    """The name is near at its second lookup: the redirect to the very same URL is refused."""

    async def work() -> None:
        async with Site(
            {"/1": redirect("/2"), "/2": answer("in", content_type="text/plain")}
        ) as site:
            names = Names({"*": [["127.0.0.1"], ["169.254.169.254"]]})
            allowed = frozenset({f"site.example:{site.port}"})
            result = await Web(Resolver(names, allow_private=allowed)).fetch(
                f"http://site.example:{site.port}/1"
            )
            # Allowed by name, so what stops it here is only that nobody answers there; no second
            # lookup helped the first hop.
            assert names.lookups == ["site.example", "site.example"]
            assert result.outcome != "ok"
            assert [asked.target for asked in site.asked] == ["/1"]

    run(work())


def test_rebinding_and_public_addresses_in_a_network_of_our_own() -> None:
    """Needs `unshare` and `ip`, and a kernel that lets this user make network namespaces (root
    always may).

    Inside, loopback carries public addresses, so nothing has to be allowed for a legitimate fetch
    to work.
    """
    script = (
        "ip link set lo up && ip address add 93.184.216.34/32 dev lo && ip -6 address add 2606:4700::1111/128 dev lo nodad && "
        f"exec {sys.executable} -m tests.net_public"
    )
    done = subprocess.run(
        ["unshare", "-rn", "sh", "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "unshare" in done.stderr and "not permitted" in done.stderr:
        pytest.skip(f"this kernel gives this user no network namespace: {done.stderr.strip()}")
    assert done.stdout.splitlines() == [
        "a public address is fetched: ok",
        "an IPv6 address is fetched: ok",
        "rebinding, first fetch: ok, 1 lookup",
        "rebinding, second fetch: denied, 2 lookups",
        "rebinding between hops: denied",
        "canary heard 0",
    ], done.stderr
