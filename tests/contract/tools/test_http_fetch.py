"""What http.fetch and http.post give for honest servers: text, redirects within their hosts,
credentials, the cache.
"""

import base64
import gzip
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import Forbidden, InvalidInput
from palyra.core.labels import Label
from palyra.core.ports import CallContext
from palyra.core.tools import Subject, ToolResult
from palyra.tools.net.resolve import Resolver
from tests.net_world import Asked, Names, Site, Web, answer, certified, html, local, redirect, run

PAGE = """<!doctype html><title>A page</title><nav><a href=/>home</a></nav>
<main><h1>Hello</h1><p>Some <a href="/more">text</a>.</p></main><script>ignored()</script>"""


def fetched(
    pages: dict[str, bytes], target: str = "/", **arguments: Any
) -> tuple[ToolResult, Site]:
    async def work() -> tuple[ToolResult, Site]:
        async with Site(pages) as site:
            web = Web(local("site.example", "other.example", port=site.port))
            further = [f"{host}:{site.port}" for host in arguments.pop("hosts", ())]
            result = await web.fetch(
                f"http://site.example:{site.port}{target}", hosts=further, **arguments
            )
            return result, site

    return run(work())


def test_a_page_comes_back_as_clean_text_and_is_labelled_untrusted() -> None:
    result, site = fetched({"/": html(PAGE)})
    where = f"http://site.example:{site.port}"
    assert result.outcome == "ok"
    first, title, _, text = result.text.split("\n", 3)
    assert first == f"GET {where}/: 200 OK, text/html, {len(PAGE)} bytes, HTML made readable"
    assert title == "Title: A page"
    assert text == f"# Hello\n\nSome [text]({where}/more)."
    assert result.label == Label(integrity="untrusted", sources=(f"{where}/",))
    assert {
        key: result.data[key] for key in ("status", "media_type", "bytes", "cut", "cached", "hops")
    } == {
        "status": 200,
        "media_type": "text/html",
        "bytes": len(PAGE),
        "cut": False,
        "cached": False,
        "hops": [],
    }


def test_raw_leaves_the_markup_alone() -> None:
    result, _ = fetched({"/": html(PAGE)}, **{"as": "raw"})
    assert PAGE in result.text


def test_json_and_plain_text_come_back_as_they_are() -> None:
    result, _ = fetched({"/": answer('{"a": "<b>"}', content_type="application/json")})
    assert result.text.endswith('\n\n{"a": "<b>"}')


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        ("naïve".encode("latin-1"), "text/plain; charset=iso-8859-1", "naïve"),
        ("naïve".encode("latin-1"), "text/plain", "naïve"),
        ("naïve".encode(), "text/plain", "naïve"),
        ("日本語".encode("shift_jis"), 'text/plain; charset="Shift_JIS"', "日本語"),
        ("日本語".encode("utf-16"), "text/plain", "日本語"),
        (
            b'<html><meta charset="windows-1251"><p>' + "привет".encode("cp1251"),
            "text/html",
            "привет",
        ),
        ("naïve".encode(), "text/plain; charset=no-such-thing", "naïve"),
        ("naïve".encode(), "text/plain; charset=punycode", "naïve"),
        (b"caf\xe9 \x93quoted\x94", "text/plain", "café “quoted”"),
        (b"\xef\xbb\xbfmarked", "text/plain", "marked"),
    ],
)
def test_text_is_decoded_by_its_mark_its_header_or_itself(
    body: bytes, content_type: str, expected: str
) -> None:
    result, _ = fetched({"/": answer(body, content_type=content_type)})
    assert result.outcome == "ok"
    assert result.text.split("\n\n")[-1] == expected


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "two members"])
def test_a_compressed_body_is_unpacked(encoding: str) -> None:
    packed = {
        "gzip": gzip.compress(b"hello world"),
        "deflate": zlib.compress(b"hello world"),
        "raw deflate": zlib.compress(b"hello world", wbits=-15),
        "two members": gzip.compress(b"hello ") + gzip.compress(b"world"),
    }[encoding]
    header = "deflate" if "deflate" in encoding else "gzip"
    result, _ = fetched({"/": answer(packed, content_type="text/plain", content_encoding=header)})
    assert result.text.endswith("\n\nhello world")


def test_a_binary_file_is_described_not_shown() -> None:
    result, _ = fetched({"/": answer(b"\x89PNG\r\n\x1a\n" + bytes(100), content_type="image/png")})
    assert result.outcome == "ok"
    assert "[image/png, 108 bytes, sha256 " in result.text
    assert "PNG\r" not in result.text


def test_an_image_is_shown_and_what_only_begins_like_one_is_text() -> None:
    gif = b"GIF89a\x02\x00\x03\x00" + bytes(20)
    result, _ = fetched({"/": answer(gif, content_type="image/png")})
    assert result.images == ("data:image/gif;base64," + base64.b64encode(gif).decode(),)
    assert result.text.endswith("; an image]")
    result, _ = fetched(
        {"/": answer(b"GIF89a is what such a file begins with", content_type="text/plain")}
    )
    assert (result.images, result.text.endswith("begins with")) == ((), True)


def test_a_pdf_comes_back_as_its_text() -> None:
    result, _ = fetched({"/": answer(_pdf("Hello from a PDF"), content_type="application/pdf")})
    assert result.outcome == "ok"
    assert "[page 1 of 1]\nHello from a PDF" in result.text


def test_a_damaged_pdf_is_an_error_not_a_crash() -> None:
    result, _ = fetched(
        {"/": answer(b"%PDF-1.7\n" + b"\xff" * 5000, content_type="application/pdf")}
    )
    assert result.outcome == "error"
    assert "damaged" in result.text


def test_head_shows_the_headers_and_no_body() -> None:
    result, site = fetched(
        {
            "/": b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nX-Thing: yes\r\nSet-Cookie: a=b\r\n\r\n"
        },
        method="HEAD",
    )
    assert result.outcome == "ok"
    assert "content-length: 12345" in result.text
    assert "x-thing: yes" in result.text
    assert "a=b" not in result.text
    assert site.asked[0].method == "HEAD"


def test_an_error_of_the_server_is_an_error_with_its_text() -> None:
    result, _ = fetched(
        {"/": answer("gone fishing", 503, content_type="text/plain", retry_after="120")}
    )
    assert result.outcome == "error"
    assert "503 Service Unavailable" in result.text
    assert "retry-after: 120" in result.text
    assert "gone fishing" in result.text


def test_chunks_and_trailers_are_read_and_trailers_dropped() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nTrailer: X-Evil\r\n\r\n"
    result, _ = fetched({"/": head + b"5\r\nhello\r\n0\r\nX-Evil: 1\r\n\r\n"})
    assert result.text.endswith("\n\nhello")
    assert "evil" not in result.text.lower()


def test_a_request_says_who_we_are_and_what_was_asked_and_no_more() -> None:
    _, site = fetched({"/a?b=c": html(PAGE)}, "/a?b=c#d", headers={"Accept-Language": "de"})
    (asked,) = site.asked
    assert (asked.method, asked.target) == ("GET", "/a?b=c")
    assert asked.headers.pop("user-agent").startswith("palyra/")  # type: ignore[attr-defined]
    assert set(asked.headers) == {
        "host",
        "accept",
        "accept-language",
        "accept-encoding",
        "connection",
    }
    assert asked.headers["host"] == f"site.example:{site.port}"


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "Cookie",
        "Authorization",
        "Content-Length",
        "Transfer-Encoding",
        "X-Forwarded-For",
        "a: b\r\nX",
    ],
)
def test_a_header_that_is_not_on_the_list_is_refused(name: str) -> None:
    result, site = fetched({"/": html(PAGE)}, headers={name: "x"})
    assert result.outcome == "error"
    assert site.connections == 0


@pytest.mark.parametrize("value", ["a\r\nCookie: b", "a\nb", "", " a", "ü", "a\x00"])
def test_a_header_value_cannot_start_another_header(value: str) -> None:
    result, site = fetched({"/": html(PAGE)}, headers={"accept": value})
    assert result.outcome == "error"
    assert site.connections == 0


def test_a_post_sends_its_body_once() -> None:
    async def work() -> None:
        async with Site({"": answer("done", content_type="text/plain")}) as site:
            web = Web(local("site.example", port=site.port))
            result = await web.call(
                "http.post", url=f"http://site.example:{site.port}/api", body='{"ü": 1}'
            )
            assert result.outcome == "ok"
            (asked,) = site.asked
            assert (asked.method, asked.body, asked.headers["content-type"]) == (
                "POST",
                '{"ü": 1}'.encode(),
                "application/json",
            )

    run(work())


@pytest.mark.parametrize(
    ("status", "method", "body"),
    [
        (301, "GET", b""),
        (302, "GET", b""),
        (303, "GET", b""),
        (307, "POST", b"x"),
        (308, "POST", b"x"),
    ],
)
def test_a_post_is_repeated_only_where_the_redirect_says_so(
    status: int, method: str, body: bytes
) -> None:
    async def work() -> None:
        async with Site({"/a": redirect("/b", status), "/b": answer("done")}) as site:
            web = Web(local("site.example", port=site.port))
            await web.call(
                "http.post",
                url=f"http://site.example:{site.port}/a",
                body="x",
                content_type="text/plain",
            )
            assert (site.asked[1].method, site.asked[1].body) == (method, body)

    run(work())


def test_a_redirect_within_the_host_is_followed() -> None:
    result, site = fetched(
        {
            "/": redirect("/a"),
            "/a": redirect("b?c"),
            "/b?c": answer("here", content_type="text/plain"),
        }
    )
    assert result.outcome == "ok"
    assert result.data["url"] == f"http://site.example:{site.port}/b?c"
    assert result.data["hops"] == [
        f"http://site.example:{site.port}/",
        f"http://site.example:{site.port}/a",
    ]


def test_a_redirect_to_another_host_is_told_not_followed() -> None:
    result, site = fetched({"/": redirect("https://elsewhere.example/x?data=1")})
    assert result.outcome == "error"
    assert result.data["location"] == "https://elsewhere.example/x?data=1"
    assert "call http.fetch with that URL" in result.text
    assert site.connections == 1


def test_a_redirect_to_a_host_that_the_call_listed_is_followed() -> None:
    async def work() -> None:
        async with (
            Site({"/b": answer("there", content_type="text/plain")}) as other,
            Site({"/": redirect(f"http://other.example:{other.port}/b")}) as site,
        ):
            allowed = frozenset({f"site.example:{site.port}", f"other.example:{other.port}"})
            web = Web(Resolver(Names({"*": [["127.0.0.1"]]}), allow_private=allowed))
            first = f"http://site.example:{site.port}/"
            assert (await web.fetch(first)).outcome == "error"
            result = await web.fetch(first, hosts=[f"OTHER.example:{other.port}"])
            assert (result.outcome, result.data["url"]) == (
                "ok",
                f"http://other.example:{other.port}/b",
            )

    run(work())


@pytest.mark.parametrize(("hops", "outcome"), [(5, "ok"), (6, "error")])
def test_five_redirects_are_followed_and_no_sixth(hops: int, outcome: str) -> None:
    pages = {f"/{number}": redirect(f"/{number + 1}") for number in range(hops)}
    result, site = fetched({**pages, f"/{hops}": answer("end", content_type="text/plain")}, "/0")
    assert result.outcome == outcome
    assert site.connections == 6


def judged(name: str, **arguments: Any) -> tuple[Any, Any, Any]:
    web = Web(Resolver(Names({})))
    tool, typed, _ = web.catalogue.parse(name, arguments)
    scope = tool.scope(typed, "")
    return scope, tool.subjects(scope), tool.preview(typed, "")


def test_the_scope_names_the_method_the_request_and_every_host() -> None:
    scope, subjects, preview = judged(
        "http.fetch",
        url="HTTPS://Example.org/a b",
        hosts=["CDN.example.org", "api.example.org:8443"],
    )
    assert scope.program == "GET"
    assert scope.command == "GET https://example.org/a%20b"
    assert scope.hosts == ("example.org", "cdn.example.org", "api.example.org:8443")
    assert [subject.kind for subject in subjects] == ["command", "tool"]
    assert (preview.kind, preview.title) == ("request", "GET https://example.org/a%20b")
    assert "may be redirected to: cdn.example.org, api.example.org:8443" in preview.body


def test_a_wider_approval_of_a_plain_request_is_about_its_host() -> None:
    scope, subjects, _ = judged("http.fetch", url="https://example.org/", method="HEAD")
    assert scope.program == "HEAD"
    assert subjects == (Subject("http.fetch", "host", "example.org"), Subject("http.fetch", "tool"))


def test_a_credential_is_part_of_what_is_decided_and_shown_by_reference() -> None:
    scope, subjects, preview = judged(
        "http.post",
        url="https://example.org/",
        body="x" * 5000,
        auth="vault:key",
        content_type="text/plain",
    )
    assert scope.command == "POST https://example.org/ with vault:key"
    assert [subject.kind for subject in subjects] == ["command", "tool"]
    assert "authorization: from vault:key" in preview.body
    assert "body: 5,000 bytes" in preview.body
    assert preview.body.endswith("x" * 5000)


def test_reading_can_be_repeated_and_sending_cannot() -> None:
    specs = {spec.name: spec for spec in Web(Resolver(Names({}))).catalogue.specs()}
    assert {name: (spec.effect, spec.capabilities) for name, spec in specs.items()} == {
        "http.fetch": ("pure", ("network",)),
        "http.post": ("once", ("network",)),
    }


SECRET = "s3cr3t-value-0123456789"


async def vault(reference: str, host: str, context: CallContext) -> str:
    if (reference, host.partition(":")[0], context.principal) != (
        "vault:key",
        "site.example",
        "user:owner",
    ):
        raise Forbidden(f"{reference} is not for {host}")
    return SECRET


def _always(value: str) -> Callable[..., Awaitable[str]]:
    async def secret(*_: object) -> str:
        return value

    return secret


def echoing(asked: Asked) -> bytes:
    return answer(
        f"you sent {asked.headers.get('authorization')}", content_type="text/plain", x_echo="v"
    )


def test_a_credential_goes_to_its_host_and_nowhere_else(tmp_path: Path) -> None:
    async def work() -> None:
        server, client = certified(tmp_path, "site.example", "other.example")

        async def other_pages(asked: Asked, writer: Any) -> None:
            writer.write(echoing(asked))

        async with Site(other_pages, tls=server) as other:

            async def pages(asked: Asked, writer: Any) -> None:
                away = redirect(
                    f"https://other.example:{other.port}/?leak={asked.headers.get('authorization', '')[7:]}"
                )
                writer.write(
                    {"/away": away, "/within": redirect("/end")}.get(asked.target, echoing(asked))
                )

            async with Site(pages, tls=server) as site:
                allowed = frozenset({f"site.example:{site.port}", f"other.example:{other.port}"})
                web = Web(
                    Resolver(Names({"*": [["127.0.0.1"]]}), allow_private=allowed),
                    secret=vault,
                    tls=client,
                )
                url = f"https://site.example:{site.port}"
                results = [
                    await web.fetch(f"{url}/within", auth="vault:key"),
                    await web.fetch(f"{url}/away", auth="vault:key"),
                    await web.fetch(
                        f"{url}/away", auth="vault:key", hosts=[f"other.example:{other.port}"]
                    ),
                    await web.call("http.post", url=f"{url}/", body="x", auth="vault:key"),
                ]
                assert [result.outcome for result in results] == ["ok", "error", "ok", "ok"]
                assert all(SECRET not in str(result) for result in results)
                assert "you sent [vault:key]" in results[0].text
                assert [asked.headers.get("authorization") for asked in site.asked] == [
                    f"Bearer {SECRET}"
                ] * 5
                assert [asked.headers.get("authorization") for asked in other.asked] == [None]

    run(work())


def test_a_credential_is_refused_where_it_cannot_be_kept() -> None:
    async def work() -> None:
        async with Site({"": answer("hi")}) as site:
            resolver = local("site.example", "other.example", port=site.port)
            plain = await Web(resolver, secret=vault).fetch(
                f"http://site.example:{site.port}/", auth="vault:key"
            )
            off = await Web(resolver).fetch(f"https://site.example:{site.port}/", auth="vault:key")
            literal = await Web(resolver, secret=vault).fetch(
                f"https://site.example:{site.port}/", auth=f"Bearer {SECRET}"
            )
            foreign = await Web(resolver, secret=vault).fetch(
                f"https://other.example:{site.port}/", auth="vault:key"
            )
            broken = await Web(resolver, secret=_always("two\r\nlines")).fetch(
                f"https://site.example:{site.port}/", auth="vault:key"
            )
            results = (plain, off, literal, foreign, broken)
            assert [result.outcome for result in results] == [
                "error",
                "error",
                "error",
                "denied",
                "error",
            ]
            assert site.connections == 0
            assert "lines" not in broken.text.replace("one line", "")

    run(work())


def test_a_value_that_names_its_own_scheme_is_sent_as_it_is(tmp_path: Path) -> None:
    async def work() -> None:
        server, client = certified(tmp_path, "site.example")
        basic = "Basic " + base64.b64encode(b"me:password").decode()
        async with Site(
            {"": answer(f"echo {basic}", content_type="text/plain")}, tls=server
        ) as site:
            web = Web(local("site.example", port=site.port), secret=_always(basic), tls=client)
            result = await web.fetch(f"https://site.example:{site.port}/", auth="vault:me")
            assert site.asked[0].headers["authorization"] == basic
            assert basic[6:] not in result.text

    run(work())


def test_a_certificate_for_another_name_is_not_accepted(tmp_path: Path) -> None:
    async def work() -> None:
        server, client = certified(tmp_path, "somebody-else.example")
        async with Site({"": answer("hi")}, tls=server) as site:
            for tls in (client, None):
                result = await Web(local("site.example", port=site.port), tls=tls).fetch(
                    f"https://site.example:{site.port}/"
                )
                assert result.outcome == "error"
                assert "certificate" in result.text
            assert site.asked == []

    run(work())


def test_an_answer_is_used_again_as_long_as_its_server_says() -> None:
    async def work() -> None:
        now = 0.0
        async with Site(
            {
                "": answer(
                    "hi", content_type="text/plain", cache_control="public, max-age=60", age="10"
                )
            }
        ) as site:
            web = Web(local("site.example", port=site.port), clock=lambda: now)
            url = f"http://site.example:{site.port}/"
            assert not (await web.fetch(url)).data["cached"]
            now = 49
            second = await web.fetch(url)
            assert second.data["cached"]
            assert "from the cache" in second.text
            assert second.text.endswith("\n\nhi")
            now = 51
            assert not (await web.fetch(url)).data["cached"]
            assert site.connections == 2
            await web.fetch(url, headers={"accept": "text/plain"})
            await web.fetch(url, method="HEAD")
            await web.call("http.post", url=url)
            assert site.connections == 5

    run(work())


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"cache_control": "max-age=0"},
        {"cache_control": "no-store, max-age=60"},
        {"cache_control": "private, max-age=60"},
        {"cache_control": "no-cache, max-age=60"},
        {"cache_control": "max-age=60", "vary": "Cookie"},
        {"cache_control": "max-age=60", "vary": "*"},
        {"cache_control": "max-age=60", "set_cookie": "a=b"},
        {"cache_control": "max-age=nonsense"},
    ],
)
def test_an_answer_that_may_not_be_kept_is_fetched_again(headers: dict[str, str]) -> None:
    async def work() -> None:
        async with Site({"": answer("hi", content_type="text/plain", **headers)}) as site:
            web = Web(local("site.example", port=site.port))
            for _ in range(2):
                await web.fetch(f"http://site.example:{site.port}/")
            assert site.connections == 2

    run(work())


def test_arguments_that_do_not_fit_are_refused() -> None:
    web = Web(Resolver(Names({})))
    for arguments in (
        {"url": "https://a.example/", "method": "DELETE"},
        {"url": "https://a.example/", "allow_private": ["a"]},
        {},
    ):
        with pytest.raises(InvalidInput):
            web.catalogue.parse("http.fetch", arguments)


def _pdf(text: str) -> bytes:
    """The smallest honest PDF: one page, one line."""
    stream = f"BT /F1 24 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return (
        out
        + b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
        % (table, len(out))
    )
