"""Time limits of a model call, part by part: to connect, to the first token, between tokens, and as
a whole. Each message names the setting to change.

Silence ends when bytes come, keep-alives too; a first token is one that says something. A server on
this machine or in this network may read a long prompt for minutes without a word, so it is given
the time.
"""

from ipaddress import ip_address
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

_LOCAL_NAMES: Final = (".local", ".lan", ".home.arpa", ".internal", ".localhost")
Part = Literal["connect_ms", "first_token_ms", "stall_ms", "call_ms"]


class CallLimits(Struct, frozen=True, kw_only=True):
    """In seconds; None: no limit."""

    connect_s: float = 15.0
    # Before the first token: the longest silence, and the longest wait whatever else comes.
    silence_s: float | None = 120.0
    first_token_s: float | None = 600.0
    # After it: the longest silence.
    stall_s: float | None = 120.0
    call_s: float | None = None

    def due(self, *, began: float, heard: float, spoke: bool) -> tuple[float, float, Part] | None:
        """Return when the next limit is reached, how long it is, and the setting that holds it;
        None if there is none.
        """
        due: list[tuple[float, float, Part]] = []
        if self.call_s is not None:
            due.append((began + self.call_s, self.call_s, "call_ms"))
        if spoke:
            if self.stall_s is not None:
                due.append((heard + self.stall_s, self.stall_s, "stall_ms"))
        else:
            if self.silence_s is not None:
                due.append((heard + self.silence_s, self.silence_s, "first_token_ms"))
            if self.first_token_s is not None:
                due.append((began + self.first_token_s, self.first_token_s, "first_token_ms"))
        return min(due) if due else None


def silence(seconds: float) -> CallLimits:
    """Return limits that end a call after this much silence, at whatever point."""
    return CallLimits(silence_s=seconds, first_token_s=None, stall_s=seconds)


def exceeded(provider: str, part: Part, limit_s: float) -> str:
    """Say what took too long and which setting sets how long to wait."""
    setting = f"providers.{provider}.{part} sets how long to wait"
    match part:
        case "connect_ms":
            return (
                f"{provider} could not be connected to within {limit_s:g} s: check"
                f" providers.{provider}.base_url and that the server runs; {setting}"
            )
        case "first_token_ms":
            return f"{provider} sent no token for {limit_s:g} s; {setting}"
        case "stall_ms":
            return (
                f"{provider} stopped in the middle of its reply: no token for {limit_s:g} s;"
                f" {setting}"
            )
        case "call_ms":
            return (
                f"{provider} was not done after {limit_s:g} s; providers.{provider}.call_ms sets"
                " how long a call may take"
            )


def is_local(base_url: str) -> bool:
    """Return whether an address is on this machine or in this network, by its name alone."""
    try:
        host = (urlsplit(base_url).hostname or "").lower()
    except ValueError:
        return False
    try:
        address = ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_LOCAL_NAMES))
    return address.is_private or address.is_loopback or address.is_link_local
