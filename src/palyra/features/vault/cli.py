"""`palyra vault`: secrets for tools, by name. A value is typed unseen or piped in, never an
argument, and never printed.
"""

import sys
from typing import Any

import click
from msgspec import Struct

from palyra.cli import formatting
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client.http import Api
from palyra.core.errors import InvalidInput
from palyra.features.vault.rows import Secret

_MOST_BYTES = 1 << 20

vault = group("vault", "Secrets for tools: list, set, rotate, remove.", default="list")


class ShownVault(Struct):
    """What the daemon says of its vault."""

    state: str
    why: str
    secrets: list[Secret]


class _KeyRotated(Struct):
    secrets: int


def _scope(function: Any) -> Any:
    return click.option(
        "--scope",
        default="global",
        show_default=True,
        metavar="SCOPE",
        help="global, principal (yours alone), channel:NAME or skill:NAME.",
    )(function)


@verb(vault, "list", help="List secrets. Their values are shown nowhere.")
def list_(state: CliState) -> None:
    stored = state.api.get("/v1/vault", ShownVault)
    if state.out.as_json:
        state.out.json(stored)
        return
    rows = [
        [
            each.name,
            each.scope,
            each.size,
            _where(each),
            formatting.when(each.created_ms),
            formatting.when(each.updated_ms),
            _use(each),
        ]
        for each in stored.secrets
    ]
    state.out.table(["name", "scope", "size", "for", "made", "changed", "used"], rows)
    if stored.why:
        state.out.note(f"the vault is {stored.state}: {clean(stored.why)}")


@verb(
    vault,
    "set",
    help="Store a secret. Its value is asked for without being shown, or read from a pipe.",
)
@click.argument("name")
@_scope
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="It may be sent here only; may be given more than once.",
)
@click.option(
    "--tool",
    "tools",
    multiple=True,
    metavar="TOOL",
    help="It is for this tool only; may be given more than once.",
)
@click.option("--anywhere", is_flag=True, help="Lift the hosts and tools it was restricted to.")
def set_(
    state: CliState,
    name: str,
    scope: str,
    hosts: tuple[str, ...],
    tools: tuple[str, ...],
    anywhere: bool,
) -> None:
    body: dict[str, Any] = {"hosts": [], "tools": []} if anywhere else {}
    body |= {key: given for key, given in (("hosts", hosts), ("tools", tools)) if given}
    stored = put(state.api, name, value_of(name), scope=scope, **body)
    state.out.result(
        stored, f"{clean(stored.label)} is stored: tools are given vault:{clean(name)}"
    )


@verb(vault, "rotate", help="Give a secret another value; where it may be used stays as it is.")
@click.argument("name")
@_scope
def rotate(state: CliState, name: str, scope: str) -> None:
    body = {"name": name, "scope": scope, "value": value_of(name)}
    stored = state.api.post("/v1/vault/rotate", Secret, body)
    state.out.result(stored, f"{clean(stored.label)} has its new value")


@verb(vault, "remove", help="Remove a secret.")
@click.argument("name")
@_scope
def remove(state: CliState, name: str, scope: str) -> None:
    from urllib.parse import urlencode

    state.api.delete("/v1/vault?" + urlencode({"name": name, "scope": scope}))
    state.out.result({"removed": name, "scope": scope}, f"{clean(name)} is removed")


@verb(
    vault,
    "rotate-key",
    help="Seal every secret anew under a new master key. Backups from before keep the old one.",
)
def rotate_key(state: CliState) -> None:
    rotated = state.api.post("/v1/vault/rotate-key", _KeyRotated, timeout_s=600)
    state.out.result(rotated, f"{rotated.secrets} secrets are sealed under a new key")


def put(api: Api, name: str, value: str, **more: Any) -> Secret:
    return api.post("/v1/vault", Secret, {"name": name, "value": value, **more})


def value_of(name: str) -> str:
    """The value, typed unseen at a terminal or read from a pipe. The line end that `echo` adds is
    not part of it.
    """
    if sys.stdin.isatty():
        return ask(name)
    raw = sys.stdin.buffer.read(_MOST_BYTES)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise InvalidInput(
            "a secret must be text in UTF-8; encode it, as base64 for example"
        ) from None
    return text.removesuffix("\n").removesuffix("\r")


def ask(name: str) -> str:
    from getpass import getpass

    return getpass(f"value of {clean(name)} (not shown): ")


def _where(secret: Secret) -> str:
    if not secret.readable:
        return "cannot be read"
    return ", ".join((*secret.hosts, *secret.tools)) or "anything"


def _use(secret: Secret) -> str:
    return formatting.ago(secret.used_ms) if secret.used_ms else "never"
