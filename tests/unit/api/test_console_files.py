"""The console's files: what is built is served, and nothing beside it."""

import asyncio
import gzip
import re
from pathlib import Path
from typing import Any, cast

import pytest
from scripts import clients

from palyra.api import console
from palyra.api.calls import ANYBODY, ApiCall, HttpResponse, Nothing
from palyra.api.routes import PATTERNS
from palyra.api.streams import headers_of
from palyra.core.errors import NotFound


def call(asset: str = "", encoding: str = "") -> ApiCall[Nothing, Nothing]:
    return ApiCall(
        cast("Any", None),
        ANYBODY,
        {"asset": asset},
        Nothing(),
        Nothing(),
        {b"accept-encoding": encoding.encode()},
        "test",
    )


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "assets").mkdir()
    monkeypatch.setattr(console, "_files", console.Files(tmp_path))
    return tmp_path


def page(encoding: str = "") -> HttpResponse:
    return asyncio.run(console.page(call(encoding=encoding)))


def test_the_page_runs_only_scripts_of_its_own(built: Path) -> None:
    (built / "index.html").write_text("<p>the console")
    answer = page()
    sent = dict(headers_of(answer.headers))
    assert answer.body == b"<p>the console"
    assert (
        b"default-src 'none'; script-src 'self'; style-src 'self'"
        in sent[b"content-security-policy"]
    )
    assert b"unsafe" not in sent[b"content-security-policy"]
    assert sent[b"cache-control"] == b"no-store"


def test_where_nothing_is_built_the_page_says_how_to(built: Path) -> None:
    assert b"make run" in page().body


def test_a_page_that_was_built_anew_is_served_anew(built: Path) -> None:
    (built / "index.html").write_text("one")
    first = page().body
    (built / "index.html").unlink()
    assert b"not built" in page().body
    (built / "index.html").write_text("two!")
    assert (first, page().body) == (b"one", b"two!")


def test_a_browser_that_can_gets_it_compressed(built: Path) -> None:
    (built / "index.html").write_text("long " * 1000)
    answer = page("br, gzip")
    assert (b"content-encoding", b"gzip") in answer.headers
    assert gzip.decompress(answer.body) == b"long " * 1000
    assert len(answer.body) < 200


def test_a_file_is_kept_for_good_and_one_that_is_not_there_is_not_found(built: Path) -> None:
    (built / "assets" / "a-1.js").write_text("1")
    answer = asyncio.run(console.asset(call("a-1.js")))
    sent = [value for name, value in headers_of(answer.headers) if name == b"cache-control"]
    assert (answer.media, sent) == (
        b"text/javascript; charset=utf-8",
        [b"public, max-age=31536000, immutable"],
    )
    with pytest.raises(NotFound):
        asyncio.run(console.asset(call("b-1.js")))


@pytest.mark.parametrize(
    "name",
    ["..", "../index.html", ".made-from", "a/b.js", "a.py", "", "a.js\n", "a..js", "%2e%2e.js"],
)
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    assert not PATTERNS["asset"].match(name)


SOURCE = Path(clients.__file__).parents[1] / "console"
# Text that a person copies, a WebSocket, and one answer that is checked byte by byte.
BY_HAND = {
    "connections/snippets.ts",
    "schedules/one.tsx",
    "core/live.ts",
    "core/proof.ts",
    "core/verbs.ts",
}


def test_the_console_asks_by_the_generated_verbs_alone() -> None:
    sources = [each for each in (SOURCE / "src").rglob("*.ts*") if "/v1/" in each.read_text()]
    assert {str(each.relative_to(SOURCE / "src")) for each in sources} == BY_HAND


def test_no_committed_file_of_the_console_names_a_registry() -> None:
    for name in ("package.json", "package-lock.json", ".npmrc"):
        assert not re.search(r'https?://|"resolved"', (SOURCE / name).read_text()), name
