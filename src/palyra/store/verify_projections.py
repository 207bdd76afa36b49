"""Deep verification of what features keep: memory, schedules, budgets, folded anew from the tape.

A tape says of an item of memory and of a schedule what they are by a digest; a budget stands there
whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import ids
from palyra.core.events import AdminChanged, AnyEvent, MemoryRemoved, MemoryWritten
from palyra.core.labels import Label
from palyra.core.tools import Subject
from palyra.store.database import Tx

KINDS = frozenset({"admin.changed", "memory.written", "memory.removed"})
# What removing an item leads to; any other reason means that it is gone.
_STAYS = frozenset({"review", "superseded", "forgotten", "rejected"})
# A row that the tape does not imply: its table, its key, and what is wrong with it.
Problem = tuple[str, str, str]
# What changes of a schedule while it is there.
_MOVES = ("state", "next_ms", "updated_ms")


# What `MemoryWritten.about` covers of an item: nothing of it changes without being written anew.
ABOUT = (
    "scope_value",
    "provenance",
    "source",
    "place",
    "confidence_bps",
    "valid_from_ms",
    "valid_until_ms",
    "expires_ms",
    "origin",
)


class _Item(Struct):
    owner: str
    written: MemoryWritten
    state: str
    gone: bool = False
    superseded_by: str = ""


class _Planned(Struct):
    owner: str
    name: str
    digest: str
    paused: bool = False
    gone: bool = False


class ScheduledGrant(Struct, frozen=True):
    """Grant to a schedule's runs in a session, by the id that such a grant has."""

    subject: Subject
    owner: str


def schedule_digest(schedule: Any) -> str:
    """Hash a schedule, without what changes while it is there."""
    told = msgspec.to_builtins(schedule)
    fixed = {name: value for name, value in told.items() if name not in _MOVES}
    return sha256(msgspec.json.encode(fixed, order="sorted")).hexdigest()


def memory_digest(salt: bytes, text: str) -> str:
    return sha256(bytes(salt) + text.encode()).hexdigest()


def about(values: Mapping[str, Any]) -> str:
    """Return what an item's second digest is made of, from its row."""
    return msgspec.json.encode([values[name] for name in ABOUT]).decode()


def schedule_grant(created_ms: int, schedule_id: str, session_id: str, number: int) -> str:
    """The id of a schedule's grant, in the place of the approval that a grant otherwise comes
    from.
    """
    return ids.derive(created_ms, "grant", schedule_id, session_id, number)


class ProjectionFold:
    """Fold of the tape's entries about memory, schedules and budgets."""

    def __init__(self) -> None:
        self.items: dict[str, _Item] = {}
        self.schedules: dict[str, _Planned] = {}
        self.budgets: dict[str, dict[str, Any]] = {}

    def add(self, principal: str, event: AnyEvent) -> None:
        match event:
            case MemoryWritten():
                self._written(principal, event)
            case MemoryRemoved() if event.memory_id in self.items:
                item = self.items[event.memory_id]
                item.state, item.gone = event.reason, event.reason not in _STAYS
            case AdminChanged(what="budget", action="set"):
                self.budgets[event.subject] = event.details
            case AdminChanged(what="budget", action="removed"):
                self.budgets.pop(event.subject, None)
            case AdminChanged(what="schedule"):
                self._scheduled(principal, event)
            case _:
                pass

    def _written(self, principal: str, event: MemoryWritten) -> None:
        known = self.items.get(event.memory_id)
        old = self.items.get(event.supersedes)
        became_active = event.state == "active" and (known is None or known.state != "active")
        if old is not None and not old.gone:
            # A new version takes the place of what holds only when it holds itself.
            first = known is None and old.state != "active"
            if first or (became_active and (known is None or old.state == "active")):
                old.state, old.superseded_by = "superseded", event.memory_id
        owner = known.owner if known is not None else principal
        newer = "" if known is None or event.state == "active" else known.superseded_by
        self.items[event.memory_id] = _Item(owner, event, event.state, superseded_by=newer)

    def _scheduled(self, principal: str, event: AdminChanged) -> None:
        if event.action == "added":
            details = event.details
            self.schedules[event.subject] = _Planned(
                principal, str(details.get("name", "")), str(details.get("digest", ""))
            )
        elif event.subject in self.schedules:
            planned = self.schedules[event.subject]
            match event.action:
                case "changed":
                    planned.name = str(event.details.get("name", ""))
                    planned.digest = str(event.details.get("digest", ""))
                case "paused" | "resumed":
                    planned.paused = event.action == "paused"
                case "removed":
                    planned.gone = True
                case _:
                    pass


def wrong_projections(tx: Tx, fold: ProjectionFold) -> Iterator[Problem]:
    yield from _memory(tx, fold)
    yield from _schedules(tx, fold)
    yield from _budgets(tx, fold)


def _memory(tx: Tx, fold: ProjectionFold) -> Iterator[Problem]:
    seen = set()
    for memory_id, owner, state, newer, *row in tx.all(
        f"""SELECT memory_id, owner, state, superseded_by, kind, scope, supersedes, pinned, label,
            text, salt, {", ".join(ABOUT)} FROM memory_items"""
    ):
        seen.add(memory_id)
        told = fold.items.get(memory_id)
        problem = ""
        if told is None:
            problem = "no entry tells of this item"
        elif told.gone:
            problem = "it was removed, and is there again"
        elif told.owner != owner:
            problem = f"it is of {owner}; the tape says {told.owner}"
        elif told.state != state:
            problem = f"it is {state}; the tape says {told.state}"
        elif newer != told.superseded_by:
            problem = f"{newer or 'nothing'} stands in its place; the tape says otherwise"
        else:
            problem = _other_item(told.written, row)
        if problem:
            yield ("memory_items", memory_id, problem)
    for memory_id, item in fold.items.items():
        if memory_id not in seen and not item.gone:
            yield ("memory_items", memory_id, "the tape has this item, the table has not")


def _other_item(told: MemoryWritten, row: Sequence[Any]) -> str:
    kind, scope, supersedes, pinned, label, text, salt, *rest = row
    if told.digest and memory_digest(salt, str(text)) != told.digest:
        return "its text was changed"
    values = dict(zip(ABOUT, rest, strict=True))
    if told.about and memory_digest(salt, about(values)) != told.about:
        return "where it is from, whom it is told to or until when it holds was changed"
    said = (told.memory_kind, told.scope, told.supersedes, told.pinned)
    if said != (kind, scope, supersedes, bool(pinned)):
        return f"it says {kind}, {scope}, pinned: {bool(pinned)}; the tape says {said}"
    if read_label(label) != told.label:
        return "its label was changed"
    return ""


def read_label(label: str | bytes) -> Label | None:
    """Return a label as a row has it; None if it is none."""
    try:
        return msgspec.json.decode(label, type=Label)
    except msgspec.DecodeError:
        return None


def _schedules(tx: Tx, fold: ProjectionFold) -> Iterator[Problem]:
    seen = set()
    for schedule_id, owner, state, body in tx.all(
        "SELECT schedule_id, owner, state, body FROM schedules"
    ):
        seen.add(schedule_id)
        told = fold.schedules.get(schedule_id)
        said = _object(body)
        problem = ""
        if told is None:
            problem = "no entry tells of this schedule"
        elif told.gone:
            problem = "it was removed, and is there again"
        elif (owner, said.get("owner"), said.get("name")) != (told.owner, told.owner, told.name):
            problem = f"it is {said.get('name')!r} of {owner}; the tape says {told.name!r}"
        elif told.digest and schedule_digest(said) != told.digest:
            problem = "what it does was changed"
        elif (state == "paused") != told.paused or said.get("state", "active") != state:
            problem = f"it is {state}; the tape says {'paused' if told.paused else 'active'}"
        if problem:
            yield ("schedules", schedule_id, problem)
    for schedule_id, planned in fold.schedules.items():
        if schedule_id not in seen and not planned.gone:
            yield ("schedules", schedule_id, "the tape has this schedule, the table has not")


def _object(body: bytes) -> dict[str, Any]:
    """Return what a row keeps as JSON; nothing, if it is none."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        return {}


def _budgets(tx: Tx, fold: ProjectionFold) -> Iterator[Problem]:
    stored = {str(name): _object(body) for name, body in tx.all("SELECT name, body FROM budgets")}
    for name in sorted(stored.keys() | fold.budgets.keys()):
        has, told = stored.get(name), fold.budgets.get(name)
        if told is None:
            yield ("budgets", name, "nobody has set this budget")
        elif has is None:
            yield ("budgets", name, "it was set, and the table has it not")
        elif has != told:
            yield ("budgets", name, f"it says {has}; the tape says {told}")


class _Scoped(Struct, frozen=True):
    schedule_id: str
    owner: str
    scopes: tuple[Subject, ...] = ()
    created_ms: int = 0


def scheduled_grants(tx: Tx, session_id: str) -> dict[str, ScheduledGrant]:
    """Return the grants that existing schedules give to their runs in a session."""
    found = {}
    for (body,) in tx.all("SELECT body FROM schedules"):
        try:
            each = msgspec.json.decode(body, type=_Scoped)
        except msgspec.DecodeError:
            continue  # Named as a schedule that was changed.
        for number, subject in enumerate(each.scopes):
            name = schedule_grant(each.created_ms, each.schedule_id, session_id, number)
            found[name] = ScheduledGrant(subject, each.owner)
    return found
