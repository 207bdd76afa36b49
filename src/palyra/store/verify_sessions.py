"""Deep verification of sessions and what hangs on them: their rules, the messages that were taken,
subagents, labels of files, and what was learned from them.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from palyra.core import labels
from palyra.core.events import (
    AnyEvent,
    CandidateProposed,
    CandidateSettled,
    FilesLabelled,
    InputReceived,
    RunAccepted,
    SessionBranched,
    SessionChanged,
    SessionCreated,
    SessionReset,
    SessionRuled,
)
from palyra.core.events.parts import Commission
from palyra.core.labels import CLEAN, Label
from palyra.store import file_labels
from palyra.store.database import Tx
from palyra.store.verify_projections import Problem, read_label

KINDS = frozenset(
    {
        "candidate.proposed",
        "candidate.settled",
        "files.labelled",
        "input.received",
        "run.accepted",
        "session.branched",
        "session.changed",
        "session.created",
        "session.reset",
        "session.ruled",
    }
)
_WAITING = frozenset({"proposed", "pending_review"})


class _Session(Struct):
    created: SessionCreated
    parent: tuple[str, int] = ("", 0)
    # What was changed since, where it was.
    model: str | None = None
    archived: bool = False
    kept: bool = False


class _Candidate(Struct):
    proposed: CandidateProposed
    state: str = ""
    # In the words of the person who accepted it.
    reworded: str = ""


class SessionFold:
    """Fold of the tape's entries about sessions and what hangs on them."""

    def __init__(self) -> None:
        self.sessions: dict[str, _Session] = {}
        self.rules: defaultdict[str, dict[str, str]] = defaultdict(dict)
        # Where each message was taken, and by which run.
        self.taken: dict[str, tuple[str, str, str]] = {}
        # The subagents' runs: whose each is, the session it works in, and for whom.
        self.subagents: dict[str, tuple[str, str, Commission]] = {}
        self.labels: dict[str, Label] = {}
        # Every file that ever had a label.
        self.labelled: set[str] = set()
        self.candidates: dict[str, _Candidate] = {}

    def add(self, tape: str, run_id: str, principal: str, event: AnyEvent) -> None:
        match event:
            case SessionCreated():
                self.sessions[tape] = _Session(event)
            case SessionBranched(child=child) if child == tape and tape in self.sessions:
                self.sessions[tape].parent = (event.parent, event.parent_seq)
            case SessionChanged() if tape in self.sessions:
                self._changed(self.sessions[tape], event)
            case SessionRuled(removed=True):
                self.rules[tape].pop(event.rule_id, None)
            case SessionRuled():
                self.rules[tape][event.rule_id] = event.words
            case SessionReset():
                self.rules[tape].clear()
            case InputReceived() if event.submission_id:
                self.taken[event.submission_id] = (tape, run_id, event.mode)
            case RunAccepted(commission=Commission() as commission):
                self.subagents[run_id] = (principal, tape, commission)
            case FilesLabelled():
                self._labelled(event)
            case CandidateProposed():
                known = self.candidates.get(event.candidate_id)
                state = known.state if known else ""
                self.candidates[event.candidate_id] = _Candidate(event, state)
            case CandidateSettled() if event.candidate_id in self.candidates:
                settled = self.candidates[event.candidate_id]
                settled.state = event.state
                settled.reworded = event.content or settled.reworded
            case _:
                pass

    def _changed(self, session: _Session, event: SessionChanged) -> None:
        if event.model is not None:
            session.model = event.model
        if event.archived is not None:
            session.archived = event.archived
        if event.kept is not None:
            session.kept = event.kept

    def _labelled(self, event: FilesLabelled) -> None:
        for each in event.files:
            if event.label == CLEAN:
                self.labels.pop(each.path, None)
                continue
            before = self.labels.get(each.path, CLEAN)
            self.labels[each.path] = labels.merge(before, event.label)
            self.labelled.add(each.path)


def wrong_sessions(tx: Tx, fold: SessionFold) -> Iterator[Problem]:
    yield from _sessions(tx, fold)
    yield from _rules(tx, fold)
    yield from _submissions(tx, fold)
    yield from _subagents(tx, fold)
    yield from _file_labels(tx, fold)
    yield from _candidates(tx, fold)


def _sessions(tx: Tx, fold: SessionFold) -> Iterator[Problem]:
    seen = set()
    for session_id, *row in tx.all(
        """SELECT session_id, key, owner, label, device, channel, workspace, parent_run_id,
            parent_id, parent_seq, model, archived, kept FROM sessions"""
    ):
        seen.add(session_id)
        told = fold.sessions.get(session_id)
        if told is None:
            yield ("sessions", session_id, "no entry tells of this session")
        elif changed := _other_session(told, row):
            yield ("sessions", session_id, changed)
    for session_id in fold.sessions.keys() - seen:
        yield ("sessions", session_id, "the tape has this session, the table has not")


def _other_session(told: _Session, row: Sequence[Any]) -> str:
    key, owner, label, device, channel, workspace, run, parent, at, model, archived, kept = row
    made = told.created
    if owner != made.owner:
        return f"it is of {owner}; the tape says {made.owner}"
    said = (made.key, made.label, made.device, made.channel, made.workspace)
    if (key or "", label, device, channel, workspace) != said:
        return "where it is spoken to or works was changed"
    if (run or "") != (made.parent_run_id or "") or (parent, at) != told.parent:
        return f"it continues {parent or run or 'nothing'}; the tape says otherwise"
    # A branch begins with its parent's.
    if model != (told.model or "") and (told.model is not None or not parent):
        return f"its model is {model!r}; the tape says {told.model!r}"
    if (bool(archived), bool(kept)) != (told.archived, told.kept):
        return "it is kept or archived otherwise than the tape says"
    return ""


def _rules(tx: Tx, fold: SessionFold) -> Iterator[Problem]:
    in_force: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for session_id, rule_id, words in tx.all(
        "SELECT session_id, rule_id, words FROM session_rules"
    ):
        in_force[session_id][rule_id] = words
    for session_id in sorted(in_force.keys() | fold.rules.keys()):
        stored, told = in_force[session_id], fold.rules[session_id]
        for rule_id in sorted(stored.keys() | told.keys()):
            name = f"{session_id} {rule_id}"
            if rule_id not in stored:
                yield ("session_rules", name, f"{told[rule_id]!r} was added, and is not there")
            elif rule_id not in told:
                yield ("session_rules", name, "nobody has added this rule")
            elif stored[rule_id] != told[rule_id]:
                yield ("session_rules", name, f"it says {stored[rule_id]!r}, not {told[rule_id]!r}")


def _submissions(tx: Tx, fold: SessionFold) -> Iterator[Problem]:
    seen = set()
    for submission_id, *row in tx.all(
        "SELECT submission_id, session_id, run_id, mode FROM submissions"
    ):
        seen.add(submission_id)
        told = fold.taken.get(submission_id)
        if told is None:
            yield ("submissions", submission_id, "no entry tells of this message")
        elif tuple(row) != told:
            yield ("submissions", submission_id, f"it is of run {row[1]}; the tape says {told[1]}")
    for submission_id in fold.taken.keys() - seen:
        yield ("submissions", submission_id, "the tape has this message, the table has not")


def _subagents(tx: Tx, fold: SessionFold) -> Iterator[Problem]:
    seen = set()
    for run_id, *row in tx.all(
        """SELECT run_id, principal, session_id, parent_session_id, parent_run_id, call_id, depth,
            task FROM children"""
    ):
        seen.add(run_id)
        if run_id not in fold.subagents:
            yield ("children", run_id, "no entry tells of this subagent")
            continue
        principal, tape, told = fold.subagents[run_id]
        said = [principal, tape, told.session_id, told.run_id, told.call_id, told.depth, told.task]
        if row != said:
            yield ("children", run_id, "whom it works for, or at what, was changed")
    for run_id in fold.subagents.keys() - seen:
        yield ("children", run_id, "the tape has this subagent, the table has not")


def _file_labels(tx: Tx, fold: SessionFold) -> Iterator[Problem]:
    seen = set()
    for path, label in tx.all("SELECT path, label FROM file_labels"):
        if path.startswith(file_labels.WAS):
            # What stood in a file before it was written anew.
            if path.removeprefix(file_labels.WAS) not in fold.labelled:
                yield ("file_labels", path, "no entry tells that this file had a label")
            continue
        seen.add(path)
        told = fold.labels.get(path)
        if told is None:
            yield ("file_labels", path, "no entry gives this file a label")
        elif read_label(label) != told:
            yield ("file_labels", path, "its label was changed")
    for path in fold.labels.keys() - seen:
        yield ("file_labels", path, "the tape gives this file a label, the table does not")


def _candidates(tx: Tx, fold: SessionFold) -> Iterator[Problem]:
    seen = set()
    for candidate_id, owner, kind, state, body in tx.all(
        "SELECT candidate_id, owner, kind, state, body FROM candidates"
    ):
        seen.add(candidate_id)
        told = fold.candidates.get(candidate_id)
        if told is None:
            yield ("candidates", candidate_id, "no entry tells of this candidate")
            continue
        proposed = told.proposed
        if (owner, kind) != (proposed.owner, proposed.candidate_kind):
            yield ("candidates", candidate_id, f"it is a {kind} of {owner}; the tape says another")
        elif state != told.state and (told.state or state not in _WAITING):
            was = told.state or "pending_review"
            yield ("candidates", candidate_id, f"it is {state}; the tape says {was}")
        elif (told.reworded or not told.state) and _content(body) != (
            told.reworded or proposed.content
        ):
            yield ("candidates", candidate_id, "what it says was changed")
    for candidate_id in fold.candidates.keys() - seen:
        yield ("candidates", candidate_id, "the tape has this candidate, the table has not")


def _content(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body).get("content")
    except (msgspec.DecodeError, AttributeError):
        return None
