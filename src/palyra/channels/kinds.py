"""The kinds of connectors there are. Each is one line here; what it needs is imported when somebody configures it."""

from importlib import import_module

from palyra.channels.contract import Kind
from palyra.domain.errors import InvalidInput

# Where each kind's `Kind` lies. Add yours.
_KINDS = {
    "discord": "palyra.channels.discord.kind:KIND",
    "email": "palyra.channels.email.kind:KIND",
    "loopback": "palyra.channels.loopback:KIND",
    "matrix": "palyra.channels.matrix.kind:KIND",
    "slack": "palyra.channels.slack.kind:KIND",
    "telegram": "palyra.channels.telegram.kind:KIND",
    "webhook": "palyra.channels.webhook:KIND",
}


def names() -> tuple[str, ...]:
    return tuple(_KINDS)


def find(name: str) -> Kind:
    place = _KINDS.get(name)
    if place is None:
        raise InvalidInput(
            f"there is no kind of channel {name[:32]!r}: there are {', '.join(sorted(_KINDS))}", kinds=sorted(_KINDS)
        )
    module, _, attribute = place.partition(":")
    kind: Kind = getattr(import_module(module), attribute)
    return kind


def everything() -> list[Kind]:
    """All kinds that a person may add."""
    return [kind for kind in map(find, _KINDS) if not kind.hidden]
