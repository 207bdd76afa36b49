"""The console's files, as they were built into the package. Only names that are in the folder are
served, and nothing inline runs.

They are read once for each build and kept compressed; where nothing was built, the page says how to
do that.
"""

import gzip
import re
from pathlib import Path
from typing import Any

import palyra
from palyra.api import about
from palyra.api.calls import HTML, ApiCall, Headers, HttpResponse, Nothing
from palyra.api.routes import Gives, Route
from palyra.core.errors import NotFound
from palyra.system.thread_pool import everyday

FOLDER = Path(palyra.__file__).parent / "console"
CSP = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:;"
    b" connect-src 'self'; manifest-src 'self'; frame-src 'self';"
    b" frame-ancestors 'none'; base-uri 'none'; form-action 'none';"
    b" require-trusted-types-for 'script'; trusted-types palyra"
)
# The page that checks bundles asks nobody, so nothing that is dropped on it can leave.
VERIFIER_CSP = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'none';"
    b" frame-ancestors 'none'; base-uri 'none'; form-action 'none';"
    b" require-trusted-types-for 'script'; trusted-types 'none'"
)
# The page uses none of these, so no script in it can.
_PERMISSIONS = (
    b"accelerometer=(), autoplay=(), camera=(), display-capture=(), encrypted-media=(),"
    b" fullscreen=(self), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(),"
    b" payment=(), picture-in-picture=(), publickey-credentials-get=(), screen-wake-lock=(),"
    b" serial=(), usb=(), web-share=(), xr-spatial-tracking=()"
)
# What works in the background only fetches: it has no page to draw.
_WORKER: Headers = (
    (b"content-security-policy", b"default-src 'none'; connect-src 'self'"),
    (b"cache-control", b"no-cache"),
)
_PAGE: Headers = ((b"content-security-policy", CSP), (b"permissions-policy", _PERMISSIONS))
_VERIFIER: Headers = (
    (b"content-security-policy", VERIFIER_CSP),
    (b"permissions-policy", _PERMISSIONS),
    (b"cache-control", b"no-cache"),
)
# Diagrams are drawn by a program that writes styles into its pictures. It runs in a frame without
# origin, storage or network, to which the page gives a text and from which it takes a size. To
# WebKit, 'self' is nothing in such a frame: where its program lies is named as well.
_DIAGRAM_CSP = (
    b"sandbox allow-scripts; default-src 'none'; script-src 'self'%b; style-src 'unsafe-inline';"
    b" frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
_DIAGRAM: Headers = (
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"permissions-policy", _PERMISSIONS),
)
_HOST = re.compile(rb"[a-z0-9.:\[\]-]+", re.IGNORECASE)
# A file's name changes with its content. They are the same for everybody, and the frame of a
# diagram, which has no origin, loads its program like anybody else's page.
_FOR_GOOD: Headers = (
    (b"cache-control", b"public, max-age=31536000, immutable"),
    (b"access-control-allow-origin", b"*"),
)
_MEDIA = {
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
}
_MOST_KEPT = 64


class Files:
    """Files of one folder: a name and its time of change give the same bytes, so they are read and
    compressed once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[tuple[str, int], tuple[bytes, bytes]] = {}

    def get(self, name: str) -> tuple[bytes, bytes] | None:
        """The content, plain and compressed, or None if there is no such file."""
        path = self._folder / name
        try:
            key = (name, path.stat().st_mtime_ns)
            if (found := self._kept.get(key)) is None:
                plain = path.read_bytes()
                found = (plain, gzip.compress(plain, 9, mtime=0))
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = found
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        return found


_files = Files(FOLDER)


async def page(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    found = await everyday.run(_files.get, "index.html")
    if found is None:
        return await about.page(call)
    return _answer(found, call.headers, HTML, _PAGE)


async def diagram(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    host = call.headers.get(b"host", b"")
    here = b" http://%b https://%b" % (host, host) if _HOST.fullmatch(host) else b""
    policy = (b"content-security-policy", _DIAGRAM_CSP % here)
    return _answer(await _built("diagram.html"), call.headers, HTML, (policy, *_DIAGRAM))


async def asset(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    name = call.path["asset"]
    found = await everyday.run(_files.get, f"assets/{name}")
    if found is None:
        raise NotFound(
            f"the console has no file {name}: load the page again, it was rebuilt", asset=name
        )
    return _answer(found, call.headers, _MEDIA[Path(name).suffix], _FOR_GOOD)


async def manifest(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return _answer(
        await _built("manifest.webmanifest"), call.headers, b"application/manifest+json", ()
    )


async def worker(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return _answer(await _built("worker.js"), call.headers, _MEDIA[".js"], _WORKER)


async def verifier(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return _answer(await _built("verify.html"), call.headers, HTML, _VERIFIER)


async def _built(name: str) -> tuple[bytes, bytes]:
    found = await everyday.run(_files.get, name)
    if found is None:
        raise NotFound(
            "the console is not built: run `make console`, then load the page again", asset=name
        )
    return found


def _answer(
    found: tuple[bytes, bytes], asked: dict[bytes, bytes], media: bytes, headers: Headers
) -> HttpResponse:
    plain, packed = found
    varies = (*headers, (b"vary", b"accept-encoding"))
    if b"gzip" in asked.get(b"accept-encoding", b""):
        return HttpResponse(200, packed, media, (*varies, (b"content-encoding", b"gzip")))
    return HttpResponse(200, plain, media, varies)


CONSOLE: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/",
        summary="the console, or a page that says how to build it",
        handler=page,
        scope=None,
        gives=(Gives(200, media=HTML),),
    ),
    Route(
        method="GET",
        path="/assets/{asset}",
        summary="a file of the console",
        handler=asset,
        scope=None,
        gives=(Gives(200, media=b"*/*"),),
    ),
    Route(
        method="GET",
        path="/diagram.html",
        summary="the frame without rights in which the console draws diagrams",
        handler=diagram,
        scope=None,
        gives=(Gives(200, media=HTML),),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/manifest.webmanifest",
        summary="the console as an app to install",
        handler=manifest,
        scope=None,
        gives=(Gives(200, media=b"*/*"),),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/worker.js",
        summary="keeps the console's own files for when the daemon is away",
        handler=worker,
        scope=None,
        gives=(Gives(200, media=b"text/javascript"),),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/verify",
        summary="a page that checks proof bundles in the browser, for anybody",
        handler=verifier,
        scope=None,
        gives=(Gives(200, media=HTML),),
        errors=(404,),
    ),
)
