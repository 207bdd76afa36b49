"""The arguments of a call out of the text that a model wrote for them."""

from typing import Any, Final, NamedTuple

import msgspec

from palyra.core.messages import ModelCall, StopReason
from palyra.models import json_repair
from palyra.models.json_repair import NotRepairable

# With these the text may end anywhere: what is missing is not known.
_UNFINISHED: Final[tuple[StopReason, ...]] = ("length", "content_filter", "interrupted", "cut")
_CUT_OFF: Final = "the reply was cut off before these arguments were complete"


class ParsedArguments(NamedTuple):
    """`malformed`: why they cannot be used; `repaired`: what had to be repaired."""

    arguments: dict[str, Any]
    malformed: str = ""
    repaired: str = ""


def read(call: ModelCall, stop: StopReason) -> ParsedArguments:
    if call.malformed:
        return ParsedArguments({}, call.malformed)
    if not call.arguments.strip():
        return ParsedArguments({}, _CUT_OFF if stop in _UNFINISHED else "")
    try:
        arguments = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError) as error:
        if stop in _UNFINISHED:
            return ParsedArguments({}, _CUT_OFF)
        return _repaired(call.arguments, f"the arguments are not valid JSON ({error})")
    if not isinstance(arguments, dict):
        return ParsedArguments({}, "the arguments must be a JSON object")
    return ParsedArguments(arguments, "", call.repaired)


def _repaired(text: str, problem: str) -> ParsedArguments:
    try:
        found = json_repair.repair(text)
        # What cannot be written down again was not understood.
        msgspec.json.encode(found.value)
    except (NotRepairable, UnicodeEncodeError, RecursionError):
        return ParsedArguments({}, problem)
    if not isinstance(found.value, dict):
        return ParsedArguments({}, problem)
    return ParsedArguments(found.value, "", ", ".join(found.notes))
