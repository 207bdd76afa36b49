"""A message on its way in: its shape, its origin, and the step that takes it in."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.agent.message_inputs import NOTHING, Attaching, Enclosed
from palyra.agent.session_cache import Prefetch
from palyra.agent.settings import Settings
from palyra.core import run_state
from palyra.core.call_options import NOTHING as NO_OPTIONS
from palyra.core.call_options import CallOptions
from palyra.core.errors import Conflict, LimitExceeded, NotFound
from palyra.core.events import (
    AnyEvent,
    ClientTool,
    Commission,
    Given,
    InputMode,
    InputReceived,
    RunAccepted,
    RunStarted,
    Wanted,
)
from palyra.core.labels import CLEAN, Label
from palyra.core.run_state import RunState
from palyra.core.trace_context import asked_in
from palyra.core.verdicts import Origin
from palyra.store import artifacts, runs, sessions, tape
from palyra.store.database import Tx
from palyra.store.runs import SubmissionRow


class Submission(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An input for a session. `run_id` makes it idempotent: the same id with the same payload is
    the same submission.
    """

    text: str
    run_id: str = ""
    mode: InputMode = "followup"
    model: str = ""
    # False: nobody is there to answer a question, and policy may be stricter. The door decides the
    # origin; a caller cannot name it.
    attended: bool = True
    # Files that were stored for the session before.
    attachments: tuple[Attaching, ...] = ()
    # How the model is to answer, in the run that this begins.
    options: CallOptions = NO_OPTIONS


class Submitted(Struct, frozen=True, kw_only=True):
    """`run_id` is the run that will answer: a new one, or the one this input joined. Watch from
    `seq`.
    """

    run_id: str
    session_id: str
    submission_id: str
    state: RunState
    outcome: Literal["started", "queued", "joined", "repeated"]
    seq: int


@dataclass(frozen=True)
class InputOrigin:
    """Facts that a door knows about an input beside its words: where they come from, who said them,
    and what commits with them.
    """

    label: Label = CLEAN
    sender: str = ""
    given: Given | None = None
    # What the program that asks does itself.
    offered: tuple[ClientTool, ...] = ()
    wanted: Wanted | None = None
    also: Callable[[Tx, Submitted], None] = lambda tx, submitted: None


PLAIN = InputOrigin()


def commissioned(
    principal: str,
    session_id: str,
    submission: Submission,
    settings: Settings,
    commission: Commission,
    *,
    schedule_id: str,
) -> Callable[[Tx], Submitted]:
    """The step that takes in a subagent's task, to be a part of its parent's. The task is redacted:
    it comes from the tape.

    What works for a schedule is paid by that schedule.
    """
    return SubmitStep(
        principal,
        session_id,
        submission.run_id,
        submission,
        submission.text,
        settings,
        "child",
        commission=commission,
        schedule_id=schedule_id,
    )


class SubmitStep:
    """The step that takes an input in: decides, under the write lock, whether it starts a run,
    queues or joins one.
    """

    def __init__(
        self,
        principal: str,
        session_id: str,
        submission_id: str,
        submission: Submission,
        text: str,
        settings: Settings,
        origin: Origin,
        enclosed: Enclosed = NOTHING,
        commission: Commission | None = None,
        said: InputOrigin = PLAIN,
        *,
        schedule_id: str = "",
        expected: Prefetch | None = None,
        offers: Callable[[str], bool] = lambda name: True,
    ) -> None:
        """`expected`: the session's conversation, if this step is to read it. `offers`: tells
        whether the settings have a model.
        """
        self._said = said
        self._schedule_id = schedule_id
        # What a run or a schedule asks for is a trace of its own.
        self._trace = "" if commission or schedule_id else asked_in.get()
        self._expected = expected
        self._offers = offers
        self._chosen = ""
        self._principal = principal
        self._commission = commission
        self._session_id = session_id
        self._id = submission_id
        self._submission = submission
        self._text = text
        self._enclosed = enclosed
        self._origin = origin
        self._budgets = settings.budgets
        self._depth = settings.mailbox_depth
        attached = [f"{each.artifact} {each.name}" for each in submission.attachments]
        payload = "\0".join(
            (session_id, submission.mode, submission.model, origin, text, *attached)
        )
        if said.given is not None or said.offered:
            payload += "\0" + msgspec.json.encode((said.given, said.offered)).decode()
        self._wanted = said.wanted
        if submission.options != NO_OPTIONS:
            self._wanted = msgspec.structs.replace(
                said.wanted or Wanted(), options=submission.options
            )
        if self._wanted is not None:
            payload += "\0" + msgspec.json.encode(self._wanted).decode()
        self._digest = sha256(payload.encode()).digest()

    def __call__(self, tx: Tx) -> Submitted:
        session = sessions.get(tx, self._session_id, self._principal)
        if self._submission.run_id:
            # Who sent it chose its id: only then can it have been there before.
            known = runs.find_submission(tx, self._id)
            if known is not None:
                return self._repeat(tx, known)
            if runs.find(tx, self._id) is not None:
                raise Conflict(f"run {self._id} exists already", run_id=self._id)
        if session.model and self._offers(session.model):
            # A choice that the settings no longer have is none.
            self._chosen = session.model
        if session.archived:
            raise Conflict(
                "this session is archived: unarchive it to go on", session_id=self._session_id
            )
        for each in self._submission.attachments:
            if artifacts.artifact(tx, self._session_id, each.artifact) is None:
                raise NotFound(
                    f"this session has no file {each.artifact} any more: send it again",
                    artifact_id=each.artifact,
                )
        unfinished = runs.unfinished_of_session(tx, self._session_id)
        active = next((run for run in unfinished if run.state in run_state.ACTIVE), None)
        if self._expected is not None:
            self._expected.read(tx, session)
        sessions.touch(tx, session, self._text)
        mode = self._submission.mode
        if active is not None and mode in ("steer", "interrupt"):
            self._refuse_options(active.run_id)
            self._check_depth(tx, steering=active.run_id)
            return self._append(tx, active.run_id, [], "joined", active.state)
        if active is not None or unfinished:
            self._check_depth(tx)
            gathering = runs.collecting(tx, self._session_id) if mode == "collect" else ""
            if gathering:
                self._refuse_options(gathering)
                return self._append(tx, gathering, [], "joined", "accepted")
            return self._append(tx, self._id, [self._accepted()], "queued", "accepted")
        return self._append(tx, self._id, [self._accepted()], "started", "in_progress")

    def _accepted(self) -> RunAccepted:
        commission = self._commission
        return RunAccepted(
            origin=self._origin,
            model=self._submission.model or self._chosen,
            budgets=self._budgets,
            parent_run_id=commission.run_id if commission else None,
            commission=commission,
            schedule_id=self._schedule_id,
            offered=self._said.offered,
            wanted=self._wanted,
            trace=self._trace,
        )

    def _append(
        self,
        tx: Tx,
        run_id: str,
        before: list[AnyEvent],
        outcome: Literal["started", "queued", "joined"],
        state: RunState,
    ) -> Submitted:
        enclosed = self._enclosed
        enclosed.store(tx, self._session_id)
        received = InputReceived(
            submission_id=self._id,
            text=self._text,
            mode=self._submission.mode,
            attachments=enclosed.attachments,
            references=enclosed.references,
            label=self._said.label,
            sender=self._said.sender,
            given=self._said.given,
        )
        after = [RunStarted()] if outcome == "started" else []
        entries = tape.append(
            tx, self._session_id, self._principal, [*before, received, *after], run_id
        )
        seq = entries[0].seq
        row = SubmissionRow(
            self._id, self._session_id, run_id, self._submission.mode, self._digest, seq
        )
        runs.add_submission(tx, row)
        submitted = Submitted(
            run_id=run_id,
            session_id=self._session_id,
            submission_id=self._id,
            state=state,
            outcome=outcome,
            seq=seq - 1,
        )
        self._said.also(tx, submitted)
        return submitted

    def _repeat(self, tx: Tx, known: SubmissionRow) -> Submitted:
        if known.digest != self._digest:
            raise Conflict(
                f"run id {self._id} was used before with another payload", run_id=self._id
            )
        run = runs.find(tx, known.run_id)
        if run is None:
            raise NotFound(f"there is no run {known.run_id}")
        return Submitted(
            run_id=known.run_id,
            session_id=known.session_id,
            submission_id=self._id,
            state=run.state,
            outcome="repeated",
            seq=known.seq - 1,
        )

    def _refuse_options(self, run_id: str) -> None:
        """Refuse options of a message that joins a run: it has the run's options."""
        if self._submission.options != NO_OPTIONS:
            raise Conflict(
                f"this message joins run {run_id}, which has its options already: send it without"
                " options, or as a followup",
                run_id=run_id,
            )

    def _check_depth(self, tx: Tx, steering: str = "") -> None:
        waiting = (
            runs.unread_inputs(tx, steering)
            if steering
            else runs.waiting_inputs(tx, self._session_id)
        )
        if waiting >= self._depth:
            raise LimitExceeded(
                f"the mailbox is full ({self._depth} inputs wait): wait for the run, or stop it",
                limit=self._depth,
            )
