"""Permits that would have spared a person the approvals they gave: as few as possible, each as
narrow as what it covers.

The rule: nothing that was denied is ever covered, nothing is wider than a subject an approval could
have had (never a whole tool), and what is suggested has been tried on the record before anybody
sees it.
"""

import posixpath
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from palyra.core.call_values import NO_VALUES, CallValues
from palyra.core.tools import Scope, Subject
from palyra.core.verdicts import Allow
from palyra.policy import grants, judge
from palyra.policy.backtest import about, question
from palyra.policy.policy_set import PolicySet
from palyra.policy.reports import Left, Permit, Suggestion
from palyra.store import decisions
from palyra.store.decisions import AnsweredCall, Read, RecordedCall

# From narrow to wide; of two that cover the same, the earlier is suggested.
_WIDTH = ("arguments", "command", "path_prefix", "recipient", "host", "program")


class _Case(NamedTuple):
    """`sends_private`: the prompt said that private data could leave."""

    call: RecordedCall
    subjects: tuple[Subject, ...]
    sends_private: bool

    @property
    def scope(self) -> Scope:
        return self.call.proposed.scope


class _Chosen(NamedTuple):
    subject: Subject
    cases: list[_Case]
    against: list[_Case]


def suggest(read: Read, policies: PolicySet, since_ms: int) -> Suggestion:
    """From every approval answered since then. Long: call it from a thread."""
    answers = [
        each
        for page in decisions.pages(read, since_ms)
        for each in page
        if isinstance(each, AnsweredCall)
    ]
    return of_answers(answers, policies)


def of_answers(answers: Iterable[AnsweredCall], policies: PolicySet) -> Suggestion:
    approved, denied = _sorted_out(answers)
    waiting = [case for case in approved if not _allowed(policies, case)]
    by_kind: dict[tuple[str, str], list[_Case]] = defaultdict(list)
    for case in waiting:
        by_kind[case.call.principal, case.call.proposed.tool].append(case)
    permits: list[Permit] = []
    covered: set[str] = set()
    for (principal, tool), cases in sorted(by_kind.items()):
        against = [
            case
            for case in denied
            if (case.call.principal, case.call.proposed.tool) == (principal, tool)
        ]
        for chosen in _cover(cases, against):
            permits.append(_permit(len(permits) + 1, principal, chosen))
            covered.update(case.call.proposed.call_id for case in chosen.cases)
    tried, permits = _tried(policies, permits, denied)
    left = _left(tried, waiting, covered)
    return Suggestion(
        cedar="\n".join(permit.cedar for permit in permits),
        permits=permits,
        left=left,
        approved=len(approved),
        denied=len(denied),
        already=len(approved) - len(waiting),
        passing=len(approved) - len(left),
    )


def _sorted_out(answers: Iterable[AnsweredCall]) -> tuple[list[_Case], list[_Case]]:
    """Return the calls that a person approved as they were, and those denied. Edited calls and
    answers that never came are neither.
    """
    approved, denied = [], []
    for each in answers:
        asked = each.call.proposed.asked
        flow = each.request.flow
        case = _Case(each.call, each.request.subjects, flow is not None and flow.sends_private)
        if each.answer.decision == "deny" and asked is not None:
            denied.append(case)
        elif (
            each.answer.decision == "allow"
            and each.answer.arguments is None
            and asked is not None
            and asked.exact
        ):
            approved.append(case)
    return approved, denied


def _allowed(policies: PolicySet, case: _Case) -> bool:
    return isinstance(judge.judge(policies, question(case.call)), Allow)


def _cover(cases: list[_Case], against: list[_Case]) -> list[_Chosen]:
    """The fewest subjects that cover these cases and none against. What no subject covers is left
    over.
    """
    # Subjects of a call are all that could cover it, so nobody needs to try every subject on every
    # call.
    reach: dict[Subject, set[Scope]] = defaultdict(set)
    for case in {case.scope: case for case in cases}.values():
        for subject in _subjects(case):
            if _covers(subject, case):
                reach[subject].add(case.scope)
    too_wide = {
        subject: found
        for subject in reach
        if (found := [case for case in against if _covers(subject, case)])
    }
    fit = [subject for subject in reach if subject not in too_wide]
    chosen: list[_Chosen] = []
    waiting = {case.scope for case in cases}
    while waiting:
        best = max(
            fit,
            key=lambda subject: (len(reach[subject] & waiting), _narrowness(subject)),
            default=None,
        )
        group = reach[best] & waiting if best is not None else set()
        if not group:
            break
        narrow = max((each for each in fit if group <= reach[each]), key=_narrowness)
        near = [
            case for wider, denied in too_wide.items() if _around(wider, narrow) for case in denied
        ]
        chosen.append(_Chosen(narrow, [case for case in cases if case.scope in group], near))
        waiting -= group
    return chosen


def _subjects(case: _Case) -> Iterable[Subject]:
    """Yield the offered subjects, never the tool as a whole, and the folders between a path and its
    workspace.
    """
    for subject in case.subjects:
        if subject.kind == "tool" or not subject.value:
            continue
        yield subject
        if subject.kind == "path_prefix":
            folder, root = subject.value, case.scope.workspace
            while root and folder.startswith(root.rstrip("/") + "/"):
                folder = posixpath.dirname(folder)
                yield Subject(subject.tool, "path_prefix", folder)


def _covers(subject: Subject, case: _Case) -> bool:
    return subject.covers(case.call.proposed.tool, case.scope, _values(case))


def _values(case: _Case) -> CallValues:
    asked = case.call.proposed.asked
    return asked.values if asked is not None else NO_VALUES


def _narrowness(subject: Subject) -> tuple[int, int]:
    return -_WIDTH.index(subject.kind), len(subject.value)


def _around(wider: Subject, narrow: Subject) -> bool:
    """Return whether one subject would have been the next wider thing to suggest instead of
    another.
    """
    if wider.kind == "path_prefix" == narrow.kind:
        return f"{narrow.value}/".startswith(wider.value.rstrip("/") + "/")
    return (
        wider.kind == "program"
        and narrow.kind == "command"
        and narrow.value.split(maxsplit=1)[:1] == [wider.value]
    )


def _permit(number: int, principal: str, chosen: _Chosen) -> Permit:
    subject, cases = chosen.subject, chosen.cases
    name, what = f"suggested-{number}", grants.described(subject)
    times = sorted(case.call.time_ms for case in cases)
    origin = (
        f"policy suggest: {len(cases)} approvals, {grants.stamp(times[0])} to"
        f" {grants.stamp(times[-1])}"
    )
    private = any(case.sends_private for case in cases)
    reason = f"approved {len(cases)} times: {what}{', also with private data' if private else ''}"
    text = grants.permit(
        subject, principal, name=name, reason=reason, origin=origin, sends_private=private
    )
    return Permit(
        id=name,
        tool=subject.tool,
        principal=principal,
        what=what,
        cedar=text,
        covers=len(cases),
        examples=list(dict.fromkeys(about(case.scope) for case in cases))[:5],
        kept_narrow_by=list(dict.fromkeys(about(case.scope) for case in chosen.against))[:5],
    )


def _tried(
    policies: PolicySet, permits: list[Permit], denied: list[_Case]
) -> tuple[PolicySet, list[Permit]]:
    """Decide the record again with the permits. One that lets a denied call pass is thrown out,
    however it came about.
    """
    while True:
        tried = policies.plus("suggested.cedar", "\n".join(permit.cedar for permit in permits))
        wrong = {
            each
            for case in denied
            if not _allowed(policies, case)
            and isinstance(verdict := judge.judge(tried, question(case.call)), Allow)
            for each in verdict.policies
        }
        if not wrong:
            return tried, permits
        permits = [permit for permit in permits if permit.id not in wrong]


def _left(tried: PolicySet, waiting: list[_Case], covered: set[str]) -> list[Left]:
    left = []
    for case in waiting:
        verdict = judge.judge(tried, question(case.call))
        if not isinstance(verdict, Allow):
            call = case.call.proposed
            why = (
                verdict.reason
                if call.call_id in covered
                else "every permit for it would also cover a call that was denied"
            )
            left.append(
                Left(call_id=call.call_id, tool=call.tool, about=about(case.scope), why=why)
            )
    return left
