"""Suggestions from recorded approvals: what was approved passes, what was denied does not, and no
permit is too wide.
"""

import time
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palyra.core import events
from palyra.core.events import AnyEvent, ToolDecided, ToolProposed
from palyra.core.labels import Label
from palyra.core.tools import Scope, Subject
from palyra.core.verdicts import Allow, Question
from palyra.policy import suggest
from palyra.policy.judge import judge
from palyra.policy.reports import Suggestion
from palyra.policy.store import load
from palyra.store.decisions import AnsweredCall, DecisionReader
from tests import recorded
from tests.journals import opened, run
from tests.policy_calls import FETCH, PATCH, SHELL, WORKSPACE, call, scope

DEFAULT = load(None, "default")
NOW = 1_700_000_000_000
Given = tuple[Question, str]


def patch(path: str, **more: object) -> Question:
    return call(PATCH, scope(f"{WORKSPACE}/{path}"), **more)


def shell(command: str) -> Question:
    return call(SHELL, scope(WORKSPACE, command=command, program=command.split()[0]))


def fetch(host: str) -> Question:
    return call(FETCH, Scope(program="GET", command=f"GET https://{host}/", hosts=(host,)))


def offered(question: Question) -> list[Subject]:
    """What the tools offer for a wider yes."""
    name, where = question.tool.name, question.scope
    if question.tool == SHELL:
        found = [Subject(name, "command", where.command), Subject(name, "program", where.program)]
    elif question.tool == FETCH:
        found = [Subject(name, "host", where.hosts[0])]
    else:
        path = where.paths[0]
        found = [
            Subject(name, "path_prefix", each)
            for each in (path, path.rpartition("/")[0], WORKSPACE)
        ]
    return [*found, Subject(name, "tool")]


def answers(given: list[Given]) -> list[AnsweredCall]:
    """As they are read from a tape."""
    stored: list[AnyEvent] = []
    for number, (question, answer) in enumerate(given):
        stored += [
            *recorded.decision(DEFAULT, number, question),
            *recorded.answered(number, question.tool.name, offered(question), answer),
        ]
    rows = [
        (at, at, recorded.SESSION, recorded.RUN, "user:owner", events.encode(event))
        for at, event in enumerate(stored, 1)
    ]
    return [each for each in DecisionReader().take(rows) if isinstance(each, AnsweredCall)]


def suggested(*given: Given) -> Suggestion:
    return suggest.of_answers(answers(list(given)), DEFAULT)


def whats(found: Suggestion) -> list[str]:
    return [permit.what for permit in found.permits]


def test_one_approval_gives_the_narrowest_permit() -> None:
    assert whats(suggested((patch("src/a.py"), "allow"))) == [
        f"fs.patch with files below {WORKSPACE}/src/a.py"
    ]
    assert whats(suggested((shell("git push origin main"), "allow"))) == [
        "shell.run with the command git push origin main"
    ]
    assert whats(suggested((fetch("a.example"), "allow"))) == ["http.fetch with the host a.example"]


def test_several_approvals_give_the_folder_that_holds_them_and_no_more() -> None:
    found = suggested(
        (patch("src/x/a.py"), "allow"),
        (patch("src/x/b.py"), "allow"),
        (patch("src/x/deep/c.py"), "allow"),
    )
    assert whats(found) == [f"fs.patch with files below {WORKSPACE}/src/x"]
    assert (found.approved, found.passing, found.permits[0].covers) == (3, 3, 3)


def test_a_denied_call_keeps_permits_narrow_and_is_named() -> None:
    found = suggested(
        (patch("src/a.py"), "allow"),
        (patch("src/b.py"), "allow"),
        (patch("docs/c.md"), "allow"),
        (patch("secrets/k"), "deny"),
    )
    assert sorted(whats(found)) == [
        f"fs.patch with files below {WORKSPACE}/{each}" for each in ("docs/c.md", "src")
    ]
    assert {name for permit in found.permits for name in permit.kept_narrow_by} == {
        f"{WORKSPACE}/secrets/k"
    }


def test_a_program_is_suggested_only_when_several_commands_of_it_were_approved_and_none_denied() -> (
    None
):
    several = (shell("git status"), "allow"), (shell("git log"), "allow")
    assert whats(suggested(*several)) == ["shell.run with the program git"]
    assert sorted(whats(suggested(*several, (shell("git push"), "deny")))) == [
        "shell.run with the command git log",
        "shell.run with the command git status",
    ]


def test_a_whole_tool_is_never_suggested() -> None:
    found = suggested(*((fetch(f"{name}.example"), "allow") for name in "abc"))
    assert sorted(whats(found)) == [f"http.fetch with the host {name}.example" for name in "abc"]


def test_what_was_allowed_and_denied_alike_goes_on_asking() -> None:
    found = suggested((patch("a.py"), "allow"), (patch("a.py"), "deny"))
    assert found.permits == []
    assert [(left.tool, left.why) for left in found.left] == [
        ("fs.patch", "every permit for it would also cover a call that was denied")
    ]


def test_what_a_forbid_holds_back_goes_on_asking_and_says_why() -> None:
    question = call(
        SHELL,
        scope(WORKSPACE, command="ls", program="ls"),
        label=Label("untrusted", "public", ("web",)),
    )
    found = suggested((question, "allow"))
    assert "untrusted content" in found.left[0].why
    assert found.passing == 0


def test_timeouts_and_edits_are_neither_yes_nor_no() -> None:
    stored = [
        *recorded.decision(DEFAULT, 1, patch("a.py")),
        *recorded.answered(1, "fs.patch", offered(patch("a.py")), "allow", arguments={}),
    ]
    rows = [
        (at, at, recorded.SESSION, recorded.RUN, "user:owner", events.encode(event))
        for at, event in enumerate(stored, 1)
    ]
    edited = [each for each in DecisionReader().take(rows) if isinstance(each, AnsweredCall)]
    assert (
        suggest.of_answers([*edited, *answers([(patch("b.py"), "expired")])], DEFAULT).approved == 0
    )


def test_the_text_loads_from_a_policy_folder_and_says_where_it_comes_from(tmp_path: Path) -> None:
    found = suggested((patch("src/a.py"), "allow"), (shell('echo "*" \\ ü'), "allow"))
    (tmp_path / "suggested.cedar").write_text(found.cedar)
    policies = load(tmp_path, "default")
    assert isinstance(judge(policies, patch("src/a.py")), Allow)
    assert isinstance(judge(policies, shell('echo "*" \\ ü')), Allow)
    assert not isinstance(judge(policies, shell('echo "x" \\ ü')), Allow)
    assert '@origin("policy suggest: 1 approvals, ' in found.cedar
    assert '@reason("approved 1 times: fs.patch with files below' in found.cedar


def test_suggestions_come_from_the_tape(tmp_path: Path) -> None:
    async def work() -> Suggestion:
        import asyncio

        async with opened(tmp_path / "journal.db") as db:
            stored: list[AnyEvent] = []
            for number, (question, answer) in enumerate(
                [(patch("a.py"), "allow"), (patch("b.py"), "deny")]
            ):
                proposed, decided = recorded.decision(DEFAULT, number, question)
                assert isinstance(proposed, ToolProposed)
                assert isinstance(decided, ToolDecided)
                stored += [
                    proposed,
                    decided,
                    *recorded.answered(number, "fs.patch", offered(question), answer),
                ]
            await recorded.record(db, stored)
            return await asyncio.to_thread(suggest.suggest, db.read_from_thread, DEFAULT, 0)

    found = run(work())
    assert whats(found) == [f"fs.patch with files below {WORKSPACE}/a.py"]
    assert (found.approved, found.denied) == (1, 1)


def test_a_month_of_approvals_is_gone_through_in_seconds() -> None:
    given = [(patch(f"src/m{number % 100}/f{number}.py"), "allow") for number in range(1_500)]
    given += [(patch(f"src/m{number}/key"), "deny") for number in range(0, 100, 10)]
    # The time of this thread alone: a busy machine must not fail it.
    began = time.thread_time()
    found = suggested(*given)
    assert time.thread_time() - began < 20
    assert found.passing == 1_500
    assert len(found.permits) == 90 + 150


DAY_MS = 24 * 3_600_000
NAMES = st.sampled_from(
    ["a", "b", "src/a", "src/b", "src/x/a", "src/x/y/b", "docs/a", "docs/*", "src", 'o"dd\\ä/a']
)
COMMANDS = st.sampled_from(
    ["git status", "git push", "ls", "ls -l", "make", "make all", "echo '*' \"x\""]
)
HOSTS = st.sampled_from(["a.example", "b.example", "c.b.example"])
UNTRUSTED = Label("untrusted", "public", ("web",))
LABELS = st.sampled_from([Label(), Label(), Label(), UNTRUSTED])
# Days and hours of one week, in order; what is asked may come again and be answered otherwise.
WEEKS = st.lists(
    st.tuples(
        st.one_of(NAMES.map(patch), COMMANDS.map(shell), HOSTS.map(fetch)),
        st.sampled_from(["allow", "allow", "allow", "deny", "expired"]),
        st.integers(0, 7 * DAY_MS - 1),
        LABELS,
    ),
    max_size=40,
).map(
    lambda week: [
        (replace(asked, now_ms=NOW + at, label=label), answer)
        for asked, answer, at, label in sorted(week, key=_when)
    ]
)


def _when(each: tuple[Question, str, int, Label]) -> int:
    return each[2]


def alike(one: Question, other: Question) -> bool:
    return (one.tool.name, one.scope) == (other.tool.name, other.scope)


@settings(deadline=None)
@given(WEEKS)
def test_whatever_a_week_was_like_approved_calls_pass_and_denied_ones_do_not(
    week: list[Given],
) -> None:
    found = suggested(*week)
    policies = DEFAULT.plus("suggested.cedar", found.cedar)
    denied = [question for question, answer in week if answer == "deny"]
    approved = [question for question, answer in week if answer == "allow"]
    passes = [question for question in approved if isinstance(judge(policies, question), Allow)]
    assert not [question for question in denied if isinstance(judge(policies, question), Allow)]
    assert (found.approved, found.denied, found.passing) == (
        len(approved),
        len(denied),
        len(passes),
    )
    assert len(found.left) == len(approved) - len(passes)
    for question in approved:
        # Left over is only what was denied as well (it, or something inside it), and what a shipped
        # forbid holds back.
        held_back = question.label == UNTRUSTED and question.tool != PATCH
        conflicts = any(offered(question)[0].covers(each.tool.name, each.scope) for each in denied)
        if question not in passes:
            assert held_back or conflicts
        elif not any(alike(question, each) for each in denied):
            # The same call on another day passes, too.
            assert isinstance(judge(policies, replace(question, now_ms=NOW + 30 * DAY_MS)), Allow)
    for permit in found.permits:
        assert 'Action::"run_unattended"' in permit.cedar
        assert "when {" in permit.cedar
