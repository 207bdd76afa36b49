"""The same API over gRPC, by the generated client: RunStream to talk, unary calls for the rest."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import grpc

from palyra.v1 import (
    events_pb2,
    runs_pb2,
    runs_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
    types_pb2,
)
from tests.doors.doors import Door, Duplex, Heard, Refused, Talk


class Grpc(Door):
    name = "grpc"

    def __init__(self, channel: "grpc.aio.Channel", token: str) -> None:
        self._metadata = (("authorization", f"Bearer {token}"),)
        self._sessions = sessions_pb2_grpc.SessionsStub(channel)
        self._runs = runs_pb2_grpc.RunsStub(channel)

    async def session(self) -> str:
        with _grpc_errors():
            made = await self._sessions.FindOrCreate(
                sessions_pb2.SessionsFindOrCreateRequest(), metadata=self._metadata
            )
        return str(made.session_id)

    async def state(self, run_id: str) -> str:
        with _grpc_errors():
            return str(
                (
                    await self._runs.Get(
                        runs_pb2.RunsGetRequest(run_id=run_id), metadata=self._metadata
                    )
                ).state
            )

    @asynccontextmanager
    async def open(self, session_id: str, after: int = 0) -> AsyncIterator[Talk]:
        async with AsyncExitStack() as stack:
            stream = self._sessions.RunStream(metadata=self._metadata)
            stack.callback(stream.cancel)
            with _grpc_errors():
                await stream.write(
                    types_pb2.Up(open=types_pb2.Open(session_id=session_id, after=after))
                )
                await stream.initial_metadata()
                # A call that was refused at once has ended already.
                if stream.done():
                    await stream.read()
            yield _GrpcTalk(stream)


class _grpc_errors:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, grpc.aio.AioRpcError):
            raise refused_of(error) from error


def refused_of(error: "grpc.aio.AioRpcError") -> Refused:
    trailers = dict(error.trailing_metadata() or ())
    problem = events_pb2.Problem.FromString(trailers["palyra-error-bin"])
    return Refused(
        problem.code, problem.message, problem.retryable, json.loads(problem.details_json or "{}")
    )


class _GrpcTalk(Duplex):
    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        self._come: list[Any] = []

    async def send(self, kind: str, **more: Any) -> None:
        messages = {
            "submit": types_pb2.Submit,
            "answer": types_pb2.AnswerApproval,
            "cancel": types_pb2.Cancel,
        }
        await self._stream.write(types_pb2.Up(**{kind: messages[kind](**more)}))

    async def receive(self) -> Any:
        while not self._come:
            with _grpc_errors():
                batch = await self._stream.read()
            assert batch is not grpc.aio.EOF, "the stream ended"
            self._come = [_told(each) for each in batch.happened]
        return self._come.pop(0)


def _told(happened: Any) -> Any:
    match happened.WhichOneof("one"):
        case "entry":
            entry = happened.entry
            inner = getattr(entry.event, entry.event.WhichOneof("one"))
            return Heard(entry.seq, entry.kind, entry.run_id, plain(inner))
        case "refused":
            problem = happened.refused.error
            return Refused(
                problem.code,
                problem.message,
                problem.retryable,
                json.loads(problem.details_json or "{}"),
            )
        case "accepted":
            accepted = happened.accepted
            found = next(
                getattr(accepted, each)
                for each in ("submitted", "approval", "run")
                if accepted.HasField(each)
            )
            return accepted.id, plain(found)
        case option:
            inner = getattr(happened, option)
            return Heard(0, option.replace("_", "."), inner.run_id, plain(inner))


def plain(message: Any) -> dict[str, Any]:
    """A message as values, with what was left out because it is empty."""
    found: dict[str, Any] = {}
    for each in message.DESCRIPTOR.fields:
        value = getattr(message, each.name)
        if each.message_type is None:
            found[each.name] = list(value) if each.is_repeated else value
        elif each.is_repeated:
            found[each.name] = (
                [plain(item) for item in value]
                if not each.message_type.GetOptions().map_entry
                else dict(value)
            )
        elif message.HasField(each.name):
            found[each.name] = plain(value)
    return found
