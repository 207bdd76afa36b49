"""Session rules: sentences become forms, forms become Cedar that forbids what they say, and nothing
is guessed.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.errors import InvalidInput
from palyra.core.labels import Label
from palyra.core.tools import Scope, ToolSpec
from palyra.core.verdicts import Allow, Ask, Deny, SessionRule, Verdict
from palyra.policy import rules
from palyra.policy.judge import judge
from palyra.policy.policy_set import PolicySet
from palyra.policy.reports import explain
from palyra.policy.rules import FORMS, CountRule, Form, Names
from palyra.policy.store import load
from tests.policy_calls import (
    FETCH,
    MCP,
    PATCH,
    READ,
    RECALL,
    SEND,
    SHELL,
    WORKSPACE,
    call,
    scope,
    tool,
)

CODING = load(None, "coding")
LIST = tool("fs.list", "pure", "fs.read")
RULE = "01JD000000000000000000000R"


def under(
    words: str, what: ToolSpec = READ, where: Scope | None = None, policies: PolicySet = CODING
) -> Verdict:
    return judge(policies, call(what, where, rules=(SessionRule(RULE, words),)))


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Do nothing until I say so!", "do nothing until I say so"),
        ("don’t do anything", "do nothing until I say so"),
        ("Please do nothing unless I tell you to.", "do nothing until I say so"),
        ("ask me first before anything", "ask before anything"),
        ("Ask before each change", "ask before every change"),
        ("READ-ONLY", "read only"),
        ("never change anything", "read only"),
        ("never touch /etc", "never touch /etc"),
        ("stay out of “My Files/tax”", 'never touch "My Files/tax"'),
        ("do not touch /etc, /usr and `a b`", 'never touch /etc, /usr, "a b"'),
        ("don't edit tests/", "never change tests/"),
        ("work only in src", "only work in src"),
        ("stay inside ./src", "only work in ./src"),
        ("never use shell.run", "never use shell.run"),
        ("use only fs.read and fs.list", "only use fs.read, fs.list"),
        ("never run any commands", "never run commands"),
        ("no shell", "never run commands"),
        ("stay offline", "no network"),
        ("never use the internet", "no network"),
        ("don't talk to evil.example", "never contact evil.example"),
        ("only contact api.example.org:8443", "only contact api.example.org:8443"),
        ("at most five files", "max 5 files"),
        ("change no more than 12 files", "max 12 files"),
        ("max 3 tool calls", "max 3 calls"),
        ("run at most 1 command", "max 1 commands"),
    ],
)
def test_a_sentence_is_said_back_in_one_spelling(said: str, meant: str) -> None:
    assert rules.words(rules.parse(said)) == meant


@pytest.mark.parametrize(
    "said",
    [
        "",
        "be careful",
        "do nothing for five minutes",
        "do nothing until tomorrow",
        "never touch anything",
        "never touch my files",
        "never touch /etc unless I say so",
        "never touch /etc or the other one",
        "only use tools that are safe",
        "never contact anyone",
        "max -1 files",
        "max 1.5 files",
        "max ٣ files",
        "max 99999999999 files",
        "max 5",
        "max five hundred files",
        "ask",
        "never",
        "never touch",
        "never touch ,",
        'never touch ""',
        "never touch \0",
        "never touch \ud800",
        "lift all rules",
        "x" * 2_000,
        'never touch "a" "b"',
        "do nothing until I say so and then never touch /etc",
    ],
)
def test_what_fits_no_form_is_refused_and_not_guessed(said: str) -> None:
    with pytest.raises(InvalidInput):
        rules.parse(said)


def test_a_refusal_lists_the_forms() -> None:
    with pytest.raises(InvalidInput) as caught:
        rules.parse("please behave")
    assert caught.value.details["forms"] == list(FORMS)
    assert all(form in caught.value.message for form in FORMS)


def test_every_form_that_is_offered_parses_and_compiles() -> None:
    for form in FORMS:
        said = (
            form.replace("PATH", "/p")
            .replace("HOST", "h.example")
            .replace(" N ", " 3 ")
            .replace("TOOL", "t")
        )
        parsed = rules.parse(said)
        assert rules.parse(rules.words(parsed)) == parsed
        assert rules.means(parsed)
        CODING.under((SessionRule("R", rules.words(parsed)),))


VALUES = st.lists(
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20
    ),
    min_size=1,
    max_size=4,
    unique=True,
)
WITH_VALUES = st.sampled_from(
    [
        "never_touch",
        "never_change",
        "only_in",
        "never_use",
        "only_use",
        "never_contact",
        "only_contact",
    ]
)


@given(WITH_VALUES, VALUES)
def test_whatever_a_value_contains_its_words_say_it_exactly(
    kind: rules.Kind, values: list[str]
) -> None:
    form = Form(kind, tuple(values))
    assert rules.parse(rules.words(form)) == form


@given(WITH_VALUES, VALUES)
def test_whatever_a_value_contains_it_compiles_to_forbids_and_nothing_else(
    kind: rules.Kind, values: list[str]
) -> None:
    ruled = CODING.under((SessionRule("R", rules.words(Form(kind, tuple(values)))),))
    added = ruled.rules[len(CODING.rules) :]
    assert 1 <= len(added) <= 2
    assert {rule.effect for rule in added} == {"forbid"}
    assert all(rule.id.startswith("rule-R") for rule in added)


def test_names_are_made_exact_by_whoever_knows_them() -> None:
    names = Names(lambda path: "/w/" + path, lambda name: name.upper(), lambda host: host.lower())
    assert rules.exact(Form("never_touch", ("a", "b")), names) == Form(
        "never_touch", ("/w/a", "/w/b")
    )
    assert rules.exact(Form("only_use", ("a", "A")), names) == Form("only_use", ("A",))
    assert rules.exact(Form("never_contact", ("H.Example",)), names) == Form(
        "never_contact", ("h.example",)
    )
    assert rules.exact(Form("files", most=3), names) == Form("files", most=3)


def test_do_nothing_denies_every_call_and_says_which_rule() -> None:
    for what in (READ, PATCH, SHELL, FETCH, RECALL, SEND):
        verdict = under("do nothing until I say so", what)
        assert verdict == Deny("session rule: do nothing until I say so", (f"rule-{RULE}",))


def test_asking_before_anything_asks_also_for_reading() -> None:
    assert isinstance(judge(CODING, call(READ)), Allow)
    assert isinstance(under("ask before anything"), Ask)


def test_asking_before_changes_lets_reading_through() -> None:
    assert isinstance(under("ask before every change"), Allow)
    assert isinstance(judge(CODING, call(PATCH)), Allow)
    asked = under("ask before every change", PATCH)
    assert isinstance(asked, Ask)
    assert "session rule: ask before every change" in asked.reason


def test_read_only_denies_changes_and_commands() -> None:
    assert isinstance(under("read only"), Allow)
    assert isinstance(under("read only", PATCH), Deny)
    assert isinstance(under("read only", SHELL), Deny)


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        (f"{WORKSPACE}/secret", Deny),
        (f"{WORKSPACE}/secret/deep/er", Deny),
        (f"{WORKSPACE}/secretary", Allow),
        (f"{WORKSPACE}/a.py", Allow),
        # A list or a search of a folder goes through what is in it.
        (WORKSPACE, Ask),
    ],
)
def test_never_touch_covers_a_path_what_is_below_and_the_folders_around(
    path: str, verdict: type
) -> None:
    assert isinstance(under(f"never touch {WORKSPACE}/secret", LIST, scope(path)), verdict)


def test_never_touch_is_about_every_path_of_a_call() -> None:
    where = scope(f"{WORKSPACE}/a.py", f"{WORKSPACE}/secret/x")
    assert isinstance(under(f"never touch {WORKSPACE}/secret", PATCH, where), Deny)


def test_never_change_leaves_reading_alone() -> None:
    words, inside = f"never change {WORKSPACE}/tests", scope(f"{WORKSPACE}/tests/t.py")
    assert isinstance(under(words, READ, inside), Allow)
    assert isinstance(under(words, PATCH, inside), Deny)
    assert isinstance(under(words, PATCH, scope(WORKSPACE)), Deny)
    assert isinstance(under(words, PATCH), Allow)


def test_only_work_in_denies_every_other_path() -> None:
    words = f"only work in {WORKSPACE}/src"
    assert isinstance(under(words, PATCH, scope(f"{WORKSPACE}/src/a")), Allow)
    assert isinstance(under(words, READ, scope(f"{WORKSPACE}/src")), Allow)
    assert isinstance(under(words, READ, scope(f"{WORKSPACE}/srcs")), Deny)
    assert isinstance(under(words, READ, scope(f"{WORKSPACE}/src/a", f"{WORKSPACE}/b")), Deny)
    assert isinstance(under(words, RECALL, scope()), Allow)


@pytest.mark.parametrize(
    "words",
    [
        f"never touch {WORKSPACE}/x",
        f"never change {WORKSPACE}/x",
        f"only work in {WORKSPACE}",
        "max 5 files",
    ],
)
def test_a_rule_about_files_makes_every_command_ask(
    words: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("policies")
    (folder / "shell.cedar").write_text(
        'permit (principal, action, resource == Tool::"shell.run");'
    )
    policies = load(folder, "coding")
    where = scope(WORKSPACE, program="ls", command="ls")
    assert isinstance(judge(policies, call(SHELL, where)), Allow)
    assert isinstance(under(words, SHELL, where, policies), Ask)


def test_tools_are_named_exactly() -> None:
    assert isinstance(under("never use fs.read"), Deny)
    assert isinstance(under("never use fs.list"), Allow)
    assert isinstance(under("only use fs.read, fs.list"), Allow)
    assert isinstance(under("only use fs.list"), Deny)


def test_no_network_denies_what_reaches_out_also_a_command_that_is_given_hosts() -> None:
    for what, where in (
        (FETCH, scope(hosts=("a.example",))),
        (SEND, scope()),
        (SHELL, scope(WORKSPACE, hosts=("a.example",))),
    ):
        assert isinstance(judge(CODING, call(what, where)), Ask)
        assert isinstance(under("no network", what, where), Deny)
    assert isinstance(under("no network", SHELL, scope(WORKSPACE)), Ask)


@pytest.mark.parametrize(
    "host", ["evil.example", "EVIL.example.", "a.b.evil.example", "evil.example:8080"]
)
def test_never_contact_covers_subdomains_ports_and_spellings(host: str) -> None:
    assert isinstance(
        under("never contact evil.example", FETCH, scope(hosts=("ok.example", host))), Deny
    )
    assert isinstance(
        under("never contact evil.example", FETCH, scope(hosts=("notevil.example",))), Ask
    )


def test_only_contact_means_exactly_these_hosts() -> None:
    words = "only contact a.example, b.example"
    assert isinstance(under(words, FETCH, scope(hosts=("a.example", "b.example"))), Ask)
    for hosts in (
        ("c.example",),
        ("a.example", "c.example"),
        ("x.a.example",),
        ("a.example:81",),
        (),
    ):
        assert isinstance(under(words, FETCH, scope(hosts=hosts)), Deny), hosts
    assert isinstance(under(words), Allow)


def test_counting_rules_have_a_limit_and_others_have_none() -> None:
    assert rules.limit(SessionRule("R", "max 5 files")) == CountRule("files", 5)
    assert rules.limit(SessionRule("R", "max 0 calls")) == CountRule("calls", 0)
    assert rules.limit(SessionRule("R", "no network")) is None


def test_a_rule_wins_over_every_permit_and_permits_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("policies")
    (folder / "all.cedar").write_text("permit (principal, action, resource);")
    policies = load(folder, "coding")
    assert isinstance(under("never touch /etc", READ, scope("/etc/passwd"), policies), Deny)
    locked = load(None, "locked")
    for form in FORMS:
        words = (
            form.replace("PATH", "/p")
            .replace("HOST", "h.example")
            .replace(" N ", " 3 ")
            .replace("TOOL", "t")
        )
        assert isinstance(under(words, PATCH, policies=locked), Deny)


def test_answers_are_not_shared_between_sessions_with_and_without_rules() -> None:
    policies = load(None, "coding")
    free, bound = call(READ), call(READ, rules=(SessionRule(RULE, "do nothing until I say so"),))
    for _ in range(3):
        assert isinstance(judge(policies, free), Allow)
        assert isinstance(judge(policies, bound), Deny)
        assert isinstance(
            judge(policies, call(READ, rules=(SessionRule(RULE, "no network"),))), Allow
        )


def test_a_rule_that_does_not_compile_denies() -> None:
    verdict = under("whatever")
    assert isinstance(verdict, Deny)
    assert "cannot be judged" in verdict.reason


def test_an_explanation_names_the_rule() -> None:
    found = explain(CODING, call(READ, rules=(SessionRule(RULE, "never touch /home"),)))
    forbids = {(rule.id, rule.reason) for rule in found.rules if rule.effect == "forbid"}
    assert (f"rule-{RULE}", "session rule: never touch /home") in forbids


def test_rules_add_up() -> None:
    several = (
        SessionRule("A", "ask before anything"),
        SessionRule("B", f"never touch {WORKSPACE}/a.py"),
    )
    assert isinstance(judge(CODING, call(READ, rules=several)), Deny)
    assert isinstance(judge(CODING, call(READ, scope(f"{WORKSPACE}/b.py"), rules=several)), Ask)
    assert isinstance(
        judge(CODING, call(MCP, scope(), rules=several, label=Label("untrusted"))), Deny
    )
