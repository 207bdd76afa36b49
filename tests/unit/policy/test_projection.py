"""Leaving out what policies cannot tell apart changes no decision, whatever the policies and the
calls are.
"""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.verdicts import Question, SessionRule
from palyra.policy import backtest, projection, request
from palyra.policy.grants import pattern, quote
from palyra.policy.judge import decide, judge
from palyra.policy.store import load
from palyra.store.decisions import RecordedCall
from tests import recorded
from tests.policy_calls import FETCH, PATCH, READ, SHELL, WORKSPACE, call, scope

DEFAULT, CODING = load(None, "default"), load(None, "coding")

LETTERS = st.sampled_from(list('ab/*ä"\\ .\n'))
HOSTS = st.sampled_from(["example", "a.example", "b.a.example", "10.0.0.1"])
NAMES = st.text(LETTERS, min_size=1, max_size=5).filter(
    lambda text: text.strip("/.") != "" and "//" not in text
)
PATTERNS = st.lists(
    st.one_of(st.just("*"), st.text(LETTERS, max_size=3).map(pattern)), max_size=4
).map("".join)
TESTS = st.one_of(
    st.builds('context.path like "{}"'.format, PATTERNS),
    st.builds('context.command like "{}"'.format, PATTERNS),
    st.builds(lambda text: f"context.path == {quote(text)}", NAMES),
    st.builds(lambda text: f"context.command != {quote(text)}", NAMES),
    st.builds(lambda text: f"{quote(text)} == context.command", NAMES),
    st.builds(lambda text: f"context.touches.contains({quote(WORKSPACE + '/' + text)})", NAMES),
    st.builds(
        lambda one, two: (
            f"context.paths.containsAny([{quote(WORKSPACE + '/' + one)}, {quote(two)}])"
        ),
        NAMES,
        NAMES,
    ),
    st.builds(
        lambda one, two: f"context.hosts.containsAll([{quote(one)}, {quote(two)}])", HOSTS, HOSTS
    ),
    st.builds(lambda one: f"context.domains.contains({quote(one)})", HOSTS),
    st.builds(lambda one: f"[{quote(one)}].containsAll(context.hosts)", HOSTS),
    st.builds(
        lambda one, two: (
            f"context.paths.containsAll([{quote(WORKSPACE + '/' + one)}, {quote(two)}])"
        ),
        NAMES,
        NAMES,
    ),
    st.sampled_from(
        [
            "context.hour < 6",
            "context.now_ms >= 1700000000000",
            "context.paths.isEmpty()",
            "context.hosts.isEmpty()",
            "context.domains.containsAny(context.hosts)",
            "context.path == context.workspace",
            'context.session == Session::"x"',
            "context has path",
        ]
    ),
)
POLICIES = st.lists(
    st.builds(
        lambda effect, action, test, sense: (
            f"{effect} (principal, {action}, resource) when {{ {sense}({test}) }};"
        ),
        st.sampled_from(["permit", "forbid"]),
        st.sampled_from(["action", 'action == Action::"run_unattended"']),
        TESTS,
        st.sampled_from(["", "!"]),
    ),
    min_size=1,
    max_size=4,
).map("\n".join)
QUESTIONS = st.builds(
    lambda tool, names, command, hosts, now_ms, rules: call(
        tool,
        scope(
            *(f"{WORKSPACE}/{name.strip('/')}" for name in names),
            command=command,
            hosts=tuple(hosts),
        ),
        now_ms=now_ms,
        rules=rules,
    ),
    st.sampled_from([READ, PATCH, SHELL, FETCH]),
    st.lists(NAMES, max_size=2, unique=True),
    st.text(LETTERS, max_size=6),
    st.lists(HOSTS, max_size=2, unique=True),
    st.integers(1_699_999_000_000, 1_700_090_000_000),
    st.sampled_from([(), (SessionRule("R", f"never touch {WORKSPACE}/a"),)]),
)


def taken(question: Question) -> RecordedCall:
    proposed, said = recorded.decision(CODING, 1, question)
    return RecordedCall(
        position=1,
        time_ms=1,
        session_id=question.session_id,
        run_id="",
        principal=question.principal,
        proposed=proposed,
        decided=said,
    )


@settings(deadline=None)
@given(POLICIES, st.lists(QUESTIONS, min_size=1, max_size=12))
def test_whatever_policies_read_of_paths_commands_and_times_calls_are_decided_as_one_by_one(
    text: str, questions: list[Question]
) -> None:
    policies = DEFAULT.plus("mine.cedar", text)
    again = backtest.Retest(policies)
    assert [again.take(taken(question)) for question in questions] == [
        judge(policies, question) for question in questions
    ]


@settings(deadline=None)
@given(POLICIES, QUESTIONS)
def test_telling_only_what_policies_ask_for_gives_the_answers_that_telling_everything_does(
    text: str, question: Question
) -> None:
    part = DEFAULT.plus("mine.cedar", text).slice(question)
    everything = dict.fromkeys(request.FACTS)

    def asked(uses: request.Uses) -> list[dict[str, object]]:
        same = {
            "principal": request.uid(*request.principal(question.principal)),
            "resource": request.uid("Tool", question.tool.name),
            "context": msgspec.json.encode(request.facts(question, uses)).decode(),
        }
        return [
            {**same, "action": request.uid("Action", action)}
            for action in ("run", "run_unattended")
        ]

    assert decide(part, asked(part.uses)) == decide(part, asked(everything))


def test_of_a_set_that_is_only_asked_for_members_only_those_are_told() -> None:
    def kept(condition: str) -> dict[str, frozenset[str]]:
        text = f"forbid (principal, action, resource) when {{ {condition} }};"
        return projection.kept(DEFAULT.plus("mine.cedar", text).rules)

    named = 'context.touches.contains("/etc")'
    assert kept(named)["touches"] == {"/etc"}
    assert "touches" not in kept(f'{named} || context.touches == ["/x"]')
    assert "touches" not in kept(f"{named} || context.touches.isEmpty()")
