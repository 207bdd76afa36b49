"""`palyra help` and `palyra version`: what people type who do not know that these are options."""

import click

import palyra
from palyra.cli.commands import command
from palyra.cli.state import CliState
from palyra.core.errors import InvalidInput


@command("help", help="Say what a command does and takes.")
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
def help_(state: CliState, names: tuple[str, ...]) -> None:
    context = click.get_current_context().find_root()
    for name in names:
        group = context.command
        if not isinstance(group, click.Group):
            raise InvalidInput(f"`{context.command_path}` has no commands of its own")
        # Unknown names get the same words, with what may have been meant, as when they are called.
        _, found, _ = group.resolve_command(context, [name])
        assert found is not None
        context = click.Context(found, info_name=name, parent=context)
    state.out.line(context.get_help())


@command("version", help="Print the version.")
def version(state: CliState) -> None:
    if state.out.as_json:
        state.out.json({"version": palyra.__version__})
    else:
        state.out.line(f"palyra {palyra.__version__}")
