"""Errors become gRPC statuses here. The one shape of every error goes along in the trailers, as
`palyra-error-bin`.
"""

from typing import Any

import grpc

from palyra.api.errors import BodyTooSlow, Problem, problem_of
from palyra.api.grpc.codec import filler
from palyra.core.errors import (
    ChainBroken,
    ConfigInvalid,
    Conflict,
    Forbidden,
    IllegalTransition,
    InvalidInput,
    LimitExceeded,
    NotFound,
    PalyraError,
    Unauthenticated,
    Unavailable,
)
from palyra.v1 import events_pb2

ERROR_KEY = "palyra-error-bin"
_LONGEST_MESSAGE = 1_000
_LONGEST_DETAILS = 4_000

STATUS: dict[type[PalyraError], grpc.StatusCode] = {
    InvalidInput: grpc.StatusCode.INVALID_ARGUMENT,
    ConfigInvalid: grpc.StatusCode.INVALID_ARGUMENT,
    Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    Forbidden: grpc.StatusCode.PERMISSION_DENIED,
    NotFound: grpc.StatusCode.NOT_FOUND,
    BodyTooSlow: grpc.StatusCode.DEADLINE_EXCEEDED,
    Conflict: grpc.StatusCode.FAILED_PRECONDITION,
    IllegalTransition: grpc.StatusCode.FAILED_PRECONDITION,
    ChainBroken: grpc.StatusCode.DATA_LOSS,
    LimitExceeded: grpc.StatusCode.RESOURCE_EXHAUSTED,
    PalyraError: grpc.StatusCode.INTERNAL,
    Unavailable: grpc.StatusCode.UNAVAILABLE,
}
_fill = filler(Problem)


def status_of(error: PalyraError) -> grpc.StatusCode:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


async def refuse(context: "grpc.aio.ServicerContext[Any, Any]", error: PalyraError) -> None:
    """End the call with an error; never returns."""
    problem = events_pb2.Problem()
    _fill(problem, problem_of(error))
    # Trailers are headers: they must not grow with what somebody sent.
    problem.message = problem.message[:_LONGEST_MESSAGE]
    if len(problem.details_json) > _LONGEST_DETAILS:
        problem.ClearField("details_json")
    await context.abort(
        status_of(error), problem.message, ((ERROR_KEY, problem.SerializeToString()),)
    )
