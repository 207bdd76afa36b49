"""`palyra journal checkpoint`, `proof`, `consistency`, `key` and `rotate-key`: what proves the
journal to a stranger.
"""

import click

from palyra.cli import formatting
from palyra.cli.commands import verb
from palyra.cli.journal import journal as journal
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState


@verb(journal, "checkpoint", help="Sign a checkpoint over the journal as it is now.")
def checkpoint(state: CliState) -> None:
    made = state.api.make_checkpoint()
    if state.out.as_json:
        state.out.json(made)
    else:
        state.out.line(made.note.rstrip("\n"))


@verb(journal, "proof", help="Prove that an entry stands at its position. Prints JSON.")
@click.argument("position", type=click.IntRange(1))
@click.option(
    "--size",
    type=click.IntRange(1),
    default=None,
    help="In the journal of so many entries.  [default: of the first checkpoint over it]",
)
def proof(state: CliState, position: int, size: int | None) -> None:
    state.out.json(state.api.prove_entry(position, size=size or 0))


@verb(journal, "consistency", help="Prove that the journal has only grown. Prints JSON.")
@click.argument("old", type=click.IntRange(1))
@click.option(
    "--size",
    type=click.IntRange(1),
    default=None,
    help="Up to so many entries.  [default: the newest checkpoint]",
)
def consistency(state: CliState, old: int, size: int | None) -> None:
    state.out.json(state.api.prove_consistency(old=old, size=size or 0))


@verb(journal, "key", help="Show the public keys that checkpoints are signed with.")
def key(state: CliState) -> None:
    found = state.api.get_checkpoint()
    if state.out.as_json:
        state.out.json(found)
        return
    for each in found.keys:
        state.out.line(clean(each))
    if found.newest is not None:
        covered = formatting.count(found.newest.size)
        state.out.line(
            f"newest checkpoint: {covered} entries, {formatting.ago(found.newest.time_ms)}"
        )
    for anchor in found.anchors:
        told = clean(anchor.problem) or f"{formatting.count(anchor.size)} entries"
        state.out.line(f"anchor {clean(anchor.name)}: {told}")
    if found.problem:
        state.out.line(f"no checkpoint can be made: {clean(found.problem)}")


@verb(
    journal,
    "rotate-key",
    help="Replace the signing key. The old key signs for the new one.",
)
def rotate_key(state: CliState) -> None:
    made = state.api.rotate_journal_key()
    if state.out.as_json:
        state.out.json(made)
    else:
        state.out.line(f"checkpoints are signed with a new key from now on: {clean(made.key)}")
