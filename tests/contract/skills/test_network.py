"""`host.http` over the daemon's own fetching: granted hosts only, judged addresses only, redirects
no further.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from palyra.core.tools import ToolResult
from palyra.features.skills import host as network
from palyra.features.skills.host import World
from palyra.tools.net.resolve import Resolver
from palyra.tools.paths import PathGuard
from tests.net_world import Site, answer, local, redirect, run
from tests.skills_at_work import asking, tool
from tests.tools_at_work import context


def called(
    tmp_path: Path, pages: dict[str, bytes], resolver: Resolver | None = None, **request: Any
) -> tuple[ToolResult, Site]:
    """A module asks for a page of site.example, which was granted; other.example was not."""

    async def work() -> tuple[ToolResult, Site]:
        async with Site(pages) as site:
            there = resolver or local("site.example", "other.example", "127.0.0.1", port=site.port)
            filled = {
                key: value.replace("PORT", str(site.port)) if key == "url" else value
                for key, value in request.items()
            }
            wants = {
                "hosts": [
                    f"site.example:{site.port}",
                    f"127.0.0.1:{site.port}",
                    f"localhost:{site.port}",
                ]
            }
            subject = tool(
                tmp_path,
                asking("http", json.dumps(filled)),
                World(PathGuard(), network.http(there)),
                wants=wants,
                effect="once",
            )
            site.pages = {
                target: page.replace(b"PORT", str(site.port).encode())
                for target, page in pages.items()
            }
            return await subject.execute(subject.parse({})[0], context(tmp_path)), site

    return run(work())


def test_a_granted_host_answers(tmp_path: Path) -> None:
    result, site = called(
        tmp_path,
        {"/x": answer("hello", content_type="text/plain")},
        url="http://site.example:PORT/x",
    )
    assert json.loads(result.text)["body"] == "hello"
    assert result.label.sources == (f"http://site.example:{site.port}/",)


def test_a_post_and_its_headers_arrive(tmp_path: Path) -> None:
    request = {
        "url": "http://site.example:PORT/x",
        "method": "POST",
        "body": "data",
        "headers": {"X-Mine": "1"},
    }
    _, site = called(tmp_path, {"/x": answer("ok")}, **request)
    (asked,) = site.asked
    assert (asked.method, asked.body, asked.headers["x-mine"]) == ("POST", b"data", "1")


def test_a_redirect_to_another_host_is_not_followed(tmp_path: Path) -> None:
    result, site = called(
        tmp_path, {"/x": redirect("http://other.example:PORT/")}, url="http://site.example:PORT/x"
    )
    assert (json.loads(result.text)["status"], [asked.target for asked in site.asked]) == (
        302,
        ["/x"],
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_address_of_our_own_is_refused_even_if_it_was_granted(tmp_path: Path, host: str) -> None:
    result, site = called(tmp_path, {"": answer("canary")}, Resolver(), url=f"http://{host}:PORT/")
    assert (result.text in ("refused", "failed"), site.connections) == (True, 0)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil"},
        {"Content-Length": "0"},
        {"X": "a\r\nY: b"},
        {"Bad\r\nName": "x"},
        {"Cookie": "a"},
    ],
)
def test_headers_that_could_change_the_request_are_refused(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    result, site = called(
        tmp_path, {"": answer("ok")}, url="http://site.example:PORT/", headers=headers
    )
    assert (result.text in ("refused", "failed"), site.asked) == (True, [])
