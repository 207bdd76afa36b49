"""`palyra tasks`: what the daemon does behind your back, and how to hold, repeat or end it."""

from typing import Any

import click

from palyra.cli import formatting, short_ids
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState

tasks = group("tasks", "Background work: list, show, retry, cancel, pause, resume.", default="list")
_STATES = ("queued", "running", "done", "failed", "expired", "cancelled", "paused")
_COLORS = {"running": "green", "failed": "red", "expired": "red", "paused": "yellow"}


@verb(tasks, "list", help="List tasks, newest first, and how many there are of each kind.")
@click.option("--kind", default="", help="Only of this kind.")
@click.option("--state", "wanted", type=click.Choice(_STATES), help="Only in this state.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
def list_(state: CliState, kind: str, wanted: Any, limit: int) -> None:
    found = state.api.list_tasks(kind=kind, state=wanted or "", limit=limit).tasks
    kinds = state.api.list_task_kinds().kinds
    if state.out.as_json:
        state.out.json({"tasks": found, "kinds": kinds})
        return
    counted = [
        [
            each.kind,
            *(str(each.states.get(name, 0)) for name in _STATES),
            "paused" if each.paused else "",
        ]
        for each in kinds
        if not kind or each.kind == kind
    ]
    if counted:
        state.out.table(["kind", *_STATES, ""], counted, right=_STATES)
    if not found:
        state.out.note("no task like that")
        return
    rows = [
        [
            each.task_id,
            each.kind,
            each.state,
            str(each.attempts),
            formatting.when(each.created_ms),
            one_line(each.error, 60),
        ]
        for each in found
    ]
    state.out.table(
        ["task", "kind", "state", "attempts", "made", "error"], rows, right=["attempts"]
    )


def _id(state: CliState, given: str) -> str:
    return short_ids.task(
        given, lambda: (each.task_id for each in state.api.list_tasks(limit=500).tasks)
    )


@verb(tasks, "show", help="Show one task.")
@click.argument("task_id")
def show(state: CliState, task_id: str) -> None:
    task = state.api.get_task(_id(state, task_id))
    if state.out.as_json:
        state.out.json(task)
        return
    out = state.out
    out.line(
        f"{out.style(task.task_id, 'bold')}  {clean(task.kind)}:"
        f" {out.style(task.state, _COLORS.get(task.state, 'bold'))}"
    )
    about = {
        "made": formatting.when(task.created_ms),
        "not before": formatting.when(task.ready_ms) if task.state in ("queued", "paused") else "",
        "expires": formatting.when(task.expires_ms) if task.expires_ms else "",
        "began": formatting.when(task.started_ms) if task.started_ms else "",
        "heartbeat": formatting.ago(task.heartbeat_ms) if task.state == "running" else "",
        "ended": formatting.when(task.ended_ms) if task.ended_ms else "",
        "attempts": str(task.attempts),
        "error": one_line(task.error, 400),
        "key": one_line(task.key),
        "session": task.session_id,
        "schedule": task.schedule_id,
        "payload": one_line(str(task.payload), 400) if task.payload else "",
    }
    for name, value in about.items():
        if value:
            out.line(f"  {name:<10} {clean(value)}")


def _change(state: CliState, task_id: str, what: Any) -> None:
    task = state.api.change_task(_id(state, task_id), verb=what)
    state.out.result(task, f"task {task.task_id} ({clean(task.kind)}) is {task.state}")


@verb(tasks, "retry", help="Begin a task that has ended again, with all its attempts.")
@click.argument("task_id")
def retry(state: CliState, task_id: str) -> None:
    _change(state, task_id, "retry")


@verb(tasks, "cancel", help="End a task that waits or runs.")
@click.argument("task_id")
def cancel(state: CliState, task_id: str) -> None:
    _change(state, task_id, "cancel")


@verb(tasks, "pause", help="Hold a task, or with --kind all tasks of a kind. Those that run go on.")
@click.argument("task_id", required=False)
@click.option("--kind", default="")
def pause(state: CliState, task_id: str | None, kind: str) -> None:
    _hold(state, task_id, kind, paused=True)


@verb(tasks, "resume", help="Let a paused task, or with --kind a paused kind, go on.")
@click.argument("task_id", required=False)
@click.option("--kind", default="")
def resume(state: CliState, task_id: str | None, kind: str) -> None:
    _hold(state, task_id, kind, paused=False)


def _hold(state: CliState, task_id: str | None, kind: str, *, paused: bool) -> None:
    if bool(task_id) == bool(kind):
        raise click.UsageError("give either a task's id or --kind")
    if task_id:
        _change(state, task_id, "pause" if paused else "resume")
        return
    count = state.api.change_task_kind(kind, paused=paused)
    state.out.result(count, f"{clean(kind)} is {'paused' if count.paused else 'begun again'}")
