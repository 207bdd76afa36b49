"""The kinds of connectors there are. Each is one line here; what it needs is imported when somebody
configures it.
"""

from importlib import import_module

from palyra.core.errors import InvalidInput
from palyra.features.channels.contract import ConnectorKind

# Where each kind's `Kind` lies. Add yours.
_KINDS = {
    "discord": "palyra.features.channels.discord.settings:KIND",
    "email": "palyra.features.channels.email.settings:KIND",
    "loopback": "palyra.features.channels.loopback:KIND",
    "matrix": "palyra.features.channels.matrix.settings:KIND",
    "slack": "palyra.features.channels.slack.settings:KIND",
    "telegram": "palyra.features.channels.telegram.settings:KIND",
    "webhook": "palyra.features.channels.webhook:KIND",
}


def names() -> tuple[str, ...]:
    return tuple(_KINDS)


def find(name: str) -> ConnectorKind:
    place = _KINDS.get(name)
    if place is None:
        raise InvalidInput(
            f"there is no kind of channel {name[:32]!r}: there are {', '.join(sorted(_KINDS))}",
            kinds=sorted(_KINDS),
        )
    module, _, attribute = place.partition(":")
    kind: ConnectorKind = getattr(import_module(module), attribute)
    return kind


def everything() -> list[ConnectorKind]:
    """All kinds that a person may add."""
    return [kind for kind in map(find, _KINDS) if not kind.hidden]
