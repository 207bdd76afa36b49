"""One request and its reply, in any dialect: send, read the answer as it comes, translate every way
it can fail.

A reply is complete only when the dialect's own end mark was seen. Without it the answer is a
failure, whatever it held.
"""

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from palyra.core.messages import ModelFailure, ModelReply, Usage
from palyra.models import failures
from palyra.models.http import HttpClient, ProviderEndpoint, ProviderResponse, sendable
from palyra.models.sse import EventTooLarge, Splitter

_MAX_BODY_BYTES: Final = 32 * 1024 * 1024
# With these a web server says that there is something else at the address. A gateway's page about
# trouble behind it comes with others.
_NOT_HERE: Final = (301, 302, 303, 307, 308, 404, 405, 406, 410, 415)
# Room for a first word in any dialect.
_FIRST_BYTES: Final = 1024
# What a reader of JSON can raise; nesting without end is the third.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
T = TypeVar("T")


class Parser(Protocol):
    """Reads one reply in one dialect, emitting as it goes. Raises ModelFailure for an error the
    server reports.
    """

    @property
    def complete(self) -> bool:
        """The end mark was seen: the reply counts even if nothing more arrives."""

    def event(self, data: bytes) -> bool:
        """One event. True when nothing after it matters."""

    def events(self, found: Sequence[bytes]) -> bool:
        """The events of one read. True when nothing after them matters."""

    def whole(self, body: bytes) -> None:
        """An answer that was not streamed."""

    def reply(self) -> ModelReply: ...

    def so_far(self) -> tuple[Usage, str]:
        """Of a reply that breaks off: what the provider said about tokens, and the arguments of its
        calls as far as they came.
        """


class EventParser(ABC):
    """Base of parsers that read the events of one read one after the other."""

    @abstractmethod
    def event(self, data: bytes) -> bool: ...

    def events(self, found: Sequence[bytes]) -> bool:
        return any(self.event(data) for data in found)


class RequestRefused(Exception):
    """The server did not take the request as it was written."""

    def __init__(self, text: str, failure: ModelFailure) -> None:
        super().__init__(failure.message)
        self.text = text
        self.failure = failure


class ResponseReader:
    """The bytes of one answer on their way to a parser: an event stream, or one JSON object from a
    server that does not stream.
    """

    def __init__(self, parser: Parser, endpoint: ProviderEndpoint, url: str = "") -> None:
        self._parser = parser
        self._endpoint = endpoint
        self._url = url or endpoint.base_url
        self._splitter = Splitter()
        self._streamed: bool | None = None
        self._body: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> bool:
        """True when nothing after this chunk matters."""
        if self._streamed:
            try:
                return self._parser.events(self._splitter.feed(chunk))
            except UNREADABLE as error:
                raise failures.broken(self._endpoint, str(error)[:100]) from error
            except EventTooLarge as error:
                raise failures.broken(self._endpoint, str(error)) from error
        return self._first(chunk)

    def end(self) -> ModelReply:
        """The reply, or the failure that its absence is. Nothing more will arrive."""
        parser = self._parser
        if self._streamed:
            self._last_event()
        elif body := b"".join(self._body).strip():
            try:
                # Gemini's compatible endpoint wraps an error in an array.
                if body.startswith(b"["):
                    raise failures.of_event(self._endpoint, msgspec.json.decode(body))
                parser.whole(body)
            except UNREADABLE:
                raise failures.cut(self._endpoint) from None
        if not parser.complete:
            raise failures.cut(self._endpoint)
        return parser.reply()

    def _last_event(self) -> None:
        """A JSON object shows by itself that it is whole, so the blank line after the last event
        may be missing.
        """
        try:
            for data in self._splitter.end():
                self._parser.event(data)
        except UNREADABLE:
            return

    def _first(self, chunk: bytes) -> bool:
        """No event stream begins with a bracket, and no JSON answer with anything else; content
        types are not to be trusted.
        """
        self._size += len(chunk)
        if self._size > _MAX_BODY_BYTES:
            raise failures.broken(self._endpoint, f"an answer larger than {_MAX_BODY_BYTES} bytes")
        self._body.append(chunk)
        if self._streamed is None:
            start = b"".join(self._body)
            seen = start.lstrip()
            if not seen:
                return False
            if seen.startswith(b"<"):
                raise failures.not_a_model_server(self._endpoint, self._url)
            self._streamed = seen[:1] not in b"{["
            if self._streamed:
                self._body.clear()
                return self.feed(start)
        return False


async def ask(
    http: HttpClient,
    endpoint: ProviderEndpoint,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    parser: Parser,
    heard: Callable[[], bool] = lambda: True,
) -> ModelReply:
    """`heard` passes on what a read brought, and says whether the model has said anything yet."""
    if not sendable(endpoint.api_key):
        raise ModelFailure(
            "auth",
            f"the key of {endpoint.name} holds characters that no key has; set"
            f" providers.{endpoint.name}.api_key",
        )
    sent = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
        **headers,
    }
    url = endpoint.url(path)
    async with http.post(endpoint, url, sent | dict(endpoint.headers), body) as answer:
        if not 200 <= answer.status < 300:
            # The status says what matters: a body that does not come is not waited for.
            answer.only_trailers_left()
            said = await answer.body()
            if answer.status in _NOT_HERE and said.lstrip().startswith(b"<"):
                raise failures.not_a_model_server(endpoint, url)
            failure = failures.of_response(
                endpoint, answer.status, answer.headers, said, time.time()
            )
            if answer.status in (400, 422):
                raise RequestRefused(said.decode("utf-8", "replace").lower(), failure)
            raise failure
        reading = ResponseReader(parser, endpoint, url)
        waits, silent = True, True
        try:
            async for chunk in _chunks(answer):
                try:
                    over = reading.feed(chunk)
                finally:
                    spoke = heard()
                if over:
                    await answer.farewell()
                    break
                if silent and spoke:
                    answer.first_token()
                    silent = False
                if waits and parser.complete:
                    answer.only_trailers_left()
                    waits = False
        except ModelFailure as failure:
            # Trailing usage was lost, the reply was not.
            if not parser.complete or failure.failure not in ("network", "timeout"):
                raise
        try:
            return reading.end()
        finally:
            heard()


async def _chunks(answer: ProviderResponse) -> AsyncIterator[bytes]:
    """Return bytes as they arrive. A long first chunk is split, with a turn for other tasks
    between: the first word must not wait until all that came with it has been read.
    """
    chunk = await answer.chunk()
    if len(chunk) > _FIRST_BYTES:
        yield chunk[:_FIRST_BYTES]
        chunk = chunk[_FIRST_BYTES:]
        await asyncio.sleep(0)
    while chunk:
        yield chunk
        chunk = await answer.chunk()


class Adapting:
    """Asks again without the optional parts of a request that this server refuses, and remembers
    them per model.

    `optional` names each part and the words by which a refusal points to it. Servers that call
    themselves compatible differ most in what they refuse; leaving a part out costs less than a
    setting for each.
    """

    def __init__(
        self, optional: Mapping[str, tuple[str, ...]], without: frozenset[str] = frozenset()
    ) -> None:
        self._optional = optional
        self._without = without
        self._learned: dict[str, frozenset[str]] = {}

    async def ask(
        self,
        model: str,
        build: Callable[[frozenset[str]], dict[str, Any]],
        send: "Send",
        keep: Collection[str] = (),
    ) -> ModelReply:
        """`keep` names parts that are not left out, whatever the server says."""
        without = self._learned.get(model, self._without).difference(keep)
        body = encode(build(without))
        while True:
            try:
                reply = await send(body)
            except RequestRefused as refused:
                failure = refused.failure
                if failure.failure != "bad_request":
                    raise failure from None
                without, body = self._less(refused.text, without, body, build, failure, keep)
                continue
            self._learned[model] = self._learned.get(model, without) | without
            return reply

    def _less(
        self,
        text: str,
        without: frozenset[str],
        body: bytes,
        build: Callable[[frozenset[str]], dict[str, Any]],
        failure: ModelFailure,
        keep: Collection[str],
    ) -> tuple[frozenset[str], bytes]:
        for part, words in self._optional.items():
            if part not in (*without, *keep) and any(word in text for word in words):
                fewer = without | {part}
                smaller = encode(build(fewer))
                if smaller != body:
                    return fewer, smaller
        raise failure from None


class Send(Protocol):
    async def __call__(self, body: bytes) -> ModelReply: ...


def encode(body: Any) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        # Half of a surrogate pair, from a file name or a broken decoder, must not make a session
        # unusable.
        return json.dumps(
            body, ensure_ascii=False, default=lambda raw: json.loads(bytes(raw))
        ).encode("utf-8", "replace")


def decode(decoder: "msgspec.json.Decoder[T]", kind: type[T], data: bytes) -> T | None:
    """One JSON object; None for data that is none, such as a keep-alive.

    Forgives what Python's own reader forgives: NaN, lone surrogates, control characters.
    """
    try:
        return decoder.decode(data)
    except msgspec.DecodeError:
        text = data.strip()
        if not text.startswith(b"{"):
            return None
        try:
            loose = json.loads(text.decode("utf-8", "replace"), strict=False)
        except ValueError as error:
            raise msgspec.DecodeError(str(error)) from error
        return msgspec.convert(_clean(loose), kind, strict=False)


def decode_all(
    decoder: "msgspec.json.Decoder[list[T]]", found: Sequence[bytes]
) -> "list[T] | None":
    """Many JSON objects in one call, which costs far less than one call for each. None if one of
    them is something else: then each is to be looked at by itself.
    """
    try:
        decoded = decoder.decode(b"[%b]" % b",".join(found))
    except UNREADABLE:
        return None
    return decoded if len(decoded) == len(found) else None


def _clean(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case list():
            return [_clean(item) for item in value]
        case dict():
            return {_clean(key): _clean(item) for key, item in value.items()}
        case _:
            return value
