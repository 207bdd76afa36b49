"""Written by scripts/clients.py from the route table: types of the verbs about workers."""

from typing import Literal

from msgspec import Struct

__all__ = ["Enrolment", "Lease", "RunningCall", "WorkerDetail", "WorkerList", "WorkerShown"]


class RunningCall(Struct, frozen=True, kw_only=True):
    call_id: str
    attempt: int
    tool: str
    session_id: str
    run_id: str
    since_ms: int


class WorkerShown(Struct, frozen=True, kw_only=True):
    """A worker as its owner sees it, with what runs there now."""

    name: str
    state: str
    connected: bool
    address: str
    version: str
    platform: str
    tier: Literal["A", "B", "C", "none"]
    tools: tuple[str, ...]
    slots: int
    running: tuple[RunningCall, ...]
    enrolled_ms: int
    seen_ms: int
    revoked_ms: int
    fingerprint: str
    certificate_expires_ms: int = 0


class WorkerList(Struct, frozen=True, kw_only=True):
    """`port` is where workers connect; 0 while nothing listens for them. `hosts` is what this
    machine may be called by them.
    """

    workers: list[WorkerShown]
    port: int
    hosts: list[str]


class Enrolment(Struct, frozen=True, kw_only=True):
    """Code that the owner carries to the other machine. `authority` is how it knows that it talks
    to this daemon.
    """

    name: str
    code: str
    expires_ms: int
    authority: str
    port: int


class Lease(Struct, frozen=True, kw_only=True):
    call_id: str
    worker: str
    attempt: int
    session_id: str
    run_id: str
    tool: str
    state: Literal["cancelled", "done", "held", "lost"]
    since_ms: int
    ended_ms: int


class WorkerDetail(Struct, frozen=True, kw_only=True):
    worker: WorkerShown
    recent: tuple[Lease, ...]
