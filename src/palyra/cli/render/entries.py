"""Events on a terminal. Chat, ask, approvals and the journal draw the same thing the same way."""

import time
from collections.abc import Mapping
from difflib import unified_diff
from typing import Any, Protocol

import msgspec

from palyra.cli import compactions, formatting
from palyra.cli.render.markdown_stream import Prose
from palyra.cli.safe_text import clean, one_line
from palyra.core import events, plans
from palyra.core.events import (
    AgentAnswered,
    AgentAsked,
    AnswerRefused,
    ApprovalRequested,
    ApprovalResolved,
    Entry,
    FileChange,
    InputReceived,
    ModelFailed,
    ModelReplied,
    PlanDeclared,
    RunCancelled,
    RunCompleted,
    RunFailed,
    SessionCompacted,
    SessionUncompacted,
    ToolDecided,
    ToolFinished,
    ToolHandedOver,
    ToolProposed,
    ToolUndone,
)
from palyra.core.tools import Preview

_MARKS = {
    "ok": ("✓", "green"),
    "denied": ("⊘", "yellow"),
    "skipped": ("⊘", "yellow"),
    "cancelled": ("⊘", "yellow"),
}
_CHANGES = {
    "created": ("+", "green"),
    "modified": ("~", "yellow"),
    "deleted": ("-", "red"),
    "restored": ("↺", "cyan"),
}
_RISKS = {"low": "green", "medium": "yellow", "high": "red", "critical": "red"}
MOST_PREVIEW = 200
_MOST_SAID = 20
# Stands before what a person says.
SAYS = "› "
_NO_END = 1 << 20


class Style(Protocol):
    def __call__(self, text: str, *styles: str) -> str: ...


def tool_lines(
    style: Style, tool: str, arguments: Mapping[str, Any], finished: ToolFinished, remark: str = ""
) -> list[str]:
    mark, color = _MARKS.get(finished.outcome, ("✗", "red"))
    about = formatting.about(arguments)
    head = " ".join(filter(None, (clean(tool), about)))
    outcome = "" if finished.outcome == "ok" else f" {finished.outcome}"
    took = (
        f"  {formatting.duration(finished.duration_ms)}"
        if finished.duration_ms or finished.outcome == "ok"
        else ""
    )
    said = f"  {remark}" if remark else ""
    lines = [style(mark, color) + f" {head}{style(outcome, color)}{style(took + said, 'dim')}"]
    if finished.outcome != "ok" and finished.text:
        lines.append("  " + style(one_line(finished.text, 160), "dim"))
    return lines + change_lines(style, finished.changes)


def change_lines(style: Style, changes: tuple[FileChange, ...]) -> list[str]:
    return [
        f"  {style(_CHANGES[each.change][0], _CHANGES[each.change][1])} {clean(each.path)}"
        for each in changes
    ]


def said_lines(style: Style, text: str, width: int, *styles: str) -> list[str]:
    """Return a person's words, behind their prompt. Much is cut: they know what they said."""
    lines = (
        Prose(style, lambda: width, base=styles, markdown=False, indent=2)
        .whole(text.strip("\n"))
        .split("\n")
    )
    more = (
        [style(f"  … {len(lines) - _MOST_SAID} more lines", "dim")]
        if len(lines) > _MOST_SAID
        else []
    )
    return [style(SAYS, "bold", "blue") + lines[0], *lines[1:_MOST_SAID], *more]


def wrapped(style: Style, text: str, width: int, *styles: str) -> list[str]:
    """Clean text of our own on as many lines as it needs, indented like its first; without a width,
    on one.
    """
    return (
        Prose(style, lambda: width or _NO_END, base=styles, markdown=False).whole(text).split("\n")
    )


def approval_lines(
    style: Style, request: ApprovalRequested, *, width: int = 0, details: bool = False
) -> list[str]:
    """Return what a person must know before approving: what, how dangerous and why; with `details`,
    everything else that is known.
    """
    what = {"in_doubt": "may have run", "budget": "needs more budget"}.get(request.about)
    tool = clean(request.tool)
    asked = f"{tool} {what}" if what else f"Approve {tool}"
    by = " (for a subagent)" if request.asker is not None else ""
    head = wrapped(style, f"? {asked}: {one_line(request.preview.title, 200)}{by}", width)
    head[0] = style("? ", "bold", "magenta") + style(head[0].removeprefix("? "), "bold")
    why = one_line(request.why, 300)
    facts = [f"{request.risk.capitalize()} risk", why if details else why.partition(". ")[0]]
    if request.expires_ms:
        left = max(0, request.expires_ms - int(time.time() * 1000)) // 1000
        facts.append(f"expires in {left // 60}:{left % 60:02} (then denied)")
    risk = wrapped(style, f"  {' · '.join(facts)}", width)
    risk[0] = risk[0].replace(facts[0], style(facts[0], "bold", _RISKS[request.risk]), 1)
    lines = head + risk
    for line in _flow_lines(request):
        lines += wrapped(style, line, width, "yellow")
    if request.group:
        said = f"  asked together with others: palyra approvals show {request.group} lists them"
        lines += wrapped(style, said, width, "dim")
    if request.plan:
        said = f"  not part of the plan: {one_line(request.plan, 300)}"
        lines += wrapped(style, said, width, "dim")
    return lines + (_details(style, request, width) if details else [])


def _details(style: Style, request: ApprovalRequested, width: int) -> list[str]:
    lines: list[str] = []
    if request.asker is not None:
        task = one_line(request.asker.task, 300)
        lines += wrapped(style, f"  asked by a subagent; its task: {task}", width)
    if request.label.sources:
        sources = one_line(", ".join(request.label.sources), 300)
        lines += wrapped(style, f"  the agent has read: {sources}", width, "dim")
    if request.policies:
        lines += wrapped(
            style, f"  policy: {one_line(', '.join(request.policies), 200)}", width, "dim"
        )
    if request.cost_microusd:
        lines.append(style(f"  cost so far: {formatting.money(request.cost_microusd)}", "dim"))
    return lines


def _flow_lines(request: ApprovalRequested) -> list[str]:
    """Return what the agent has read that matters here: what may have asked for this call, and what
    could go where.
    """
    flow, label = request.flow, request.label
    if flow is None:
        if label.integrity == "trusted" or request.about != "tool":
            return []
        return [
            "  the agent has read untrusted content from"
            f" {one_line(', '.join(label.sources) or 'outside', 200)}"
        ]
    where = one_line(", ".join(flow.sinks), 200) or "elsewhere"
    lines = []
    for each in flow.sources:
        by = ", ".join(
            filter(None, (clean(each.tool), f"entry {each.seq}" if each.seq else "earlier"))
        )
        name = f"{one_line(each.source, 160)} ({by})"
        if each.untrusted:
            lines.append(f"  untrusted: {name} may have asked for this")
        if each.private and flow.sinks:
            lines.append(f"  {label.confidentiality}: {name} → {where}")
    if flow.sends_private:
        # That no policy permits it is why it is asked, and said there.
        lines.append(
            f"  a wider approval than once lets {label.confidentiality} data go there from now on"
        )
    return lines


def preview_lines(
    style: Style, preview: Preview, *, whole: bool = False, most: int = MOST_PREVIEW
) -> list[str]:
    """Return what would run: the beginning and the end of what is long, or all of it."""
    lines = clean(preview.body).rstrip("\n").split("\n") if preview.body else []
    shown = [f"    {diff_line(style, line) if preview.kind == 'diff' else line}" for line in lines]
    if len(shown) > most and not whole:
        left_out = len(shown) - most
        shown[most * 3 // 4 : -most // 4] = [
            style(
                f"    … {formatting.counted(left_out, 'line', 'lines')} not shown …",
                "bold",
                "yellow",
            )
        ]
    if preview.length or (hides(preview, most) and not whole):
        length = preview.length or len(preview.body)
        shown.append(
            style(
                f"    {length:,} characters in all, SHA-256 of what will run {preview.digest[:16]}",
                "dim",
            )
        )
    return shown


def hides(preview: Preview, most: int = MOST_PREVIEW) -> bool:
    """Return whether `preview_lines` leaves something out."""
    return bool(preview.length) or preview.body.rstrip("\n").count("\n") >= most


def diff_line(style: Style, line: str) -> str:
    if line.startswith(("+++", "---")):
        return style(line, "bold")
    color = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return style(line, color) if color else line


def read(entry: Entry) -> events.AnyEvent | None:
    """The event of an entry; None for a kind that a newer daemon knows and we do not."""
    try:
        return events.decode(bytes(entry.event))
    except msgspec.ValidationError:
        return None


def said(event: InputReceived) -> str:
    """Return what a person said, and the names of what came with it."""
    attached = ", ".join(each.name for each in event.attachments)
    return f"{event.text}\n[attached: {attached}]" if attached else event.text


def summary(entry: Entry, width: int = 0) -> str:
    """An entry in one line, without its time."""
    match read(entry):
        case InputReceived(text=text) | RunCompleted(text=text):
            said = text
        case ModelReplied() as reply:
            calls = ", ".join(
                f"{call.tool} {formatting.about(call.arguments, 40)}".rstrip()
                for call in reply.calls
            )
            said = " → ".join(filter(None, (reply.text, calls)))
            said = f"(incomplete) {said}" if reply.stop == "interrupted" else said
        case ModelFailed(failure=failure, message=message, text=text):
            said = f"{failure}: {message}" + (f" (incomplete) {text}" if text else "")
        case ToolProposed(tool=tool, arguments=arguments):
            said = f"{tool} {formatting.about(arguments)}"
        case ToolDecided() as decided:
            said = f"{decided.verdict}: {decided.reason}"
        case ToolFinished() as finished:
            said = f"{finished.outcome}: {finished.text}"
        case AnswerRefused(problem=problem):
            said = problem
        case PlanDeclared(calls=calls_planned, asked=asked):
            said = plans.words((*calls_planned, *asked))
        case ToolHandedOver(calls=handed):
            said = f"{len(handed)} calls are for the program that asked"
        case ApprovalRequested() as request:
            said = f"{request.tool}: {request.preview.title}"
        case ApprovalResolved() as resolved:
            edited = (
                f"with edited arguments: {_compact(resolved.arguments)} "
                if resolved.arguments is not None
                else ""
            )
            said = f"{resolved.decision} ({resolved.scope}) {edited}{resolved.reason}"
        case ToolUndone(changes=changes):
            said = ", ".join(change.path for change in changes)
        case RunFailed(reason=reason, message=message):
            said = f"{reason}: {message}"
        case RunCancelled(reason=reason):
            said = reason
        case SessionCompacted() | SessionUncompacted() as changed:
            said = compactions.notice(changed)
        case AgentAsked(request=request):
            said = f"{request.tool}: {request.preview.title}"
        case AgentAnswered(answer=answer):
            said = answer.decision
        case _:
            said = _plain(entry)
    return one_line(said, width)


def edited_lines(style: Style, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return a person's edit of proposed arguments, as a diff of each one that is different."""
    body: list[str] = []
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            old, new = (_as_lines(each[name]) if name in each else [] for each in (before, after))
            body += unified_diff(
                old, new, f"{name} as proposed", f"{name} as edited", lineterm="", n=2
            )
    return preview_lines(style, Preview("diff", "", "\n".join(body)), whole=True)


def _as_lines(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split("\n")
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode().split("\n")


def _compact(arguments: Mapping[str, Any]) -> str:
    return msgspec.json.encode(arguments).decode()


def _plain(entry: Entry) -> str:
    fields = msgspec.json.decode(bytes(entry.event))
    return " ".join(
        f"{key}={value}"
        for key, value in fields.items()
        if key != "kind" and not isinstance(value, dict | list)
    )
