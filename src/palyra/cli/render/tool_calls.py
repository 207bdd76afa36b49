"""The tool calls of a session as they go by: with the arguments that were used in the end, and by
whose answer they ran.
"""

import re
from collections.abc import Callable

from palyra.cli import formatting
from palyra.cli.render import entries
from palyra.core.events import (
    AnyEvent,
    ApprovalResolved,
    Call,
    Entry,
    ModelReplied,
    ToolDecided,
    ToolFinished,
    ToolProposed,
)

# A decision by a grant names the approval in its reason; one by an answer of always, in the name of
# the policy.
_APPROVAL = re.compile(r"\b(?:always-|approval )([0-9A-HJKMNP-TV-Z]{26})\b")


class ToolCallLines:
    """`answered_ms` gives the time at which an approval was answered that is not on this tape; 0 if
    nobody knows.
    """

    def __init__(self, answered_ms: Callable[[str], int] = lambda approval_id: 0) -> None:
        self._answered_ms = answered_ms
        self._known: dict[str, Call] = {}
        self._granted: dict[str, str] = {}
        self._times: dict[str, int] = {}

    def follow(self, entry: Entry, event: AnyEvent | None) -> None:
        match event:
            case ModelReplied(calls=calls):
                for call in calls:
                    self._known.setdefault(call.id, call)
            case ToolProposed():
                self._known[event.call_id] = Call(event.call_id, event.tool, event.arguments)
            case ToolDecided(verdict="allow"):
                found = _APPROVAL.search(" ".join((event.reason, *event.policies)))
                if found:
                    self._granted[event.call_id] = found[1]
            case ApprovalResolved():
                self._times[event.approval_id] = entry.time_ms
                asked = self._known.get(event.call_id)
                if event.arguments is not None and asked is not None:
                    self._known[event.call_id] = Call(asked.id, asked.tool, event.arguments)
            case _:
                pass

    def get(self, call_id: str) -> Call | None:
        return self._known.get(call_id)

    def lines(self, style: entries.Style, finished: ToolFinished) -> list[str]:
        call = self._known.get(finished.call_id)
        tool, arguments = (call.tool, call.arguments) if call else ("tool", {})
        return entries.tool_lines(style, tool, arguments, finished, self._by_whom(finished.call_id))

    def _by_whom(self, call_id: str) -> str:
        approval_id = self._granted.get(call_id, "")
        if not approval_id:
            return ""
        if approval_id not in self._times:
            self._times[approval_id] = self._answered_ms(approval_id)
        at = formatting.clock(self._times[approval_id])
        return f"(allowed by your answer of {at})" if at else "(allowed by an answer of yours)"
