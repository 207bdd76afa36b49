"""Background tasks over HTTP: what waits, runs and has ended; pause, resume, retry and cancel."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from palyra.api.calls import ApiCall, HttpResponse, Input, Limit, Nothing, Ulid, ok
from palyra.api.routes import Gives, Route
from palyra.features.tasks.service import TaskVerbs
from palyra.store.tasks import KindCount, Task

_Kind = Annotated[str, Meta(max_length=64)]


class TaskListQuery(Input, frozen=True, kw_only=True):
    kind: _Kind = ""
    state: Literal["", "queued", "running", "done", "failed", "expired", "cancelled", "paused"] = ""
    before: Ulid = ""
    limit: Limit = 100


class TaskPage(Struct, frozen=True):
    """`next` is the `before` of the page behind this one; empty: this was the last."""

    tasks: list[Task]
    next: str = ""


class TaskKindList(Struct, frozen=True):
    kinds: list[KindCount]


class ChangeTask(Input, frozen=True, kw_only=True):
    verb: Literal["pause", "resume", "retry", "cancel"]


class ChangeKind(Input, frozen=True, kw_only=True):
    paused: bool


async def listing(call: ApiCall[TaskListQuery, Nothing]) -> HttpResponse:
    query = call.query
    found = await call.services.get(TaskVerbs).listing(
        kind=query.kind, state=query.state, before=query.before, limit=query.limit
    )
    return ok(TaskPage(found, found[-1].task_id if len(found) == query.limit else ""))


async def kinds(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(TaskKindList(await call.services.get(TaskVerbs).kinds()))


async def get(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(TaskVerbs).get(call.path["task_id"]))


async def change(call: ApiCall[Nothing, ChangeTask]) -> HttpResponse:
    return ok(
        await call.services.get(TaskVerbs).change(
            call.principal, call.path["task_id"], call.body.verb
        )
    )


async def change_kind(call: ApiCall[Nothing, ChangeKind]) -> HttpResponse:
    return ok(
        await call.services.get(TaskVerbs).pause_kind(
            call.principal, call.path["task_kind"], paused=call.body.paused
        )
    )


def _json(type_: Any) -> tuple[Gives, ...]:
    return (Gives(200, type_),)


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/tasks",
        summary="background tasks, newest first",
        handler=listing,
        scope="owner",
        query=TaskListQuery,
        gives=_json(TaskPage),
    ),
    Route(
        method="GET",
        path="/v1/tasks/kinds",
        summary="kinds of tasks, and how many are in which state",
        handler=kinds,
        gives=_json(TaskKindList),
    ),
    Route(
        method="POST",
        path="/v1/tasks/kinds/{task_kind}",
        summary="begin no more tasks of a kind, or begin them again",
        handler=change_kind,
        scope="owner",
        body=ChangeKind,
        gives=_json(KindCount),
    ),
    Route(
        method="GET",
        path="/v1/tasks/{task_id}",
        summary="one task",
        handler=get,
        scope="owner",
        gives=_json(Task),
    ),
    Route(
        method="POST",
        path="/v1/tasks/{task_id}",
        summary="pause, resume, retry or cancel a task",
        handler=change,
        scope="owner",
        body=ChangeTask,
        gives=_json(Task),
        errors=(409,),
    ),
)
