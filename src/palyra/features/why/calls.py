"""The entries of one tool call, sorted by the part that each plays."""

from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct

from palyra.core.events import (
    AgentSpawned,
    ApprovalRequested,
    ApprovalResolved,
    FileChange,
    ModelReplied,
    ToolDecided,
    ToolFinished,
    ToolProposed,
    ToolStarted,
    ToolUndone,
)
from palyra.features.why.model import Cause, CauseRole
from palyra.features.why.rows import TapedEvent

T = TypeVar("T")
# What is said of an answer to a request.
_DECISIONS = {
    "allow": "allowed",
    "deny": "denied",
    "expired": "denied: nobody answered in time",
    "withdrawn": "withdrawn",
    "happened": "confirmed that the call took effect",
    "again": "told Palyra to run the call again",
    "skip": "told Palyra not to run the call again",
}
_SCOPES = {
    "once": "once",
    "session": "for the session",
    "timed": "for a time",
    "always": "always",
}


class CallEntries(Struct, frozen=True, kw_only=True):
    """`requests` and `answers` are by approval; a call that was in doubt has more than one."""

    replied: TapedEvent | None = None
    proposed: TapedEvent | None = None
    decided: TapedEvent | None = None
    starts: tuple[TapedEvent, ...] = ()
    finished: TapedEvent | None = None
    undone: tuple[TapedEvent, ...] = ()
    spawned: TapedEvent | None = None
    requests: dict[str, TapedEvent] = {}
    answers: dict[str, TapedEvent] = {}

    @property
    def newest(self) -> TapedEvent | None:
        """The entry that tells what became of the call, as far as it got."""
        asked = [*self.requests.values(), *self.answers.values()]
        started = self.starts[-1] if self.starts else None
        return (
            self.finished
            or started
            or (asked[-1] if asked else None)
            or self.decided
            or self.proposed
        )

    @property
    def changes(self) -> tuple[FileChange, ...]:
        event = self.finished.event if self.finished else None
        return event.changes if isinstance(event, ToolFinished) else ()

    @property
    def effectful(self) -> bool:
        """Return whether the call could change something outside the journal."""
        event = self.proposed.event if self.proposed else None
        pure = isinstance(event, ToolProposed) and event.effect == "pure"
        return bool(self.starts) and (not pure or bool(self.changes))


def sort(entries: Iterable[TapedEvent], call_id: str) -> CallEntries:
    """Sort only what is about this call: its id may stand in the text of others."""
    kept = [each for each in entries if _about(each, call_id)]
    asked = [each for each in kept if isinstance(each.event, ApprovalRequested)]
    answered = [each for each in kept if isinstance(each.event, ApprovalResolved)]
    return CallEntries(
        replied=_last(kept, ModelReplied),
        proposed=_last(kept, ToolProposed),
        decided=_last(kept, ToolDecided),
        starts=tuple(each for each in kept if isinstance(each.event, ToolStarted)),
        finished=_last(kept, ToolFinished),
        undone=tuple(each for each in kept if isinstance(each.event, ToolUndone)),
        spawned=_last(kept, AgentSpawned),
        requests={_approval_id(each): each for each in asked},
        answers={_approval_id(each): each for each in answered},
    )


def _about(entry: TapedEvent, call_id: str) -> bool:
    if isinstance(entry.event, ModelReplied):
        return any(call.id == call_id for call in entry.event.calls)
    return getattr(entry.event, "call_id", "") == call_id


def _last(entries: list[TapedEvent], kind: type[T]) -> TapedEvent | None:
    return next((each for each in reversed(entries) if isinstance(each.event, kind)), None)


def _approval_id(entry: TapedEvent) -> str:
    event = entry.event
    assert isinstance(event, ApprovalRequested | ApprovalResolved)
    return event.approval_id


def step(
    role: CauseRole,
    entry: TapedEvent,
    text: str,
    *causes: Cause | None,
    names: tuple[str, ...] = (),
    cost_microusd: int = 0,
    policy_version: str = "",
) -> Cause:
    """A step of the way back that stands on a tape."""
    return Cause(
        role=role,
        text=text,
        by=entry.principal,
        names=names,
        kind=entry.kind,
        tape=entry.tape,
        seq=entry.seq,
        position=entry.position,
        time_ms=entry.time_ms,
        run_id=entry.run_id,
        cost_microusd=cost_microusd,
        policy_version=policy_version,
        causes=tuple(each for each in causes if each is not None),
    )


def request(entry: TapedEvent, *causes: Cause | None) -> Cause:
    asked = entry.event
    assert isinstance(asked, ApprovalRequested)
    about = {"tool": asked.tool, "in_doubt": f"{asked.tool} may have run", "budget": "budget"}
    text = f"{about[asked.about]} · {asked.risk} risk · {asked.why}"
    return step("request", entry, text, *causes, names=(asked.approval_id,))


def answer(entry: TapedEvent, asked: TapedEvent | None, *, role: CauseRole = "approval") -> Cause:
    """Return the answer of a person, or its expiry, to a request; `by` is the approver."""
    resolved = entry.event
    assert isinstance(resolved, ApprovalResolved)
    scope = f" {_SCOPES[resolved.scope]}" if resolved.decision == "allow" else ""
    edited = ", with edited arguments" if resolved.arguments is not None else ""
    where = f", {resolved.surface}" if resolved.surface else ""
    text = f"{_DECISIONS[resolved.decision]}{scope}{edited}{where}"
    return step(
        role,
        entry,
        text,
        request(asked) if asked is not None else None,
        names=(resolved.approval_id,),
    )


def undo(entry: TapedEvent, *causes: Cause | None) -> Cause:
    event = entry.event
    paths = tuple(each.path for each in getattr(event, "changes", ()))
    settled = isinstance(event, ToolUndone) and event.why == "settled"
    text = "changes rolled back after a crash" if settled else "changes undone"
    if not isinstance(event, ToolUndone):
        text = "session rewound"
    return step("undo", entry, text, *causes, names=paths)
