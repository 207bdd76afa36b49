"""Command and group types of this command line: `--json`, `--home` and `--no-color` work
everywhere, before or after the verb.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import click
from click.exceptions import NoSuchCommand

from palyra.cli.state import CliState

F = TypeVar("F", bound=Callable[..., Any])
# Longer than any sentence.
_WHOLE = 400


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value:
            setattr(context.ensure_object(CliState), name, value)

    return callback


def _common() -> list[click.Parameter]:
    return [
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_remember("as_json"),
            help="Print JSON for programs.",
        ),
        click.Option(
            ["--home"],
            metavar="FOLDER",
            expose_value=False,
            is_eager=True,
            callback=_remember("home_argument"),
            help="Home folder of the daemon.  [default: PALYRA_HOME or ~/.palyra]",
        ),
        click.Option(
            ["--no-color"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_remember("no_color"),
            help="No colours; NO_COLOR does the same.",
        ),
    ]


class CliCommand(click.Command):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _common()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(ctx, formatter)


def _write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    from palyra.cli.help_texts import EXAMPLES

    shown = EXAMPLES.get(ctx.command_path.partition(" ")[2])
    if shown:
        with formatter.section("Examples"):
            formatter.write_dl(shown, col_max=60)


class CliGroup(click.Group):
    """A group of verbs. With a default, the verb may be left out: `palyra sessions` lists."""

    command_class = CliCommand

    def __init__(self, *args: Any, default: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._default = default
        self.no_args_is_help = not default
        self.params += _common()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options_only = not args or args[0].startswith("-")
        known = {"--help", "-h", *self.commands}
        if self._default and options_only and not ctx.resilient_parsing and known.isdisjoint(args):
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The first sentence of each verb, whole: one that breaks off tells nobody what the verb is
        for.
        """
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, self.commands[name].get_short_help_str(_WHOLE))
                    for name in self.list_commands(ctx)
                ]
            )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        given = args[0] if args else ""
        if given and given not in names and given[0] != "-" and not ctx.resilient_parsing:
            raise NoSuchCommand(given, _unknown(ctx, given, names), ctx=ctx)
        return super().resolve_command(ctx, args)


def _unknown(ctx: click.Context, given: str, names: list[str]) -> str:
    from palyra.cli.help_texts import meant

    found = [f"`{ctx.command_path} {name}`" for name in meant(given, names)]
    likely = f" Did you mean {' or '.join(found)}?" if found else ""
    return f"There is no command {given!r}.{likely}"


class LazyGroup(CliGroup):
    """The root. Knows each command's name and summary, and imports its module when it is called."""

    def __init__(self, *args: Any, table: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        module, _, name = self._table[cmd_name][0].partition(":")
        command = getattr(import_module(f"palyra.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from palyra.cli.help_texts import grouped

        # One column for all groups.
        widest = max(map(len, self._table))
        for title, names in grouped(self._table):
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), self._table[name][1]) for name in names])


def command(name: str, **options: Any) -> Callable[[Callable[..., Any]], CliCommand]:
    """A command of its own, given the state."""

    def decorate(function: Callable[..., Any]) -> CliCommand:
        made = click.command(name, cls=CliCommand, **options)(click.pass_obj(function))
        assert isinstance(made, CliCommand)
        return made

    return decorate


def group(name: str, summary: str, default: str = "") -> CliGroup:
    return CliGroup(name, help=summary, default=default)


def verb(of: CliGroup, name: str, **options: Any) -> Callable[[Callable[..., Any]], CliCommand]:
    """A command of a group, given the state."""

    def decorate(function: Callable[..., Any]) -> CliCommand:
        made = command(name, **options)(function)
        of.add_command(made)
        return made

    return decorate
