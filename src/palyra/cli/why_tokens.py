"""`palyra why-tokens`: what the prompts of a run were made of, part by part, with a bar for
each.
"""

import click

from palyra.cli import formatting, short_ids
from palyra.cli.commands import command
from palyra.cli.render.bars import bar
from palyra.cli.safe_text import one_line
from palyra.cli.state import CliState
from palyra.client.types.runs import BilledTurn


@command(
    "why-tokens",
    help=(
        "What the prompts of a run were made of, turn by turn. `palyra usage --by run` lists runs."
    ),
)
@click.argument("run_id", metavar="RUN")
@click.option("--all", "every", is_flag=True, help="Every turn.  [default: the first and the last]")
def why_tokens(state: CliState, run_id: str, every: bool) -> None:
    turns = state.api.run_tokens(short_ids.run(state.api, run_id)).turns
    if state.out.as_json:
        state.out.json({"turns": turns})
        return
    if not turns:
        state.out.line("no model was asked in this run yet")
        return
    shown = turns if every or len(turns) <= 2 else [turns[0], turns[-1]]
    for number, turn in enumerate(shown):
        if number:
            state.out.line("")
        _show(state, turn)
    if len(shown) < len(turns):
        state.out.line(
            "\nleft out between them:"
            f" {formatting.counted(len(turns) - len(shown), 'turn', 'turns')}; --all shows"
            " everything"
        )


def _show(state: CliState, turn: BilledTurn) -> None:
    reported = (
        f", {turn.model} counted {formatting.count(turn.input_tokens)}" if turn.input_tokens else ""
    )
    cached = (
        f" of which {formatting.count(turn.cached_tokens)} were cached"
        if turn.cached_tokens
        else ""
    )
    state.out.line(
        f"turn {turn.turn}: {formatting.count(turn.tokens)} of {formatting.count(turn.budget)}"
        f" tokens{reported}{cached}"
    )
    most = max((part.tokens for part in turn.parts), default=0)
    rows = [
        [
            part.source,
            formatting.count(part.tokens),
            bar(part.tokens, most),
            one_line(part.note, 60),
        ]
        for part in turn.parts
    ]
    state.out.table(["part", "tokens", "", "note"], rows, right=["tokens"])
