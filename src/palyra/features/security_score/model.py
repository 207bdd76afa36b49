"""Score of a user's safety and patience, from the record of a month.

The score is 100, less up to 60 for risky calls that ran without a question although nobody vouches
for where they went, less up to 40 for questions: who is asked all the time approves blindly.
"""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from palyra.core.call_values import doubtful, value_words
from palyra.core.events import Decision
from palyra.core.verdicts import Word
from palyra.policy.backtest import about
from palyra.policy.reports import Permit, Suggestion
from palyra.store.decisions import AnsweredCall, RecordedCall

_EXPOSED, _ASKED = 60, 40
_OUT = frozenset({"network", "browser", "message"})
_DAY_MS = 24 * 3_600_000
_MOST = 20
_OFTEN = 2


class SecurityDay(Struct, frozen=True, kw_only=True):
    """One day, by UTC. `tasks` are runs with tool calls that had their first one on that day;
    `quiet_tasks` of them had no question.
    """

    day_ms: int
    tasks: int
    quiet_tasks: int
    calls: int
    questions: int


class UnattendedTool(Struct, frozen=True, kw_only=True):
    """Tool that ran without a question. `after_untrusted`: when the conversation had read untrusted
    content. `exposed`: of these, calls that reach out or cannot be undone, to a place that nobody
    vouches for; `example` is the last of them.
    """

    tool: str
    calls: int
    by_grant: int
    after_untrusted: int
    exposed: int
    example: str = ""
    call_id: str = ""


class RepeatedAnswer(Struct, frozen=True, kw_only=True):
    """The same question, always answered in the same way."""

    tool: str
    about: str
    decision: Decision
    times: int


class MetSource(Struct, frozen=True, kw_only=True):
    """Untrusted content with words that look like an instruction to the agent, and where it was
    first read.
    """

    source: str
    times: int
    words: str
    session_id: str
    seq: int
    time_ms: int


class SecurityScore(Struct, frozen=True, kw_only=True):
    """`score` is null where no tool was called. `quiet_tasks` had no question. `permits` would have
    saved `saved` of the questions; nothing that was denied is covered by them.
    """

    since_ms: int
    score: int | None
    lost_to_exposure: int
    lost_to_questions: int
    tasks: int
    quiet_tasks: int
    calls: int
    questions: int
    approved: int
    edited: int
    denied: int
    expired: int
    refused: int
    unattended: int
    exposed: int
    days: list[SecurityDay]
    tools: list[UnattendedTool]
    repeated: list[RepeatedAnswer]
    permits: list[Permit]
    saved: int
    sources: list[MetSource]


def is_exposed(call: RecordedCall) -> bool:
    """Return whether a call that reaches out or cannot be undone went, after untrusted content, to
    a place that neither the user nor a trusted source named.
    """
    asked = call.proposed.asked
    return (
        _is_risky(call)
        and asked is not None
        and asked.label.integrity == "untrusted"
        and not asked.values.vouched
    )


def _is_risky(call: RecordedCall) -> bool:
    asked = call.proposed.asked
    if asked is None or asked.values.reads_only or call.proposed.effect == "pure":
        return False
    return call.proposed.effect == "once" or not _OUT.isdisjoint(asked.capabilities)


def score_of(
    since_ms: int,
    record: Iterable[RecordedCall | AnsweredCall],
    suggestion: Suggestion,
    sources: list[MetSource],
) -> SecurityScore:
    calls: list[RecordedCall] = []
    answers: list[AnsweredCall] = []
    for each in record:
        if isinstance(each, RecordedCall):
            calls.append(each)
        else:
            answers.append(each)
    asked = [each for each in calls if each.decided.verdict == "ask"]
    ran = [each for each in calls if each.decided.verdict == "allow"]
    tasks = {each.run_id for each in calls}
    exposed = sum(map(is_exposed, ran))
    risky = sum(map(_is_risky, calls))
    by_exposure = round(_EXPOSED * exposed / risky) if risky else 0
    by_questions = round(_ASKED * min(1.0, len(asked) / len(tasks))) if tasks else 0
    decided = Counter(each.answer.decision for each in answers)
    return SecurityScore(
        since_ms=since_ms,
        score=100 - by_exposure - by_questions if tasks else None,
        lost_to_exposure=by_exposure,
        lost_to_questions=by_questions,
        tasks=len(tasks),
        quiet_tasks=len(tasks - {each.run_id for each in asked}),
        calls=len(calls),
        questions=len(asked),
        approved=decided["allow"],
        edited=sum(each.answer.arguments is not None for each in answers),
        denied=decided["deny"],
        expired=decided["expired"],
        refused=_count(calls, "deny"),
        unattended=len(ran),
        exposed=exposed,
        days=_days(calls),
        tools=_tools(ran),
        repeated=_repeated(answers),
        permits=suggestion.permits,
        saved=sum(each.covers for each in suggestion.permits),
        sources=sources,
    )


def _count(calls: list[RecordedCall], verdict: Word) -> int:
    return sum(each.decided.verdict == verdict for each in calls)


def _days(calls: list[RecordedCall]) -> list[SecurityDay]:
    made: Counter[int] = Counter()
    questions: Counter[int] = Counter()
    first: dict[str, int] = {}
    asked = {each.run_id for each in calls if each.decided.verdict == "ask"}
    for each in calls:
        day = each.time_ms // _DAY_MS
        made[day] += 1
        questions[day] += each.decided.verdict == "ask"
        first.setdefault(each.run_id, day)
    begun = Counter(first.values())
    quiet = Counter(day for run_id, day in first.items() if run_id not in asked)
    return [
        SecurityDay(
            day_ms=day * _DAY_MS,
            tasks=begun[day],
            quiet_tasks=quiet[day],
            calls=made[day],
            questions=questions[day],
        )
        for day in sorted(made)
    ]


def _tools(ran: list[RecordedCall]) -> list[UnattendedTool]:
    by_tool: dict[str, list[RecordedCall]] = {}
    for each in ran:
        by_tool.setdefault(each.proposed.tool, []).append(each)
    found = [_tool(tool, calls) for tool, calls in by_tool.items()]
    found.sort(key=lambda each: (-each.exposed, -each.after_untrusted, -each.calls, each.tool))
    return found[:_MOST]


def _tool(tool: str, calls: list[RecordedCall]) -> UnattendedTool:
    exposed = [each for each in calls if is_exposed(each)]
    last = exposed[-1] if exposed else None
    return UnattendedTool(
        tool=tool,
        calls=len(calls),
        by_grant=sum(each.decided.by == "grant" for each in calls),
        after_untrusted=sum(
            each.proposed.asked is not None and each.proposed.asked.label.integrity == "untrusted"
            for each in calls
        ),
        exposed=len(exposed),
        example=_example(last) if last is not None else "",
        call_id=last.proposed.call_id if last is not None else "",
    )


def _example(call: RecordedCall) -> str:
    """The values that nobody vouches for, or what the call was about."""
    values = call.proposed.asked.values if call.proposed.asked is not None else None
    unsure = doubtful(values) if values is not None else ()
    return "; ".join(map(value_words, unsure)) or about(call.proposed.scope)


def _repeated(answers: list[AnsweredCall]) -> list[RepeatedAnswer]:
    """Questions that came again and were always answered alike, the most frequent first."""
    given: dict[tuple[str, str], Counter[Decision]] = {}
    for each in answers:
        proposed = each.call.proposed
        key = (proposed.tool, about(proposed.scope))
        given.setdefault(key, Counter())[each.answer.decision] += 1
    found = [
        RepeatedAnswer(tool=tool, about=what, decision=next(iter(times)), times=times.total())
        for (tool, what), times in given.items()
        if len(times) == 1 and times.total() >= _OFTEN and "expired" not in times
    ]
    found.sort(key=lambda each: (-each.times, each.tool, each.about))
    return found[:_MOST]
