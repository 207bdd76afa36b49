"""Plan of a run, declared before it reads anything that strangers could have written.

The rule: a plan is a reading of what the user asked for, so it counts like the user's own words and
no more: it never vouches for a recipient, an account or an amount. Once untrusted content was read
only the user can add to it.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from palyra.core import identifiers
from palyra.core.argument_roles import STRICT
from palyra.core.call_values import MOST_CALLS, ArgumentOrigin

TOOL = "plan"
MOST_LINES = 32
_LONGEST_ON = 200
_LONGEST_TOOL = 160
_MOST_SHOWN = 12
# Whose results strangers can have written.
_OUTSIDE = ("mcp:", "skill:")


class PlannedCall(Struct, frozen=True, omit_defaults=True):
    """Calls of a tool. Where `on` names addresses, accounts or URLs, only calls that go there."""

    tool: str
    times: int = 1
    on: str = ""


def read(calls: object) -> tuple[PlannedCall, ...]:
    """The lines of a plan, as the arguments of a call have them; what is none is left out."""
    found: list[PlannedCall] = []
    for each in calls if isinstance(calls, list | tuple) else ():
        tool = each.get("tool") if isinstance(each, dict) else None
        if not isinstance(tool, str) or not tool:
            continue
        times, on = each.get("times", 1), each.get("on", "")
        found.append(
            PlannedCall(
                tool[:_LONGEST_TOOL],
                min(MOST_CALLS, times) if isinstance(times, int) and times > 0 else 1,
                on[:_LONGEST_ON] if isinstance(on, str) else "",
            )
        )
    return tuple(found[:MOST_LINES])


def asks(said: str) -> tuple[PlannedCall, ...]:
    """Return the calls that the user's words ask for, for a person to read."""
    # The words of a dozen languages are loaded when somebody's are read.
    from palyra.core import intent

    counted: dict[str, int] = {}
    for order in intent.orders(said):
        # Not those that may be no verbs at all.
        if any(each.isalpha() and each != intent.LIGHT for each in order.classes):
            counted[order.verb] = counted.get(order.verb, 0) + max(order.count, 1)
    return tuple(PlannedCall(name, min(MOST_CALLS, times)) for name, times in counted.items())


def words(calls: Sequence[PlannedCall]) -> str:
    """A plan in one line."""
    shown = [
        f"{each.tool}{f' ×{each.times}' if each.times > 1 else ''}"
        f"{f' ({each.on})' if each.on else ''}"
        for each in calls[:_MOST_SHOWN]
    ]
    more = len(calls) - _MOST_SHOWN
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def left(
    tickets: Iterable[PlannedCall],
    tool: str,
    found: Sequence[ArgumentOrigin],
    made: Iterable[tuple[str, str]],
) -> int:
    """Return how many calls of a tool a plan has left. `made`: tool and sinks of those since."""
    allowed = sum(
        each.times for each in tickets if each.tool == tool and _goes_there(each.on, found)
    )
    if not allowed:
        return 0
    return max(0, min(MOST_CALLS, allowed) - sum(name == tool for name, _ in made))


def _goes_there(on: str, found: Sequence[ArgumentOrigin]) -> bool:
    named = {
        form
        for form in identifiers.names(identifiers.plain(on))
        if form.partition(":")[0] in identifiers.ACTIONABLE
    }
    if not named:
        return True
    for each in found:
        for value in each.values if each.role in STRICT and each.role != "amount" else ():
            forms = identifiers.names(identifiers.plain(value))
            if forms and forms.isdisjoint(named):
                return False
    return True


def foreign(source: str) -> bool:
    """Return whether a tool is somebody else's."""
    return source.startswith(_OUTSIDE)


def outside(source: str, capabilities: Sequence[str]) -> bool:
    """Return whether what a tool returns may be a stranger's text."""
    return foreign(source) or not {"network", "browser"}.isdisjoint(capabilities)
