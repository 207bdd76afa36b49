"""Grants: they turn an Ask into an Allow, for exactly what was approved, and nothing else."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.labels import Label
from palyra.core.tools import Scope, Subject, SubjectKind
from palyra.core.verdicts import Ask, Grant, Question
from palyra.policy.grants import covering
from tests.policy_calls import (
    FETCH,
    PATCH,
    READ,
    SEND,
    SESSION,
    SHELL,
    WORKSPACE,
    call,
    scope,
    tool,
)

NOW = 1_700_000_000_000
PYTEST = Grant(
    subject=Subject("shell.run", "program", "pytest"),
    principal="user:owner",
    approval_id="A1",
    session_id=SESSION,
)
ASK = Ask("asks first", "medium", ("default-ask",))
JOB = tool("job.start", "reversible", "process")
WEB = Label(integrity="untrusted", sources=("web:example.org",))


def run(program: str = "pytest", **more: object) -> Question:
    return call(SHELL, scope(WORKSPACE, program=program, command=f"{program} -q"), **more)


@pytest.mark.parametrize(
    ("question", "covered"),
    [
        (run(), True),
        (run("rm"), False),
        (run(principal="user:anna"), False),
        (run(session_id="01JD0000000000000000000001"), False),
        (call(READ), False),
    ],
)
def test_a_grant_is_for_one_subject_one_principal_and_one_session(
    question: Question, covered: bool
) -> None:
    assert (covering([PYTEST], question) is not None) == covered


def test_a_grant_without_a_session_holds_in_every_session() -> None:
    wide = msgspec.structs.replace(PYTEST, session_id=None)
    assert covering([wide], run(session_id="01JD0000000000000000000001")) == wide


@pytest.mark.parametrize(
    ("until_ms", "covered"), [(NOW + 1, True), (NOW, False), (NOW - 1, False), (None, True)]
)
def test_a_grant_ends_at_its_time(until_ms: int | None, covered: bool) -> None:
    grant = msgspec.structs.replace(PYTEST, until_ms=until_ms)
    assert (covering([grant], run(now_ms=NOW)) is not None) == covered


def test_the_first_grant_that_covers_is_the_one_named() -> None:
    other = msgspec.structs.replace(PYTEST, approval_id="A2", principal="user:anna")
    third = msgspec.structs.replace(PYTEST, approval_id="A3")
    assert covering([other, PYTEST, third], run()) == PYTEST


@pytest.mark.parametrize(
    ("what", "where", "covered"),
    [
        (JOB, scope(WORKSPACE), False),
        (FETCH, scope(), False),
        (SEND, scope(), False),
        (PATCH, scope(f"{WORKSPACE}/a"), True),
    ],
    ids=["process", "network", "message", "a change that can be undone"],
)
def test_a_yes_from_before_untrusted_content_does_not_cover_what_reaches_out(
    what: object, where: Scope, covered: bool
) -> None:
    question = call(what, where, label=WEB)  # type: ignore[arg-type]
    grant = msgspec.structs.replace(PYTEST, subject=Subject(question.tool.name, "tool"))
    assert covering([grant], msgspec.structs.replace(question, label=Label())) == grant
    assert (covering([grant], question) is not None) == covered


@pytest.mark.parametrize(
    ("now", "covered"),
    [
        (WEB, True),
        (Label(integrity="untrusted", sources=("web:example.org", "mail:x")), False),
        (Label(integrity="untrusted"), False),
        (Label(), True),
    ],
)
def test_a_yes_said_in_view_of_untrusted_content_covers_that_content_only(
    now: Label, covered: bool
) -> None:
    seen = msgspec.structs.replace(PYTEST, seen=WEB)
    assert (covering([seen], run(label=now)) is not None) == covered


def test_a_full_list_of_sources_may_hide_one_that_nobody_saw() -> None:
    full = Label(integrity="untrusted", sources=tuple(f"web:{number}" for number in range(16)))
    assert covering([msgspec.structs.replace(PYTEST, seen=full)], run(label=full)) is None


@given(st.sampled_from(["path_prefix", "program", "command", "host"]))
def test_an_empty_value_covers_nothing(kind: SubjectKind) -> None:
    grant = msgspec.structs.replace(PYTEST, subject=Subject("fs.patch", kind))
    assert covering([grant], call(PATCH, Scope(paths=("/etc/hosts",), hosts=("",)))) is None
