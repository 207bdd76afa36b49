"""Adding and removing channels from within: their settings in the config file, their secrets in the
vault and nowhere else.
"""

from collections.abc import Mapping

from palyra.core.errors import Conflict, InvalidInput
from palyra.features.channels import registry
from palyra.features.setup.model import NewChannel
from palyra.features.vault.rules import NewSecret
from palyra.serve.config.sections import ChannelSection

_IN_VAULT = "vault:"
# These look into the machine; a page of a browser does not get to say where.
_ELSEWHERE = ("env:", "file:")
# Where a secret is sent to, and by what that place is known.
_PLACES = ("api", "homeserver", "imap", "smtp", "ca")


def settings(
    new: NewChannel, before: ChannelSection | None
) -> tuple[dict[str, str], list[NewSecret]]:
    """Return what is written into the file, and what goes into the vault beside it. Raise
    InvalidInput if something is missing or unknown.
    """
    kind = registry.find(new.kind)
    if before is not None and before.kind != new.kind:
        raise Conflict(
            f"the channel {new.name} is of kind {before.kind}: remove it first, or take another"
            " name"
        )
    kept = (
        dict(each.split("=", 1) for each in before.settings if "=" in each)
        if before is not None
        else {}
    )
    known = {each.name: each for each in kind.settings}
    if unknown := sorted(set(new.settings) - set(known)):
        raise InvalidInput(
            f"a channel of kind {kind.name} has no setting {unknown[0]}: it has {', '.join(known)}"
        )
    places = [each for each in _PLACES if each in known]
    moved = [
        each
        for each in places
        if (new.settings.get(each, "").strip() or known[each].default)
        != (kept.get(each) or known[each].default)
    ]
    written, secrets = {}, []
    for name, each in known.items():
        value = new.settings.get(name, "").strip()
        if each.secret and value and not value.startswith(_IN_VAULT):
            if value.startswith(_ELSEWHERE):
                raise InvalidInput(
                    f"{name}: give the value itself, or vault:NAME; env: and file: only with"
                    " `palyra channels add`"
                )
            secrets.append(
                NewSecret(name=_secret(new.name, name), value=value, tools=(f"channel:{new.name}",))
            )
            value = f"{_IN_VAULT}{_secret(new.name, name)}"
        if each.secret and not value and name in kept and moved:
            raise InvalidInput(
                f"{moved[0]} is another than {name} was given for: enter {name} too", setting=name
            )
        value = value or (kept.get(name, "") if each.secret else "")
        if each.required and not value:
            raise InvalidInput(f"{name} is missing: {each.words}", setting=name)
        if value:
            written[name] = value
    return written, secrets


def changes(new: NewChannel, written: Mapping[str, str]) -> dict[str, object]:
    lines = tuple(f"{name}={value}" for name, value in written.items())
    return {f"channels.{new.name}.kind": new.kind, f"channels.{new.name}.settings": lines}


def _secret(channel: str, setting: str) -> str:
    return f"channel-{channel}-{setting}"
