"""Projection of a call's facts to what a set of policies can tell apart: read from the policies'
trees, never from their text.

The rule: a fact that is compared with constants only counts by the outcomes; used in any other way,
it counts whole.
"""

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from palyra.core.verdicts import Question
from palyra.policy import request
from palyra.policy.sources import PolicyRule

# What is new in nearly every call. Everything else of a question is among few values.
OWN = frozenset({"paths", "path", "touches", "command", "session", "now_ms", "hour"})

Test = Callable[[Any], bool]
Project = Callable[[Question], Hashable]

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Facts that are sets of strings.
_SETS = frozenset({"paths", "touches", "hosts", "domains", "recipients", "sources", "obeyed_by"})
_CONTAINS = ("contains", "containsAny", "containsAll")

# A fact, and the comparison with a constant that it stands in; no comparison: it is used in another
# way.
_Use = tuple[str, str, dict[str, Any]]


def kept(rules: Iterable[PolicyRule]) -> dict[str, frozenset[Any]]:
    """Sets that these rules only ask for certain members. The others make no difference and need
    not be told.
    """
    found: dict[str, frozenset[Any]] = {}
    whole = set[str]()
    for name, key, value in (use for rule in rules for use in _uses(rule.tree)):
        constants = _constants(value.get("right")) if name in _SETS and key in _CONTAINS else None
        if constants is None:
            whole.add(name)
        else:
            found[name] = found.get(name, frozenset()) | frozenset(constants)
    return {name: members for name, members in found.items() if name not in whole}


def projection(rules: Iterable[PolicyRule]) -> Project:
    """Two questions that are alike otherwise and give the same here are answered the same by these
    rules.
    """
    tests: dict[str, list[Test] | None] = {}
    for rule in rules:
        for name, key, value in _uses(rule.tree):
            if name not in OWN:
                continue
            known, test = tests.setdefault(name, []), _test(key, value)
            if test is None or known is None:
                tests[name] = None
            else:
                known.append(test)
    whole = frozenset(name for name, each in tests.items() if each is None)
    tested = [(request.FACTS[name], each) for name, each in tests.items() if each is not None]

    def project(question: Question) -> Hashable:
        outcomes: list[Hashable] = [_fixed(request.FACTS[name](question)) for name in whole]
        for fact, each in tested:
            value = fact(question)
            outcomes += [test(value) for test in each]
        return tuple(outcomes)

    return project


def _uses(tree: Any) -> Iterator[_Use]:
    """Every use of a fact."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node == request.CONTEXT:
            yield from ((name, "", {}) for name in request.FACTS)
        elif isinstance(node, list):
            waiting += node
        elif (name := _fact(node)) is not None:
            yield name, "", {}
        elif isinstance(node, dict):
            for key, value in node.items():
                name = _fact(value.get("left")) if isinstance(value, dict) else None
                if name is not None and _test(key, value) is not None:
                    yield name, key, value
                elif key != "has":
                    waiting.append(value)


def _fact(node: Any) -> str | None:
    """The name, if this is `context.name`."""
    inner = node.get(".") if isinstance(node, dict) else None
    return (
        inner["attr"] if isinstance(inner, dict) and inner.get("left") == request.CONTEXT else None
    )


def _test(key: str, value: dict[str, Any]) -> Test | None:
    if not key:
        return None
    if key == "like":
        return _like(value["pattern"])
    constants = _constants(value.get("right"))
    if constants is None:
        return None
    match key:
        case "contains" if "Value" in value["right"]:
            return lambda fact, wanted=constants[0]: wanted in fact  # type: ignore[misc]
        case "containsAny":
            return lambda fact, wanted=frozenset(constants): not wanted.isdisjoint(fact)  # type: ignore[misc]
        case "containsAll":
            return lambda fact, wanted=frozenset(constants): wanted.issubset(fact)  # type: ignore[misc]
        case _ if key in _COMPARED and isinstance(value["right"].get("Value"), str | int):
            return lambda fact, compare=_COMPARED[key], to=constants[0]: compare(fact, to)  # type: ignore[misc]
        case _:
            return None


def _constants(node: Any) -> list[str | int] | None:
    """The plain values of a constant or of a set of constants."""
    members = node.get("Set", [node]) if isinstance(node, dict) else [None]
    values = [each.get("Value") if isinstance(each, dict) else None for each in members]
    found = [each for each in values if isinstance(each, str | int) and not isinstance(each, bool)]
    return found if len(found) == len(values) else None


def _like(pattern: list[Any]) -> Test:
    """A star matches any run of characters, everything else itself."""
    parts = [""]
    for each in pattern:
        if each == "Wildcard":
            parts.append("")
        else:
            parts[-1] += each["Literal"]
    first, *between, last = parts if len(parts) > 1 else (parts[0], "")
    if len(parts) == 1:
        return lambda fact: fact == first
    if parts == [first, ""]:
        return lambda fact: fact.startswith(first)

    def matches(fact: str) -> bool:
        at, end = len(first), len(fact) - len(last)
        if at > end or not fact.startswith(first) or not fact.endswith(last):
            return False
        for part in between:
            # The first place is as good as any: what stands behind it has the most room.
            found = fact.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    return matches


def _fixed(value: Any) -> Hashable:
    if isinstance(value, dict):
        return tuple(sorted((key, _fixed(each)) for key, each in value.items()))
    return tuple(value) if isinstance(value, list | tuple) else value
