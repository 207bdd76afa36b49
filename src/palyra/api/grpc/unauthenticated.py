"""Answers to callers without a token: health and reflection, counted, and for everything else a
refusal at once.

Strangers must not use up what others need.

The daemon's certificate for gRPC, also after it was renewed: each new connection is shown the one
that is good then.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from palyra.api.grpc.codec import refuse
from palyra.core.errors import LimitExceeded, PalyraError

if TYPE_CHECKING:
    from palyra.api.listen_sockets import Pair
    from palyra.features.tls.service import Certificates


def of(certificates: "Certificates", pair: "Pair") -> Any:
    shown = [_configuration(pair)]
    certificates.on_renewed.connect(lambda renewed: shown.append(_configuration(renewed)))

    def latest() -> Any:
        """Return what a connection should show from now on, or None for the same as before. Called
        for each one, on a thread of gRPC's.
        """
        renewed, shown[:] = shown[1:], shown[-1:]
        return renewed[-1] if renewed else None

    return grpc.dynamic_ssl_server_credentials(
        shown[0], latest, require_client_authentication=False
    )


def _configuration(pair: "Pair") -> Any:
    return grpc.ssl_server_certificate_configuration(((pair.key, pair.certificate),))


# Calls without a token that may be open at once, from everywhere.
MOST_OPEN = 64
# Called with a caller's address: counts one call, or raises.
Knock = Callable[[str], None]


class Strangers:
    def __init__(self, knock: Knock, address_of: Callable[[str], str]) -> None:
        self._knock = knock
        self._address_of = address_of
        self._open = 0
        self.health = health.aio.HealthServicer()

    def add_to(self, server: Any, names: Sequence[str]) -> list[str]:
        """Offer both on a server; gives the names of all services there are."""
        every = [*names, health.SERVICE_NAME, reflection.SERVICE_NAME]
        counting = _Counting(server, self._counted)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, counting)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(
            reflection.aio.ReflectionServicer(every), counting
        )
        return every

    def _counted(self, handler: Any) -> Any:
        streams, answers = handler.request_streaming, handler.response_streaming
        kind = f"{'stream' if streams else 'unary'}_{'stream' if answers else 'unary'}"
        inner = getattr(handler, kind)

        async def many(request: Any, context: Any) -> AsyncIterator[Any]:
            try:
                with self._place(context):
                    async for each in inner(request, context):
                        yield each
            except PalyraError as error:
                await refuse(context, error)

        async def one(request: Any, context: Any) -> Any:
            try:
                with self._place(context):
                    return await inner(request, context)
            except PalyraError as error:
                return await refuse(context, error)

        make = getattr(grpc, f"{kind}_rpc_method_handler")
        serve = many if inspect.isasyncgenfunction(inner) else one
        return make(serve, handler.request_deserializer, handler.response_serializer)

    @contextmanager
    def _place(self, context: Any) -> Iterator[None]:
        self._knock(self._address_of(context.peer()))
        if self._open >= MOST_OPEN:
            raise LimitExceeded(
                f"{MOST_OPEN} calls without a token are open: try again when some have ended",
                limit=MOST_OPEN,
            )
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


class Doorkeeper(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Interceptor that refuses a call without a good token before anything that it brings has come:
    waiting for it would hold a place.
    """

    def __init__(
        self, knows: Callable[[bytes], bool], refuse_: Callable[[str, Any], Awaitable[None]]
    ) -> None:
        self._knows = knows
        self._refuse = refuse_

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        if details.method.startswith("/grpc."):
            return await continuation(details)
        values = [value for key, value in details.invocation_metadata if key == "authorization"]
        # Two of them are refused like none: who calls must not depend on which is read.
        given = values[0] if len(values) == 1 else ""
        if self._knows(given if isinstance(given, bytes) else given.encode("latin-1", "replace")):
            return await continuation(details)

        async def refused(_: Any, context: Any) -> None:
            await self._refuse(details.method, context)

        # A stream begins before its first message, whatever the method is.
        return grpc.stream_stream_rpc_method_handler(refused)


class _Counting:
    """A server as far as generated code knows one: what is added goes to the real one, counted."""

    def __init__(self, server: Any, counted: Callable[[Any], Any]) -> None:
        self._server = server
        self._counted = counted

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """The same handlers come again by their names."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        counted = {name: self._counted(each) for name, each in handlers.items()}
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, counted),)
        )
