"""One question before something that matters. Anything but a yes is a no, and a no says that
nothing was done.
"""

import sys

import click

from palyra.cli.exit_codes import InterruptedCommand
from palyra.core.errors import InvalidInput


def confirm(question: str) -> None:
    try:
        if click.confirm(question, err=True):
            return
    except click.Abort:
        # The input ended, or Ctrl-C: the question's line is still open.
        click.echo(err=True)
        if not sys.stdin.isatty():
            raise InvalidInput(
                "nobody is here to ask: nothing was done; --yes says yes beforehand"
            ) from None
    raise InterruptedCommand("nothing was done")
