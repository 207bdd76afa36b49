"""`palyra token` and `palyra login`: who may talk to the daemon. A token is shown once, when it is
made.
"""

import os
import time
from typing import Any

import click

from palyra.cli import formatting, lookup
from palyra.cli.commands import command, group, verb
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.types.admin import Token

token = group("token", "Access tokens: list, create, revoke.", default="list")


@verb(token, "list", help="List tokens. The tokens themselves are kept nowhere.")
def list_(state: CliState) -> None:
    found = state.api.list_tokens().tokens
    if state.out.as_json:
        state.out.json({"tokens": found})
        return
    rows = [
        [
            each.token_id,
            one_line(each.name, 40),
            each.scope,
            formatting.when(each.created_ms),
            _use(each),
            _state(each),
        ]
        for each in found
    ]
    state.out.table(["token", "name", "scope", "made", "used", "state"], rows)


@verb(token, "create", help="Make a token and print it, this once.")
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice(["owner", "operator", "viewer", "client", "connector", "worker"]),
    default="viewer",
    show_default=True,
    help=(
        "client: asks in its own sessions, approves nothing. viewer: reads every session, the"
        " journal and memory."
    ),
)
@click.option(
    "--workspace",
    metavar="FOLDER",
    help="The only folder of a client.  [default: the daemon's workspace]",
)
@click.option(
    "--for",
    "period",
    metavar="TIME",
    help="Good for this long: 12h, 30d.  [default: until it is revoked]",
)
def create(
    state: CliState, name: str, scope: Any, workspace: str | None, period: str | None
) -> None:
    expires_ms = int(time.time() * 1000) + formatting.parse_duration(period) if period else 0
    folder = os.path.abspath(os.path.expanduser(workspace)) if workspace else ""
    made = state.api.create_token(name=name, scope=scope, expires_ms=expires_ms, workspace=folder)
    if state.out.as_json:
        state.out.json(made)
        return
    state.out.line(made.token)
    state.out.note(
        "this is the only time it is shown; revoke it with `palyra token revoke"
        f" {made.info.token_id}`"
    )


@verb(token, "revoke", help="Revoke a token, at once.")
@click.argument("token_id")
def revoke(state: CliState, token_id: str) -> None:
    revoked = state.api.revoke_token(lookup.checked(token_id))
    if state.out.as_json:
        state.out.json(revoked)
    else:
        state.out.line(f"{clean(revoked.name)} ({revoked.scope}) is revoked")


@command("login", help="Print a link that logs a browser in, once, within ten minutes.")
def login(state: CliState) -> None:
    link = state.api.create_login_link().url
    if state.out.as_json:
        state.out.json({"url": link})
    else:
        state.out.line(clean(link))


def _use(each: Token) -> str:
    return formatting.ago(each.used_ms) if each.used_ms else "never"


def _state(each: Token) -> str:
    if each.revoked_ms:
        return f"revoked {formatting.when(each.revoked_ms)}"
    return f"until {formatting.when(each.expires_ms)}" if each.expires_ms else "good"
