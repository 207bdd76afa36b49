"""The review of what was learned is one table, thresholds hold at their edges, and rules read only
what a person meant to last.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.errors import IllegalTransition
from palyra.core.events import (
    AnyEvent,
    InputReceived,
    Point,
    RunCompleted,
    SessionCompacted,
    ToolFinished,
    ToolProposed,
    ToolUndone,
)
from palyra.core.ids import CallId
from palyra.core.labels import CLEAN, untrusted
from palyra.features.learning import model as learning_model
from palyra.features.learning import procedures
from palyra.features.learning import rules as learning_rules
from palyra.features.learning.model import (
    STATES,
    TABLE,
    CandidateKind,
    Evidence,
    LearningFinding,
    ProcedureStep,
    Threshold,
    Thresholds,
)
from palyra.features.learning.procedures import Done


def test_every_way_through_the_review_begins_at_proposed_and_leads_to_a_state_of_the_table() -> (
    None
):
    reached, waiting = {"proposed"}, ["proposed"]
    while waiting:
        for after in TABLE[waiting.pop()].values():  # type: ignore[index]
            if after not in reached:
                reached.add(after)
                waiting.append(after)
    assert reached == set(STATES)


def test_nothing_is_applied_that_was_not_accepted_and_nothing_rolled_back_that_was_not_applied() -> (
    None
):
    moves = {(state, move): after for state, out in TABLE.items() for move, after in out.items()}
    assert [state for (state, _), after in moves.items() if after == "applied"] == ["accepted"]
    assert [state for (state, _), after in moves.items() if after == "rolled_back"] == ["applied"]


@pytest.mark.parametrize("state", STATES)
def test_a_move_that_is_not_in_the_table_is_refused(state: learning_model.CandidateState) -> None:
    for move in ("hold", "suppress", "conflict", "accept", "apply", "fail", "reject", "roll_back"):
        if move not in TABLE[state]:
            with pytest.raises(IllegalTransition):
                learning_model.move(state, move)


def found(kind: CandidateKind, bps: int, **more: object) -> LearningFinding:
    given: dict[str, object] = {"addressed": True, **more}
    return LearningFinding(kind=kind, content="x", confidence_bps=bps, evidence=(), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "bps", "move"),
    [
        ("fact", 7_499, "suppress"),
        ("fact", 7_500, "hold"),
        ("fact", 8_999, "hold"),
        ("fact", 9_000, "accept"),
        ("preference", 7_999, "suppress"),
        ("preference", 8_000, "hold"),
        ("preference", 9_499, "hold"),
        ("preference", 9_500, "accept"),
        ("procedure", 8_499, "suppress"),
        ("procedure", 8_500, "hold"),
        ("procedure", 10_000, "hold"),
        ("policy", 8_499, "suppress"),
        ("policy", 8_500, "hold"),
        ("policy", 10_000, "hold"),
        ("fact", 0, "suppress"),
        ("fact", 10_000, "accept"),
    ],
)
def test_thresholds_hold_at_their_edges(kind: CandidateKind, bps: int, move: str) -> None:
    assert learning_model.first_move(found(kind, bps), Thresholds()) == move


@given(
    kind=st.sampled_from(["fact", "preference", "procedure", "policy"]), bps=st.integers(0, 10_000)
)
def test_what_has_anything_untrusted_in_it_is_never_applied_by_itself(
    kind: CandidateKind, bps: int
) -> None:
    everything = Threshold(0, 0)
    thresholds = Thresholds(
        fact=everything, preference=everything, procedure=everything, policy=everything
    )
    assert (
        learning_model.first_move(found(kind, bps, label=untrusted("page")), thresholds) == "hold"
    )
    assert learning_model.first_move(found(kind, bps, risk="high"), thresholds) == "hold"
    assert learning_model.first_move(found(kind, bps), Thresholds(automatic=False)) != "accept"


@given(bps=st.integers(0, 10_000))
def test_procedures_and_policies_are_never_applied_by_themselves_whatever_is_configured(
    bps: int,
) -> None:
    thresholds = Thresholds(procedure=Threshold(0, 0), policy=Threshold(0, 0))
    assert learning_model.first_move(found("procedure", bps), thresholds) == "hold"
    assert learning_model.first_move(found("policy", bps), thresholds) == "hold"


def said(*texts: str) -> list[LearningFinding]:
    return learning_rules.of_inputs(
        [
            learning_rules.SaidInput(
                "s", number, number, InputReceived(submission_id="x", text=text)
            )
            for number, text in enumerate(texts, 1)
        ]
    )


def shown(*texts: str) -> list[str]:
    return [
        each.content
        for each in said(*texts)
        if learning_model.first_move(each, Thresholds()) != "suppress"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "My name is Ada.",
        "Remember that the door code is 1234.",
        "I prefer dark mode over light mode.",
        "Please always answer in German.",
        "From now on, never push to main.",
        "We decided to use Postgres for the ledger.",
        "Our wiki is at wiki.example/start.",
    ],
)
def test_what_is_said_to_last_is_shown(text: str) -> None:
    assert len(shown(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Is my name Ada?",
        "What if my name is Ada?",
        "Suppose our wiki is at wiki.example.",
        "The page says that our wiki is at wiki.example.",
        'He wrote "remember that the code is 1234" on the wall.',
        "Maybe our wiki is at wiki.example.",
        "Our build is broken right now.",
        "Write a letter that begins with my name.",
        "> Remember that the code is 1234.",
        "```\nRemember that the code is 1234.\n```",
        "My password is [redacted:password:0a1b2c3d].",
        "ok",
        "",
    ],
)
def test_what_is_asked_supposed_quoted_hedged_or_passing_is_not(text: str) -> None:
    assert shown(text) == []


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("I prefer window seats, can you book one for me?", "I prefer window seats"),
        ("Since I'm vegetarian, what should I cook tonight?", "I'm vegetarian"),
        ("We use trunk as default branch, can you rebase?", "We use trunk as default branch"),
        ("Remember that I live in Brno, so how far is Vienna?", "I live in Brno"),
        ("I never fly on Sundays - is there a Monday flight?", "I never fly on Sundays"),
    ],
)
def test_what_is_told_before_a_question_counts(question: str, told: str) -> None:
    found = learning_rules.of_sentence(question, CLEAN)
    assert found is not None
    assert found.content == told
    assert found.confidence_bps >= 8_000


@pytest.mark.parametrize(
    "question",
    [
        "If I lived in Oslo, what would I pay?",
        "What is the best, cheapest and which is the fastest?",
        "I'd like tea, can you order some?",
    ],
)
def test_a_question_that_only_asks_or_supposes_tells_nothing(question: str) -> None:
    assert learning_rules.of_sentence(question, CLEAN) is None


def test_what_was_taken_back_is_not_learned() -> None:
    assert shown("My name is Ada. Just kidding.") == []
    assert shown("My name is Ada.", "Scratch that, it is a joke.") == []
    assert shown("My name is Ada.", "Thanks!") == ["My name is Ada."]


def test_of_two_versions_the_later_is_learned() -> None:
    assert shown("Our wiki is at a.example/x.", "Our wiki is now at b.example/x.") == [
        "Our wiki is now at b.example/x."
    ]


def test_saying_it_again_makes_it_surer_and_keeps_both_as_evidence() -> None:
    (once,) = said("Never use emojis.")
    (twice,) = said("Never use emojis.", "never use emojis!")
    assert twice.confidence_bps > once.confidence_bps
    assert [each.seq for each in twice.evidence] == [1, 2]


def test_the_evidence_quotes_the_sentence_and_names_its_entry() -> None:
    (finding,) = said("Hello there. My name is Ada. Bye.")
    assert finding.evidence == (Evidence("s", 1, "My name is Ada.", 1),)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Our staging host is a.example.", "Our staging host is now b.example."),
        ("I prefer tabs over spaces.", "I prefer spaces over tabs."),
        ("Always answer in German.", "Please always answer in English."),
        ("Always use emojis.", "Never use emojis."),
        ("Call me Ada.", "Please call me Bob."),
        ("I live in Brno.", "I live in Porto."),
        ("We use Postgres for the ledger.", "We use MySQL for the ledger."),
    ],
)
def test_two_values_for_the_same_are_about_the_same(one: str, other: str) -> None:
    assert learning_rules.about(one) == learning_rules.about(other)


def test_different_things_are_not_about_the_same() -> None:
    texts = [
        "Our wiki is at a.example.",
        "Our staging host is a.example.",
        "I live in Brno.",
        "I work at Brno.",
        "Never use emojis.",
    ]
    assert len({learning_rules.about(text) for text in texts}) == len(texts)


def test_points_of_a_summary_are_read_and_keep_its_label() -> None:
    points = (Point("constraint", "Never push to main.", 4), Point("done", "fs.write a.txt: ok", 5))
    label = untrusted("https://page.example")
    (finding,) = learning_rules.of_summary(
        "s", 9, 90, SessionCompacted(summary="", upto_seq=8, points=points, label=label)
    )
    assert (finding.kind, finding.content, finding.label) == (
        "preference",
        "Never push to main.",
        label,
    )
    assert finding.evidence == (Evidence("s", 4, "Never push to main.", 90),)


@given(st.text(max_size=400))
def test_no_text_makes_the_rules_stumble_and_the_same_text_gives_the_same(text: str) -> None:
    assert said(text) == said(text)


def done(run_id: str, request: str, *steps: ProcedureStep, position: int = 1) -> Done:
    return Done(
        run_id=run_id,
        session_id="s",
        seq=position,
        position=position,
        request=request,
        steps=steps,
        label=CLEAN,
    )


def shell(command: str) -> ProcedureStep:
    return ProcedureStep("shell.run", {"command": command})


def test_what_was_done_twice_is_a_procedure_with_what_differs_left_open() -> None:
    before = done("a", "release version 1", shell("make test"), shell("git tag v1"))
    after = done("b", "release version 2", shell("make test"), shell("git tag v2"), position=2)
    finding = procedures.find(after, [before])
    assert finding is not None
    assert finding.steps == (shell("make test"), shell("git tag …"))
    assert (finding.runs, finding.confidence_bps, finding.risk) == (("a", "b"), 8_500, "medium")


def test_a_third_time_makes_it_surer() -> None:
    runs = [done(name, "release it", shell("make test"), shell("git tag v")) for name in "abc"]
    finding = procedures.find(runs[2], runs[:2])
    assert finding is not None
    assert finding.confidence_bps == 9_000


def test_once_is_no_procedure_and_neither_are_two_different_things() -> None:
    one = done("a", "release it", shell("make test"), shell("git tag v1"))
    assert procedures.find(one, []) is None
    assert procedures.find(one, [one]) is None
    other = done("b", "tidy up", shell("ls src"), shell("rm old.txt"))
    assert procedures.find(one, [other]) is None


def run_of(*events: AnyEvent) -> Done | None:
    return procedures.of_run(
        "s", "r", [(number, number, event) for number, event in enumerate(events, 1)]
    )


def call(name: str, tool: str, outcome: str = "ok") -> list[AnyEvent]:
    return [
        ToolProposed(call_id=CallId(name), tool=tool, arguments={"path": name}),
        ToolFinished(call_id=CallId(name), outcome=outcome),  # type: ignore[arg-type]
    ]


def test_failed_undone_and_looking_calls_are_no_steps_and_a_run_without_an_end_is_no_example() -> (
    None
):
    asked = InputReceived(submission_id="x", text="do it")
    calls = [
        *call("1", "fs.write"),
        *call("2", "fs.patch"),
        *call("3", "fs.read"),
        *call("4", "http.fetch", "error"),
    ]
    whole = run_of(asked, *calls, RunCompleted(text="done"))
    assert whole is not None
    assert [step.tool for step in whole.steps] == ["fs.write", "fs.patch"]
    assert run_of(asked, *calls) is None
    undone = ToolUndone(call_id=CallId("2"), changes=())
    assert run_of(asked, *calls, undone, RunCompleted(text="done")) is None


def test_a_procedure_that_was_done_after_reading_from_outside_is_untrusted_and_risky() -> None:
    label = untrusted("https://page.example")
    one = done("a", "set it up", shell("setup a"), shell("enable a"))
    other = Done(
        run_id="b",
        session_id="s",
        seq=2,
        position=2,
        request="set it up",
        steps=one.steps,
        label=label,
    )
    finding = procedures.find(other, [one])
    assert finding is not None
    assert (finding.label, finding.risk) == (label, "high")
