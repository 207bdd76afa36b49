"""What is shown of a server: its state, its tools and what waits for a yes. Plain values, so that
naming them costs nothing.
"""

from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

State = Literal["disabled", "starting", "ready", "waiting", "failed", "stopped"]


class Pending(Struct, frozen=True):
    """A tool that is not offered yet. `words` says what is different from what was accepted,
    `change` shows it line by line.
    """

    server: str
    tool: str
    fingerprint: str
    new: bool
    change: str
    words: str = ""


class ServerStatus(Struct, frozen=True):
    """`starts` counts how often it was connected. `log` is the end of what it wrote to its standard
    error.

    `where` is its program or its host. `fingerprint` stands for everything that is pending,
    together. `late` counts the calls in a row that it has not answered in time.
    """

    name: str
    state: State
    detail: str = ""
    transport: Literal["stdio", "http"] = "stdio"
    server: str = ""
    protocol: str = ""
    tools: tuple[str, ...] = ()
    pending: tuple[Pending, ...] = ()
    problems: tuple[str, ...] = ()
    starts: int = 0
    log: str = ""
    where: str = ""
    tier: str = ""
    fingerprint: str = ""
    late: int = 0


def together(pending: tuple[Pending, ...]) -> str:
    """One fingerprint for all that waits; empty if nothing does."""
    if not pending:
        return ""
    return sha256(
        msgspec.json.encode(sorted((each.tool, each.fingerprint) for each in pending))
    ).hexdigest()
