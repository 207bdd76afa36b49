"""What a statement changes, told by its table: whoever shows such rows is told that they are not
what they were.

The rule: nobody has to remember to tell. A step that changes a row of these tables has changed its
topic.
"""

import re
from functools import lru_cache

from palyra.core.events import Topic

_TABLE = re.compile(
    r"(?:INSERT(?: OR \w+)? INTO|REPLACE INTO|UPDATE(?: OR \w+)?|DELETE FROM)\s+(\w+)"
)

BY_TABLE: dict[str, Topic] = {
    "candidates": "learning",
    "certificates": "certificates",
    "channel_asked": "channels",
    "channel_messages": "channels",
    "channel_outbox": "channels",
    "channel_pairings": "channels",
    "channel_people": "channels",
    "channel_settings": "channels",
    "channel_steps": "channels",
    "firings": "schedules",
    "incidents": "incidents",
    "schedules": "schedules",
    "task_kinds": "tasks",
    "tasks": "tasks",
    "tokens": "tokens",
    "worker_leases": "workers",
    "workers": "workers",
}


@lru_cache(maxsize=1024)
def of(sql: str) -> Topic | None:
    found = _TABLE.match(sql)
    return BY_TABLE.get(found[1]) if found else None
