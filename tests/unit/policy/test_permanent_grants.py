"""The policy an "always" writes: exactly what was approved, whatever the approved value
contains.
"""

import threading
from pathlib import Path

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palyra.core.argument_roles import Role
from palyra.core.call_values import ArgumentOrigin, CallValues, Origin, bound
from palyra.core.errors import InvalidInput
from palyra.core.tools import Scope, Subject
from palyra.core.verdicts import Allow, Ask, Deny, Question
from palyra.policy import judge, sources
from palyra.policy.grants import always_policy, append_always, pattern, quote
from palyra.policy.policy_set import PolicySet, schema_text
from palyra.policy.store import PolicyStore, check
from tests.policy_calls import PATCH, SHELL, WORKSPACE, call, scope, tool

SCHEMA = cedarpy.Schema.from_str(schema_text())
ASKING = '@id("ask") permit (principal, action == Action::"run", resource);\n'
PIECES = [
    *"a*\\\"'\n\r\t\0/;{}()|& ü\u202e\x7f",
    '" || true || "',
    '"};permit(principal,action,resource);//',
]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
KINDS = st.sampled_from(["path_prefix", "program", "command", "host", "tool"])
names = st.text(st.sampled_from('ab*\\" '), min_size=1, max_size=3)
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))


def loaded(text: str) -> PolicySet:
    rules, problems = sources.read("always.cedar", ASKING + text, SCHEMA)
    assert problems == []
    assert len(rules) == 2
    return PolicySet("test", rules, {}, SCHEMA)


def test_an_always_policy_reads_well() -> None:
    text = always_policy(
        Subject("shell.run", "program", "pytest"), "user:owner", "01JD", 1_700_000_000_000
    )
    assert text == (
        '@id("always-01JD")\n'
        '@reason("approved for always: shell.run with the program pytest")\n'
        '@origin("approval 01JD, 2023-11-14 22:13:20 UTC")\n'
        "permit (\n"
        '  principal == User::"owner",\n'
        '  action == Action::"run_unattended",\n'
        '  resource == Tool::"shell.run"\n'
        ") when {\n"
        '  context.program == "pytest"\n'
        "};\n"
    )


@settings(max_examples=300, deadline=None)
@given(HOSTILE)
def test_a_quoted_string_has_exactly_its_value(value: str) -> None:
    text = f"permit (principal, action, resource) when {{ context.program == {quote(value)} }};"
    result = judge.judge(loaded(text), call(SHELL, scope(program=value)))
    assert isinstance(result, Allow)
    assert isinstance(judge.judge(loaded(text), call(SHELL, scope(program=value + "x"))), Ask)


@settings(max_examples=300, deadline=None)
@given(HOSTILE, HOSTILE)
def test_a_pattern_matches_its_value_and_no_other(value: str, other: str) -> None:
    text = (
        f'permit (principal, action, resource) when {{ context.program like "{pattern(value)}" }};'
    )
    assert isinstance(judge.judge(loaded(text), call(SHELL, scope(program=other))), Allow) == (
        value == other
    )


@settings(max_examples=400, deadline=None)
@given(
    kind=KINDS,
    value=HOSTILE.filter(bool) | paths,
    tool_name=st.sampled_from(["shell.run", 'x"; permit', "fs.*"]),
    other_tool=st.sampled_from(["shell.run", 'x"; permit', "fs.*", "fs.read"]),
    where=st.builds(
        Scope,
        paths=st.lists(paths, max_size=3).map(tuple),
        workspace=st.just(""),
        program=HOSTILE,
        command=HOSTILE,
        hosts=st.lists(st.sampled_from(["a", "b"]), max_size=2).map(tuple),
    ),
    steer=st.booleans(),
)
def test_an_always_policy_permits_exactly_what_its_subject_covers(
    kind: str, value: str, tool_name: str, other_tool: str, where: Scope, steer: bool
) -> None:
    if steer:  # half of the calls are about the very value, so that both answers are common
        below = value.rstrip("/") if value.startswith("/") else f"/{value}".rstrip("/")
        value = below if kind == "path_prefix" and below else value
        where = Scope(
            paths=(f"{below}/a", below or "/"), program=value, command=value, hosts=(value,)
        )
        other_tool = tool_name
    subject = Subject(tool_name, kind, value)  # type: ignore[arg-type]
    if kind == "host":
        where = Scope(
            where.paths,
            "",
            where.program,
            where.command,
            tuple(host.lower().rstrip(".") for host in where.hosts),
        )
        subject = Subject(tool_name, "host", value.lower().rstrip("."))
        if not subject.value:
            return
    question = call(tool(other_tool, "once"), where)
    verdict = judge.judge(loaded(always_policy(subject, "user:owner", "A1", 0)), question)
    if isinstance(verdict, Deny):
        assert (
            "not absolute and resolved" in verdict.reason
        )  # a generated path such as /a//b is refused before any policy
        return
    assert isinstance(verdict, Allow) == subject.covers(other_tool, where)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (call(SHELL, scope(program="pytest")), "Allow"),
        (call(SHELL, scope(program="pytest"), principal="user:anna"), "Ask"),
        (call(SHELL, scope(program="pytest"), principal="channel:telegram:owner"), "Ask"),
        (call(tool("shell.exec", "once"), scope(program="pytest")), "Ask"),
    ],
)
def test_an_always_policy_is_for_one_principal_and_one_tool(
    question: Question, expected: str
) -> None:
    policies = loaded(
        always_policy(Subject("shell.run", "program", "pytest"), "user:owner", "A1", 0)
    )
    assert type(judge.judge(policies, question)).__name__ == expected


def test_always_never_lets_run_what_may_not_run_at_all(tmp_path: Path) -> None:
    append_always(tmp_path, always_policy(Subject("shell.run", "tool"), "user:owner", "A1", 0))
    assert isinstance(PolicyStore(tmp_path, "locked").judge(call(SHELL)), Deny)
    assert isinstance(PolicyStore(tmp_path, "default").judge(call(SHELL)), Allow)


@pytest.mark.parametrize("kind", ["path_prefix", "program", "command", "host"])
def test_always_without_a_value_is_refused(kind: str) -> None:
    with pytest.raises(InvalidInput):
        always_policy(Subject("shell.run", kind), "user:owner", "A1", 0)  # type: ignore[arg-type]


def test_always_for_a_value_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInput):
        always_policy(Subject("fs.patch", "path_prefix", "/a/\udcff"), "user:owner", "A1", 0)


def test_answers_are_appended_each_once_and_load(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    first = always_policy(Subject("shell.run", "program", "pytest"), "user:owner", "A1", 0)
    second = always_policy(Subject("fs.patch", "path_prefix", WORKSPACE), "user:owner", "A2", 0)
    for text in (first, second, first):
        append_always(folder, text)
    assert check(folder, "default") == []
    store = PolicyStore(folder, "default")
    assert [rule.id for rule in store.current.rules if rule.file.endswith("always.cedar")] == [
        "always-A1",
        "always-A2",
    ]
    assert isinstance(store.judge(call(PATCH)), Allow)
    assert sorted(path.name for path in folder.iterdir()) == ["always.cedar"]


def test_what_the_operator_wrote_into_the_file_stays(tmp_path: Path) -> None:
    mine = '// mine\n@id("mine") permit (principal, action, resource == Tool::"fs.list");'
    (tmp_path / "always.cedar").write_text(mine)
    append_always(tmp_path, always_policy(Subject("shell.run", "tool"), "user:owner", "A1", 0))
    text = (tmp_path / "always.cedar").read_text()
    assert text.startswith(mine + "\n")
    assert check(tmp_path, "default") == []


def test_answers_given_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    texts = [
        always_policy(Subject("shell.run", "program", f"p{n}"), "user:owner", f"A{n}", 0)
        for n in range(20)
    ]
    threads = [threading.Thread(target=append_always, args=(tmp_path, text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(PolicyStore(tmp_path, "locked").current.rules) == 7 + 20


_SINKS: tuple[Role, ...] = ("recipient", "account", "amount", "path", "target", "when", "content")
_ORIGINS: tuple[Origin, ...] = ("user", "trusted", "unknown", "untrusted")
_ARGUMENTS = st.lists(
    st.builds(
        ArgumentOrigin,
        st.just("x"),
        st.sampled_from(_SINKS),
        st.sampled_from(_ORIGINS),
        st.lists(st.sampled_from(("1", "2", "30", "b", "c")), min_size=1, max_size=2).map(tuple),
    ),
    max_size=3,
).map(lambda found: CallValues(arguments=tuple(found), declared=True))


@settings(max_examples=300, deadline=None)
@given(_ARGUMENTS, _ARGUMENTS)
def test_bound_values_mean_the_same_for_always_as_for_the_session(
    approved: CallValues, now: CallValues
) -> None:
    limits = bound(approved)
    if not limits:
        return
    subject = Subject("shell.run", "arguments", limits)
    covered = subject.covers("shell.run", scope(), now)
    text = always_policy(subject, "user:owner", "A1", 0)
    verdict = judge.judge(loaded(text), replace(call(SHELL, scope()), values=now))
    assert isinstance(verdict, Allow) == covered
