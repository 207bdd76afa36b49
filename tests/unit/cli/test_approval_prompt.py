"""Answering an approval line by line: only a bare word is an answer, and nothing is ever a yes by
default.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from palyra.cli.approval_prompt import ApprovalDecision, ApprovalPrompt, EditRequested, Leave, Say
from palyra.core.events import ApprovalRequested
from palyra.core.ids import ApprovalId, CallId
from palyra.core.tools import Preview, Subject

_SUBJECTS = (Subject("fs.write", "path_prefix", "/w/a"), Subject("fs.write", "tool"))


def _deciding(about: Any = "tool", subjects: tuple[Subject, ...] = _SUBJECTS) -> ApprovalPrompt:
    return ApprovalPrompt(
        ApprovalRequested(
            approval_id=ApprovalId("A"),
            call_id=CallId("C"),
            tool="fs.write",
            about=about,
            preview=Preview("diff", "write a", "+x"),
            risk="low",
            why="because",
            subjects=subjects,
        )
    )


@settings(max_examples=300)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=6), st.sampled_from(["y", "s", "t", "t 5m", "a", "1", "", "y but"])
        ),
        max_size=6,
    ),
    st.sampled_from(["tool", "in_doubt"]),
)
def test_nothing_but_a_written_yes_allows(lines: list[str], about: str) -> None:
    deciding = _deciding(about)
    for at, line in enumerate(lines):
        step = deciding.enter(line)
        if isinstance(step, ApprovalDecision) and step.decision == "allow":
            assert about == "tool"
            if step.scope == "once":
                assert line.strip().lower() in ("y", "yes")
            else:
                begun = {given.strip().lower().split(" ")[0] for given in lines[:at]}
                assert line.strip() in ("1", "2")
                assert begun & {"s", "session", "t", "timed", "a", "always"}


@pytest.mark.parametrize(
    "sentence",
    [
        "yes but not in src",
        "y e s",
        "a moment please",
        "always ask me",
        "s ure",
        "session?",
        "t once",
        "e it",
        "q 1",
        "sure",
        "1",
    ],
)
@pytest.mark.parametrize("subjects", [_SUBJECTS, _SUBJECTS[:1]])
def test_a_sentence_is_no_answer_and_the_enter_after_it_none_either(
    sentence: str, subjects: tuple[Subject, ...]
) -> None:
    deciding = _deciding(subjects=subjects)
    step = deciding.enter(sentence)
    assert isinstance(step, Say)
    assert "nothing was decided" in step.text
    assert isinstance(deciding.enter(""), Say)
    assert deciding.enter("y") == ApprovalDecision(decision="allow")


@pytest.mark.parametrize("subjects", [_SUBJECTS, _SUBJECTS[:1]])
@pytest.mark.parametrize("wider", ["s", "t 10m", "a"])
def test_a_wider_yes_shows_what_it_covers_and_needs_its_number(
    wider: str, subjects: tuple[Subject, ...]
) -> None:
    deciding = _deciding(subjects=subjects)
    shown = deciding.enter(wider)
    assert isinstance(shown, Say)
    assert "fs.write on /w/a" in shown.text
    assert "Enter" not in deciding.prompt
    assert isinstance(deciding.enter(""), Say)
    assert isinstance(deciding.enter(""), Say)


@pytest.mark.parametrize(
    ("lines", "decided"),
    [
        (["y"], ApprovalDecision(decision="allow")),
        (["YES"], ApprovalDecision(decision="allow")),
        (["n", "too wide"], ApprovalDecision(decision="deny", reason="too wide")),
        (["n because I say so"], ApprovalDecision(decision="deny", reason="because I say so")),
        (["s", "1"], ApprovalDecision(decision="allow", scope="session", subject=_SUBJECTS[0])),
        (["a", "2"], ApprovalDecision(decision="allow", scope="always", subject=_SUBJECTS[1])),
        (
            ["t 10m", "1"],
            ApprovalDecision(decision="allow", scope="timed", for_ms=600_000, subject=_SUBJECTS[0]),
        ),
        (
            ["t", "2h", "1"],
            ApprovalDecision(
                decision="allow", scope="timed", for_ms=7_200_000, subject=_SUBJECTS[0]
            ),
        ),
        (
            ["t 10 minutes", "1"],
            ApprovalDecision(decision="allow", scope="timed", for_ms=600_000, subject=_SUBJECTS[0]),
        ),
        (
            ["T 1h", "2"],
            ApprovalDecision(
                decision="allow", scope="timed", for_ms=3_600_000, subject=_SUBJECTS[1]
            ),
        ),
        (["", "what?", "y"], ApprovalDecision(decision="allow")),
        (["s", "9", "n", ""], ApprovalDecision(decision="deny")),
    ],
)
def test_answers_are_understood(lines: list[str], decided: ApprovalDecision) -> None:
    deciding = _deciding()
    *before, last = [deciding.enter(line) for line in lines]
    assert all(isinstance(step, Say) for step in before)
    assert last == decided


def test_edited_arguments_need_a_yes_of_their_own() -> None:
    deciding = _deciding()
    assert deciding.enter("e") == EditRequested()
    deciding.edited({"path": "b"})
    assert isinstance(deciding.enter(""), Say)
    deciding.enter("e")
    deciding.edited({"path": "b"})
    assert deciding.enter("y") == ApprovalDecision(decision="allow", arguments={"path": "b"})


def test_edited_arguments_can_be_allowed_wider_by_what_they_are_about() -> None:
    """Not by what the proposed arguments were about."""
    deciding = _deciding()
    other = Subject("fs.write", "path_prefix", "/w/b")
    deciding.enter("e")
    deciding.edited({"path": "b"}, (other,))
    shown = deciding.enter("s")
    assert isinstance(shown, Say)
    assert "/w/b" in shown.text
    assert deciding.enter("1") == ApprovalDecision(
        decision="allow", scope="session", subject=other, arguments={"path": "b"}
    )


def test_a_discarded_edit_is_gone() -> None:
    deciding = _deciding()
    deciding.enter("e")
    deciding.edited({"path": "b"}, ())
    assert isinstance(deciding.enter("n"), Say)
    assert deciding.enter("y") == ApprovalDecision(decision="allow")


def test_one_key_answers_but_a_risky_yes_needs_enter() -> None:
    assert {"y", "n", "d", "e", "s", "t", "a", "q"} <= _deciding().keys
    risky = ApprovalPrompt(structs.replace(_deciding().request, risk="high"))
    assert "y" not in risky.keys
    assert "n" in risky.keys
    risky.enter("s")
    assert risky.keys == frozenset()
    asked = _deciding()
    asked.enter("s")
    assert asked.keys == {"1", "2"}
    asked.enter("1")
    denied = _deciding()
    denied.enter("n")
    assert denied.keys == frozenset(), "a reason begins with any letter"


def test_a_call_in_doubt_is_settled_and_never_allowed() -> None:
    answers = [_deciding("in_doubt").enter(each) for each in ("h", "r", "s", "q")]
    assert answers == [
        ApprovalDecision(decision="happened"),
        ApprovalDecision(decision="again"),
        ApprovalDecision(decision="skip"),
        Leave(),
    ]
    assert isinstance(_deciding("in_doubt").enter("y"), Say)


def test_without_a_subject_there_is_no_wider_yes() -> None:
    assert isinstance(_deciding(subjects=()).enter("a"), Say)
