"""Rows that only time or somebody else's mistake would bring, put into a daemon's journal for its
pages to show.
"""

import json
import os
import sqlite3
import time
from contextlib import closing
from typing import Any

from palyra.core import ids
from tests.daemon import DaemonProcess

NEVER_DONE = "test.nobody"  # No worker knows this kind: its tasks stay where they are put.


def _now_ms() -> int:
    return int(time.time() * 1000)


def _insert(daemon: DaemonProcess, table: str, values: dict[str, Any]) -> None:
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    with closing(sqlite3.connect(daemon.home / "journal.db", timeout=10)) as opened, opened:
        opened.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", values)


def task(daemon: DaemonProcess, state: str, **more: Any) -> str:
    now = _now_ms()
    task_id = ids.make(now, os.urandom(10))
    row = {
        "kind": NEVER_DONE,
        "priority": 1,
        "ready_ms": now,
        "created_ms": now,
        "principal": "owner",
        "payload": {},
        **more,
    }
    _insert(
        daemon,
        "tasks",
        {**row, "task_id": task_id, "state": state, "payload": json.dumps(row["payload"]).encode()},
    )
    return task_id


def incident(daemon: DaemonProcess, summary: str, **more: Any) -> str:
    """Of a domain that nobody looks at here, so that nobody closes it."""
    now = _now_ms()
    incident_id = ids.make(now, os.urandom(10))
    row = {
        "key": f"connector:{incident_id}",
        "domain": "connector",
        "severity": "error",
        "fix": "",
        "opened_ms": now,
        **more,
    }
    tried = json.dumps(row.pop("tried", []))
    _insert(
        daemon, "incidents", {**row, "incident_id": incident_id, "summary": summary, "tried": tried}
    )
    return incident_id


def used_by(daemon: DaemonProcess, principal: str, tokens: int, **more: Any) -> None:
    """What somebody else used, as if it had happened before everything else."""
    with closing(sqlite3.connect(daemon.home / "journal.db", timeout=10)) as opened:
        (first,) = opened.execute("SELECT coalesce(min(position), 0) FROM usage").fetchone()
    row = {
        "position": min(0, first) - 1,
        "time_ms": _now_ms(),
        "session_id": "",
        "run_id": "",
        "principal": principal,
        "input_tokens": tokens,
        "output_tokens": 1,
        "cached_tokens": 0,
        "cost_microusd": 0,
        "provider": "scripted",
        "model": "s1",
        "duration_ms": 1,
        "first_delta_ms": 1,
    }
    _insert(daemon, "usage", {**row, **more})
