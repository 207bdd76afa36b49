"""`palyra replay`: run the loop again over a recorded run and say where it differs, if it does.
Needs no daemon and no network.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from palyra.cli import exit_codes, formatting
from palyra.cli.commands import command
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.core import ids
from palyra.core.errors import InvalidInput

if TYPE_CHECKING:
    from palyra.features.time_travel.replay.compare import Difference, Replayed, Side
    from palyra.features.time_travel.replay.service import ReplayedRun, SuiteSummary


@command(
    "replay",
    help=(
        "Run the loop again over a recorded run or session, offline, and say where it differs. 0:"
        " identical, 1: not."
    ),
)
@click.argument("what", nargs=-1, metavar="RUN|SESSION|FILE|FOLDER")
@click.option(
    "--keep", is_flag=True, help="RUN FOLDER: keep a run as a file of its own, to replay it later."
)
@click.option("--suite", is_flag=True, help="FOLDER: replay every kept run of a folder.")
def replay(state: CliState, what: tuple[str, ...], keep: bool, suite: bool) -> int:
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


def _replay(state: CliState, wanted: str) -> int:
    from palyra.features.time_travel.replay import recording as recordings
    from palyra.features.time_travel.replay.replay import replay as again
    from palyra.serve import offline

    if Path(wanted).is_file():
        recorded = recordings.decode(Path(wanted).read_bytes())
    else:
        recorded = offline.recording(state.home, ids.check(wanted.upper(), "the run or session"))
    replayed = again(recorded, offline.tools(state.home, state.env))
    if state.out.as_json:
        state.out.json(replayed)
    else:
        _tell(state, replayed)
    return exit_codes.OK if replayed.identical else exit_codes.FAILED


def _keep(state: CliState, wanted: str, folder: str) -> int:
    from palyra.features.time_travel.replay import service as suite
    from palyra.features.time_travel.replay.replay import replay as again
    from palyra.serve import offline

    recorded = offline.recording(state.home, ids.check(wanted.upper(), "the run or session"))
    replayed = again(recorded, offline.tools(state.home, state.env))
    path = suite.keep(recorded, Path(folder))
    if state.out.as_json:
        state.out.json({"file": str(path), "replayed": replayed})
    else:
        state.out.line(f"kept as {clean(str(path))}")
        _tell(state, replayed)
    return exit_codes.OK if replayed.identical else exit_codes.FAILED


def _suite(state: CliState, folder: Path) -> int:
    from palyra.features.time_travel.replay import service as suite
    from palyra.serve import offline

    told = (lambda tried: None) if state.out.as_json else (lambda tried: _tried(state, tried))
    summary = suite.run(folder, offline.tools(state.home, state.env), told)
    if state.out.as_json:
        state.out.json(summary)
    else:
        _summary(state, summary)
    return exit_codes.OK if summary.ok else exit_codes.FAILED


def _tell(state: CliState, replayed: "Replayed") -> None:
    compared = f"{formatting.count(replayed.entries)} entries are the same"
    if replayed.identical:
        state.out.line(state.out.style("✓ ", "green") + f"identical: {compared}")
        return
    assert replayed.difference is not None
    state.out.line(
        state.out.style("✗ ", "red")
        + f"different at entry {replayed.difference.seq}; {compared} before it"
    )
    _difference(state, replayed.difference)


def _difference(state: CliState, difference: "Difference") -> None:
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


def _tried(state: CliState, tried: "ReplayedRun") -> None:
    if tried.replayed is None:
        state.out.line(
            state.out.style("! ", "yellow") + f"{clean(tried.file)}: {clean(tried.problem)}"
        )
    elif tried.ok:
        state.out.line(
            state.out.style("✓ ", "green")
            + f"{clean(tried.file)} {one_line(tried.replayed.title, 60)}"
        )
    else:
        assert tried.replayed.difference is not None
        state.out.line(
            state.out.style("✗ ", "red")
            + f"{clean(tried.file)} {one_line(tried.replayed.title, 60)}"
        )
        _difference(state, tried.replayed.difference)


def _summary(state: CliState, summary: "SuiteSummary") -> None:
    state.out.line(
        f"{summary.identical} identical, {summary.different} different, {summary.broken} not"
        f" readable; {formatting.count(summary.entries)} entries compared"
    )
