"""Messages for people while no provider can answer: one sentence for every surface."""

from palyra.core.messages import FailureClass

_CAUSES: dict[FailureClass, str] = {
    "overloaded": "Model overloaded",
    "rate_limited": "Rate limit reached",
    "network": "Cannot reach the model",
    "timeout": "Model timed out",
    "auth": "The provider refused the key",
    "permission": "The key may not use this model",
    "quota": "The provider's account has no credit left",
}
# What a person can do where nobody else can.
_ACTIONS: dict[FailureClass, str] = {
    "auth": "put in another key, or choose another model",
    "permission": "choose another model, or another key",
    "quota": "add credit at the provider, or choose another model",
}


def cause(failure: FailureClass) -> str:
    return _CAUSES.get(failure, "Model not available")


def action(failure: FailureClass) -> str:
    """Return what the owner can do about it; empty: only wait."""
    return _ACTIONS.get(failure, "")


def sentence(failure: FailureClass, next_try_ms: int, now_ms: int) -> str:
    """`Model overloaded; next try in 40 s.`"""
    left_ms = next_try_ms - now_ms
    when = f"next try in {span(left_ms)}" if left_ms > 0 else "trying again"
    return f"{cause(failure)}; {when}."


def span(ms: int) -> str:
    """A length of time as people say it: 40 s, 3 min, 6 h."""
    seconds = max(1, -(-ms // 1000))
    if seconds < 120:
        return f"{seconds} s"
    minutes = -(-seconds // 60)
    return f"{minutes} min" if minutes < 120 else f"{-(-minutes // 60)} h"
