"""Reading Cedar files: whole or not at all, with every problem at its line."""

import re

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.policy import sources
from palyra.policy.policy_set import schema_text
from palyra.policy.sources import PolicyProblem

SCHEMA = cedarpy.Schema.from_str(schema_text())
PERMIT = "permit (principal, action, resource)"


def read(text: str) -> tuple[list[tuple[str, int]], list[tuple[int, str]]]:
    """Ids with lines, and problems with lines."""
    rules, problems = sources.read("/etc/palyra/mine.cedar", text, SCHEMA)
    assert not rules or not problems
    return [(rule.id, rule.line) for rule in rules], [
        (problem.line, problem.message) for problem in problems
    ]


def test_rules_carry_their_id_reason_effect_file_and_line() -> None:
    text = f'// a comment; really\n\n@id("first") @reason("because; so")\n{PERMIT};\n\nforbid (principal, action, resource);\n'
    rules, problems = sources.read("/etc/palyra/mine.cedar", text, SCHEMA)
    assert problems == []
    assert [(rule.id, rule.effect, rule.reason, rule.file, rule.line) for rule in rules] == [
        ("first", "permit", "because; so", "/etc/palyra/mine.cedar", 3),
        ("mine-2", "forbid", "", "/etc/palyra/mine.cedar", 6),
    ]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (f"{PERMIT};\n\npermit (principal, action, resorce);", 3, "resorce"),
        (f"{PERMIT};\n{PERMIT} when {{ context.effect == ;", 2, "not valid Cedar"),
        (f"{PERMIT};\n{PERMIT}", 2, "close it with a semicolon"),
        (
            f'{PERMIT};\n\n{PERMIT}\nwhen {{ context.effect == "pure }};',
            4,
            "string is never closed",
        ),
        (f"{PERMIT};\n// why\n{PERMIT} when {{ context.colour == 1 }};", 3, "`colour`"),
        (f'{PERMIT};\n{PERMIT} when {{ context.hour == "noon" }};', 2, "type"),
        ('permit (principal == Userr::"x", action, resource);', 1, "Userr"),
        ('permit (principal, action == Action::"fly", resource);', 1, "fly"),
        ("permit (principal == ?principal, action, resource);", 1, "?principal"),
        ('@id("a") @id("b")\n' + PERMIT + ";", 1, "duplicate annotation"),
        (";", 1, "not valid Cedar"),
    ],
)
def test_a_problem_names_the_line_of_its_policy_and_what_is_wrong(
    text: str, line: int, says: str
) -> None:
    rules, problems = read(text)
    assert rules == []
    assert len(problems) >= 1
    assert problems[0][0] == line
    assert says in problems[0][1]


def test_a_name_that_the_schema_does_not_have_is_found_in_its_line() -> None:
    text = f'@id("x")\n{PERMIT} when {{\n  context.origin == "api" &&\n  context.pth == ""\n}};\n'
    _, problems = read(text)
    assert [(line, "pth" in message) for line, message in problems] == [(4, True)]


def test_every_broken_policy_of_a_file_is_named_at_once() -> None:
    _, problems = read(f"permit (a, b, c);\n{PERMIT};\npermit (principal);\n")
    assert [line for line, _ in problems] == [1, 3]


@pytest.mark.parametrize(
    "body",
    [
        "(" * 5_000 + "true" + ")" * 5_000,
        "(" * 60 + "true" + ")" * 60,
        "[" * 5_000 + "1" + "]" * 5_000 + " == [1]",
        "{a:" * 5_000 + "1" + "}" * 5_000 + " == {a: 1}",
        "||".join(["true"] * 50_000),
        "if true then true else " * 50_000 + "true",
        "context" + ".a" * 50_000,
        "context" + '["a"]' * 50_000,
        "||".join(["true"] * 900),
    ],
    ids=[
        "parentheses",
        "fewer parentheses",
        "sets",
        "records",
        "ors",
        "ifs",
        "attributes",
        "indexes",
        "fewer ors",
    ],
)
def test_a_policy_nested_so_deeply_that_it_would_crash_the_engine_is_a_problem(body: str) -> None:
    rules, problems = read(f"{PERMIT} when {{ {body} }};")
    assert rules == []
    assert "nested too deeply" in problems[0][1]


def test_a_long_list_of_values_is_no_nesting() -> None:
    hosts = ", ".join(f'"host{number}.example"' for number in range(5_000))
    assert read(f"{PERMIT} when {{ [{hosts}].containsAll(context.hosts) }};") == (
        [("mine-1", 1)],
        [],
    )


def test_a_long_chain_of_comparisons_is_accepted() -> None:
    chain = " || ".join(f'context.program == "p{number}"' for number in range(250))
    assert read(f"{PERMIT} when {{ {chain} }};") == ([("mine-1", 1)], [])


def test_an_empty_file_has_neither_rules_nor_problems() -> None:
    assert read("// nothing yet\n") == ([], [])


quoted = st.text(st.sampled_from('ab;/\\"\n(){}'), max_size=12).map(
    lambda s: '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
comment = st.text(st.sampled_from('ab;/"{}'), max_size=12).map(lambda s: f"//{s}\n")
policy = st.tuples(
    st.lists(comment, max_size=2), quoted, quoted, st.lists(comment, max_size=2)
).map(
    lambda t: (
        f"{''.join(t[0])}@note({t[1]})\n{PERMIT}\n{''.join(t[3])}when {{ context.program == {t[2]} }};"
    )
)


@settings(max_examples=150, deadline=None)
@given(st.lists(policy, max_size=5))
def test_our_reading_of_where_policies_begin_is_the_engines(policies: list[str]) -> None:
    text = "\n".join(policies)
    rules, problems = sources.read("f.cedar", text, SCHEMA)
    assert problems == []
    assert len(rules) == len(policies)
    lines = text.splitlines(keepends=False)
    for rule in rules:
        assert re.match(r"@note\(", rule.text)
        assert text.split("\n")[rule.line - 1].startswith("@note("), lines


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('permit(principal,action,resource)when{}"\\;/\n@id '), max_size=80))
def test_no_text_makes_reading_raise(text: str) -> None:
    rules, problems = sources.read("f.cedar", text, SCHEMA)
    assert not (rules and problems)
    assert all(isinstance(problem, PolicyProblem) and problem.message for problem in problems)
