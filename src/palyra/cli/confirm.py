"""One question before something that matters. Anything but a yes is a no, and a no says that
nothing was done.

Asking for a secret at a terminal.
"""

import sys

import click

from palyra.cli.exit_codes import InterruptedCommand
from palyra.cli.safe_text import clean
from palyra.client.types.vault import Secret
from palyra.core.errors import InvalidInput


def label(secret: Secret) -> str:
    return f"{secret.scope}/{secret.name}"


def ask(name: str) -> str:
    from getpass import getpass

    return getpass(f"value of {clean(name)} (not shown): ")


def confirm(question: str) -> None:
    try:
        if click.confirm(question, err=True):
            return
    except click.Abort:
        # The input ended, or Ctrl-C: the question's line is still open.
        click.echo(err=True)
        if not sys.stdin.isatty():
            raise InvalidInput("no terminal to confirm on: nothing was done; use --yes") from None
    raise InterruptedCommand("nothing was done")
