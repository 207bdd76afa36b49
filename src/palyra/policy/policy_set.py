"""One set of policies, read, validated and ready to be asked. It never changes; a reload makes a
new one.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import cedarpy
import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.verdicts import Question, SessionRule
from palyra.policy import projection, request, rules, sources
from palyra.policy.sources import PolicyProblem, PolicyRule
from palyra.store.policy_sets import PolicyText, PolicyTexts, version_of

Preset = Literal["locked", "default", "coding", "research"]
PRESETS: tuple[str, ...] = get_args(Preset)
SHIPPED = Path(__file__).parent / "shipped"

_WITH_EVERY_PRESET = "labels.cedar"
GROUPS_FILE = "groups.toml"
_GROUP_SECTIONS = ("principals", "tools", "agents", "channels", "skills")
_MOST_CACHED = 1024
_MOST_RULED = 64


class Slice(Struct, frozen=True):
    """The part of a set that can speak to one principal and one tool, parsed. `uses` are the facts
    that some rule of it reads.
    """

    rules: tuple[PolicyRule, ...]
    cedar: cedarpy.PolicySet
    uses: request.Uses
    entities: cedarpy.Entities
    # Answers by the facts they were given: what a rule does not read is not among the facts, so
    # calls often share them.
    answered: dict[tuple[str, bool], Any] = msgspec.field(default_factory=dict)


class PolicySet:
    """`rules` are in the order they were loaded."""

    def __init__(
        self,
        version: str,
        rules: Sequence[PolicyRule],
        groups: request.Groups,
        schema: cedarpy.Schema,
        files: tuple[PolicyText, ...] = (),
    ) -> None:
        self.version = version
        # What the version is the digest of.
        self.texts = PolicyTexts(version, files)
        self.rules = tuple(rules)
        self.by_id = {rule.id: rule for rule in rules}
        self._groups = groups
        self._schema = schema
        self._slices: dict[tuple[Any, ...], Slice] = {}
        self._ruled: dict[tuple[SessionRule, ...], PolicySet] = {}

    @property
    def grouped_principals(self) -> tuple[str, ...]:
        """Principals that a group names."""
        return tuple(sorted(member for section, member in self._groups if section == "principals"))

    def under(self, laid_down: tuple[SessionRule, ...]) -> "PolicySet":
        """This set with the rules of a session. A set of its own, so that no answer is shared with
        sessions without them.
        """
        if not laid_down:
            return self
        found = self._ruled.get(laid_down)
        if found is None:
            if len(self._ruled) >= _MOST_RULED:
                self._ruled.clear()
            found = self._ruled[laid_down] = PolicySet(
                self.version, (*self.rules, *self._compiled(laid_down)), self._groups, self._schema
            )
        return found

    def plus(self, file: str, text: str) -> "PolicySet":
        """This set with one file more, to try it; ConfigInvalid if the text is not valid."""
        found, problems = sources.read(file, text, self._schema)
        problems += _duplicates([*self.rules, *found])
        if problems:
            raise sources.refuse(problems)
        return PolicySet(
            f"{self.version}+{file}", (*self.rules, *found), self._groups, self._schema
        )

    def _compiled(self, laid_down: tuple[SessionRule, ...]) -> list[PolicyRule]:
        compiled: list[PolicyRule] = []
        for rule in laid_down:
            found, problems = sources.read(
                f"session rule {rule.rule_id}", rules.cedar(rule), self._schema
            )
            if problems:
                raise InvalidInput(
                    f"the session rule {rule.words!r} cannot be kept: {problems[0].message}"
                )
            compiled += found
        return compiled

    def slice(self, question: Question) -> Slice:
        """Parsed once for each principal, tool, agent and channel, because parsing costs more than
        deciding.
        """
        tool = question.tool
        key = (
            question.principal,
            question.agent,
            question.channel,
            tool.name,
            tool.source,
            tool.effect,
            tool.capabilities,
        )
        found = self._slices.get(key)
        if found is None:
            if len(self._slices) >= _MOST_CACHED:
                self._slices.clear()
            found = self._slices[key] = self._cut(question)
        return found

    def _cut(self, question: Question) -> Slice:
        principal = request.uid(*request.principal(question.principal))
        tool = request.uid("Tool", question.tool.name)
        rules = tuple(
            rule
            for rule in self.rules
            # A rule about exactly another principal or tool can neither match nor err, and a folder
            # may hold hundreds of those.
            if _may_match(rule.tree["principal"], principal)
            and _may_match(rule.tree["resource"], tool)
        )
        members = projection.kept(rules)
        return Slice(
            rules=rules,
            # Cedar numbers policies in the order of the text, so `policy7` is rules[7].
            cedar=cedarpy.PolicySet.from_str("\n".join(rule.text for rule in rules)),
            uses={
                name: members.get(name) for rule in rules for name in request.mentioned(rule.tree)
            },
            entities=cedarpy.Entities.from_json_str(
                request.entities(question, self._groups), self._schema
            ),
        )


def _may_match(constraint: dict[str, Any], entity: dict[str, str]) -> bool:
    return bool(constraint["op"] != "==" or constraint["entity"] == entity)


def schema_text() -> str:
    return (SHIPPED / "palyra.cedarschema").read_text("utf-8")


def build(
    folder: Path | None, preset: str, edits: Mapping[str, str | None] | None = None
) -> tuple[PolicySet | None, list[PolicyProblem]]:
    """The set made of a shipped preset and the files of the operator's folder, or everything that
    is wrong with them.

    `edits` stand for files of these names as if they were saved: their text, or None for one that
    is gone.
    """
    if preset not in PRESETS:
        return None, [
            PolicyProblem(preset, 0, f"there is no such preset; choose one of {', '.join(PRESETS)}")
        ]
    texts, problems = _texts(folder, preset, edits or {})
    groups, group_problems = _groups(folder, texts)
    problems += group_problems
    schema = cedarpy.Schema.from_str(schema_text())
    rules: list[PolicyRule] = []
    for file, text in texts.items():
        if file.endswith(".cedar"):
            found, wrong = sources.read(file, text, schema)
            rules += found
            problems += wrong
    problems += _duplicates(rules)
    if problems:
        return None, problems
    files = tuple(
        PolicyText(file.rpartition("/")[2], text)
        for file, text in {"palyra.cedarschema": schema_text(), **texts}.items()
    )
    return PolicySet(version_of(files), rules, groups, schema, files), []


def _texts(
    folder: Path | None, preset: str, edits: Mapping[str, str | None]
) -> tuple[dict[str, str], list[PolicyProblem]]:
    """File name to content, the shipped ones first."""
    texts = {
        f"shipped/{name}": (SHIPPED / name).read_text("utf-8")
        for name in (_WITH_EVERY_PRESET, f"{preset}.cedar")
    }
    if folder is None:
        return texts, []
    if not folder.is_dir():
        # Not "no policies": a mistyped path must not quietly lose what the operator forbade.
        return texts, [
            PolicyProblem(
                str(folder), 0, "there is no such policy folder; create it or correct the path"
            )
        ]
    problems = []
    there = {path.name for path in (*folder.glob("*.cedar"), *folder.glob(GROUPS_FILE))}
    for name in sorted({*there, *edits}):
        path, edited = folder / name, edits.get(name)
        if name in edits and edited is None:
            continue
        try:
            texts[str(path)] = text = path.read_text("utf-8") if edited is None else edited
            if not text:
                # Most often a file that is being saved just now. What it forbade must not be gone
                # for that moment.
                problems.append(PolicyProblem(str(path), 0, "is empty; write into it or remove it"))
        except OSError as error:
            problems.append(
                PolicyProblem(
                    str(path),
                    0,
                    f"cannot be read: {error.strerror}; check its permissions or remove it",
                )
            )
        except UnicodeDecodeError as error:
            problems.append(
                PolicyProblem(
                    str(path), 0, f"is not UTF-8 text at byte {error.start}; save it as UTF-8"
                )
            )
    return texts, problems


def _groups(
    folder: Path | None, texts: dict[str, str]
) -> tuple[request.Groups, list[PolicyProblem]]:
    file = str(folder / GROUPS_FILE) if folder else ""
    if file not in texts:
        return {}, []
    try:
        sections = tomllib.loads(texts[file])
    except tomllib.TOMLDecodeError as error:
        return {}, [PolicyProblem(file, 0, f"is not valid TOML: {error}")]
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    problems = []
    for section, groups in sections.items():
        if section not in _GROUP_SECTIONS or not isinstance(groups, dict):
            problems.append(
                PolicyProblem(
                    file, 0, f"[{section}] is not a kind of group; use {', '.join(_GROUP_SECTIONS)}"
                )
            )
            continue
        for group, members in groups.items():
            if not isinstance(members, list) or not all(
                isinstance(member, str) for member in members
            ):
                problems.append(
                    PolicyProblem(
                        file, 0, f'[{section}] {group} must be a list of names, like ["user:anna"]'
                    )
                )
                continue
            for member in members:
                found[section, member] = (*found.get((section, member), ()), group)
    return found, problems


def _duplicates(rules: list[PolicyRule]) -> list[PolicyProblem]:
    first: dict[str, PolicyRule] = {}
    problems = []
    for rule in rules:
        other = first.setdefault(rule.id, rule)
        if other is not rule:
            why = (
                f'the id "{rule.id}" is already taken by {other.file}:{other.line}; give one of'
                " them another @id"
            )
            problems.append(PolicyProblem(rule.file, rule.line, why))
    return problems
