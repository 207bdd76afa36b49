"""One reply while it streams, so that every word of it is shown exactly once, also when the
connection or the daemon broke.

Pieces are not stored and may be missing after a break; the finished reply is stored and is the
truth. Where both agree nothing is said twice; where they cannot be brought together the whole reply
is shown again, and that is said.

The tool calls of a session as they go by: with the arguments that were used in the end, and by
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


BEGINS_AGAIN = "(reply restarted)"


class ReplyText:
    """`say` prints words of the reply; `note` prints a remark of ours on a line of its own."""

    def __init__(self, say: Callable[[str], None], note: Callable[[str], None]) -> None:
        self._say = say
        self._note = note
        self._turn: tuple[str, int] | None = None
        self._shown = ""
        self._current = ""
        # Whether the pieces are known to come from the beginning of the turn, and whether to wait
        # for the whole instead.
        self._sure = False
        self._quiet = False
        # Set until the first piece after a connection was made: the turn under way may have begun
        # without us.
        self._doubt = True
        self._ours: set[str] = set()

    def connected(self) -> None:
        self._doubt = True
        self._sure = False
        self._ours.clear()
        self._current = ""

    def started(self, run_id: str) -> None:
        """Note that we began this run, and were listening: none of its pieces can be missing."""
        self._ours.add(run_id)

    def began_again(self) -> None:
        """The model is asked the same again, from the beginning."""
        self._current = ""
        if not self._doubt:
            self._sure, self._quiet = True, False

    def piece(self, run_id: str, turn: int, text: str) -> None:
        doubtful = self._doubt and run_id not in self._ours
        self._doubt = False
        if self._turn != (run_id, turn):
            self._begin(run_id, turn)
            self._sure, self._quiet = not doubtful, doubtful
        elif doubtful and not self._shown:
            self._quiet = True
        if not self._quiet:
            self._current += text
            self._show()

    def so_far(self, run_id: str, turn: int, text: str) -> None:
        """Take everything the turn has said: what was missed is there again, and no piece behind it
        can be missing.
        """
        self._doubt = False
        if self._turn != (run_id, turn):
            self._begin(run_id, turn)
        self._sure, self._quiet, self._current = True, False, text
        self._show()

    def _show(self) -> None:
        if self._shown.startswith(self._current):
            return
        if self._current.startswith(self._shown):
            self._say(self._current[len(self._shown) :])
            self._shown = self._current
        elif self._sure:
            self._note(BEGINS_AGAIN)
            self._say(self._current)
            self._shown = self._current
        else:
            self._quiet = True

    def finished(self, run_id: str, turn: int, text: str) -> None:
        """The stored reply: show what is missing of it."""
        if self._turn != (run_id, turn):
            self._begin(run_id, turn)
        if text.startswith(self._shown):
            self._say(text[len(self._shown) :])
        else:
            self._note(BEGINS_AGAIN)
            self._say(text)
        self._turn = None
        self._shown = self._current = ""

    def _begin(self, run_id: str, turn: int) -> None:
        self._turn = (run_id, turn)
        self._shown = self._current = ""
