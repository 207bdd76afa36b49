"""`palyra vault`: secrets for tools, by name. A value is typed unseen or piped in, never an
argument, and never printed.
"""

import sys
from typing import Any

import click

from palyra.cli import formatting
from palyra.cli.commands import group, verb
from palyra.cli.confirm import ask, label
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client.types.vault import Secret
from palyra.core.errors import InvalidInput

_MOST_BYTES = 1 << 20
_ROTATING_S = 600.0

vault = group("vault", "Secrets for tools: list, set, rotate, remove.", default="list")


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
    stored = state.api.list_secrets()
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
    stored = state.api.put_secret(name=name, value=value_of(name), scope=scope, **body)
    state.out.result(
        stored, f"{clean(label(stored))} is stored: tools are given vault:{clean(name)}"
    )


@verb(vault, "rotate", help="Give a secret another value; where it may be used stays as it is.")
@click.argument("name")
@_scope
def rotate(state: CliState, name: str, scope: str) -> None:
    stored = state.api.rotate_secret(name=name, scope=scope, value=value_of(name))
    state.out.result(stored, f"{clean(label(stored))} has its new value")


@verb(vault, "remove", help="Remove a secret.")
@click.argument("name")
@_scope
def remove(state: CliState, name: str, scope: str) -> None:
    state.api.remove_secret(name=name, scope=scope)
    state.out.result({"removed": name, "scope": scope}, f"{clean(name)} is removed")


@verb(
    vault,
    "rotate-key",
    help="Re-encrypt every secret under a new master key. Backups from before keep the old one.",
)
def rotate_key(state: CliState) -> None:
    rotated = state.api.within(_ROTATING_S).rotate_vault_key()
    state.out.result(rotated, f"{rotated.secrets} secrets are sealed under a new key")


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


def _where(secret: Secret) -> str:
    if not secret.readable:
        return "cannot be read"
    return ", ".join((*secret.hosts, *secret.tools)) or "anything"


def _use(secret: Secret) -> str:
    return formatting.ago(secret.used_ms) if secret.used_ms else "never"
