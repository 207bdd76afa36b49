"""What a person has already said yes to. A grant answers what policy asks, for exactly what was
approved, and touches no denial.
"""

from collections.abc import Iterable

from palyra.core import labels
from palyra.core.labels import MOST_SOURCES, Label
from palyra.core.verdicts import Grant, Question
from palyra.policy import request, risk


def covering(
    grants: Iterable[Grant], question: Question, *, sends_private: bool = False
) -> Grant | None:
    """The first grant that still holds and covers the whole call. `sends_private`: as the Ask that
    it would answer says.
    """
    covers = (grant for grant in grants if grant.subject.covers(question.tool.name, question.scope))
    return next((grant for grant in covers if _holds(grant, question, sends_private)), None)


def _holds(grant: Grant, question: Question, sends_private: bool) -> bool:
    if grant.principal != question.principal:
        return False
    if grant.session_id is not None and grant.session_id != question.session_id:
        return False
    if grant.until_ms is not None and question.now_ms >= grant.until_ms:
        return False
    if sends_private and labels.secrecy(grant.seen) < labels.secrecy(question.label):
        return False  # The yes was to a prompt that did not say that private data could go there.
    # Only a command's results come here; what a worker's file tools write stays there.
    from_afar = (
        question.tool.source.startswith("worker:") and "process" in question.tool.capabilities
    )
    if (from_afar or question.label.integrity == "untrusted") and request.obeyed(question):
        # A yes to a folder or to the tool was no yes to this file, and none to what others make of
        # it.
        itself = set(question.label.sources) == {question.tool.source}
        return _names_it(grant, question) and (itself or _was_seen(grant.seen, question.label))
    return not risk.reaches_out(question) or _was_seen(grant.seen, question.label)


def _names_it(grant: Grant, question: Question) -> bool:
    """Whether the grant is for this very file, or for this very command; or for a skill, whose
    folders the prompt showed.
    """
    subject, scope = grant.subject, question.scope
    if question.tool.source.startswith("skill:"):
        return True
    if subject.kind == "command":
        return bool(subject.value) and subject.value == scope.command
    return subject.kind == "path_prefix" and scope.paths == (subject.value,)


def _was_seen(seen: Label, now: Label) -> bool:
    """Untrusted content that came in after the yes may be what asks now, so the yes does not speak
    for it.
    """
    if now.integrity == "trusted":
        return True
    if seen.integrity == "trusted" or not 0 < len(now.sources) < MOST_SOURCES:
        return False
    # A name for several sources may hide one that nobody has seen.
    return set(now.sources) <= set(seen.sources) and not any(map(labels.is_several, now.sources))
