"""Results of tools, as text that can be found: an identifier, an amount or a path that a later call
needs stands in a result that may be condensed by then.

The rule: a result is found in its own words, those of a large one in its artifact, and by the tool
and the arguments of the call. What a search gave back is not found once more.
"""

from typing import Any

from palyra.core import events
from palyra.core.events import ToolFinished, ToolProposed
from palyra.store import artifacts
from palyra.store.database import Tx

_ECHOES = ("memory.", "session.", "artifact.")
_TEXT_TYPES = ("text/", "application/json")
_MOST_BYTES = 256 << 10
_MOST_HEAD = 400


class Calls:
    """The calls of runs as they were proposed; each run is read once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._known: dict[str, dict[str, ToolProposed]] = {}

    def of(self, run_id: str, call_id: str) -> ToolProposed | None:
        if run_id not in self._known:
            rows = self._tx.all(
                "SELECT body FROM spoken WHERE run_id = :run_id AND run_id <> '' AND kind ="
                " 'tool.proposed'",
                run_id=run_id,
            )
            proposed = (events.decode(body) for (body,) in rows)
            self._known[run_id] = {
                each.call_id: each for each in proposed if isinstance(each, ToolProposed)
            }
        return self._known[run_id].get(call_id)


def text_of(tx: Tx, session_id: str, event: ToolFinished) -> str:
    """All of a result, as far as it is text."""
    if event.artifact is None:
        return event.text
    kept = artifacts.artifact(tx, session_id, event.artifact)
    if kept is None or not kept.media_type.startswith(_TEXT_TYPES):
        return event.text
    return kept.body[:_MOST_BYTES].decode("utf-8", "replace")


def is_echo(call: ToolProposed | None) -> bool:
    """Return whether a result only repeats what can be found where it stands."""
    return call is not None and call.tool.startswith(_ECHOES)


def head(call: ToolProposed | None) -> str:
    """The words of the call: its tool, and the values of its arguments."""
    if call is None:
        return ""
    return " ".join((call.tool, *_values(call.arguments)))[:_MOST_HEAD]


def _values(value: Any) -> list[str]:
    match value:
        case dict():
            return [each for inner in value.values() for each in _values(inner)]
        case list():
            return [each for inner in value for each in _values(inner)]
        case None | bool():
            return []
        case _:
            return [str(value)[:_MOST_HEAD]]
