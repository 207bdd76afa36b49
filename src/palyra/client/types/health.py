"""Written by scripts/clients.py from the route table: types of the verbs about health."""

from typing import Literal

from msgspec import Struct

__all__ = [
    "Check",
    "Diagnosis",
    "Healing",
    "Incident",
    "IncidentList",
    "MarkedRead",
    "Notice",
    "NoticeList",
    "Repair",
    "Repaired",
    "Tried",
    "Watching",
]


class Check(Struct, frozen=True, kw_only=True):
    """`warn` is worth knowing; `fail` must be mended, by `fix`. `repairable`: the daemon can do
    that itself, when it is told to.
    """

    id: str
    title: str
    state: Literal["fail", "ok", "warn"]
    detail: str
    fix: str = ""
    repairable: bool = False


class Diagnosis(Struct, frozen=True, kw_only=True):
    ok: bool
    checks: list[Check]


class Repair(Struct, frozen=True, kw_only=True):
    """Outcome of repairing one check."""

    id: str
    title: str
    worked: bool
    detail: str


class Repaired(Struct, frozen=True, kw_only=True):
    """Repairs that were made, and all checks afterwards."""

    ok: bool
    repairs: list[Repair]
    checks: list[Check]


class Healing(Struct, frozen=True, kw_only=True):
    """Settings of the watchdog. Times are how long something may be silent before it counts as
    stuck.
    """

    mode: Literal["auto", "disabled", "observe_only"] = "auto"
    every_ms: int = 30000
    run_ms: int = 120000
    call_ms: int = 0
    task_ms: int = 120000
    helper_ms: int = 120000
    approval_ms: int = 600000
    forgotten: Literal["expire", "remind"] = "remind"
    free_bytes: int = 209715200
    log_bytes: int = 67108864


class Watching(Struct, frozen=True, kw_only=True):
    """Settings of the watchdog, and when it looked last."""

    settings: Healing
    looked_ms: int


class Tried(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One remedy. It is `begun` from before its effect until its result is known."""

    remedy: str
    result: Literal["begun", "done", "failed"]
    time_ms: int
    detail: str = ""


class Incident(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`closed_ms` is 0 while it is open."""

    incident_id: str
    key: str
    domain: Literal[
        "approval",
        "artifact",
        "browser",
        "connector",
        "journal",
        "resource",
        "run",
        "task",
        "worker",
    ]
    severity: Literal["critical", "error", "info", "warning"]
    summary: str
    fix: str = ""
    opened_ms: int
    closed_ms: int = 0
    outcome: str = ""
    tried: tuple[Tried, ...] = ()


class IncidentList(Struct, frozen=True, kw_only=True):
    incidents: list[Incident]


class Notice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`link` is a page of the console; `read_ms` is 0 while it is unread."""

    notice_id: str
    about: Literal[
        "approval",
        "budget",
        "channel",
        "daemon",
        "incident",
        "learning",
        "notes",
        "provider",
        "schedule",
    ]
    key: str
    text: str
    link: str = ""
    created_ms: int
    read_ms: int = 0


class NoticeList(Struct, frozen=True, kw_only=True):
    """`unread` counts all of them, also those that are not on this page."""

    notices: list[Notice]
    unread: int


class MarkedRead(Struct, frozen=True, kw_only=True):
    """Number of notices that were unread."""

    marked: int
