"""Time travel over HTTP, typed. The daemon's answers are named again here, as in `client`; a test
holds them equal.
"""

from typing import Any, Literal

from msgspec import Struct

from palyra.cli import client
from palyra.client.http import Api
from palyra.core.events import FileChange
from palyra.core.labels import Label
from palyra.core.verdicts import SessionRule
from palyra.features.time_travel.rows import ChangedFile, Lasting, RunThen


class Clash(Struct, frozen=True):
    path: str
    why: str


class Rewound(Struct, frozen=True):
    session_id: str
    to: int
    seq: int
    preview: bool
    files: bool
    conversation: bool
    changes: tuple[FileChange, ...]
    conflicts: tuple[Clash, ...]
    lasting: tuple[Lasting, ...]
    rules: tuple[str, ...]
    running: tuple[str, ...]
    turns_now: int
    turns_then: int
    diff: str


class ShownCall(Struct, frozen=True):
    call_id: str
    tool: str
    arguments: dict[str, Any]
    outcome: str = ""
    text: str = ""
    undone: bool = False


class ShownTurn(Struct, frozen=True):
    seq: int
    who: Literal["user", "model", "summary"]
    text: str = ""
    run_id: str = ""
    notes: tuple[str, ...] = ()
    calls: tuple[ShownCall, ...] = ()


class Moment(Struct, frozen=True):
    session_id: str
    seq: int
    head_seq: int
    time_ms: int
    kind: str
    turns: tuple[ShownTurn, ...]
    left_out: int
    unread: tuple[str, ...]
    label: Label
    rules: tuple[SessionRule, ...]
    runs: tuple[RunThen, ...]
    changed: tuple[ChangedFile, ...]
    lasting: tuple[Lasting, ...]


def at(api: Api, session_id: str, seq: int, turns: int) -> Moment:
    return api.get(f"/v1/sessions/{client.checked(session_id)}/at/{seq}", Moment, turns=turns)


def rewind(api: Api, session_id: str, **wanted: Any) -> Rewound:
    return api.post(
        f"/v1/sessions/{client.checked(session_id)}/rewind", Rewound, wanted, timeout_s=120
    )
