"""What a person has already said yes to. A grant turns an Ask into an Allow and never touches a Deny."""

from collections.abc import Iterable

from palyra.domain.labels import Label
from palyra.domain.verdicts import Allow, Ask, Grant, Question, Verdict
from palyra.policy import risk

# A label names at most so many sources; a full one may hide a source that nobody has seen.
_FULL = 16


def settle(verdict: Verdict, grants: Iterable[Grant], question: Question) -> tuple[Verdict, Grant | None]:
    """The verdict after the grants, and the grant that changed it, if one did."""
    if not isinstance(verdict, Ask):
        return verdict, None
    grant = covering(grants, question)
    if grant is None:
        return verdict, None
    return Allow(f"already approved, in answer to {grant.approval_id}", verdict.policies), grant


def covering(grants: Iterable[Grant], question: Question) -> Grant | None:
    """The first grant that still holds and covers the whole call."""
    return next(
        (grant for grant in grants if _holds(grant, question) and grant.subject.covers(question.tool.name, question.scope)), None
    )


def _holds(grant: Grant, question: Question) -> bool:
    if grant.principal != question.principal:
        return False
    if grant.session_id is not None and grant.session_id != question.session_id:
        return False
    if grant.until_ms is not None and question.now_ms >= grant.until_ms:
        return False
    return not risk.reaches_out(question) or _was_seen(grant.seen, question.label)


def _was_seen(seen: Label, now: Label) -> bool:
    """Untrusted content that came in after the yes may be what asks now, so the yes does not speak for it."""
    if now.integrity == "trusted":
        return True
    return seen.integrity == "untrusted" and 0 < len(now.sources) < _FULL and set(now.sources) <= set(seen.sources)
