"""Deciding the record again: the same set gives the same answers, another gives the differences,
alike calls are decided once.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core import events
from palyra.core.errors import ConfigInvalid
from palyra.core.events import AnyEvent, ToolDecided, ToolProposed
from palyra.core.labels import Label
from palyra.core.verdicts import Question, SessionRule
from palyra.policy import backtest
from palyra.policy.backtest import retest
from palyra.policy.judge import judge
from palyra.policy.policy_set import PRESETS, PolicySet
from palyra.policy.reports import Report
from palyra.policy.store import load, open_shadow
from palyra.store import decisions
from palyra.store.database import Database
from palyra.store.decisions import RecordedCall
from tests import recorded
from tests.journals import opened
from tests.policy_calls import (
    FETCH,
    MCP,
    PATCH,
    READ,
    RECALL,
    SEND,
    SHELL,
    SKILL,
    UNLOCK,
    WORKSPACE,
    call,
    scope,
)

T = TypeVar("T")
SETS = {preset: load(None, preset) for preset in PRESETS}
PATHS = [
    f"{WORKSPACE}/a.py",
    f"{WORKSPACE}/src/b.py",
    WORKSPACE,
    "/etc/passwd",
    "/home/me",
    "/",
    "/tmp/ä b",
]


def in_journal(path: Path, given: Iterable[AnyEvent], work: Callable[[Database], T]) -> T:
    async def whole() -> T:
        async with opened(path / "journal.db") as db:
            await recorded.record(db, given)
            return await asyncio.to_thread(work, db)

    return asyncio.run(asyncio.wait_for(whole(), 100))


def decided(policies: PolicySet, questions: Iterable[Question]) -> Iterator[AnyEvent]:
    for number, question in enumerate(questions):
        yield from recorded.decision(policies, number, question)


def retested(
    path: Path, live: PolicySet, other: PolicySet, questions: Iterable[Question]
) -> Report:
    return in_journal(
        path,
        decided(live, questions),
        lambda db: retest(db.read_from_thread, other, 0, lambda calls: None),
    )


QUESTIONS = st.builds(
    call,
    st.sampled_from([READ, PATCH, SHELL, FETCH, RECALL, SEND, UNLOCK, MCP, SKILL]),
    st.builds(
        lambda paths, hosts, program: scope(
            *paths, hosts=tuple(hosts), program=program, command=program and f"{program} x"
        ),
        st.lists(st.sampled_from(PATHS), max_size=3, unique=True),
        st.lists(st.sampled_from(["a.example", "B.example.", "10.0.0.1"]), max_size=2, unique=True),
        st.sampled_from(["", "git", "GET", "ä*"]),
    ),
    label=st.builds(
        Label,
        st.sampled_from(["trusted", "untrusted"]),
        st.sampled_from(["public", "private", "secret"]),
        st.sampled_from([(), ("https://a.example",)]),
    ),
    origin=st.sampled_from(["interactive", "scheduled", "child", "api"]),
    now_ms=st.integers(0, 4_000_000_000_000),
    principal=st.sampled_from(["user:owner", "user:anna", "channel:telegram:7", "system"]),
    channel=st.sampled_from(["", "telegram"]),
    rules=st.sampled_from(
        [(), (SessionRule("R", "no network"),), (SessionRule("R", f"never touch {WORKSPACE}/src"),)]
    ),
)


@settings(deadline=None)
@given(QUESTIONS, st.sampled_from(PRESETS), st.integers(0, 99))
def test_a_decision_read_from_the_tape_is_the_live_one(
    question: Question, preset: str, number: int
) -> None:
    live = judge(SETS[preset], question)
    stored = [
        events.decode(events.encode(event))
        for event in recorded.decision(SETS[preset], number, question)
    ]
    proposed, said = stored
    assert isinstance(proposed, ToolProposed)
    assert isinstance(said, ToolDecided)
    found = RecordedCall(
        position=1,
        time_ms=1,
        session_id=question.session_id,
        run_id="",
        principal=question.principal,
        proposed=proposed,
        decided=said,
    )
    assert backtest.question(found) == msgspec.structs.replace(
        question, tool=backtest.question(found).tool
    )
    again = backtest.Retest(SETS[preset])
    assert again.take(found) == live
    assert again.take(found) == live
    assert (again.report().same, said.reason, said.policies) == (2, live.reason, live.policies)


def test_another_set_shows_what_would_be_denied_allowed_and_asked(tmp_path: Path) -> None:
    questions = [call(READ), call(PATCH), call(PATCH), call(SHELL), call(MCP, scope())]
    report = retested(tmp_path, SETS["coding"], SETS["locked"], questions)
    assert (report.calls, report.same) == (5, 2)
    assert report.newly_denied.calls == 3
    (twice, once) = report.newly_denied.examples
    assert (twice.tool, twice.about, twice.before, twice.after, twice.times) == (
        "fs.patch",
        f"{WORKSPACE}/a.py",
        "allow",
        "deny",
        2,
    )
    assert (once.tool, once.before, once.times) == ("shell.run", "ask", 1)
    assert (report.newly_allowed.calls, report.newly_asked.calls) == (0, 0)
    assert [(hit.id, hit.calls) for hit in report.hits] == [("locked-read-workspace", 1)]
    assert report.never_hit == [
        "labels-untrusted-asks",
        "labels-obeyed-files-ask",
        "labels-obeyed-files-from-workers-ask",
        "labels-private-may-go",
        "labels-secrets-stay",
        "locked-private-stays",
    ]
    back = tmp_path / "back"
    back.mkdir()
    report = retested(back, SETS["locked"], SETS["coding"], questions)
    assert (report.newly_allowed.calls, report.newly_asked.calls, report.newly_denied.calls) == (
        2,
        1,
        0,
    )


def test_a_rule_about_time_is_decided_by_the_time_of_the_call(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "night.cedar").write_text(
        '@id("night") forbid (principal, action, resource) when { context.hour < 6 };'
    )
    hours = [call(READ, now_ms=hour * 3_600_000) for hour in range(24)]
    report = retested(tmp_path, SETS["coding"], load(folder, "coding"), hours)
    assert report.newly_denied.calls == 6


def test_what_policy_was_not_asked_about_is_counted_apart(tmp_path: Path) -> None:
    (proposed, said) = recorded.decision(SETS["coding"], 1, call(READ))
    replace = msgspec.structs.replace
    given: list[AnyEvent] = [
        replace(proposed, asked=None), replace(said, verdict="deny", by="catalogue"),
        replace(proposed, asked=None, call_id=recorded.call_id(2)), replace(said, call_id=recorded.call_id(2)),
        replace(proposed, call_id=recorded.call_id(3)), replace(said, call_id=recorded.call_id(3), verdict="deny", by="rule"),
    ]  # fmt: skip
    report = in_journal(
        tmp_path,
        given,
        lambda db: retest(db.read_from_thread, SETS["coding"], 0, lambda calls: None),
    )
    assert (report.calls, report.not_asked, report.unknown, report.same) == (3, 2, 1, 0)


def test_a_grant_is_compared_as_what_policy_asked(tmp_path: Path) -> None:
    (proposed, said) = recorded.decision(SETS["coding"], 1, call(SHELL))
    given: list[AnyEvent] = [proposed, msgspec.structs.replace(said, verdict="allow", by="grant")]
    report = in_journal(
        tmp_path,
        given,
        lambda db: retest(db.read_from_thread, SETS["coding"], 0, lambda calls: None),
    )
    assert (report.calls, report.same) == (1, 1)


def test_only_calls_since_a_time_are_decided_again(tmp_path: Path) -> None:
    def work(db: Database) -> list[int]:
        return [
            retest(db.read_from_thread, SETS["coding"], since, lambda calls: None).calls
            for since in (0, 1_800_000_000_000)
        ]

    assert in_journal(tmp_path, decided(SETS["coding"], [call(READ)] * 3), work) == [3, 0]


def test_one_recorded_call_is_found_by_its_id(tmp_path: Path) -> None:
    def work(db: Database) -> RecordedCall:
        return db.read_from_thread(lambda tx: decisions.find(tx, recorded.call_id(2)))

    found = in_journal(
        tmp_path, decided(SETS["coding"], [call(READ), call(PATCH), call(SHELL)]), work
    )
    assert (found.proposed.tool, found.decided.verdict, found.session_id) == (
        "shell.run",
        "ask",
        recorded.SESSION,
    )


def test_a_shadow_is_a_preset_or_a_folder_and_must_load(tmp_path: Path) -> None:
    assert open_shadow("", None, "default") is None
    named, placed = (
        open_shadow("locked", None, "default"),
        open_shadow(str(tmp_path), None, "coding"),
    )
    assert named is not None
    assert placed is not None
    assert (named.preset, placed.preset, placed.folder) == ("locked", "coding", tmp_path)
    with pytest.raises(ConfigInvalid):
        open_shadow(str(tmp_path / "nowhere"), None, "coding")


def distinct() -> Iterator[Question]:
    """No two calls about the same path or command, at the same time."""
    seen = [Label(), Label("untrusted", "public", ("https://a.example",))]
    for number in itertools.count():
        more: dict[str, Any] = {
            "label": seen[number % 7 == 0],
            "now_ms": 1_700_000_000_000 + number,
        }
        path = f"{WORKSPACE}/src/module{number % 97}/deep/file{number}.py"
        match number % 4:
            case 0 | 1:
                yield call(READ, scope(path), **more)
            case 2:
                yield call(PATCH, scope(path), **more)
            case _:
                yield call(
                    SHELL, scope(WORKSPACE, program="git", command=f"git log -{number}"), **more
                )


READING_PATHS = f"""
@id("some") permit (principal, action, resource == Tool::"fs.patch") when {{ context.path like "{WORKSPACE}/src/module1*" }};
@id("never") forbid (principal, action, resource) when {{ context.touches.contains("/etc") || context.command like "*sudo*" }};
"""


@pytest.mark.parametrize("mine", ["", READING_PATHS])
def test_calls_that_no_policy_tells_apart_are_decided_once_however_many_paths_there_are(
    tmp_path: Path, mine: str
) -> None:
    """What `python -m bench policy` measures over a hundred thousand; the count of decisions is why
    it is quick.
    """
    policies = SETS["default"].plus("mine.cedar", mine)
    work = backtest.Retest(policies)
    questions = list(itertools.islice(distinct(), 8_000))

    def again(db: Database) -> None:
        for page in decisions.pages(db.read_from_thread, 0):
            for found in page:
                assert isinstance(found, RecordedCall)
                work.take(found)

    in_journal(tmp_path, decided(SETS["coding"], questions), again)
    assert work.calls == 8_000
    assert work.decided <= 16
    report = work.report()
    assert (report.newly_allowed.calls, report.newly_denied.calls) == (0, 0)
    # 11 of the 97 modules begin with module1: their files are still changed without asking.
    still = (
        sum(
            question.tool == PATCH and "/module1" in question.scope.paths[0]
            for question in questions
        )
        if mine
        else 0
    )
    assert report.newly_asked.calls == 2_000 - still
