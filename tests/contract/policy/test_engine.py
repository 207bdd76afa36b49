"""The Policy port: total, repeatable, and it never raises."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.labels import Label
from palyra.core.ports import Policy
from palyra.core.tools import Scope, ToolSpec
from palyra.core.verdicts import Allow, Ask, Deny, Question
from palyra.policy.policy_set import PRESETS
from palyra.policy.store import PolicyStore

IMPLEMENTATIONS: dict[str, Callable[[], Policy]] = {
    preset: lambda preset=preset: PolicyStore(None, preset) for preset in PRESETS
}  # type: ignore[misc]

anything = st.text(max_size=12)
some = st.lists(anything, max_size=3).map(tuple)
questions = st.builds(
    Question,
    principal=anything | st.sampled_from(["user:owner", "system", "channel:slack:U1", "worker:w"]),
    session_id=anything,
    tool=st.builds(
        ToolSpec,
        name=anything,
        description=st.just(""),
        parameters=st.just({}),
        effect=st.sampled_from(["pure", "idempotent", "reversible", "once"]),
        capabilities=st.lists(
            st.sampled_from(["fs.read", "fs.write", "process", "network", "secrets", "message"]),
            max_size=3,
        ).map(tuple),
        source=anything | st.sampled_from(["internal", "mcp:x", "skill:y"]),
    ),
    scope=st.builds(
        Scope,
        paths=st.lists(anything.map(lambda name: f"/{name}") | anything, max_size=2).map(tuple),
        workspace=st.sampled_from(["", "/", "/a"]),
        program=anything,
        hosts=some,
        recipients=some,
    ),
    origin=st.sampled_from(["interactive", "scheduled", "child", "api"]),
    now_ms=st.integers(),
    label=st.builds(Label, integrity=st.sampled_from(["trusted", "untrusted"]), sources=some),
    agent=anything,
    channel=anything,
)


@pytest.fixture(params=sorted(IMPLEMENTATIONS), scope="module")
def policy(request: pytest.FixtureRequest) -> Policy:
    return IMPLEMENTATIONS[request.param]()


@settings(max_examples=150, deadline=None)
@given(question=questions)
def test_every_question_gets_a_verdict_with_a_reason_and_the_same_one_again(
    policy: Policy, question: Question
) -> None:
    verdict = policy.judge(question)
    assert isinstance(verdict, Allow | Ask | Deny)
    assert verdict.reason
    assert policy.judge(question) == verdict


@settings(max_examples=150, deadline=None)
@given(question=questions)
def test_what_is_not_denied_names_the_policies_that_decided(
    policy: Policy, question: Question
) -> None:
    verdict = policy.judge(question)
    assert isinstance(verdict, Deny) or verdict.policies


@settings(max_examples=150, deadline=None)
@given(question=questions)
def test_untrusted_content_never_makes_a_verdict_milder(policy: Policy, question: Question) -> None:
    strictness = (Allow, Ask, Deny)
    clean, tainted = (
        msgspec.structs.replace(question, label=Label(integrity))
        for integrity in ("trusted", "untrusted")
    )
    assert strictness.index(type(policy.judge(tainted))) >= strictness.index(
        type(policy.judge(clean))
    )


def test_a_version_is_there_and_stays(policy: Policy) -> None:
    assert policy.version
    assert policy.version == policy.version


def test_the_store_with_a_folder_is_the_same_port(tmp_path: Path) -> None:
    found: Policy = PolicyStore(tmp_path, "default")
    assert found.version == PolicyStore(None, "default").version
