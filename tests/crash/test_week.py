"""A simulated week with everything in it ends well: each firing was one run, every token and every
task is accounted for.
"""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from palyra.agent.session_cache import MOST_IDLE
from tests.crash.everywhere import in_memory, program
from tests.crash.week import LIVES
from tests.crash.week_story import (
    AHEAD,
    AHEAD_BY,
    BEGIN,
    BOUNDED,
    CLASSES,
    DAY,
    DAY_TOKENS,
    FACTS,
    FULL,
    HOUR,
    LONGEST_CALL,
    MINUTE,
    SCHEDULES,
    TROUBLE,
)

# The first of these tests waits for the week.
pytestmark = pytest.mark.timeout(600)
ENDED = {"done", "failed", "cancelled"}
# When nobody could fire anything: between lives, on a full disk, and in the hours over which the
# clock was set.
ABSENT = [
    *((before.end, after.begin) for before, after in pairwise(LIVES)),
    FULL,
    (AHEAD[0], AHEAD[0] + AHEAD_BY),
]


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with in_memory(tmp_path_factory.mktemp("week")) as folder:
        return program("tests.crash.week", str(folder))


def named(text: str) -> str:
    return next(schedule_id for schedule_id, what in SCHEDULES.items() if what["when"] == text)


def fired(week: Any, schedule_id: str) -> list[int]:
    """When it had a run, counted from the beginning."""
    return [
        due - BEGIN for name, due, _, run_id in week["firings"] if name == schedule_id and run_id
    ]


def test_the_journal_is_whole_with_what_was_put_away(week: Any) -> None:
    assert (week["verified"], week["problem"]) == (True, "")
    assert week["segments"] >= 3
    # What the tables tell is on the tapes, wherever they lie. One entry came later: the checkpoint
    # that the last daemon signed when it ended.
    assert sum(week["tapes"]["kinds"].values()) + 1 == week["entries"]


def test_each_firing_is_exactly_one_run_and_each_scheduled_run_is_a_firing(week: Any) -> None:
    with_run = [run_id for _, _, _, run_id in week["firings"] if run_id]
    scheduled = [run_id for run_id, schedule_id, _, _ in week["runs"] if schedule_id]
    assert sorted(with_run) == sorted(scheduled)
    assert len(set(with_run)) == len(with_run)
    for counted in ("accepted", "inputs"):
        assert set(week["tapes"][counted].values()) == {1}
        assert set(week["tapes"][counted]) == {run_id for run_id, *_ in week["runs"]}


def test_every_firing_came_to_an_end_or_waits_for_somebody(week: Any) -> None:
    states = {run_id: state for run_id, _, state, _ in week["runs"]}
    for _, _, state, run_id in week["firings"]:
        if state == "started":
            assert run_id in week["pending"], "a firing is under way and nobody is asked about it"
        else:
            assert state in {*ENDED, "skipped", "missed"}
            assert not run_id or states[run_id] == state
    assert {run_id for run_id, state in states.items() if state not in ENDED} == set(
        week["pending"]
    )


@pytest.mark.parametrize(("when", "every"), [("0 * * * *", HOUR), ("every 90m", 90 * MINUTE)])
def test_what_fires_in_a_rhythm_fires_each_time_unless_nobody_was_there(
    week: Any, when: str, every: int
) -> None:
    found = fired(week, named(when))
    assert len(found) == len(set(found))
    wanted = set(range(every, 7 * DAY + 1, every))
    lost = wanted - set(found)
    assert set(found) <= wanted | {0}, "something fired at no time of its own"
    # While no provider answers, a run waits, and the firings behind it are skipped.
    away = [*ABSENT, (TROUBLE[0], TROUBLE[1] + HOUR)]
    assert all(any(begin <= at <= end for begin, end in away) for at in lost), sorted(lost)
    # Whoever is killed at the moment and back within minutes has missed nothing.
    assert {life.end for life in LIVES[:-1] if life.dies_at and life.end % every == 0} <= set(found)


def test_every_task_is_done_or_waits_for_its_time(week: Any) -> None:
    assert week["overdue"] == []
    states = {(kind, state) for kind, state, _ in week["tasks"]}
    assert {state for _, state in states} == {"done", "queued"}
    assert {kind for kind, state in states if state == "queued"} <= {
        "journal.maintain",
        "openai.archive_idle",
        "retention.archive",
        "retention.clean",
        "schedule.fire",
        "reflect",
    }


def test_usage_agrees_with_the_tapes_to_the_token(week: Any) -> None:
    assert week["spent"] == week["tapes"]["spent"]
    assert week["ledger"]["ever"] == week["spent"][1] > 0
    assert week["ledger"]["bounded"] == week["by schedule"][BOUNDED]
    assert sum(week["days"].values()) == week["spent"][0]
    assert week["tapes"]["kinds"]["session.compacted"] >= 3


def test_a_hard_limit_was_reached_and_not_passed_by_more_than_one_call(week: Any) -> None:
    most = max(week["days"].values())
    assert DAY_TOKENS <= most <= DAY_TOKENS + LONGEST_CALL
    told = [key for about, key in week["notices"] if about == "budget"]
    assert len(told) == len(set(told)) >= 2, "a budget warns and says when it is used up, once each"
    assert week["tapes"]["failures"]["budget_spent"] > 0
    assert (
        Counter(state for _, _, state, reason in week["runs"] if reason == "budget")["waiting"] <= 1
    )


def test_each_class_of_failure_was_met_and_only_those_that_should_ended_runs(week: Any) -> None:
    assert set(week["tapes"]["troubles"]) == set(CLASSES)
    assert set(week["tapes"]["failures"]) == {
        "model_content_blocked",
        "model_bad_request",
        "budget_spent",
    }
    failed = [run_id for _, _, state, run_id in week["firings"] if state == "failed"]
    assert len([1 for about, _ in week["notices"] if about == "schedule"]) == len(failed)


def test_faults_became_incidents_that_are_over_and_nothing_else_did(week: Any) -> None:
    assert {domain for domain, _, _ in week["incidents"]} == {"approval", "resource"}
    assert [key for domain, key, _ in week["incidents"] if domain == "resource"] == [
        "resource:full"
    ]
    still_open = [key for _, key, closed in week["incidents"] if not closed]
    assert len(still_open) == len(week["pending"])
    told = [key for _, key in week["notices"]]
    assert len(told) == len(set(told))


def test_what_people_said_was_learned_and_nothing_that_came_from_outside(week: Any) -> None:
    assert {content for _, content, _ in week["learned"]} <= set(FACTS)
    assert any(state == "applied" for state, _, _ in week["learned"])
    assert week["remembered"]
    assert set(week["remembered"]) <= set(FACTS)


_OBJECTS_OF_A_SESSION = 80


def test_memory_and_disk_stay_within_bounds(week: Any) -> None:
    first, *rest = week["samples"]
    assert [each["day"] for each in week["samples"]] == [3, 4, 5, 6]
    for day in rest:
        # Sessions that were used lately stay in memory, up to a number.
        assert day["sessions"] <= MOST_IDLE
        kept = _OBJECTS_OF_A_SESSION * max(0, day["sessions"] - first["sessions"])
        assert day["objects"] < first["objects"] * 1.1 + kept, (
            "what is kept in memory grows with what has happened"
        )
        assert day["tasks"] <= first["tasks"] + 3
        assert day["resident_kb"] < first["resident_kb"] + 48_000
        assert day["log"] < 64 << 20
    # A day's entries that were put away take a few bytes each, and what was sent for nothing is
    # gone.
    assert rest[-1]["sealed"] < 64 * week["entries"]
    assert rest[-1]["entries"] < week["entries"] * 0.75
    assert week["uploads"] == 0
