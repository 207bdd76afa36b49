"""A small S3-like store on loopback. It works the signature of every request out anew, from the
published rules, and refuses what does not fit.
"""

import hashlib
import hmac
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

ACCESS, SECRET = "AKIAPALYRATEST", "a/secret+key"
PAGE = 2


class S3Store:
    """`objects` by key of one bucket. `broken`: what the next requests are answered with."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.broken: list[int] = []
        self.refused: list[str] = []
        self.port = 0
        # Closed, whoever asks waits; `asked` says that somebody does.
        self.door, self.asked = threading.Event(), threading.Event()
        self.door.set()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def s3_store(bucket: str = "attic") -> Iterator[S3Store]:
    store = S3Store()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _answer(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _do(self) -> None:
            store.asked.set()
            store.door.wait(60)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if store.broken:
                self._answer(store.broken.pop(0), _error("SlowDown", "come back later"))
                return
            if problem := _problem(self, body):
                store.refused.append(problem)
                self._answer(403, _error("SignatureDoesNotMatch", problem))
                return
            address = urlsplit(self.path)
            _, there, key = (*unquote(address.path).split("/", 2), "")[:3]
            if there != bucket:
                self._answer(404, _error("NoSuchBucket", there))
            elif self.command == "GET" and not key:
                self._answer(200, _listing(store, dict(parse_qsl(address.query))))
            elif self.command == "PUT":
                store.objects[key] = body
                self._answer(200)
            elif self.command == "DELETE":
                store.objects.pop(key, None)
                self._answer(204)
            elif key in store.objects:
                self._answer(200, store.objects[key])
            else:
                self._answer(404, _error("NoSuchKey", key))

        do_GET = do_PUT = do_DELETE = _do

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    store.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _problem(request: BaseHTTPRequestHandler, body: bytes) -> str:
    """What is wrong with the signature of a request, empty if it is right."""
    headers = {name.lower(): value.strip() for name, value in request.headers.items()}
    if hashlib.sha256(body).hexdigest() != headers.get("x-amz-content-sha256"):
        return "the body is another one than was signed"
    kind, _, rest = headers.get("authorization", "").partition(" ")
    given = dict(each.strip().split("=", 1) for each in rest.split(",") if "=" in each)
    access, day, region, service, last = (*given.get("Credential", "").split("/"), *[""] * 5)[:5]
    if (kind, access, service, last) != ("AWS4-HMAC-SHA256", ACCESS, "s3", "aws4_request"):
        return "the credential is not known"
    names = given.get("SignedHeaders", "").split(";")
    if not {"host", "x-amz-content-sha256", "x-amz-date"} <= set(names):
        return "too few headers are signed"
    address = urlsplit(request.path)
    query = sorted(parse_qsl(address.query, keep_blank_values=True))
    canonical = "\n".join(
        [
            request.command,
            quote(unquote(address.path), safe="/-_.~"),
            "&".join(f"{quote(k, safe='-_.~')}={quote(v, safe='-_.~')}" for k, v in query),
            "".join(f"{name}:{headers[name]}\n" for name in names),
            ";".join(names),
            headers["x-amz-content-sha256"],
        ]
    )
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(
        [kind, headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()]
    )
    key = f"AWS4{SECRET}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    wanted = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return "" if hmac.compare_digest(wanted, given.get("Signature", "")) else "it does not fit"


def _listing(store: S3Store, query: dict[str, str]) -> bytes:
    keys = sorted(each for each in store.objects if each.startswith(query.get("prefix", "")))
    after = query.get("continuation-token", "")
    left = [key for key in keys if key > after]
    body = "".join(
        f"<Contents><Key>{escape(key)}</Key><Size>{len(store.objects[key])}</Size></Contents>"
        for key in left[:PAGE]
    )
    more = (
        f"<NextContinuationToken>{escape(left[PAGE - 1])}</NextContinuationToken>"
        if len(left) > PAGE
        else ""
    )
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    return f'<ListBucketResult xmlns="{space}">{body}{more}</ListBucketResult>'.encode()


def _error(code: str, message: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>".encode()
