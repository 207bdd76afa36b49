"""Deciding recorded calls again under another set of policies: what would be denied, allowed or
asked that was not.

The rule: the question is made from the tape alone. Under the set that was in force, the answer is
the recorded one.
"""

from collections import Counter
from collections.abc import Callable, Hashable

from msgspec.structs import replace

from palyra.core.errors import InvalidInput, NotFound
from palyra.core.events import ToolDecided
from palyra.core.tools import Scope, ToolSpec
from palyra.core.verdicts import Ask, Question, Verdict, Word, word
from palyra.policy import judge, request, risk
from palyra.policy.policy_set import PolicySet
from palyra.policy.projection import Project, projection
from palyra.policy.reports import Changed, Example, Hit, Report, Shadowed
from palyra.policy.store import PolicyStore, name
from palyra.store import decisions
from palyra.store.decisions import Read, RecordedCall

MOST_EXAMPLES = 20
_LONGEST_ABOUT = 200


def question(call: RecordedCall) -> Question:
    """Return what policy was asked about a recorded call; NotFound if the tape does not say."""
    asked, proposed = call.proposed.asked, call.proposed
    if asked is None:
        raise NotFound(
            f"policy was not asked about call {proposed.call_id}, or before decisions were recorded"
            " whole"
        )
    tool = ToolSpec(
        name=proposed.tool,
        description="",
        parameters={},
        effect=proposed.effect,
        capabilities=asked.capabilities,
        source=asked.source,
    )
    return Question(
        principal=call.principal,
        session_id=call.session_id,
        tool=tool,
        scope=proposed.scope,
        origin=asked.origin,
        now_ms=asked.now_ms,
        label=asked.label,
        agent=asked.agent,
        channel=asked.channel,
        rules=asked.rules,
        values=asked.values,
    )


def recorded_word(decided: ToolDecided) -> Word:
    """Return what policy said; a grant answers what policy asked."""
    return "ask" if decided.by == "grant" else decided.verdict


def about(scope: Scope) -> str:
    """Describe a call in a line."""
    text = (
        scope.command
        or ", ".join(scope.paths)
        or ", ".join(scope.hosts)
        or ", ".join(scope.recipients)
    )
    return text if len(text) <= _LONGEST_ABOUT else text[: _LONGEST_ABOUT - 1] + "…"


class Differences:
    """Collects calls that would be decided otherwise, like ones together."""

    def __init__(self) -> None:
        self._counted: Counter[Word] = Counter()
        self._first: dict[tuple[Word, str, str], Example] = {}
        self._times: Counter[tuple[Word, str, str]] = Counter()

    def add(self, call: RecordedCall, after: Word, reason: str, policies: tuple[str, ...]) -> None:
        self._counted[after] += 1
        proposed = call.proposed
        alike = (after, proposed.tool, about(proposed.scope))
        if alike not in self._first:
            if sum(kind == after for kind, _, _ in self._first) >= MOST_EXAMPLES:
                return
            self._first[alike] = Example(
                call_id=proposed.call_id,
                session_id=call.session_id,
                time_ms=call.time_ms,
                tool=proposed.tool,
                about=alike[2],
                before=recorded_word(call.decided),
                after=after,
                reason=reason,
                policies=policies,
                times=1,
            )
        self._times[alike] += 1

    def to(self, after: Word) -> Changed:
        examples = [
            replace(first, times=self._times[alike])
            for alike, first in self._first.items()
            if alike[0] == after
        ]
        return Changed(self._counted[after], sorted(examples, key=lambda each: -each.times))


class Retest:
    """Decides recorded calls again, one after another. Calls that policy cannot tell apart are
    decided once; `decided` counts.
    """

    def __init__(self, policies: PolicySet) -> None:
        self._policies = policies
        self._projections: dict[Hashable, Project] = {}
        # With how dangerous the call was said to be, which names its files.
        self._known: dict[Hashable, tuple[Verdict, str]] = {}
        self.decided = 0
        self._differences = Differences()
        self._hits: Counter[str] = Counter()
        self.calls = 0
        self._same = self._not_asked = self._unknown = self._inexact = 0

    def take(self, call: RecordedCall) -> Verdict | None:
        """The verdict now, or None where there is nothing to decide again."""
        self.calls += 1
        decided, asked = call.decided, call.proposed.asked
        if decided.by in ("hard_rule", "catalogue", "rule"):
            self._not_asked += 1
            return None
        if asked is None:
            self._unknown += 1
            return None
        self._inexact += not asked.exact
        verdict = self._decide(call)
        self._hits.update(verdict.policies)
        now = word(verdict)
        if now == recorded_word(decided):
            self._same += 1
        else:
            self._differences.add(call, now, verdict.reason, verdict.policies)
        return verdict

    def _decide(self, call: RecordedCall) -> Verdict:
        asked = question(call)
        try:
            key = self._key(asked)
        except InvalidInput:
            return judge.judge(self._policies, asked)  # Judging says what is wrong with it.
        known = self._known.get(key)
        if known is None:
            self.decided += 1
            verdict = judge.judge(self._policies, asked)
            self._known[key] = verdict, risk.assess(asked).why
            return verdict
        verdict, why = known
        if not isinstance(verdict, Ask):
            return verdict
        return replace(verdict, reason=verdict.reason.replace(why, risk.assess(asked).why, 1))

    def _key(self, asked: Question) -> Hashable:
        """The same for calls that get the same verdict, in the same words; InvalidInput if the
        question is not exact.
        """
        request.check(asked)
        tool, scope = asked.tool, asked.scope
        kind = (
            asked.principal,
            asked.agent,
            asked.channel,
            tool.name,
            tool.effect,
            tool.capabilities,
            tool.source,
            asked.rules,
        )
        project = self._projections.get(kind)
        if project is None:
            rules = self._policies.under(asked.rules).slice(asked).rules
            project = self._projections[kind] = projection(rules)
        # Where a call goes counts for what it is called in words; which path and which command
        # exactly, only for policies.
        place = (
            bool(scope.paths),
            request.in_workspace(scope),
            request.wide(scope),
            tuple(request.obeyed(asked)),
        )
        return (
            kind,
            asked.label,
            asked.values,
            asked.origin,
            replace(scope, paths=(), command=""),
            place,
            project(asked),
        )

    def report(self) -> Report:
        hits = sorted(self._hits.items(), key=lambda hit: (-hit[1], hit[0]))
        return Report(
            version=self._policies.version,
            calls=self.calls,
            same=self._same,
            newly_denied=self._differences.to("deny"),
            newly_allowed=self._differences.to("allow"),
            newly_asked=self._differences.to("ask"),
            hits=[Hit(name, calls) for name, calls in hits],
            never_hit=[rule.id for rule in self._policies.rules if rule.id not in self._hits],
            not_asked=self._not_asked,
            unknown=self._unknown,
            inexact=self._inexact,
        )


def retest(
    read: Read, policies: PolicySet, since_ms: int, progress: Callable[[int], None]
) -> Report:
    """Decide every call recorded since then again. `progress` hears how many were, now and then.
    Long: call it from a thread.
    """
    work = Retest(policies)
    for page in decisions.pages(read, since_ms):
        for found in page:
            if isinstance(found, RecordedCall):
                work.take(found)
        progress(work.calls)
    return work.report()


def shadowed(read: Read, since_ms: int, now: PolicyStore | None) -> Shadowed:
    calls = same = 0
    differences, versions = Differences(), dict[str, None]()
    for page in decisions.pages(read, since_ms):
        for found in page:
            shadow = found.decided.shadow if isinstance(found, RecordedCall) else None
            if shadow is None or not isinstance(found, RecordedCall):
                continue
            calls += 1
            versions[shadow.policy_version] = None
            if shadow.verdict == recorded_word(found.decided):
                same += 1
            else:
                differences.add(found, shadow.verdict, shadow.reason, shadow.policies)
    return Shadowed(
        named=name(now) if now else "",
        version=now.version if now else "",
        versions=list(versions),
        calls=calls,
        same=same,
        denied=differences.to("deny"),
        allowed=differences.to("allow"),
        asked=differences.to("ask"),
    )
