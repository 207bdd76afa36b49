"""Host functions of a module during one call: its files, its hosts, its secrets, a line for the
log.

The rule: a function checks its own grant at every call, whatever the module was linked with, and
everything a module hands over is a pointer and a length that are checked before a byte is looked
at.

`host.http` over the daemon's own fetching: the same judged addresses, and no redirect out of the
granted hosts.
"""

import asyncio
import concurrent.futures
import ssl
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from palyra.core import labels
from palyra.core.errors import InvalidInput, NotFound, PalyraError
from palyra.core.labels import CLEAN, Label
from palyra.core.ports import CallContext
from palyra.features.skills.manifest import Wants, covers_path
from palyra.tools import blocking, paths
from palyra.tools.files import content as files_content
from palyra.tools.net import http_request, urls
from palyra.tools.net.resolve import Resolver
from palyra.tools.paths import PathGuard, WorkspacePath
from palyra.tools.web.cache import Cache
from palyra.tools.web.redirects import Follower

T = TypeVar("T")

FUNCTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "log": (("i32", "i32"), ()),
    "take": (("i32", "i32"), ("i32",)),
    "read_file": (("i32", "i32"), ("i32",)),
    "write_file": (("i32", "i32", "i32", "i32"), ("i32",)),
    "http": (("i32", "i32"), ("i32",)),
    "secret": (("i32", "i32"), ("i32",)),
}
REFUSED, FAILED = -1, -2

_MOST_PARKED = 4 << 20
_MOST_TEXT = 4 << 10
_MOST_REQUEST = 256 << 10
_MOST_WRITTEN = 4 << 20
_MOST_LOG = 16 << 10
# How often each function may be called: none of them is free for the machine.
_MOST_CALLS = {
    "log": 256,
    "take": 4096,
    "read_file": 256,
    "write_file": 64,
    "http": 16,
    "secret": 16,
}
_REFERENCE = "vault:"


class SkillRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request as a module writes it, in JSON. A header may hold `vault:NAME`, which is put in
    when it is sent.
    """

    url: str
    method: Literal["GET", "HEAD", "POST"] = "GET"
    headers: dict[str, str] = {}
    body: str = ""


class Incoming(Struct, frozen=True):
    """An answer as a module reads it, in JSON."""

    status: int
    headers: dict[str, str]
    body: str


class SecretRequest(Struct, frozen=True):
    """A secret that is needed: for which tool of which skill, and for which host if it is for
    one.
    """

    name: str
    skill: str
    tool: str
    host: str | None = None


# Sends a request to the hosts listed (and follows redirects to no others). Raises PalyraError.
Http = Callable[[SkillRequest, frozenset[str], CallContext], Coroutine[Any, Any, Incoming]]
Secret = Callable[[SecretRequest, CallContext], Coroutine[Any, Any, str]]


class World(Struct, frozen=True):
    """Services that the daemon lends to skills. Without `http` or `secret` those functions answer
    that there is none.
    """

    fence: PathGuard
    http: Http | None = None
    secret: Secret | None = None


class Abort(Exception):
    """The module broke the rules of a host function; its call ends here."""


class Sight(Struct, frozen=True):
    """A module's memory at this moment, with every access checked."""

    size: int
    reader: Callable[[int, int], bytes]
    writer: Callable[[int, bytes], Any]

    def read(self, start: int, size: int) -> bytes:
        self._check(start, size)
        return self.reader(start, size) if size else b""

    def write(self, start: int, data: bytes) -> None:
        self._check(start, len(data))
        if data:
            self.writer(start, data)

    def _check(self, start: int, size: int) -> None:
        if start < 0 or size < 0 or start + size > self.size:
            raise Abort("it gave a pointer outside its memory")


def allowed(wants: Wants) -> tuple[str, ...]:
    """The functions that what was granted makes available."""
    needs = {
        "read_file": wants.read,
        "write_file": wants.write,
        "http": wants.hosts,
        "secret": wants.secrets,
    }
    return tuple(name for name in FUNCTIONS if name not in needs or needs[name])


class SkillHost:
    """The host's side of one call. Entered on the call's thread; stopped from the event loop."""

    def __init__(
        self, world: World, wants: Wants, context: CallContext, *, skill: str, tool: str, pure: bool
    ) -> None:
        self._world = world
        self._wants = wants
        self._context = context
        self._skill, self._tool, self._pure = skill, tool, pure
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._waiting: concurrent.futures.Future[Any] | None = None
        self._parked = b""
        self._counts = dict.fromkeys(FUNCTIONS, 0)
        self._logged = self._written = 0
        self.stopped = False
        self.fault = ""
        self.label: Label = CLEAN
        self.changes: dict[str, str] = {}

    def stop(self) -> None:
        with self._lock:
            self.stopped = True
            waiting = self._waiting
        if waiting is not None:
            waiting.cancel()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Record an error in here as this call's fault."""
        try:
            yield
        except Abort as error:
            self.fault = str(error)
            raise
        except Exception as error:
            # wasmtime would hand a foreign exception to whichever call of the process fails next.
            self.fault = f"the host failed: {type(error).__name__}"
            raise Abort(self.fault) from error

    def enter(self, name: str, look: Callable[[], Sight], arguments: tuple[int, ...]) -> int | None:
        """One call of a host function. Pointers and lengths come as signed numbers and are meant
        unsigned.
        """
        with self.guarded():
            if self.stopped:
                raise Abort("it was stopped")
            self._counts[name] += 1
            if self._counts[name] > _MOST_CALLS[name]:
                raise Abort(f"it called host.{name} more than {_MOST_CALLS[name]} times")
            if name not in allowed(self._wants):
                raise Abort(f"host.{name} was not granted")
            return self._perform(name, look(), [value & 0xFFFFFFFF for value in arguments])

    def _perform(self, name: str, sight: Sight, numbers: list[int]) -> int | None:
        if name == "take":
            return self._take(sight, *numbers)
        most = _MOST_REQUEST if name == "http" else _MOST_TEXT
        text = _text(sight, numbers[0], numbers[1], most)
        if name == "log":
            self._log(text)
            return None
        try:
            match name:
                case "read_file":
                    return self._park(self._read(text))
                case "write_file":
                    return self._write(text, sight, numbers[2], numbers[3])
                case "http":
                    return self._park(self._send(text))
                case _:
                    return self._park(self._reveal(text).encode())
        except PalyraError as error:
            # The module may handle it; the reason waits where a result would.
            self._parked = error.message.encode()[:_MOST_TEXT]
            return REFUSED if error.code == "forbidden" else FAILED

    def _park(self, data: bytes) -> int:
        if len(data) > _MOST_PARKED:
            self._parked = b"the result is too large"
            return FAILED
        self._parked = data
        return len(data)

    def _take(self, sight: Sight, start: int, size: int) -> int:
        """Copy what the last function left, as much as fits; return how much that is."""
        data = self._parked[:size]
        sight.write(start, data)
        return len(data)

    def _log(self, text: str) -> None:
        self._logged += len(text)
        if self._logged > _MOST_LOG:
            raise Abort(f"it logged more than {_MOST_LOG >> 10} KiB")
        self._loop.call_soon_threadsafe(self._context.progress, text)

    def _place(self, path: str, granted: tuple[str, ...], *, writing: bool) -> WorkspacePath:
        place = self._world.fence.place(path, self._context.workspace, writing=writing)
        # Compared where the path really leads: a link below a granted folder lends nothing.
        if not any(covers_path(each, place.relative) for each in granted):
            raise paths.PathRefused(
                path,
                "outside",
                f"this skill may only {'write' if writing else 'read'} {', '.join(granted)}",
            )
        return place

    def _read(self, path: str) -> bytes:
        with blocking.family(paths.printable(path)):
            place = self._place(path, self._wants.read, writing=False)
            found = files_content.read(place, _MOST_PARKED)
        if found is None:
            raise NotFound(f"{place.shown}: there is no such file")
        self._saw(labels.private(f"file:{place.shown}"))
        return found.data

    def _write(self, path: str, sight: Sight, start: int, size: int) -> int:
        self._written += size
        if self._written > _MOST_WRITTEN:
            raise Abort(f"it wrote more than {_MOST_WRITTEN >> 20} MiB")
        data = sight.read(start, size)
        with blocking.family(paths.printable(path)):
            place = self._place(path, self._wants.write, writing=True)
            before = files_content.read(place, 2 * _MOST_WRITTEN)
            files_content.apply([files_content.ContentChange(place, before, data)])
        self.changes.setdefault(place.relative, "modified" if before else "created")
        return 0

    def _send(self, text: str) -> bytes:
        try:
            request = msgspec.json.decode(text, type=SkillRequest)
        except msgspec.DecodeError as error:
            raise Abort(f"its request is not what host.http takes: {error}") from None
        url = urls.parse(request.url)
        if url.authority not in self._wants.hosts:
            raise paths.PathRefused(
                url.authority,
                "outside",
                f"this skill may only talk to {', '.join(self._wants.hosts)}",
            )
        if self._pure and request.method == "POST":
            raise paths.PathRefused(
                url.authority, "outside", "a tool that is declared pure cannot POST"
            )
        if self._world.http is None:
            raise paths.PathRefused(url.authority, "outside", "skills have no network here")
        self._saw(labels.untrusted(f"{url.scheme}://{url.authority}/"))
        headers = {name: self._filled(value, url) for name, value in request.headers.items()}
        sent = msgspec.structs.replace(request, headers=headers)
        answer = self._wait(self._world.http(sent, frozenset(self._wants.hosts), self._context))
        return msgspec.json.encode(answer)

    def _filled(self, value: str, url: urls.Url) -> str:
        """A header's value with its reference replaced: so a module can use a secret without ever
        holding it.
        """
        before, found, name = value.partition(_REFERENCE)
        if not found:
            return value
        if url.scheme != "https":
            raise paths.PathRefused(url.authority, "outside", "secrets are sent through https only")
        return before + self._secret(name, url.authority)

    def _reveal(self, name: str) -> str:
        value = self._secret(name.removeprefix(_REFERENCE), None)
        self._saw(Label(confidentiality="secret", private_sources=(f"skill:{self._skill}",)))
        return value

    def _secret(self, name: str, host: str | None) -> str:
        if name not in self._wants.secrets:
            raise paths.PathRefused(name, "outside", "this secret was not granted to the skill")
        if self._world.secret is None:
            raise paths.PathRefused(name, "outside", "there is no vault here")
        return self._wait(
            self._world.secret(SecretRequest(name, self._skill, self._tool, host), self._context)
        )

    def _saw(self, label: Label) -> None:
        self.label = labels.join([self.label, label])

    def _wait(self, awaited: Coroutine[Any, Any, T]) -> T:
        """Have the event loop do it and wait here; a stop ends the waiting."""
        with self._lock:
            if self.stopped:
                awaited.close()
                raise Abort("it was stopped")
            self._waiting = waiting = asyncio.run_coroutine_threadsafe(awaited, self._loop)
        try:
            return waiting.result()
        except (concurrent.futures.CancelledError, asyncio.CancelledError):
            raise Abort("it was stopped") from None
        finally:
            self._waiting = None


def _text(sight: Sight, start: int, size: int, most: int) -> str:
    if size > most:
        raise Abort(f"it gave a text of {size:,} bytes, the limit is {most:,}")
    try:
        return sight.read(start, size).decode()
    except UnicodeDecodeError:
        raise Abort("it gave a text that is not UTF-8") from None


_OURS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "cookie",
    }
)


def http(resolver: Resolver, *, tls: ssl.SSLContext | None = None) -> Http:
    follower = Follower(http_request.Http(resolver, tls=tls), Cache(monotonic))

    async def send(request: SkillRequest, hosts: frozenset[str], context: CallContext) -> Incoming:
        url = urls.parse(request.url)
        resolver.check(url.host, url.port)
        for name, value in request.headers.items():
            if (
                name.lower() in _OURS
                or not name.isascii()
                or not value.isascii()
                or not (name + value).isprintable()
            ):
                raise InvalidInput(f"the header {name[:64]!r} cannot be set like that")
        headers = tuple((name.lower(), value) for name, value in request.headers.items())
        body = request.body.encode() if request.method == "POST" else None
        # A header may hold a credential: with headers of its own a request is not sent on to
        # another place.
        permitted = frozenset({url.authority}) if headers else hosts
        made = http_request.HttpRequest(method=request.method, url=url, headers=headers, body=body)
        answer = (await follower.fetch(made, permitted)).response
        return Incoming(answer.status, dict(answer.headers), answer.body.decode("utf-8", "replace"))

    return send
