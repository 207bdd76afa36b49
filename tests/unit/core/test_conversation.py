"""The conversation fold and what a run does next."""

import msgspec
import pytest

from palyra.core.errors import IllegalTransition
from palyra.core.events import (
    ApprovalRequested,
    ApprovalResolved,
    Budgets,
    InputReceived,
    RunAccepted,
    RunCancelled,
    RunCompleted,
    RunResumed,
    RunStarted,
    SessionCompacted,
    SessionReset,
    ToolDecided,
    ToolProposed,
    ToolUndone,
)
from palyra.core.ids import ApprovalId, CallId
from palyra.core.next_step import (
    AskModel,
    Decide,
    Finish,
    GiveUp,
    Perform,
    Settle,
    WaitForPerson,
    what_next,
)
from palyra.core.run_progress import ModelTurn, UserTurn
from palyra.core.tools import Preview
from tests.tapes import RUN, accepted, allowed, assembled, finished, fold, replied, run_of, started


def asked(name: str, about: str = "tool") -> ApprovalRequested:
    return ApprovalRequested(
        approval_id=ApprovalId("A" + name),
        call_id=CallId(name),
        tool="fs.write",
        about=about,  # type: ignore[arg-type]
        preview=Preview("text", "t"),
        risk="low",
        why="w",
    )


def answered(name: str, decision: str) -> ApprovalResolved:
    return ApprovalResolved(
        approval_id=ApprovalId("A" + name), call_id=CallId(name), decision=decision
    )  # type: ignore[arg-type]


ONE_CALL = (*accepted(), assembled(3), replied("a"))


def test_a_new_run_asks_the_model() -> None:
    assert what_next(run_of(fold(*accepted()))) == AskModel()


def test_a_reply_without_calls_finishes_the_run() -> None:
    assert what_next(run_of(fold(*accepted(), assembled(3), replied(text="done")))) == Finish(
        "done"
    )


def test_calls_are_decided_then_performed_then_fed_back() -> None:
    assert what_next(run_of(fold(*accepted(), assembled(3), replied("a", "b")))) == Decide(
        ("a", "b")
    )
    decided = (*accepted(), assembled(3), replied("a", "b"), *allowed("a"), *allowed("b"))
    assert what_next(run_of(fold(*decided))) == Perform(("a", "b"))
    half = (*decided, started("a"), finished("a"))
    assert what_next(run_of(fold(*half))) == Perform(("b",))
    assert what_next(run_of(fold(*half, started("b"), finished("b")))) == AskModel()


def test_calls_are_fed_back_whatever_the_finish_reason() -> None:
    tape = (
        *accepted(),
        assembled(3),
        replied("a", stop="end"),
        *allowed("a"),
        started("a"),
        finished("a"),
    )
    assert what_next(run_of(fold(*tape))) == AskModel()


def test_a_reply_cut_off_at_its_length_is_continued_and_joined() -> None:
    cut = (*accepted(), assembled(3), replied(text="half", stop="length"))
    assert what_next(run_of(fold(*cut))) == AskModel(continuing=True)
    whole = (*cut, assembled(5), replied(text=" and more"))
    assert what_next(run_of(fold(*whole))) == Finish("half and more")
    again = (*cut, assembled(5), replied(text=" two", stop="length"))
    again = (*again, assembled(7), replied(text=" three", stop="length"))
    assert what_next(run_of(fold(*again))) == AskModel(continuing=True)
    again = (*again, assembled(9), replied(text=" four", stop="length"))
    following = what_next(run_of(fold(*again)))
    assert isinstance(following, Finish)
    assert following.text.startswith("half two three four")
    assert "incomplete" in following.text


def test_a_call_that_began_without_a_result_is_in_doubt() -> None:
    assert what_next(run_of(fold(*ONE_CALL, *allowed("a"), started("a")))) == Settle("a")


def test_a_rolled_back_call_is_ready_again() -> None:
    tape = (
        *ONE_CALL,
        *allowed("a", "reversible"),
        started("a"),
        ToolUndone(call_id=CallId("a"), changes=(), why="settled"),
    )
    assert what_next(run_of(fold(*tape))) == Perform(("a",))


ASKED = (
    *ONE_CALL,
    ToolProposed(call_id=CallId("a"), tool="fs.write", arguments={}),
    ToolDecided(call_id=CallId("a"), verdict="ask", reason="r"),
    asked("a"),
)


def test_a_pending_approval_is_a_wait() -> None:
    run = run_of(fold(*ASKED))
    assert run.state == "waiting"
    assert what_next(run) == WaitForPerson("approval")


def test_an_approved_call_is_performed_and_a_denied_one_is_not() -> None:
    assert what_next(
        run_of(fold(*ASKED, answered("a", "allow"), RunResumed(after="approval")))
    ) == Perform(("a",))
    denied = (*ASKED, answered("a", "deny"), finished("a"), RunResumed(after="approval"))
    assert what_next(run_of(fold(*denied))) == AskModel()


@pytest.mark.parametrize("decision", ["happened", "skip"])
def test_a_doubt_settled_by_a_person_is_not_repeated(decision: str) -> None:
    tape = (*ONE_CALL, *allowed("a", "once"), started("a"), asked("a", "in_doubt"))
    assert what_next(run_of(fold(*tape))) == WaitForPerson("in_doubt")
    settled = (*tape, answered("a", decision), finished("a"), RunResumed(after="in_doubt"))
    assert what_next(run_of(fold(*settled))) == AskModel()


def test_a_person_may_have_a_doubtful_call_run_again() -> None:
    tape = (
        *ONE_CALL,
        *allowed("a", "once"),
        started("a"),
        asked("a", "in_doubt"),
        answered("a", "again"),
        RunResumed(after="in_doubt"),
    )
    assert what_next(run_of(fold(*tape))) == Perform(("a",))


@pytest.mark.parametrize(
    ("budgets", "reason"),
    [
        (Budgets(turns=1), "turn_budget"),
        (Budgets(calls=1), "call_budget"),
        (Budgets(active_ms=1), "time_budget"),
    ],
)
def test_a_budget_that_is_used_up_ends_the_run_with_its_name(budgets: Budgets, reason: str) -> None:
    start = [
        RunAccepted(budgets=budgets),
        InputReceived(submission_id=RUN, text="x"),
        RunStarted(),
        assembled(3),
    ]
    if reason == "turn_budget":
        tape = [*start, replied("a"), *allowed("a"), started("a"), finished("a")]
    else:
        tape = [*start, replied("a", "b")]
    assert what_next(run_of(fold(*tape))) == GiveUp(reason)  # type: ignore[arg-type]


def test_waiting_does_not_count_as_active_time() -> None:
    waiting = run_of(fold(*ASKED)).active_ms
    resumed = run_of(fold(*ASKED, answered("a", "allow"), RunResumed(after="approval")))
    assert resumed.active_ms == waiting


def test_steering_joins_at_the_next_turn_boundary_behind_the_results() -> None:
    steer = InputReceived(submission_id="s", text="wait", mode="steer")
    tape = (*ONE_CALL, *allowed("a"), started("a"), steer, finished("a"))
    before = fold(*tape)
    assert [type(turn) for turn in before.turns] == [UserTurn, ModelTurn]
    after = fold(*tape, assembled(len(tape)))
    assert [type(turn) for turn in after.turns] == [UserTurn, ModelTurn, UserTurn]


def test_steering_that_came_after_assembly_joins_behind_the_reply() -> None:
    steer = InputReceived(submission_id="s", text="wait", mode="steer")
    tape = (*accepted(), steer, assembled(3), replied(text="answer"))
    folded = fold(*tape)
    assert what_next(run_of(folded)) == AskModel()
    again = fold(*tape, assembled(6))
    assert [type(turn) for turn in again.turns] == [UserTurn, ModelTurn, UserTurn]


def test_an_interrupted_reply_is_followed_by_another_turn() -> None:
    assert (
        what_next(run_of(fold(*accepted(), assembled(3), replied(text="ha", stop="interrupted"))))
        == AskModel()
    )


def test_a_reset_empties_the_conversation() -> None:
    folded = fold(*accepted(), assembled(3), replied(text="x"), RunCompleted(text="x"))
    assert folded.turns
    folded.apply(9, "", 90, SessionReset())
    assert folded.turns == []


def test_a_compaction_replaces_what_it_covers() -> None:
    folded = fold(*accepted(), assembled(3), replied(text="x"), RunCompleted(text="x"))
    folded.apply(9, "", 90, SessionCompacted(summary="sum", upto_seq=8))
    assert [turn.seq for turn in folded.turns] == [9]


def test_what_a_person_said_stays_said_when_the_run_was_cancelled_before_the_model_answered() -> (
    None
):
    folded = fold(*accepted("important"), RunCancelled())
    assert [turn.inputs[0].text for turn in folded.turns if isinstance(turn, UserTurn)] == [
        "important"
    ]
    assert folded.runs == {}


def test_a_queued_message_that_was_cancelled_is_not_shown_to_the_model() -> None:
    folded = fold(
        RunAccepted(), InputReceived(submission_id=RUN, text="never mind"), RunCancelled()
    )
    assert folded.turns == []


def test_an_illegal_event_changes_nothing() -> None:
    folded = fold(*ASKED)
    with pytest.raises(IllegalTransition):
        folded.apply(99, RUN, 990, started("a"))
    assert run_of(folded).state == "waiting"
    assert what_next(run_of(folded)) == WaitForPerson("approval")


def test_an_undo_by_the_user_is_told_to_the_model_with_the_next_input() -> None:
    folded = fold(
        *ONE_CALL,
        *allowed("a", "reversible"),
        started("a"),
        finished("a"),
        assembled(9),
        replied(text="x"),
        RunCompleted(text="x"),
    )
    folded.apply(50, RUN, 500, ToolUndone(call_id=CallId("a"), changes=()))
    other = "01ARZ3NDEKTSV4RRFFQ69G5FAW"
    assert len(folded.notes) == 1
    told = msgspec.structs.replace(assembled(53), notes=tuple(folded.notes))
    for seq, event in enumerate([*accepted("go on"), told], 51):
        folded.apply(seq, other, seq * 10, event)
    assert folded.notes == []
    last = folded.turns[-1]
    assert isinstance(last, UserTurn)
    assert "undid" in last.notes[0]
