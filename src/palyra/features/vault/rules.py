"""Rules of what may be a secret, and who may use it where. All refusals are here; none of them
repeats a value.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from palyra.core.errors import Forbidden, InvalidInput
from palyra.features.vault.rows import NAME_PATTERN, SCOPE_PATTERN, Secret, Size

SHORTEST = 4
LONGEST_BYTES = 4096  # redaction of a stream promises no more
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?")
_TOOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:-]{0,127}")

Value = Annotated[str, Meta(extra_json_schema={"writeOnly": True})]
Named = Annotated[str, Meta(pattern=NAME_PATTERN)]
InScope = Annotated[str, Meta(pattern=SCOPE_PATTERN)]
Few = Annotated[tuple[Annotated[str, Meta(max_length=253)], ...], Meta(max_length=32)]


class NewSecret(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`hosts` and `tools` say where it may be used, all of them if empty; left out, they stay as
    they were.
    """

    name: Named
    value: Value
    scope: InScope = "global"
    hosts: Few | None = None
    tools: Few | None = None

    def __repr__(self) -> str:
        return f"NewSecret({self.scope}/{self.name})"


def reach(principal: str, channel: str, skill: str) -> dict[str, str]:
    """The scopes that a call may take secrets from, the narrowest first."""
    named = {"skill": skill, "channel": channel, "principal": principal}
    return {
        **{kind: f"{kind}:{whose}" for kind, whose in named.items() if whose},
        "global": "global",
    }


def check_use(secret: Secret, tool: str, host: str | None) -> None:
    if secret.tools and tool not in secret.tools:
        raise Forbidden(
            f"the secret {secret.label} is for {', '.join(secret.tools)} only, not for"
            f" {tool or 'this'}"
        )
    if secret.hosts and (host is None or canonical(host) not in secret.hosts):
        raise Forbidden(
            f"the secret {secret.label} may only be sent to {', '.join(secret.hosts)}, not to"
            f" {host or 'anything else'}"
        )


def check_value(value: str, shown: Iterable[str]) -> None:
    """`shown` is what everybody may read beside it."""
    if len(value.strip()) < SHORTEST:
        raise InvalidInput(
            f"a secret needs at least {SHORTEST} characters: a shorter one is found in ordinary"
            " text, so it could not be redacted"
        )
    try:
        length = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput("a secret must be text: this one has half a character in it") from None
    if length > LONGEST_BYTES:
        raise InvalidInput(
            f"a secret may have {LONGEST_BYTES} bytes: a longer one could not be redacted while it"
            " is streamed"
        )
    if any(value.strip() in text for text in shown):
        raise InvalidInput(
            "the value stands in the secret's own name, scope, hosts or tools, which are shown:"
            " choose others"
        )


def size(value: str) -> Size:
    return "short" if len(value) < 16 else "medium" if len(value) < 64 else "long"


def canonical(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def host(host: str) -> str:
    plain = canonical(host)
    if _HOST.fullmatch(plain):
        return plain
    try:
        return str(ipaddress.IPv6Address(plain))
    except ValueError:
        raise InvalidInput(
            "a host is a name such as api.example.org, or an address, without scheme, port or path"
        ) from None


def tool(name: str) -> str:
    if not _TOOL.fullmatch(name):
        raise InvalidInput("a tool is named as in `GET /v1/tools`: http.fetch")
    return name
