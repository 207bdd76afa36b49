"""Risk: the worst finding counts, and knowing more never lowers it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.labels import Label
from palyra.core.tools import Capability, Effect
from palyra.core.verdicts import Question
from palyra.policy import risk
from tests.policy_calls import (
    FETCH,
    MCP,
    PATCH,
    READ,
    SEND,
    SHELL,
    UNLOCK,
    WORKSPACE,
    call,
    scope,
    tool,
)

WEB = Label(integrity="untrusted", sources=("web:example.org",))


@pytest.mark.parametrize(
    ("question", "expected", "why"),
    [
        (call(READ), "low", "only reads"),
        (call(PATCH), "low", "changes a.py, can be undone"),
        (call(tool("note", "idempotent"), scope()), "low", "changes nothing outside Palyra"),
        (call(READ, scope("/etc/hosts")), "medium", "outside the workspace"),
        (
            call(SHELL, scope(WORKSPACE, program="git")),
            "medium",
            "runs git, cannot be undone",
        ),
        (call(MCP, scope()), "medium", "the tool comes from mcp:git"),
        (
            call(FETCH, scope(hosts=("example.org",))),
            "medium",
            "connects to example.org, cannot be undone",
        ),
        (call(PATCH, scope("/etc/hosts")), "high", "outside the workspace"),
        (call(SEND, scope(recipients=("anna",))), "high", "sends a message to anna"),
        (call(UNLOCK, scope()), "high", "receives secrets"),
        (call(READ, scope("/home/me")), "high", "covers a home folder or more"),
        (
            call(FETCH, scope(), label=WEB),
            "high",
            "the model has read untrusted content from web:example.org",
        ),
        (
            call(FETCH, scope(), label=Label(confidentiality="private")),
            "high",
            "private data could leave",
        ),
        (call(READ, label=WEB), "low", "only reads"),
        (call(SHELL, scope("/", program="rm")), "critical", "covers a home folder or more"),
        (
            call(FETCH, scope(), label=Label(confidentiality="secret")),
            "critical",
            "secret data could leave",
        ),
    ],
)
def test_the_risk_of_a_call_and_why(question: Question, expected: str, why: str) -> None:
    found = risk.assess(question)
    assert (found.risk, found.why) == (expected, why)


capabilities = st.sets(
    st.sampled_from(
        ["fs.read", "fs.write", "process", "network", "secrets", "memory", "message", "browser"]
    )
)
effects = st.sampled_from(["pure", "idempotent", "reversible", "once"])
labels = st.builds(
    Label,
    integrity=st.sampled_from(["trusted", "untrusted"]),
    confidentiality=st.sampled_from(["public", "private", "secret"]),
)


@given(
    capabilities, capabilities, effects, labels, st.sampled_from(["/etc/x", "/", f"{WORKSPACE}/a"])
)
def test_more_capabilities_and_worse_labels_never_lower_the_risk(
    some: set[Capability], more: set[Capability], effect: Effect, label: Label, path: str
) -> None:
    before = call(tool("t", effect, *some), scope(path), label=label)
    worse = Label(integrity="untrusted", confidentiality=label.confidentiality)
    after = msgspec.structs.replace(before, tool=tool("t", effect, *(some | more)), label=worse)
    assert risk.ORDER.index(risk.assess(after).risk) >= risk.ORDER.index(risk.assess(before).risk)
