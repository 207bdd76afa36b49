"""Written by scripts/clients.py from the route table: types of the verbs about tasks."""

from typing import Any, Literal

from msgspec import Struct

__all__ = ["KindCount", "KindList", "Task", "TaskPage"]


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`ready_ms`: not before. `max_attempts` 0: as the kind says. `again`: it was asked for once
    more while it ran.
    """

    task_id: str
    kind: str
    state: Literal["cancelled", "done", "expired", "failed", "paused", "queued", "running"]
    payload: dict[str, Any] = {}
    key: str = ""
    priority: int = 1
    ready_ms: int = 0
    expires_ms: int = 0
    attempts: int = 0
    max_attempts: int = 0
    again: bool = False
    lease_owner: str = ""
    lease_until_ms: int = 0
    heartbeat_ms: int = 0
    created_ms: int = 0
    started_ms: int = 0
    ended_ms: int = 0
    error: str = ""
    principal: str = "system"
    session_id: str = ""
    schedule_id: str = ""


class TaskPage(Struct, frozen=True, kw_only=True):
    """`next` is the `before` of the page behind this one; empty: this was the last."""

    tasks: list[Task]
    next: str = ""


class KindCount(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Count of the tasks of a kind in each state, and since when the oldest that is ready waits."""

    kind: str
    states: dict[str, int]
    paused: bool = False
    oldest_ready_ms: int = 0


class KindList(Struct, frozen=True, kw_only=True):
    kinds: list[KindCount]
