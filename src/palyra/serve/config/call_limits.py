"""The time-outs of a provider as its settings say them, with defaults by its kind and its place."""

from typing import Final

from palyra.models.call_limits import CallLimits, is_local
from palyra.serve.config.sections import Limit, Provider

_MINUTE_S: Final = 60.0
# A reasoning model may think so long without a word: OpenAI's own API keeps quiet meanwhile.
_QUIET_S: Final = {"openai-responses": 10 * _MINUTE_S}
_SILENCE_S: Final = 2 * _MINUTE_S
# Keep-alives alone are no answer.
_FIRST_TOKEN_S: Final = 15 * _MINUTE_S
# Local servers hold a tool call back until it is whole, and write it slowly.
_LOCAL_STALL_S: Final = 10 * _MINUTE_S


def of(provider: Provider) -> CallLimits:
    """`timeout_ms` stands for silence before and after the first token where these are not set."""
    local = is_local(provider.base_url)
    quiet = None if local else _QUIET_S.get(provider.kind, _SILENCE_S)
    silence = _seconds(provider.timeout_ms, quiet)
    stall = _seconds(provider.timeout_ms, _LOCAL_STALL_S if local else _SILENCE_S)
    first = provider.first_token_ms
    return CallLimits(
        connect_s=_seconds(provider.connect_ms, 5.0 if local else 15.0) or _FIRST_TOKEN_S,
        # Who says how long the first token may take means that, whatever is heard before it.
        silence_s=silence if first == "auto" else None,
        first_token_s=_seconds(first, None if local else max(_FIRST_TOKEN_S, silence or 0.0)),
        stall_s=_seconds(provider.stall_ms, stall),
        call_s=_seconds(provider.call_ms, None),
    )


def longest_silence_ms(provider: Provider) -> int | None:
    """Return how long a call may say nothing before it is ended; None if there is no limit."""
    limits = of(provider)
    first = min(
        (each for each in (limits.silence_s, limits.first_token_s) if each is not None),
        default=None,
    )
    if first is None or limits.stall_s is None:
        return None
    return int(max(first, limits.stall_s) * 1000)


def _seconds(value: Limit, otherwise: float | None) -> float | None:
    if value == "auto":
        return otherwise
    return None if value == "never" else value / 1000
