"""The one error in OpenAI's words: what its programs look for, and what ours do, in one object."""

import msgspec
from msgspec import Struct

from palyra.api.errors import Problem
from palyra.core.errors import PalyraError

_TYPES = {
    "invalid_input": "invalid_request_error",
    "unauthenticated": "authentication_error",
    "forbidden": "permission_error",
    "not_found": "not_found_error",
    "conflict": "conflict_error",
    "illegal_transition": "conflict_error",
    "limit_exceeded": "rate_limit_error",
}
_encode = msgspec.json.Encoder(enc_hook=str).encode


class OpenAIProblem(Problem, frozen=True, kw_only=True):
    """`param` is the field that is wrong, where it is one."""

    type: str
    param: str | None = None


class OpenAIError(Struct, frozen=True):
    error: OpenAIProblem


def shaped(error: PalyraError) -> OpenAIError:
    path = error.details.get("path")
    problem = OpenAIProblem(
        code=error.code,
        message=error.message,
        retryable=error.retryable,
        details=error.details,
        type=_TYPES.get(error.code, "server_error"),
        param=path.removeprefix("$.") if isinstance(path, str) else None,
    )
    return OpenAIError(problem)


def body_of(error: PalyraError) -> bytes:
    return _encode(shaped(error))
