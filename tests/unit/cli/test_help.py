"""What `--help` shows: every command in a group, examples that can be typed, and a likely command
for one that does not exist.
"""

import shlex

import click
import pytest

from palyra.cli import exit_codes, help_texts
from palyra.cli.root import root, run
from palyra.cli.state import CliState

_NAMES = root.list_commands(click.Context(root))


def test_every_command_is_in_exactly_one_group() -> None:
    members = [name for _, names in help_texts.GROUPS for name in names]
    assert len(members) == len(set(members))
    assert set(_NAMES) <= set(members)
    assert [title for title, _ in help_texts.grouped(_NAMES)] == [
        title for title, _ in help_texts.GROUPS
    ]


def test_the_help_shows_the_groups_and_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == exit_codes.OK
    shown = capsys.readouterr().out
    for title, _ in help_texts.GROUPS:
        assert f"\n{title}:\n" in shown
    assert "Examples:\n  palyra up " in shown
    assert run(["ask", "--help"]) == exit_codes.OK
    assert 'palyra ask "summarise README.md"' in capsys.readouterr().out


_EXAMPLES = [line for lines in help_texts.EXAMPLES.values() for line, _ in lines]


@pytest.mark.parametrize("example", _EXAMPLES)
def test_an_example_can_be_typed(example: str) -> None:
    """It is read by the command that it names; nothing runs."""
    name, *arguments = shlex.split(example.rpartition("| ")[2])
    assert name == "palyra"
    command: click.Command = root
    context = root.make_context("palyra", arguments, obj=CliState())
    while isinstance(command, click.Group):
        given = [*context._protected_args, *context.args]
        found, below, rest = command.resolve_command(context, given)
        assert below is not None
        command, context = below, below.make_context(found, rest, parent=context)


@pytest.mark.parametrize(
    ("given", "likely"),
    [
        ("run", "palyra ask"),
        ("init", "palyra setup"),
        ("start", "palyra up"),
        ("modles", "palyra models"),
        ("sesions", "palyra sessions"),
        ("approve", "palyra approvals"),
    ],
)
def test_an_unknown_command_names_a_likely_one(
    given: str, likely: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([given]) == exit_codes.USAGE
    assert f"Did you mean `{likely}`" in capsys.readouterr().err


def test_a_word_that_is_like_no_command_gets_no_guess(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["xyzzy"]) == exit_codes.USAGE
    said = capsys.readouterr().err
    assert said == "error: There is no command 'xyzzy'. (see `palyra --help`)\n"
