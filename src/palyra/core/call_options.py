"""Options of a model call: effort, temperature and so on, as settings and as a request gives them.

The rule: an option in a request is sent, or refused by name. An option in the settings is a wish:
if a server refuses it, the call is repeated without it.
"""

from collections.abc import Collection
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
Verbosity = Literal["", "low", "medium", "high"]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
StopSequence = Annotated[str, Meta(min_length=1, max_length=256)]
MOST_STOPS: Final = 16
MOST_SEED: Final = (1 << 53) - 1


class CallOptions(
    Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Options of one model call; unset ones are left to the provider. `max_tokens` is per reply."""

    effort: Effort = ""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    stop: Annotated[tuple[StopSequence, ...], Meta(max_length=MOST_STOPS)] = ()
    seed: Annotated[int, Meta(ge=-MOST_SEED, le=MOST_SEED)] | None = None
    service_tier: Annotated[str, Meta(max_length=40)] = ""
    # What only a request says: no setting has them.
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    verbosity: Verbosity = ""
    parallel_tool_calls: bool | None = None


NOTHING: Final = CallOptions()
ALL: Final = frozenset(CallOptions.__struct_fields__)
# What the settings say of a model also counts where the daemon itself asks it. How long and how
# thorough such a reply is belongs to the task.
FOR_TASKS: Final = frozenset({"temperature", "top_p", "seed", "service_tier"})


def said(options: CallOptions) -> tuple[str, ...]:
    """The names of what it says."""
    if options == NOTHING:
        return ()
    return tuple(name for name, value in asdict(options).items() if value not in (None, "", ()))


def over(settings: CallOptions, asked: CallOptions) -> CallOptions:
    """The settings, with what was asked for in their place."""
    if asked == NOTHING:
        return settings
    return replace(settings, **{name: getattr(asked, name) for name in said(asked)})


def only(options: CallOptions, carried: Collection[str]) -> CallOptions:
    """Return the options that a provider accepts."""
    if options == NOTHING:
        return options
    return CallOptions(
        **{name: getattr(options, name) for name in said(options) if name in carried}
    )
