"""`palyra completion`: a script for the shell that asks palyra itself what can follow."""

import click
from click.shell_completion import get_completion_class

from palyra.cli.commands import command
from palyra.cli.state import CliState

_HOW = {
    "bash": 'add to ~/.bashrc:  eval "$(palyra completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(palyra completion zsh)"',
    "fish": "run once:  palyra completion fish > ~/.config/fish/completions/palyra.fish",
}


@command("completion", help="Print a completion script for your shell.")
@click.argument("shell", type=click.Choice(list(_HOW)))
def completion(state: CliState, shell: str) -> None:
    from palyra.cli.root import root

    found = get_completion_class(shell)
    assert found is not None
    script = found(root, {}, "palyra", "_PALYRA_COMPLETE")
    # Rendered, not sourced: that would start the shell to look at its version.
    state.out.line(script.source_template % script.source_vars())
    if state.out.is_terminal:
        state.out.note(_HOW[shell])
