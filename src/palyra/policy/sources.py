"""Reads Cedar text into rules that know their file and line. A file is read whole or not at all;
every problem names its place.
"""

import json
import re
from typing import Any, Literal

import cedarpy
from msgspec import Struct

from palyra.core.errors import ConfigInvalid

# Cedar reports no positions, so we find out ourselves where each policy starts.
_TOKEN = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|"|;|[(\[{]|[)\]}]|\w+|[^\w\s,"]', re.DOTALL)
_BLANK = re.compile(r"(?:\s|//[^\n]*)*")
# The engine recurses without a limit of its own: about a thousand open brackets or ten thousand
# operators end the process. These stop far before that; strings in a set are not counted, so a long
# list of hosts is fine.
_MOST_DEPTH = 50
_MOST_TOKENS = 2_000
_TOO_BIG = (
    "the policy that starts here is nested too deeply; write it as several, or compare with a set:"
    " [...].contains(...)"
)
_APART = (
    "the policies in this file cannot be told apart; write one after the other, each with its"
    " semicolon"
)
_QUOTED = re.compile(r"`([^`]+)`")
_NOT_NEEDED = re.compile(r'^for policy `[^`]*`, | for Action::"[a-z_]+"')


class PolicyProblem(Struct, frozen=True, order=True):
    """Problem in a policy, its place, and its fix. Line 0 means the file as a whole."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}: {self.message}"
            if self.line
            else f"{self.file}: {self.message}"
        )


class PolicyRule(Struct, frozen=True, kw_only=True):
    """One policy. `tree` is Cedar's own JSON form of it, from which the set in force is built."""

    id: str
    effect: Literal["permit", "forbid"]
    reason: str
    file: str
    line: int
    text: str
    tree: dict[str, Any]


class _Statement(Struct, frozen=True):
    line: int
    text: str


def refuse(problems: list[PolicyProblem]) -> ConfigInvalid:
    """The error that carries all problems at once."""
    lines = "\n".join(f"  {problem}" for problem in problems)
    return ConfigInvalid(f"the policies cannot be loaded:\n{lines}", problems=problems)


def read(
    file: str, text: str, schema: cedarpy.Schema
) -> tuple[list[PolicyRule], list[PolicyProblem]]:
    """The rules of one file, or its problems; never some of each."""
    rules, problems = parse(file, text)
    problems += _validate(rules, text, schema) if not problems else []
    return ([], problems) if problems else (rules, [])


def parse(file: str, text: str) -> tuple[list[PolicyRule], list[PolicyProblem]]:
    """The rules of one file as the language has it, whatever the schema would say."""
    statements, problems = _split(file, text)
    if problems:
        return [], problems
    try:
        trees = json.loads(cedarpy.policies_to_json_str(text))
    except ValueError as error:
        return [], _blame(file, statements, error)
    except RecursionError:
        return [], [
            PolicyProblem(
                file, 0, _TOO_BIG.replace("the policy that starts here", "a policy in this file")
            )
        ]
    return _rules(file, statements, trees)


def _split(file: str, text: str) -> tuple[list[_Statement], list[PolicyProblem]]:
    statements: list[_Statement] = []
    start = _skip_blank(text, 0)
    depth = tokens = 0
    for token in _TOKEN.finditer(text):
        piece = token[0]
        if piece == '"':
            return [], [
                PolicyProblem(
                    file,
                    _line(text, token.start()),
                    'this string is never closed; add the missing "',
                )
            ]
        if piece == ";":
            statements.append(_Statement(_line(text, start), text[start : token.end()]))
            start = _skip_blank(text, token.end())
            depth = tokens = 0
        elif not piece.startswith(("//", '"')):
            tokens += 1
            depth += (piece in "([{") - (piece in ")]}")
            if depth > _MOST_DEPTH or tokens > _MOST_TOKENS:
                return [], [PolicyProblem(file, _line(text, start), _TOO_BIG)]
    if start < len(text):
        return [], [
            PolicyProblem(
                file,
                _line(text, start),
                "the policy that starts here has no end; close it with a semicolon",
            )
        ]
    return statements, []


def _skip_blank(text: str, start: int) -> int:
    found = _BLANK.match(text, start)
    return found.end() if found else start


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _blame(file: str, statements: list[_Statement], error: ValueError) -> list[PolicyProblem]:
    """The file does not parse: find the policies that do not parse alone."""
    problems = []
    for statement in statements:
        try:
            cedarpy.policies_to_json_str(statement.text)
        except ValueError as cause:
            why = (
                f"the policy that starts here is not valid Cedar: {cause}; check its brackets,"
                " quotes and spelling"
            )
            problems.append(PolicyProblem(file, statement.line, why))
    return problems or [PolicyProblem(file, 0, f"not valid Cedar: {error}")]


def _rules(
    file: str, statements: list[_Statement], trees: dict[str, Any]
) -> tuple[list[PolicyRule], list[PolicyProblem]]:
    rules: list[PolicyRule] = []
    problems: list[PolicyProblem] = []
    found: dict[str, dict[str, Any]] = trees["staticPolicies"]
    if len(found) + len(trees["templates"]) != len(statements):
        # Our reading of where policies end and Cedar's differ: then no line we name and no id we
        # give could be trusted.
        return [], [PolicyProblem(file, 0, _APART)]
    stem = file.rpartition("/")[2].removesuffix(".cedar")
    for index, statement in enumerate(statements):
        tree = found.get(f"policy{index}")
        if tree is None:
            why = (
                "?principal and ?resource are not supported; name the principal or resource, or use"
                " a group"
            )
            problems.append(PolicyProblem(file, statement.line, why))
            continue
        notes: dict[str, str | None] = tree.get("annotations", {})
        rules.append(
            PolicyRule(
                id=notes.get("id") or f"{stem}-{index + 1}",
                effect=tree["effect"],
                reason=notes.get("reason") or "",
                file=file,
                line=statement.line,
                text=statement.text,
                tree=tree,
            )
        )
    return rules, problems


def _line_named(rule: PolicyRule, message: str) -> int:
    """Return the line of the first name that a message quotes, or the line its policy begins at:
    Cedar says what is wrong and not where.
    """
    for quoted in _QUOTED.findall(message):
        found = re.search(rf"(?<!\w){re.escape(quoted)}(?!\w)", rule.text)
        if found:
            return rule.line + rule.text.count("\n", 0, found.start())
    return rule.line


def _validate(rules: list[PolicyRule], text: str, schema: cedarpy.Schema) -> list[PolicyProblem]:
    problems = []
    for error in cedarpy.validate_policies(text, schema).errors:
        rule = rules[int(error.policy_id.removeprefix("policy"))]
        message = _NOT_NEEDED.sub("", error.error)
        problems.append(
            PolicyProblem(
                rule.file,
                _line_named(rule, message),
                f"{message}; `palyra policy schema` shows what a policy can talk about",
            )
        )
    # Cedar checks a policy once for each action and says the same thing each time.
    return list(dict.fromkeys(problems))
