"""Risk of a call, for the person who approves it. Pure; the worst finding counts, so knowing more
never lowers the risk.
"""

from collections.abc import Iterator

from msgspec import Struct

from palyra.core import call_values
from palyra.core.verdicts import Question, Risk
from palyra.policy import request

ORDER: tuple[Risk, ...] = ("low", "medium", "high", "critical")
_MOST_NAMED = 5
OUTWARD = frozenset({"network", "message", "browser", "process"})


class Assessment(Struct, frozen=True):
    risk: Risk
    why: str


def assess(question: Question) -> Assessment:
    """The worst of all findings, with every reason of that weight."""
    found = [*_by_capability(question), *_by_scope(question), *_by_label(question)] or [
        _harmless(question)
    ]
    worst = max(found, key=lambda finding: ORDER.index(finding.risk)).risk
    reasons = dict.fromkeys(finding.why for finding in found if finding.risk == worst)
    return Assessment(worst, ", ".join(reasons))


def reaches_out(question: Question) -> bool:
    """Return whether the call can send data out of the daemon's hands or cannot be taken back."""
    return question.tool.effect == "once" or not OUTWARD.isdisjoint(question.tool.capabilities)


def _harmless(question: Question) -> Assessment:
    return Assessment(
        "low", "only reads" if question.tool.effect == "pure" else "changes nothing outside Palyra"
    )


def _by_capability(question: Question) -> Iterator[Assessment]:
    tool = question.tool
    changes = "fs.write" in tool.capabilities
    if changes and tool.effect != "once":
        yield Assessment(
            "low",
            f"changes {_files(question)}"
            + (", can be undone" if tool.effect == "reversible" else ""),
        )
    if changes and tool.effect == "once":
        yield Assessment("high", f"changes {_files(question)} permanently")
    if "process" in tool.capabilities:
        yield Assessment("medium", f"runs {question.scope.program or 'a program'}")
    if "network" in tool.capabilities or "browser" in tool.capabilities:
        yield Assessment(
            "medium", f"connects to {', '.join(question.scope.hosts) or 'the network'}"
        )
    if "message" in tool.capabilities:
        yield _saying(question)
    if "secrets" in tool.capabilities:
        yield Assessment("high", "receives secrets")
    if tool.effect == "once":
        yield Assessment("medium", "cannot be undone")
    if not tool.source.startswith("internal"):
        yield Assessment("medium", f"the tool comes from {tool.source}")


def _saying(question: Question) -> Assessment:
    recipients = ", ".join(question.scope.recipients)
    if not recipients and question.tool.source.startswith("internal"):
        # A schedule says nothing yet, and its runs are judged call by call.
        return Assessment("medium", "has work done later in your name")
    return Assessment("high", f"sends a message to {recipients or 'other people'}")


def _by_scope(question: Question) -> Iterator[Assessment]:
    scope, able = question.scope, question.tool.capabilities
    writes = "fs.write" in able or "process" in able
    if scope.paths and not request.in_workspace(scope):
        yield Assessment("high" if writes else "medium", "outside the workspace")
    if request.obeyed(question):
        yield Assessment(
            "high" if question.tool.source.startswith("worker:") else "medium", obeying(question)
        )
    if scope.destructive:
        yield Assessment("high", "may delete or overwrite files permanently")
    if request.wide(scope):
        yield Assessment("critical" if writes else "high", "covers a home folder or more")


def _by_label(question: Question) -> Iterator[Assessment]:
    label = question.label
    if label.integrity == "untrusted" and request.obeyed(question):
        sources = ", ".join(label.sources) or "an unknown source"
        yield Assessment("high", f"{obeying(question)} after untrusted content from {sources}")
    if not reaches_out(question):
        return
    if label.integrity == "untrusted":
        sources = ", ".join(label.sources) or "an unknown source"
        yield Assessment("high", f"the model has read untrusted content from {sources}")
        if "secrets" in question.tool.capabilities:
            yield Assessment("critical", f"receives secrets after untrusted content from {sources}")
    if label.confidentiality != "public" and request.sends(question):
        yield Assessment(
            "high" if label.confidentiality == "private" else "critical", leaving(question)
        )


def _files(question: Question) -> str:
    """Return the files that a call changes, as the person knows them."""
    root = question.scope.workspace.rstrip("/") + "/"
    paths = [path.removeprefix(root) for path in question.scope.paths]
    if not paths:
        return "files"
    return paths[0] if len(paths) == 1 else f"{len(paths)} files"


def obeying(question: Question) -> str:
    """Return who would obey what the call writes, in words."""
    found = request.obeyed(question)
    root = question.scope.workspace.rstrip("/") + "/"
    named = [f"{row.who} would obey {path.removeprefix(root)}" for path, row in found.items()]
    return ", ".join(named[:_MOST_NAMED]) + (
        f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    )


def unvouched(question: Question) -> str:
    """Which values nobody vouches for, where they are from, and what else goes along."""
    values = question.values
    found = call_values.doubtful(values)
    if not values.declared or values.vouched or values.reads_only:
        return ""
    if not found and not reaches_out(question):
        return ""  # The policy's own reason says enough of what stays here.
    said = [] if values.planned else ["what the user said does not ask for this call"]
    said += [call_values.value_words(each) for each in found[:_MOST_NAMED]]
    along = [each.name for each in values.arguments if each not in found]
    also = f" ({', '.join(along)} go along)" if along and found else ""
    return "; ".join(said) + also


def leaving(question: Question) -> str:
    """Say which data could leave, and where to."""
    label, scope = question.label, question.scope
    what = f"{label.confidentiality} data" + (
        f" from {', '.join(label.private_sources)}" if label.private_sources else ""
    )
    where = ", ".join((*scope.hosts, *scope.recipients))
    return f"{what} could go to {where}" if where else f"{what} could leave"
