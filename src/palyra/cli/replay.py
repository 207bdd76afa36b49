"""`palyra replay`: run the loop again over a recorded run and say where it differs, if it does. Needs no daemon and no network."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palyra.cli import exits, words
from palyra.cli.commands import command
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import State
from palyra.domain import ids
from palyra.domain.errors import InvalidInput

if TYPE_CHECKING:
    from palyra.runtime.replay.comparing import Difference, Side
    from palyra.runtime.replay.replaying import Replayed
    from palyra.runtime.replay.suite import Summary, Tried


@command(
    "replay", help="Run the loop again over a recorded run or session, offline, and say where it differs. 0: identical, 1: not."
)
@click.argument("what", nargs=-1, metavar="RUN|SESSION|FILE|FOLDER")
@click.option("--keep", is_flag=True, help="RUN FOLDER: keep a run as a file of its own, to replay it later.")
@click.option("--suite", is_flag=True, help="FOLDER: replay every kept run of a folder.")
def replay(state: State, what: tuple[str, ...], keep: bool, suite: bool) -> int:
    if keep and suite:
        raise InvalidInput("give --keep or --suite, not both")
    if keep:
        return _keep(state, *_given(what, "RUN", "FOLDER"))
    (wanted,) = _given(what, "FOLDER" if suite else "RUN")
    return _suite(state, Path(wanted)) if suite else _replay(state, wanted)


def _given(what: tuple[str, ...], *names: str) -> tuple[str, ...]:
    if len(what) != len(names):
        raise InvalidInput(f"give {' and '.join(names)}, as in `palyra replay --help`")
    return what


def _replay(state: State, wanted: str) -> int:
    from palyra import offline
    from palyra.runtime.replay import recording as recordings
    from palyra.runtime.replay.replaying import replay as again

    if Path(wanted).is_file():
        recorded = recordings.decode(Path(wanted).read_bytes())
    else:
        recorded = offline.recording(state.home, ids.check(wanted.upper(), "the run or session"))
    replayed = again(recorded, offline.tools(state.home, state.env))
    if state.out.as_json:
        state.out.json(replayed)
    else:
        _tell(state, replayed)
    return exits.OK if replayed.identical else exits.FAILED


def _keep(state: State, wanted: str, folder: str) -> int:
    from palyra import offline
    from palyra.runtime.replay import suite
    from palyra.runtime.replay.replaying import replay as again

    recorded = offline.recording(state.home, ids.check(wanted.upper(), "the run or session"))
    replayed = again(recorded, offline.tools(state.home, state.env))
    path = suite.keep(recorded, Path(folder))
    if state.out.as_json:
        state.out.json({"file": str(path), "replayed": replayed})
    else:
        state.out.line(f"kept as {clean(str(path))}")
        _tell(state, replayed)
    return exits.OK if replayed.identical else exits.FAILED


def _suite(state: State, folder: Path) -> int:
    from palyra import offline
    from palyra.runtime.replay import suite

    told = (lambda tried: None) if state.out.as_json else (lambda tried: _tried(state, tried))
    summary = suite.run(folder, offline.tools(state.home, state.env), told)
    if state.out.as_json:
        state.out.json(summary)
    else:
        _summary(state, summary)
    return exits.OK if summary.ok else exits.FAILED


# --- telling it -------------------------------------------------------------------------------------------------------


def _tell(state: State, replayed: "Replayed") -> None:
    compared = f"{words.count(replayed.entries)} entries are the same"
    if replayed.identical:
        state.out.line(state.out.style("✓ ", "green") + f"identical: {compared}")
        return
    assert replayed.difference is not None
    state.out.line(state.out.style("✗ ", "red") + f"different at entry {replayed.difference.seq}; {compared} before it")
    _difference(state, replayed.difference)


def _difference(state: State, difference: "Difference") -> None:
    if difference.where:
        state.out.line(f"  at        {clean(difference.where)}")
    state.out.line(f"  recorded  {_side(difference.recorded)}")
    state.out.line(f"  replayed  {_side(difference.replayed)}")
    if difference.hint:
        state.out.line(f"  {difference.hint}")


def _side(side: "Side | None") -> str:
    if side is None:
        return "nothing"
    return clean(side.kind) + (f": {one_line(_shown(side.at), 400)}" if side.at is not None else "")


def _shown(value: Any) -> str:
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _tried(state: State, tried: "Tried") -> None:
    if tried.replayed is None:
        state.out.line(state.out.style("! ", "yellow") + f"{clean(tried.file)}: {clean(tried.problem)}")
    elif tried.ok:
        state.out.line(state.out.style("✓ ", "green") + f"{clean(tried.file)} {one_line(tried.replayed.title, 60)}")
    else:
        assert tried.replayed.difference is not None
        state.out.line(state.out.style("✗ ", "red") + f"{clean(tried.file)} {one_line(tried.replayed.title, 60)}")
        _difference(state, tried.replayed.difference)


def _summary(state: State, summary: "Summary") -> None:
    state.out.line(
        f"{summary.identical} identical, {summary.different} different, {summary.broken} not readable; "
        f"{words.count(summary.entries)} entries compared"
    )
