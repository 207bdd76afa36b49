"""Values that a tool call adds to the index of what a model was shown: its result, under the trust
that its label gives.

The rule: what a call was given is no news when it comes back, and what was written after untrusted
content was read is as untrusted when it is read again.
"""

from palyra.core.call_values import sinks_key
from palyra.core.events import ToolFinished, ToolProposed
from palyra.core.labels import Label
from palyra.core.origins import ShownContent, plain_values

# Whether it happened is not known of the others, or it did.
_NOTHING_DONE = ("error", "denied", "cancelled", "skipped")
_MOST_REPEATED = 16 << 10


def proposed(shown: ShownContent, event: ToolProposed) -> None:
    if event.asked is not None and not event.asked.values.reads_only:
        shown.made[event.call_id] = (event.tool, sinks_key(event.asked.values))


def finished(
    shown: ShownContent, seq: int, proposal: ToolProposed | None, event: ToolFinished, before: Label
) -> None:
    """`before` is the label of what the model had been shown when it proposed the call."""
    if event.outcome in _NOTHING_DONE:
        shown.made.pop(event.call_id, None)
    if proposal is None:
        return
    untrusted_now = before.integrity == "untrusted"
    for change in event.changes:
        if untrusted_now:
            shown.tainted[change.path] = before.sources
    if not event.text:
        return
    repeats = " ".join(plain_values(proposal.arguments))[:_MOST_REPEATED]
    if event.label.integrity == "untrusted":
        shown.source(seq, "untrusted", event.label.sources, event.text, "")
        return
    inherited = _tainted(shown, proposal)
    if inherited is not None:
        shown.source(seq, "untrusted", inherited, event.text, "")
    elif _looks(proposal) or not untrusted_now:
        sources = event.label.private_sources or (proposal.tool,)
        shown.source(seq, "trusted", sources, event.text, repeats)


def _looks(proposal: ToolProposed) -> bool:
    """Return whether a result is what was there before, and not what the call made."""
    asked = proposal.asked
    if asked is None or "process" in asked.capabilities:
        return asked is not None and asked.values.reads_only
    return proposal.effect == "pure" or asked.values.reads_only


def _tainted(shown: ShownContent, proposal: ToolProposed) -> tuple[str, ...] | None:
    """The sources of a file that a call reads, if it was written after untrusted content."""
    if not shown.tainted:
        return None
    for path, sources in shown.tainted.items():
        for each in proposal.scope.paths:
            if path == each or path.startswith(each.rstrip("/") + "/") or each.endswith(f"/{path}"):
                return sources
    return None
