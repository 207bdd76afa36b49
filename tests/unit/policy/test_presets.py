"""The shipped presets do what their first lines promise."""

from pathlib import Path

import pytest

from palyra.core.labels import Label
from palyra.core.tools import Scope, ToolSpec
from palyra.core.verdicts import Question
from palyra.policy.policy_set import PRESETS, SHIPPED
from palyra.policy.store import PolicyStore
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
    tool,
)

UNTRUSTED = Label(integrity="untrusted", sources=("web:example.org",))
PRIVATE = Label(confidentiality="private")
OUTSIDE = scope("/etc/hosts")
GET = scope(program="GET", hosts=("example.org",))
POST = scope(program="POST", hosts=("example.org",))
PAGE = tool("web.search", "pure", "network")
JOB = tool("job.start", "reversible", "process")
ERASE = tool("fs.erase", "once", "fs.write")
MCP_READ = tool("mcp:files/read", "pure", "fs.read", source="mcp:files")
STORES = {preset: PolicyStore(None, preset) for preset in PRESETS}

# what, the call, then the verdict under locked, default, coding and research
TABLE: list[tuple[str, Question, str]] = [
    ("read a file of the workspace", call(READ), "Allow Allow Allow Allow"),
    ("list the workspace itself", call(READ, scope(WORKSPACE)), "Allow Allow Allow Allow"),
    ("read a file elsewhere", call(READ, OUTSIDE), "Deny Ask Ask Ask"),
    (
        "read here and elsewhere",
        call(READ, scope(f"{WORKSPACE}/a", "/etc/hosts")),
        "Deny Ask Ask Ask",
    ),
    ("read a whole home", call(READ, scope("/home/me")), "Deny Deny Deny Deny"),
    (
        "read a home that is the workspace",
        call(READ, Scope(("/home/me",), "/home/me")),
        "Deny Deny Deny Deny",
    ),
    ("read everything", call(READ, scope("/")), "Deny Deny Deny Deny"),
    ("read without saying what", call(READ, scope()), "Deny Ask Ask Ask"),
    ("read after a web page", call(READ, label=UNTRUSTED), "Allow Allow Allow Allow"),
    ("recall a memory", call(RECALL, scope()), "Deny Allow Allow Allow"),
    ("a pure skill", call(SKILL, scope()), "Deny Allow Allow Allow"),
    ("change a file of the workspace", call(PATCH), "Deny Ask Allow Ask"),
    ("change a file after a web page", call(PATCH, label=UNTRUSTED), "Deny Ask Allow Ask"),
    ("change a file elsewhere", call(PATCH, OUTSIDE), "Deny Ask Ask Ask"),
    ("change a whole home", call(PATCH, scope("/home/me")), "Deny Deny Deny Deny"),
    ("change a file for good", call(ERASE), "Deny Ask Ask Ask"),
    ("start a program", call(SHELL, scope(WORKSPACE, program="pytest")), "Deny Ask Ask Ask"),
    (
        "start a program over a wide path",
        call(SHELL, scope("/", program="rm")),
        "Deny Deny Deny Deny",
    ),
    ("fetch a page", call(FETCH, GET), "Deny Ask Ask Allow"),
    ("search the web", call(PAGE, scope()), "Deny Ask Ask Allow"),
    ("fetch after a web page", call(FETCH, GET, label=UNTRUSTED), "Deny Ask Ask Ask"),
    ("fetch after private data", call(FETCH, GET, label=PRIVATE), "Deny Ask Ask Ask"),
    ("post to a page", call(FETCH, POST), "Deny Ask Ask Ask"),
    ("send a message", call(SEND, scope(recipients=("anna",))), "Deny Ask Ask Ask"),
    ("use a secret", call(UNLOCK, scope()), "Deny Deny Deny Deny"),
    (
        "fetch with a secret",
        call(tool("api.get", "pure", "network", "secrets"), GET),
        "Deny Deny Deny Deny",
    ),
    ("a tool of an MCP server", call(MCP, scope()), "Deny Deny Deny Deny"),
    ("a reading tool of an MCP server", call(MCP_READ), "Deny Deny Deny Deny"),
    (
        "a paired sender reads",
        call(READ, principal="channel:telegram:7"),
        "Allow Allow Allow Allow",
    ),
    (
        "a schedule starts a program",
        call(SHELL, scope(WORKSPACE), origin="scheduled"),
        "Deny Ask Ask Ask",
    ),
]


@pytest.mark.parametrize(
    ("question", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_each_preset_decides_as_documented(question: Question, expected: str) -> None:
    found = {
        preset: type(STORES[preset].judge(question)).__name__
        for preset in ("locked", "default", "coding", "research")
    }
    assert found == dict(
        zip(("locked", "default", "coding", "research"), expected.split(), strict=True)
    )


@pytest.mark.parametrize("preset", PRESETS)
def test_every_shipped_policy_has_a_name_and_a_reason(preset: str) -> None:
    for rule in STORES[preset].current.rules:
        assert f'@id("{rule.id}")' in rule.text
        assert rule.reason


@pytest.mark.parametrize("file", sorted(SHIPPED.glob("*.cedar*")), ids=lambda path: path.name)
def test_every_shipped_file_opens_with_its_explanation(file: Path) -> None:
    assert file.read_text("utf-8").startswith("// ")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("what", [SHELL, FETCH, SEND, PAGE, ERASE, JOB], ids=lambda what: what.name)
def test_after_untrusted_content_nothing_reaches_out_unattended_though_the_operator_permits_it(
    tmp_path: Path, preset: str, what: ToolSpec
) -> None:
    (tmp_path / "mine.cedar").write_text("permit (principal, action, resource);")
    store = PolicyStore(tmp_path, preset)
    verdicts = [
        type(store.judge(call(what, GET, label=label))).__name__ for label in (Label(), UNTRUSTED)
    ]
    assert verdicts == ["Allow", "Ask"]


def test_an_ask_after_untrusted_content_names_its_source_and_the_rule() -> None:
    verdict = STORES["default"].judge(call(FETCH, GET, label=UNTRUSTED))
    assert "web:example.org" in verdict.reason
    assert verdict.policies == ("labels-untrusted-asks", "default-ask")
