"""`http.fetch` and `http.post`: a request to a public web server, and its answer as text.

They are two tools because a decision after a crash goes by a tool's effect: a GET can be repeated,
a POST cannot. Whatever comes back was written by others, and the result says so.
"""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from palyra.core import labels
from palyra.core.argument_roles import uses
from palyra.core.errors import Forbidden, InvalidInput, PalyraError, Unavailable
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, Scope, Subject, ToolResult, ToolSpec
from palyra.tools.catalogue import Arguments, TypedTool, declare
from palyra.tools.net import hosts, urls
from palyra.tools.net.http_request import Http, HttpRequest
from palyra.tools.net.resolve import Resolver
from palyra.tools.net.urls import Url
from palyra.tools.web.cache import Cache
from palyra.tools.web.redirects import MOST_BYTES, Credential, Fetched, Follower

if TYPE_CHECKING:
    from palyra.tools.web.body_text import BodyText

Form = Literal["text", "raw"]
# The value behind a reference such as vault:github, for this host and this call. Raises Forbidden
# or NotFound.
Secret = Callable[[str, str, CallContext], Awaitable[str]]

SECONDS = 10.0
_MOST_BODY = 256 << 10
_MOST_HOSTS = 8
_HEADERS = frozenset(
    {"accept", "accept-language", "if-modified-since", "if-none-match", "range", "prefer"}
)
_REFERENCE = re.compile(r"vault:[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,1022}[\x21-\x7e])?")
_SHOWN_HEADERS = frozenset({"etag", "last-modified", "retry-after", "link"})


class FetchArguments(Arguments, frozen=True, kw_only=True):
    url: str
    method: Literal["GET", "HEAD"] = "GET"
    headers: dict[str, str] = {}
    form: Annotated[Form, Meta(description="raw keeps HTML")] = field(default="text", name="as")
    hosts: Annotated[
        tuple[str, ...], Meta(description="Redirects may lead here too", max_length=_MOST_HOSTS)
    ] = ()
    auth: Annotated[str, Meta(description="vault:NAME, sent to the first host")] = ""


class PostArguments(Arguments, frozen=True, kw_only=True):
    # As for `http.fetch`, which says what they mean.
    url: str
    body: Annotated[str, Meta(max_length=_MOST_BODY)] = ""
    content_type: str = "application/json"
    headers: dict[str, str] = {}
    form: Form = field(default="text", name="as")
    hosts: Annotated[tuple[str, ...], Meta(max_length=_MOST_HOSTS)] = ()
    auth: str = ""


def tools(
    resolver: Resolver,
    *,
    secret: Secret | None = None,
    tls: ssl.SSLContext | None = None,
    clock: Callable[[], float] = monotonic,
    seconds: float = SECONDS,
) -> tuple[TypedTool, ...]:
    """Both tools, over one cache. Without `secret` no call can use a credential. `seconds` is for a
    call in all.
    """
    follower = Follower(Http(resolver, tls=tls), Cache(clock))
    return (
        Fetch(follower, resolver, secret, seconds),
        HttpPost(follower, resolver, secret, seconds),
    )


class _HttpTool:
    spec: ClassVar[ToolSpec]
    argument_type: ClassVar[type[Arguments]]

    def __init__(
        self, follower: Follower, resolver: Resolver, secret: Secret | None, seconds: float
    ) -> None:
        self._follower = follower
        self._resolver = resolver
        self._secret = secret
        self._seconds = seconds

    def scope(self, arguments: object, workspace: str) -> Scope:
        """The hosts a call may reach. Raises Refused for what no policy can permit, so that nobody
        is asked about it.
        """
        call = _call(arguments)
        request = self._request(call)
        line = f"{request.method} {request.url}" + (f" with {call.auth}" if call.auth else "")
        return Scope(
            program=request.method,
            command=line,
            hosts=tuple(dict.fromkeys((request.url.authority, *self._others(call)))),
            secrets=(call.auth,) if call.auth else (),
        )

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        name = self.spec.name
        plain = len(scope.hosts) == 1 and not scope.secrets
        # A wider yes to a call with a credential is about that call, not about everything at its
        # host.
        narrow = (
            Subject(name, "host", scope.hosts[0])
            if plain
            else Subject(name, "command", scope.command)
        )
        return (narrow, Subject(name, "tool"))

    def preview(self, arguments: object, workspace: str) -> Preview:
        call = _call(arguments)
        request = self._request(call)
        lines = [f"{name}: {value}" for name, value in request.headers]
        if call.auth:
            lines.append(f"authorization: from {call.auth}")
        if others := self._others(call):
            lines.append(f"may be redirected to: {', '.join(others)}")
        if request.body is not None:
            lines += [
                f"body: {len(request.body):,} bytes",
                "",
                request.body.decode("utf-8", "backslashreplace"),
            ]
        return Preview("request", f"{request.method} {request.url}", "\n".join(lines))

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        # Reading pages needs tables that a daemon which never fetches should not carry.
        from palyra.tools.web import body_text

        call = _call(arguments)
        credential: Credential | None = None
        asked = labels.CLEAN
        try:
            async with asyncio.timeout(self._seconds):
                request = self._request(call)
                credential = await self._credential(call, request.url, context)
                permitted = frozenset((request.url.authority, *self._others(call)))
                asked = labels.untrusted(str(request.url))
                fetched = await self._follower.fetch(request, permitted, credential)
                reading = await body_text.read(
                    fetched.response, fetched.url, raw=call.form == "raw"
                )
                result = _result(request, fetched, reading)
        except TimeoutError:
            result = ToolResult(
                outcome="timeout",
                text=f"{hosts.shown(call.url)} took longer than {self._seconds:g} s in all",
            )
        except PalyraError as error:
            outcome: Literal["denied", "error"] = (
                "denied" if isinstance(error, Forbidden) else "error"
            )
            # Why an answer cannot be used may quote it; that there was none quotes nobody.
            label = labels.CLEAN if isinstance(error, Unavailable) else asked
            result = ToolResult(
                outcome=outcome, text=error.message, data={"code": error.code}, label=label
            )
        return _without(result, credential, call.auth)

    def _request(self, call: FetchArguments | PostArguments) -> HttpRequest:
        url = urls.parse(call.url)
        self._resolver.check(url.host, url.port)
        headers = _checked(call.headers)
        if call.auth and (not _REFERENCE.fullmatch(call.auth) or url.scheme != "https"):
            raise InvalidInput(
                "auth must be a reference such as vault:NAME, and the URL must begin with https"
            )
        if isinstance(call, FetchArguments):
            return HttpRequest(method=call.method, url=url, headers=headers)
        kind = (("Content-Type", _header_value("content_type", call.content_type)),)
        return HttpRequest(
            method="POST", url=url, headers=(*kind, *headers), body=call.body.encode()
        )

    def _others(self, call: FetchArguments | PostArguments) -> tuple[str, ...]:
        """The further hosts of a call, each spelt as a URL's authority would be."""
        found: list[str] = []
        for text in call.hosts:
            spelt, port = urls.split_port(text.strip(), urls.PORTS["https"])
            host = hosts.parse(spelt)
            self._resolver.check(host, port)
            found.append(Url("https", host, port, "/").authority)
        return tuple(dict.fromkeys(found))

    async def _credential(
        self, call: FetchArguments | PostArguments, url: Url, context: CallContext
    ) -> Credential | None:
        if not call.auth:
            return None
        if self._secret is None:
            raise InvalidInput("there is no vault here, so auth cannot be used")
        value = await self._secret(call.auth, url.authority, context)
        value = value if " " in value else f"Bearer {value}"
        if not _HEADER_VALUE.fullmatch(value):
            raise InvalidInput(f"the value of {call.auth} cannot be sent as a header")
        return Credential(url.authority, "Authorization", value)


class Fetch(_HttpTool):
    argument_type = FetchArguments
    spec = declare(
        "http.fetch",
        "Fetch a public web page, document or API answer as text, at most 2 MiB.",
        FetchArguments,
        effect="pure",
        capabilities=("network",),
        use=uses(reads_only=True, high_impact=False, url="url", headers="content", hosts="host"),
        limits=Limits(
            time_ms=int(SECONDS * 1000) + 1000, input_bytes=16 << 10, output_bytes=MOST_BYTES
        ),
    )


class HttpPost(_HttpTool):
    argument_type = PostArguments
    # What it shares with http.fetch is described there, once: all of it is sent with every request.
    spec = replace(
        declare(
            "http.post",
            "POST to a public web server; also takes content_type, headers, as, hosts, auth.",
            PostArguments,
            effect="once",
            capabilities=("network",),
            use=uses(url="url", body="content", headers="content", hosts="host"),
            limits=Limits(
                time_ms=int(SECONDS * 1000) + 1000,
                input_bytes=_MOST_BODY + (16 << 10),
                output_bytes=MOST_BYTES,
            ),
        ),
        parameters={
            "type": "object",
            "properties": {"url": {"type": "string"}, "body": {"type": "string"}},
            "required": ["url"],
        },
    )


def _call(arguments: object) -> FetchArguments | PostArguments:
    assert isinstance(arguments, FetchArguments | PostArguments)
    return arguments


def _checked(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    for name in headers:
        if name.lower() not in _HEADERS:
            raise InvalidInput(
                f"the header {hosts.shown(name)} cannot be set; these can:"
                f" {', '.join(sorted(_HEADERS))}"
            )
    return tuple((name.lower(), _header_value(name, value)) for name, value in headers.items())


def _header_value(name: str, value: str) -> str:
    if not _HEADER_VALUE.fullmatch(value):
        raise InvalidInput(f"the value of {hosts.shown(name)} must be one line of printable ASCII")
    return value


def _result(request: HttpRequest, fetched: Fetched, reading: "BodyText") -> ToolResult:
    response, url = fetched.response, fetched.url
    data: dict[str, Any] = {
        "url": str(url),
        "status": response.status,
        "media_type": reading.media_type,
        "bytes": len(response.body),
        "cut": response.cut,
        "cached": fetched.cached,
        "hops": list(fetched.hops),
    }
    # Whatever a server says is untrusted, wherever it goes from here.
    label = labels.untrusted(str(request.url))
    head = [_first_line(request, fetched, reading)]
    if fetched.wanted is not None:
        data["location"] = str(fetched.wanted)
        head.append(f"It redirects to {fetched.wanted}, which was not followed ({fetched.why}).")
        head.append(f"To go there, call {_tool(request)} with that URL.")
        return ToolResult(outcome="error", text="\n".join(head), data=data, label=label)
    if reading.title:
        data["title"] = reading.title[:300]
        head.append(f"Title: {reading.title[:300]}")
    shown = (
        response.headers
        if request.method == "HEAD"
        else {k: v for k, v in response.headers.items() if k in _SHOWN_HEADERS}
    )
    head += [
        f"{name}: {hosts.shown(value, 300)}"
        for name, value in list(shown.items())[:50]
        if name != "set-cookie"
    ]
    text = "\n".join(head) + (f"\n\n{reading.text}" if reading.text else "")
    outcome: Literal["ok", "error"] = "ok" if response.status < 400 else "error"
    return ToolResult(outcome=outcome, text=text, data=data, images=reading.images, label=label)


def _first_line(request: HttpRequest, fetched: Fetched, reading: "BodyText") -> str:
    response = fetched.response
    try:
        phrase = f" {HTTPStatus(response.status).phrase}"
    except ValueError:
        phrase = ""
    facts = [
        f"{response.status}{phrase}",
        hosts.shown(reading.media_type) or "no type",
        f"{len(response.body):,} bytes",
        *reading.notes,
    ]
    if response.cut:
        facts.append(f"cut at {MOST_BYTES >> 20} MiB")
    if fetched.hops:
        facts.append(
            f"after {len(fetched.hops)} redirect{'s' if len(fetched.hops) > 1 else ''} from"
            f" {request.url}"
        )
    if fetched.cached:
        facts.append("from the cache")
    return f"{request.method} {fetched.url}: {', '.join(facts)}"


def _tool(request: HttpRequest) -> str:
    return "http.post" if request.method == "POST" else "http.fetch"


def _without(result: ToolResult, credential: Credential | None, reference: str) -> ToolResult:
    """The result without the credential, which a server may have sent back in any part of its
    answer.
    """
    if credential is None:
        return result
    secrets = (credential.value, credential.value.partition(" ")[2])

    def clean(value: Any) -> Any:
        match value:
            case str():
                for secret in secrets:
                    value = value.replace(secret, f"[{reference}]")
                return value
            case dict():
                return {key: clean(each) for key, each in value.items()}
            case list():
                return [clean(each) for each in value]
            case _:
                return value

    # What is shown to those who have the credential, and to nobody else, is private.
    label = labels.merge(result.label, labels.private(*(result.label.sources or (reference,))))
    return ToolResult(
        outcome=result.outcome, text=clean(result.text), data=clean(result.data), label=label
    )
