"""Private data goes where a policy or a person permits it: the third question, and what answers
it.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from palyra.core.labels import Label, merge, private, untrusted
from palyra.core.tools import Subject, ToolSpec
from palyra.core.verdicts import Allow, Ask, Deny, Grant, Question
from palyra.policy import judge
from palyra.policy.grants import always_policy, append_always, covering
from palyra.policy.policy_set import PRESETS
from palyra.policy.store import PolicyStore
from tests.policy_calls import FETCH, PATCH, READ, SEND, SHELL, WORKSPACE, call, scope, tool

FILE = private("file:a.py")
SECRET = Label(confidentiality="secret", private_sources=("skill:x",))
BROWSE = tool("browser.open", "pure", "browser")
HOST = scope(program="GET", hosts=("wiki.example",))
PERMIT_ALL_CALLS = (
    'permit (principal, action in [Action::"run", Action::"run_unattended"], resource);\n'
)
PERMIT_WIKI = '@id("wiki") permit (principal, action == Action::"send_private", resource) when { context.hosts == ["wiki.example"] };\n'
REACHING: list[tuple[ToolSpec, Any]] = [
    (FETCH, HOST),
    (SEND, scope(recipients=("anna",))),
    (BROWSE, scope()),
    (
        msgspec.structs.replace(SHELL, capabilities=("process", "network")),
        scope(WORKSPACE, hosts=("wiki.example",)),
    ),
]


def store(folder: Path, text: str, preset: str = "default") -> PolicyStore:
    (folder / "mine.cedar").write_text(text)
    return PolicyStore(folder, preset)


def fetch(label: Label = FILE, host: str = "wiki.example") -> Question:
    return call(FETCH, scope(program="GET", hosts=(host,)), label=label)


@pytest.mark.parametrize(("what", "where"), REACHING, ids=lambda each: getattr(each, "name", ""))
def test_a_call_that_reaches_out_asks_once_private_data_was_read_whatever_lets_it_run(
    tmp_path: Path, what: ToolSpec, where: Any
) -> None:
    mine = store(tmp_path, PERMIT_ALL_CALLS)
    assert isinstance(mine.judge(call(what, where)), Allow)
    verdict = mine.judge(call(what, where, label=FILE))
    assert isinstance(verdict, Ask)
    assert verdict.sends_private
    assert "file:a.py" in verdict.reason


@pytest.mark.parametrize(
    ("what", "where"), [(READ, None), (PATCH, None), (SHELL, scope(WORKSPACE, program="ls"))]
)
def test_a_call_that_takes_nothing_out_is_not_asked_about_for_that(
    tmp_path: Path, what: ToolSpec, where: Any
) -> None:
    mine = store(tmp_path, PERMIT_ALL_CALLS)
    assert isinstance(mine.judge(call(what, where, label=FILE)), Allow)
    assert judge.examine(mine.current, call(what, where, label=SECRET)).sending is None


def test_a_permit_lets_it_go_to_that_host_and_to_no_other(tmp_path: Path) -> None:
    mine = store(tmp_path, PERMIT_ALL_CALLS + PERMIT_WIKI)
    assert mine.judge(fetch()) == Allow(
        "decided by policy mine-1; decided by policy wiki", ("mine-1", "wiki")
    )
    assert isinstance(mine.judge(fetch(host="other.example")), Ask)
    both = call(FETCH, scope(hosts=("wiki.example", "other.example")), label=FILE)
    assert isinstance(mine.judge(both), Ask)


def test_a_permit_to_send_lets_no_call_run_that_may_not(tmp_path: Path) -> None:
    verdict = store(tmp_path, PERMIT_WIKI).judge(fetch())
    assert isinstance(verdict, Ask)
    assert not verdict.sends_private
    assert isinstance(store(tmp_path, PERMIT_WIKI, "locked").judge(fetch()), Deny)


def test_the_answer_for_a_public_run_is_not_the_answer_for_a_private_one(tmp_path: Path) -> None:
    """No policy here reads the label or the hosts, so both calls have the same facts."""
    mine = store(tmp_path, PERMIT_ALL_CALLS)
    for _ in range(2):
        assert isinstance(mine.judge(fetch(Label())), Allow)
        assert isinstance(mine.judge(fetch()), Ask)


@pytest.mark.parametrize("preset", PRESETS)
def test_secret_data_is_denied_whatever_is_permitted(tmp_path: Path, preset: str) -> None:
    verdict = store(tmp_path, "permit (principal, action, resource);", preset).judge(fetch(SECRET))
    assert isinstance(verdict, Deny)
    assert "labels-secrets-stay" in verdict.policies


def test_under_locked_private_data_is_denied_not_asked_about(tmp_path: Path) -> None:
    verdict = store(tmp_path, PERMIT_ALL_CALLS + PERMIT_WIKI, "locked").judge(fetch())
    assert isinstance(verdict, Deny)
    assert verdict.policies == ("locked-private-stays",)


def test_an_explanation_shows_the_third_question_where_it_is_asked(tmp_path: Path) -> None:
    mine = store(tmp_path, PERMIT_ALL_CALLS + PERMIT_WIKI)
    told = mine.explain(fetch())
    assert told.asked == ("run", "run_unattended", "send_private")
    assert [(rule.id, rule.action) for rule in told.rules][-1] == ("wiki", "send_private")
    assert "send_private: no policy permits it" in str(mine.explain(fetch(host="other.example")))
    assert mine.explain(fetch(Label())).asked == ("run", "run_unattended")


SAID = Grant(
    subject=Subject("http.fetch", "host", "wiki.example"),
    principal="user:owner",
    approval_id="A1",
    seen=FILE,
)
UNSAID = msgspec.structs.replace(SAID, seen=Label())


def test_a_yes_to_a_prompt_that_did_not_say_so_does_not_send_private_data() -> None:
    assert covering([UNSAID], fetch(Label())) == UNSAID
    assert covering([UNSAID], fetch(), sends_private=True) is None
    assert covering([SAID], fetch(), sends_private=True) == SAID
    assert covering([SAID], fetch(private("file:other.py")), sends_private=True) == SAID
    assert covering([SAID], fetch(SECRET), sends_private=True) is None


def test_where_a_policy_permits_the_sending_an_ordinary_yes_is_enough() -> None:
    assert covering([UNSAID], fetch(), sends_private=False) == UNSAID


def test_a_yes_about_private_data_says_nothing_about_untrusted_text_that_came_later() -> None:
    assert (
        covering([SAID], fetch(merge(FILE, untrusted("https://wiki.example/"))), sends_private=True)
        is None
    )


def test_a_name_for_many_untrusted_sources_is_never_one_that_was_seen() -> None:
    several = Label(integrity="untrusted", sources=("https://wiki.example/…",))
    assert covering([msgspec.structs.replace(SAID, seen=several)], fetch(several)) is None


@pytest.mark.parametrize("said", [True, False])
def test_always_covers_private_data_exactly_if_the_prompt_said_so(
    tmp_path: Path, said: bool
) -> None:
    append_always(tmp_path, always_policy(SAID.subject, "user:owner", "A1", 0, sends_private=said))
    mine = PolicyStore(tmp_path, "default")
    assert isinstance(mine.judge(fetch(Label())), Allow)
    assert isinstance(mine.judge(fetch()), Allow if said else Ask)
    assert isinstance(mine.judge(fetch(host="other.example")), Ask)
    assert isinstance(mine.judge(fetch(merge(FILE, untrusted("https://a.example/")))), Ask)
