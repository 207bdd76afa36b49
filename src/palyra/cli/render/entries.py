"""What an event looks like on a terminal. Chat, ask, approvals and the journal draw the same thing
the same way.
"""

import time
from collections.abc import Mapping
from difflib import unified_diff
from typing import Any, Protocol

import msgspec

from palyra.cli import compactions, formatting
from palyra.cli.render.markdown_stream import Prose
from palyra.cli.safe_text import clean, one_line
from palyra.core import events
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
_MOST_PREVIEW = 200
_MOST_SAID = 20
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
    """What a person said, behind their prompt. Much of it is cut: they know what they said."""
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
    return [style("> ", "bold", "blue") + lines[0], *lines[1:_MOST_SAID], *more]


def wrapped(style: Style, text: str, width: int, *styles: str) -> list[str]:
    """Clean text of our own on as many lines as it needs, indented like its first; without a width,
    on one.
    """
    return (
        Prose(style, lambda: width or _NO_END, base=styles, markdown=False).whole(text).split("\n")
    )


def approval_lines(
    style: Style, request: ApprovalRequested, *, preview: bool = True, width: int = 0
) -> list[str]:
    """What a person must see before saying yes: what, how dangerous, why it is asked, and where it
    comes from.
    """
    what = {"in_doubt": "may have happened", "budget": "needs more budget"}.get(
        request.about, "asks"
    )
    head = wrapped(
        style, f"? {clean(request.tool)} {what}: {one_line(request.preview.title, 200)}", width
    )
    head[0] = style("? ", "bold", "magenta") + style(head[0].removeprefix("? "), "bold")
    risk = wrapped(style, f"  risk {request.risk} · {one_line(request.why, 300)}", width)
    risk[0] = risk[0].replace(
        f"risk {request.risk}", f"risk {style(request.risk, 'bold', _RISKS[request.risk])}", 1
    )
    lines = head + risk
    if request.asker is not None:
        lines += wrapped(
            style, f"  a subagent asks, whose task is: {one_line(request.asker.task, 300)}", width
        )
    for line in _flow_lines(request):
        lines += wrapped(style, line, width, "yellow")
    if request.policies:
        lines += wrapped(
            style, f"  policy {one_line(', '.join(request.policies), 200)}", width, "dim"
        )
    if request.cost_microusd:
        lines.append(style(f"  cost so far {formatting.money(request.cost_microusd)}", "dim"))
    if request.expires_ms:
        left = request.expires_ms - int(time.time() * 1000)
        lines.append(
            style(
                f"  counts as denied in {formatting.duration(max(0, left) // 1000 * 1000)}", "dim"
            )
        )
    return lines + (preview_lines(style, request.preview) if preview else [])


def _flow_lines(request: ApprovalRequested) -> list[str]:
    """What the agent has read that matters here: what may have asked for this call, and what could
    go where.
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
            f"  a wider yes than once lets {label.confidentiality} data go there from now on"
        )
    return lines


def preview_lines(style: Style, preview: Preview, *, whole: bool = False) -> list[str]:
    """Return what would run: the beginning and the end of what is long, or all of it."""
    lines = clean(preview.body).rstrip("\n").split("\n") if preview.body else []
    shown = [f"    {diff_line(style, line) if preview.kind == 'diff' else line}" for line in lines]
    if len(shown) > _MOST_PREVIEW and not whole:
        left_out = len(shown) - _MOST_PREVIEW
        shown[_MOST_PREVIEW * 3 // 4 : -_MOST_PREVIEW // 4] = [
            style(f"    … {left_out} lines are not shown here …", "bold", "yellow")
        ]
    if preview.length or (hides(preview) and not whole):
        length = preview.length or len(preview.body)
        shown.append(
            style(
                f"    {length:,} characters in all, SHA-256 of what will run {preview.digest[:16]}",
                "dim",
            )
        )
    return shown


def hides(preview: Preview) -> bool:
    """Return whether `preview_lines` leaves something out."""
    return bool(preview.length) or preview.body.rstrip("\n").count("\n") >= _MOST_PREVIEW


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
    """What a person said, and the names of what came with it."""
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
    """What a person made of proposed arguments, as a diff of each one that is different."""
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
