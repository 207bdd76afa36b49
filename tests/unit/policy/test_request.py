"""What Cedar is told about a call: complete, exact, and never a guess."""

import json
import posixpath

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.labels import Label
from palyra.core.tools import Scope
from palyra.core.verdicts import Question
from palyra.policy import judge, request
from palyra.policy.policy_set import schema_text
from palyra.policy.store import load
from tests.policy_calls import MCP, READ, SHELL, SKILL, WORKSPACE, call, scope

SCHEMA = cedarpy.Schema.from_str(schema_text())
names = st.text(st.sampled_from('ab*.\\" ü'), min_size=1, max_size=3).filter(
    lambda name: name not in (".", "..")
)
paths = st.lists(names, max_size=4).map(lambda parts: "/" + "/".join(parts))
some_paths = st.lists(paths, max_size=4).map(tuple)
text = st.text(max_size=8)
questions = st.builds(
    Question,
    principal=st.sampled_from(["user:owner", "channel:telegram:12", "worker:attic", "system"]),
    session_id=text,
    tool=st.sampled_from([READ, SHELL, MCP, SKILL]),
    scope=st.builds(
        Scope,
        paths=some_paths,
        workspace=paths | st.just(""),
        program=text,
        command=text,
        hosts=st.lists(text, max_size=3).map(tuple),
        recipients=st.lists(text, max_size=2).map(tuple),
    ),
    origin=st.sampled_from(["interactive", "scheduled", "child", "api"]),
    now_ms=st.integers(0, 4_000_000_000_000),
    label=st.builds(
        Label,
        integrity=st.sampled_from(["trusted", "untrusted"]),
        sources=st.lists(text, max_size=2).map(tuple),
    ),
    agent=text,
    channel=text,
)


@settings(max_examples=150, deadline=None)
@given(questions)
def test_every_fact_is_always_there_and_fits_the_schema(question: Question) -> None:
    facts = request.facts(question, frozenset(request.FACTS))
    asked = {
        "principal": request.uid(*request.principal(question.principal)),
        "action": request.uid("Action", "run"),
        "resource": request.uid("Tool", question.tool.name),
        "context": json.dumps(facts),
    }
    everything = " && ".join(f"context has {name}" for name in request.FACTS)
    policies = cedarpy.PolicySet.from_str(
        f"permit (principal, action, resource) when {{ {everything} }};"
    )
    known = cedarpy.Entities.from_json_str(request.entities(question, {}), SCHEMA)
    result = cedarpy.is_authorized(asked, policies, known, SCHEMA)
    assert (result.decision, result.diagnostics.errors) == (cedarpy.Decision.Allow, [])


def test_the_schema_offers_exactly_the_facts_we_send() -> None:
    policies = "permit (principal, action, resource) when { context == context };"
    assert cedarpy.validate_policies(policies, SCHEMA).validation_passed
    declared = schema_text().split("type Call = {")[1].split("};")[0]
    found = [
        line.split(":")[0].strip()
        for line in declared.splitlines()
        if ":" in line and not line.strip().startswith("//")
    ]
    assert sorted(found) == sorted(request.FACTS)


@given(st.lists(paths, min_size=1, max_size=4).map(tuple), paths)
def test_the_one_path_lies_below_a_folder_exactly_when_every_path_does(
    found: tuple[str, ...], folder: str
) -> None:
    prefix = folder.rstrip("/") + "/"
    assert request.common_path(found).startswith(prefix) == all(
        path.startswith(prefix) for path in found
    )


@given(some_paths, paths)
def test_touches_holds_a_folder_exactly_when_some_path_is_it_or_lies_below_it(
    found: tuple[str, ...], folder: str
) -> None:
    below = any(posixpath.commonpath([path, folder]) == folder for path in found)
    assert (folder in request.touches(found)) == below


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ((), ""),
        (("/a/b.py",), "/a/b.py"),
        (("/a/b.py", "/a/c.py"), "/a/"),
        (("/a", "/a/c.py"), "/a"),
        (("/a/x", "/b"), "/"),
        (("/",), "/"),
    ],
)
def test_several_paths_become_the_folder_that_holds_them(
    paths: tuple[str, ...], expected: str
) -> None:
    assert request.common_path(paths) == expected


@pytest.mark.parametrize(
    ("paths", "inside", "wide"),
    [
        ((), False, False),
        ((WORKSPACE,), True, False),
        ((f"{WORKSPACE}/src/a.py",), True, False),
        ((f"{WORKSPACE}/a", "/etc/passwd"), False, False),
        ((f"{WORKSPACE}-other/a",), False, False),
        (("/home/me",), False, True),
        (("/home/you",), False, True),
        (("/home",), False, True),
        (("/root",), False, True),
        (("/",), False, True),
        ((f"{WORKSPACE}/a", "/"), False, True),
    ],
)
def test_where_a_path_lies(paths: tuple[str, ...], inside: bool, wide: bool) -> None:
    assert (request.in_workspace(scope(*paths)), request.wide(scope(*paths))) == (inside, wide)


def test_a_folder_above_the_workspace_is_wide_wherever_it_is() -> None:
    where = Scope(paths=("/srv/data",), workspace="/srv/data/team/project")
    assert request.wide(where)


@pytest.mark.parametrize(
    "path", ["a.py", "", "/a/../etc", "/a/./b", "/a//b", "//a", "/a/", "/a/..", "/..", "~/a"]
)
def test_a_path_that_is_not_absolute_and_resolved_is_denied(path: str) -> None:
    policies = load(None, "default")
    verdict = judge.judge(policies, call(where=scope(path)))
    assert type(verdict).__name__ == "Deny"
    assert "not absolute and resolved" in verdict.reason


@pytest.mark.parametrize("path", ["/", "/a", "/a.b/..c", "/.git", "/...", "/a b"])
def test_an_unusual_but_exact_path_is_judged(path: str) -> None:
    request.check(call(where=scope(path)))


def test_hosts_are_one_host_in_any_spelling_and_know_their_domains() -> None:
    question = call(where=scope(hosts=("API.Example.org.", "10.0.0.1", "[::1]")))
    facts = request.facts(question, frozenset({"hosts", "host", "domains"}))
    assert facts == {
        "hosts": ["10.0.0.1", "[::1]", "api.example.org"],
        "host": "",
        "domains": ["10.0.0.1", "[::1]", "api.example.org", "example.org", "org"],
    }


def test_the_hour_is_utc() -> None:
    assert request.FACTS["hour"](call(now_ms=1_700_000_000_000)) == 22
