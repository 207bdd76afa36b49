"""Reading requests: query and body into typed values. Nothing that is malformed, too large or too
slow gets further than this.
"""

import asyncio
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from palyra.api.calls import Receive, Upload
from palyra.api.errors import BodyTooLarge, BodyTooSlow, WrongMediaType
from palyra.api.intake import Pool
from palyra.api.limits import ApiLimits
from palyra.api.routes import PATTERNS, Endpoint, Route, Takes
from palyra.core import input_checks
from palyra.core.errors import InvalidInput
from palyra.system.thread_pool import everyday

_MOST_PARAMETERS = 32
# A client that is still sending when it is refused may never read why; so much more is taken in and
# thrown away first, and it has half of the time that a body has: on a busy machine sixteen
# megabytes take seconds.
_DRAINED = 8
_DRAIN_S = 10.0

# Larger bodies are looked through on a thread.
_SMALL = 32 << 10
_names = msgspec.json.Decoder(dict[str, msgspec.Raw])
_UNSAID = frozenset({b"null", b"false", b"0", b"0.0", b"{}", b"[]", b'""'})


class Gone(Exception):
    """The client went away while it was still sending."""


def check_path(values: dict[str, str]) -> None:
    for name, value in values.items():
        if not PATTERNS[name].match(value):
            raise InvalidInput(
                f"{name} in the address is not valid: it must match {PATTERNS[name].pattern}",
                value=value[:64],
            )


def query(endpoint: Endpoint, raw: bytes) -> Any:
    """The query parameters as the endpoint's type."""
    if not raw and endpoint.default_query is not None:
        return endpoint.default_query
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_MOST_PARAMETERS,
            errors="strict",
        )
    except ValueError as error:
        raise InvalidInput(f"the query string cannot be read: {error}") from error
    values = dict(pairs)
    if len(values) != len(pairs):
        raise InvalidInput("a query parameter is given twice")
    try:
        return msgspec.convert(values, endpoint.route.query, strict=False)
    except msgspec.ValidationError as error:
        raise invalid("the query", error) from error


async def check_json(raw: bytes) -> None:
    """Raise InvalidInput for JSON that could be read in two ways, or is nested too deeply."""
    if len(raw) <= _SMALL:
        input_checks.check_json(raw)
    else:
        await everyday.run(input_checks.check_json, raw)


async def body(endpoint: Endpoint, raw: bytes, content_type: bytes | None) -> Any:
    """The body as the endpoint's type."""
    if not raw and endpoint.default_body is not None:
        return endpoint.default_body
    assert endpoint.decode is not None
    if (
        content_type is not None
        and content_type.partition(b";")[0].strip().lower() != b"application/json"
    ):
        raise WrongMediaType("the body must be JSON: send it with Content-Type: application/json")
    await check_json(raw)
    try:
        return endpoint.decode(raw)
    except msgspec.ValidationError as error:
        raise invalid("the body", error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the body is not valid JSON: {error}") from error


def unread(route: Route[Any, Any], raw: bytes) -> tuple[str, ...]:
    """Names in a body that its type does not have, but for those that say nothing. The body was
    decoded before.
    """
    if not route.tells_unread or route.body is None:
        return ()
    known = {field.encode_name for field in msgspec.structs.fields(route.body)}
    said = _names.decode(raw or b"{}").items()
    return tuple(name for name, value in said if name not in known and bytes(value) not in _UNSAID)


def upload(takes: Takes, raw: bytes, content_type: bytes | None) -> Upload:
    media = takes.media.decode()
    if media != "*/*" and (
        content_type is None or content_type.partition(b";")[0].strip().lower() != takes.media
    ):
        raise WrongMediaType(f"the body must be {media}: send it with Content-Type: {media}")
    return Upload(raw)


def invalid(what: str, error: msgspec.ValidationError) -> InvalidInput:
    problem, _, where = str(error).partition(" - at `")
    path = where.removesuffix("`") or "$"
    return InvalidInput(
        f"{what} is not valid at {path}: {problem[:1].lower()}{problem[1:]}", path=path
    )


async def read_body(
    receive: Receive,
    headers: dict[bytes, bytes],
    limits: ApiLimits,
    *,
    most: int = 0,
    pool: Pool | None = None,
) -> bytes:
    """The whole body, of at most `most` bytes if that is given, else as many as every route takes.
    `pool`: for a stranger's.
    """
    if most:
        limits = msgspec.structs.replace(limits, body_bytes=most)
    declared = headers.get(b"content-length", b"")
    if declared.isdigit() and int(declared) > limits.body_bytes:
        # Whoever waits for permission to send, or could never finish, is told at once.
        if b"expect" not in headers and int(declared) <= _DRAINED * limits.body_bytes:
            await _drain(receive, limits)
        raise _too_large(limits)
    try:
        async with asyncio.timeout(limits.body_s):
            return await _read(receive, limits, pool)
    except TimeoutError:
        raise BodyTooSlow(f"the body did not arrive within {limits.body_s:g} s") from None


async def _read(receive: Receive, limits: ApiLimits, pool: Pool | None) -> bytes:
    # One growing buffer: a list of a million pieces of one byte each would be fifty times as large.
    body = bytearray()
    held = 0
    try:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            piece = message.get("body", b"")
            if not body and not message.get("more_body"):
                return _fitting(piece, limits)
            if pool is not None:
                pool.take(len(piece))
                held += len(piece)
            body += piece
            if len(body) > limits.body_bytes:
                if message.get("more_body"):
                    await _drain(receive, limits)
                raise _too_large(limits)
            if not message.get("more_body"):
                return bytes(body)
    finally:
        if pool is not None:
            pool.give_back(held)


def _fitting(body: bytes, limits: ApiLimits) -> bytes:
    if len(body) > limits.body_bytes:
        raise _too_large(limits)
    return body


async def _drain(receive: Receive, limits: ApiLimits) -> None:
    size = 0
    try:
        async with asyncio.timeout(_DRAIN_S):
            while size < _DRAINED * limits.body_bytes:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                size += len(message.get("body", b""))
                if not message.get("more_body"):
                    return
    except TimeoutError:
        return


def _too_large(limits: ApiLimits) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body is larger than {limits.body_bytes} bytes (limits.body_bytes)",
        limit=limits.body_bytes,
    )
