"""Judging: nothing is allowed that no policy permits, and whatever goes wrong denies."""

import json
from dataclasses import dataclass
from typing import Any

import cedarpy
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.labels import Label
from palyra.core.verdicts import Allow, Ask, Deny, Question, Verdict
from palyra.policy import request, sources
from palyra.policy.judge import examine, judge
from palyra.policy.policy_set import PolicySet, schema_text
from palyra.policy.reports import explain
from tests.policy_calls import FETCH, MCP, PATCH, READ, SHELL, SKILL, WORKSPACE, call, scope

SCHEMA = cedarpy.Schema.from_str(schema_text())


def policies(text: str, groups: request.Groups | None = None) -> PolicySet:
    rules, problems = sources.read("test.cedar", text, SCHEMA)
    assert problems == []
    return PolicySet("test", rules, groups or {}, SCHEMA)


ATOMS: dict[str, Any] = {
    'context.effect == "pure"': lambda q: q.tool.effect == "pure",
    'context.effect == "once"': lambda q: q.tool.effect == "once",
    'context.capabilities.contains("process")': lambda q: "process" in q.tool.capabilities,
    'resource.capabilities.contains("fs.read")': lambda q: "fs.read" in q.tool.capabilities,
    'context.program == "git"': lambda q: q.scope.program == "git",
    f'context.path like "{WORKSPACE}/*"': lambda q: (
        bool(q.scope.paths) and all(p.startswith(f"{WORKSPACE}/") for p in q.scope.paths)
    ),
    'context.touches.contains("/etc")': lambda q: any(
        p == "/etc" or p.startswith("/etc/") for p in q.scope.paths
    ),
    "context.in_workspace": lambda q: (
        bool(q.scope.paths) and all(p.startswith(WORKSPACE) for p in q.scope.paths)
    ),
    'context.integrity == "untrusted"': lambda q: q.label.integrity == "untrusted",
    'context.origin == "scheduled"': lambda q: q.origin == "scheduled",
    'context.hosts.contains("example.org")': lambda q: "example.org" in q.scope.hosts,
    'resource.source like "mcp:*"': lambda q: q.tool.source.startswith("mcp:"),
    'context.session == Session::"S1"': lambda q: q.session_id == "S1",
    "context.hour < 12": lambda q: (q.now_ms // 3_600_000) % 24 < 12,
}
ACTIONS = {
    "action": {"run", "run_unattended"},
    'action == Action::"run"': {"run"},
    'action == Action::"run_unattended"': {"run_unattended"},
    'action in [Action::"run", Action::"run_unattended"]': {"run", "run_unattended"},
}
PRINCIPALS: dict[str, Any] = {
    "principal": lambda q: True,
    'principal == User::"owner"': lambda q: q.principal == "user:owner",
    "principal is User": lambda q: q.principal.startswith("user:"),
    'principal == ChannelSender::"telegram:7"': lambda q: q.principal == "channel:telegram:7",
}
RESOURCES: dict[str, Any] = {
    "resource": lambda q: True,
    'resource == Tool::"fs.read"': lambda q: q.tool.name == "fs.read",
    'resource == Tool::"shell.run"': lambda q: q.tool.name == "shell.run",
    'resource in Skill::"weather"': lambda q: q.tool.source == "skill:weather",
}


@dataclass(frozen=True)
class Written:
    """A policy as text, and what it means, said without Cedar."""

    effect: str
    principal: str
    action: str
    resource: str
    when: tuple[str, ...]
    unless: tuple[str, ...]

    def text(self) -> str:
        when = "".join(f" when {{ {atom} }}" for atom in self.when)
        unless = "".join(f" unless {{ {atom} }}" for atom in self.unless)
        return f"{self.effect} ({self.principal}, {self.action}, {self.resource}){when}{unless};"

    def matches(self, question: Question, action: str) -> bool:
        return (
            action in ACTIONS[self.action]
            and PRINCIPALS[self.principal](question)
            and RESOURCES[self.resource](question)
            and all(ATOMS[atom](question) for atom in self.when)
            and not any(ATOMS[atom](question) for atom in self.unless)
        )


def oracle(written: list[Written], question: Question) -> tuple[str, tuple[str, ...]]:
    """The verdict and the policies that decide it."""

    def matching(effect: str, action: str) -> tuple[str, ...]:
        found = [
            number
            for number, each in enumerate(written, 1)
            if each.effect == effect and each.matches(question, action)
        ]
        return tuple(f"test-{number}" for number in found)

    def permitted(action: str) -> bool:
        return bool(matching("permit", action)) and not matching("forbid", action)

    if not permitted("run"):
        return "Deny", matching("forbid", "run")
    if permitted("run_unattended"):
        return "Allow", matching("permit", "run_unattended")
    return "Ask", matching("forbid", "run_unattended") + matching("permit", "run")


atoms = st.lists(st.sampled_from(sorted(ATOMS)), max_size=2).map(tuple)
written_policies = st.lists(
    st.builds(
        Written,
        effect=st.sampled_from(["permit", "permit", "permit", "forbid"]),
        principal=st.sampled_from(sorted(PRINCIPALS)),
        action=st.sampled_from(sorted(ACTIONS)),
        resource=st.sampled_from(sorted(RESOURCES)),
        when=atoms,
        unless=atoms,
    ),
    max_size=6,
)
calls = st.builds(
    call,
    st.sampled_from([READ, PATCH, SHELL, FETCH, MCP, SKILL]),
    st.builds(
        scope,
        st.sampled_from([f"{WORKSPACE}/a.py", WORKSPACE, "/etc/passwd", "/etc", "/tmp/x"]),
        program=st.sampled_from(["", "git", "rm"]),
        hosts=st.sampled_from([(), ("example.org",), ("example.org", "evil.example")]),
    ),
    principal=st.sampled_from(["user:owner", "user:anna", "channel:telegram:7", "system"]),
    session_id=st.sampled_from(["S1", "S2"]),
    origin=st.sampled_from(["interactive", "scheduled"]),
    label=st.sampled_from([Label(), Label(integrity="untrusted", sources=("web:x",))]),
    now_ms=st.sampled_from([0, 13 * 3_600_000]),
)


@settings(max_examples=400, deadline=None)
@given(written_policies, st.lists(calls, min_size=1, max_size=5))
def test_a_verdict_is_what_the_policies_say_and_nothing_else(
    written: list[Written], questions: list[Question]
) -> None:
    loaded = policies("\n".join(each.text() for each in written))
    for question in questions:
        verdict = judge(loaded, question)
        assert (type(verdict).__name__, verdict.policies) == oracle(written, question)


@settings(max_examples=150, deadline=None)
@given(written_policies, calls)
def test_sending_only_what_is_read_decides_as_sending_everything_under_the_schema(
    written: list[Written], question: Question
) -> None:
    text = "\n".join(each.text() for each in written)
    base = {
        "principal": request.uid(*request.principal(question.principal)),
        "resource": request.uid("Tool", question.tool.name),
        "context": json.loads(
            msgspec.json.encode(request.facts(question, frozenset(request.FACTS)))
        ),
    }
    known = cedarpy.Entities.from_json_str(request.entities(question, {}), SCHEMA)
    whole = [
        cedarpy.is_authorized(
            {**base, "action": request.uid("Action", action)}, text, known, SCHEMA
        ).allowed
        for action in ("run", "run_unattended")
    ]
    expected = {(True, True): "Allow", (True, False): "Ask"}.get((whole[0], whole[1]), "Deny")
    assert type(judge(policies(text), question)).__name__ == expected


@given(calls)
def test_no_policies_permit_nothing(question: Question) -> None:
    verdict = judge(policies(""), question)
    assert isinstance(verdict, Deny)
    assert verdict.policies == ()
    assert f"no policy permits {question.principal} to run {question.tool.name}" in verdict.reason


OVERFLOW = "context.now_ms * 9223372036854775807 > 0"
EVERYTHING = '@id("everything") permit (principal, action, resource);'


@pytest.mark.parametrize(
    "broken",
    [
        f'@id("broken") forbid (principal, action == Action::"run", resource) when {{ {OVERFLOW} }};',
        f'@id("broken") forbid (principal, action == Action::"run_unattended", resource) when {{ {OVERFLOW} }};',
        f'@id("broken") permit (principal, action, resource) when {{ {OVERFLOW} }};',
    ],
)
def test_a_policy_that_errs_denies_and_is_named_though_another_permits(broken: str) -> None:
    found = examine(policies(f"{EVERYTHING}\n{broken}"), call())
    verdict = found.verdict
    assert isinstance(verdict, Deny)
    assert not (found.run.permitted and found.unattended.permitted)
    assert "could not be evaluated" in verdict.reason
    assert "`broken`" in verdict.reason


def test_an_error_about_another_tool_does_not_deny_this_one() -> None:
    other = f'forbid (principal, action, resource == Tool::"shell.run") when {{ {OVERFLOW} }};'
    assert isinstance(judge(policies(f"{EVERYTHING}\n{other}"), call(READ)), Allow)


@pytest.mark.parametrize(
    "question",
    [
        call(where=scope(f"{WORKSPACE}/\udcff.py")),
        call(now_ms=2**64),
        call(principal="root"),
        call(principal="user:Owner"),
        call(principal=""),
    ],
    ids=[
        "a file name that is no text",
        "a time beyond all numbers",
        "no such kind",
        "a name out of shape",
        "nobody",
    ],
)
def test_a_call_that_cannot_be_judged_is_denied_though_everything_is_permitted(
    question: Question,
) -> None:
    everything = f'{EVERYTHING} permit (principal, action, resource) when {{ context.path != "" && context.now_ms > 0 }};'
    assert isinstance(judge(policies(everything), question), Deny)


def test_a_question_of_the_wrong_types_is_denied() -> None:
    question = call(label=None)
    labelled = policies(
        f'{EVERYTHING} forbid (principal, action, resource) when {{ context.integrity == "untrusted" }};'
    )
    assert isinstance(judge(labelled, question), Deny)


RULES = """
@id("reads") @reason("reading is fine")
permit (principal, action, resource) when { context.effect == "pure" };
@id("asks") @reason("acting asks first")
permit (principal, action == Action::"run", resource);
@id("not-at-night") @reason("nothing runs by itself before noon")
forbid (principal, action == Action::"run_unattended", resource) when { context.hour < 12 };
@id("never-etc") @reason("/etc stays as it is")
forbid (principal, action, resource) when { context.touches.contains("/etc") };
"""


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        (call(READ), Allow("reading is fine", ("reads",))),
        (
            call(PATCH),
            Ask("changes a.py, can be undone. acting asks first", "low", ("asks",)),
        ),
        (
            call(READ, now_ms=0),
            Ask(
                "only reads. nothing runs by itself before noon",
                "low",
                ("not-at-night", "reads", "asks"),
            ),
        ),
        (
            call(READ, scope("/etc/hosts", f"{WORKSPACE}/a")),
            Deny("/etc stays as it is", ("never-etc",)),
        ),
    ],
)
def test_a_verdict_says_which_policies_decided_and_why(
    question: Question, verdict: Verdict
) -> None:
    assert judge(policies(RULES), question) == verdict


def test_groups_give_permissions_to_principals_and_tools() -> None:
    groups = {
        ("principals", "channel:telegram:7"): ("family",),
        ("tools", "fs.read"): ("harmless",),
        ("skills", "weather"): ("harmless",),
    }
    text = 'permit (principal in Group::"family", action, resource in Group::"harmless");'
    family = policies(text, groups)
    decided = {
        (who, what.name): type(judge(family, call(what, principal=who))).__name__
        for who in ("channel:telegram:7", "user:anna")
        for what in (READ, SHELL, SKILL)
    }
    assert {key for key, verdict in decided.items() if verdict == "Allow"} == {
        ("channel:telegram:7", "fs.read"),
        ("channel:telegram:7", "skill:weather/today"),
    }


def test_tools_of_one_name_but_other_effects_are_judged_apart() -> None:
    pure_only = policies('permit (principal, action, resource) when { resource.effect == "pure" };')
    changed = msgspec.structs.replace(READ, effect="once")
    assert [type(judge(pure_only, call(what))).__name__ for what in (READ, changed, READ)] == [
        "Allow",
        "Deny",
        "Allow",
    ]


@pytest.mark.parametrize(
    "condition",
    [
        '(if context.wide then context else context).effect == "pure"',
        "context == context",
        "context has touches",
        "[context].contains(context)",
    ],
)
def test_a_policy_that_looks_at_the_whole_context_sees_all_of_it(condition: str) -> None:
    assert isinstance(
        judge(
            policies(f"permit (principal, action, resource) when {{ {condition} }};"), call(READ)
        ),
        Allow,
    )


def test_an_explanation_shows_the_rules_with_their_place_and_every_fact() -> None:
    found = explain(policies(RULES), call(READ, now_ms=0))
    assert found.verdict == judge(policies(RULES), call(READ, now_ms=0))
    assert [(rule.action, rule.effect, rule.id, rule.line) for rule in found.rules] == [
        ("run", "permit", "reads", 2),
        ("run", "permit", "asks", 4),
        ("run_unattended", "forbid", "not-at-night", 6),
    ]
    assert set(found.facts) == set(request.FACTS)
    lines = str(found).splitlines()
    assert lines[0] == "ask (low risk): user:owner runs fs.read"
    assert "  forbid not-at-night (test.cedar:6) nothing runs by itself before noon" in lines
    assert "  in_workspace = true" in lines


@settings(max_examples=50, deadline=None)
@given(calls)
def test_an_explanation_can_be_written_about_every_call(question: Question) -> None:
    found = explain(policies(RULES), question)
    assert str(found).startswith(type(found.verdict).__name__.lower())


def test_an_explanation_of_a_call_that_cannot_be_judged_says_so() -> None:
    found = explain(policies(RULES), call(where=scope("relative", "/etc")))
    assert "not absolute and resolved" in str(found)
    assert found.facts == {}
