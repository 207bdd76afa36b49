"""Exit codes: a script can tell what happened without reading a sentence. Documented in
docs/reference/cli.md; never renumbered.
"""

from palyra.client.discovery import Unreachable
from palyra.core.errors import PalyraError

OK = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
DENIED = 4
UNREACHABLE = 5
CONFLICT = 6
CONFIG = 7
INTERRUPTED = 130

_BY_CODE = {
    "invalid_input": USAGE,
    "not_found": NOT_FOUND,
    "unauthenticated": DENIED,
    "forbidden": DENIED,
    "conflict": CONFLICT,
    "illegal_transition": CONFLICT,
    "config_invalid": CONFIG,
}


class InterruptedCommand(PalyraError):
    code = "interrupted"


def code_of(error: PalyraError) -> int:
    if isinstance(error, Unreachable):
        return UNREACHABLE
    if isinstance(error, InterruptedCommand):
        return INTERRUPTED
    return _BY_CODE.get(error.code, FAILED)
