"""Ends the daemon at every point of a scenario, starts it again, and says what it found.

Run as `python -m tests.crash.harness FOLDER SCENARIO`. How daemons are ended and started again: see
`forking`. With `--kill` as a third argument every point gets a daemon of its own that really kills
itself there, as those that crash twice do in any case: the same answers, in a multiple of the time.
"""

import json
import random
import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from palyra.store import log_keys, sqlite_files
from palyra.store.verify import Bad
from tests.crash.forking import Copies, Points, arm, killed, ready_to_fork, told
from tests.crash.scenarios import (
    SCENARIOS,
    Scenario,
    conversation_of,
    drive,
    folds_agree,
    problems,
    recorded,
)
from tests.inprocess import daemon

DOUBLE_CRASHES = 6
_CHILD_SECONDS = 300


def child(
    folder: Path, scenario: Scenario, die_at: int, copies: Copies | None = None
) -> tuple[int, dict[str, Any]]:
    """Fork a daemon that drives the scenario; returns its exit status and what it reported. It
    stops where copies are wanted.
    """

    async def work() -> dict[str, Any]:
        points = Points(die_at, stops=copies is not None)
        arm(points)
        conversation = await live(folder, scenario)
        return {"points": points.count, "conversation": conversation}

    return told(
        folder / "report.json", work, _CHILD_SECONDS, copies.keep if copies is not None else None
    )


async def live(folder: Path, scenario: Scenario) -> dict[str, Any]:
    async with daemon(folder, scenario.turns, scenario.settings, window=scenario.window) as opened:
        session_id = await drive(opened, scenario)
        await folds_agree(opened, scenario, session_id)
        return await conversation_of(opened, session_id)


def prepare(folder: Path, scenario: Scenario) -> Path:
    for part in ("home", "home/policies", "work"):
        (folder / part).mkdir(parents=True)
    (folder / "home/policies/test.cedar").write_text(scenario.policy)
    for name, text in scenario.files.items():
        (folder / "work" / name).write_text(text)
    return folder


def try_crashes(
    root: Path, scenario: Scenario, reference: dict[str, Any], die_at: tuple[int, ...]
) -> list[str]:
    """Crash at these points one after another, then let it finish and look."""
    folder = prepare(root / "-".join(map(str, die_at)), scenario)
    for point in die_at:
        status, _ = child(folder, scenario, point)
        if status == 0:
            break
        if not killed(status):
            return [f"ended with status {status}"]
    return recovered(folder, scenario, reference)


def recovered(folder: Path, scenario: Scenario, reference: dict[str, Any]) -> list[str]:
    """Look whether what a crash left bears out what was signed for, start from it, let it finish,
    and look.
    """
    if (left := _signed_for(folder)) is not None:
        return [f"what was signed for is not there: {left}"]
    status, report = child(folder, scenario, 0)
    if status != 0:
        return [f"the daemon that recovered ended with status {status}: {report.get('error')}"]
    found = problems(
        scenario, folder / "work", cancelled=any(cancels for _, cancels in scenario.says)
    )
    if not any(cancels for _, cancels in scenario.says) and report["conversation"] != reference:
        found.append(f"another conversation: {report['conversation']} instead of {reference}")
    journal = folder / "home/journal.db"
    verified = sqlite_files.inspect(journal, trust=log_keys.trust(journal))
    if not verified.ok:
        found.append(f"the chain is broken: {verified.bad}")
    elif verified.vouched is None or verified.vouched.newer > 1:
        found.append(f"not all of it was signed for when it closed: {verified.vouched}")
    found += [f"not implied by the tape: {row}" for row in sqlite_files.inspect_rows(journal)]
    return found


def _signed_for(folder: Path) -> Bad | None:
    """What is wrong with a journal as it lies: every checkpoint, in it and in the keys folder, is
    one of the tree over its entries. A copy is looked at: whoever opens a journal changes its log.
    """
    with TemporaryDirectory(dir=folder.parent) as made:
        journal = shutil.copytree(folder / "home", Path(made) / "home") / "journal.db"
        if not journal.exists() or not sqlite_files.schema(journal):
            return None
        return sqlite_files.inspect(journal, trust=log_keys.trust(journal)).bad


def main(root: Path, name: str, *, kill: bool = False) -> None:
    began = time.monotonic()
    path, _, number = name.rpartition("#")
    scenario = recorded(Path(path), int(number)) if path else SCENARIOS[name]()
    ready_to_fork(lambda: live(prepare(root / "warm", scenario), scenario))
    place = prepare(root / "whole", scenario)
    copies = Copies(place, root / "copies")
    status, whole = child(place, scenario, 0, None if kill else copies)
    assert status == 0, "the scenario does not even run without a crash"
    reference = json.loads(json.dumps(whole["conversation"]))
    assert problems(scenario, place / "work", cancelled=False) == [] or any(
        c for _, c in scenario.says
    )
    rng = random.Random(5)
    last = whole["points"]
    failures = {}
    if not kill:
        assert copies.points >= last, "it went on where it was to stop"
        for point in copies.each():
            if found := recovered(place, scenario, reference):
                failures[point] = found
    tries: list[tuple[int, ...]] = [(point,) for point in range(1, last + 1)] if kill else []
    tries += [(rng.randint(1, last), rng.randint(1, last)) for _ in range(DOUBLE_CRASHES)]
    for die_at in tries:
        if found := try_crashes(root, scenario, reference, die_at):
            failures["-".join(map(str, die_at))] = found
    result = {
        "points": last,
        "states": copies.states,
        "tries": last + DOUBLE_CRASHES,
        "failures": failures,
        "seconds": round(time.monotonic() - began, 1),
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], kill="--kill" in sys.argv[3:])
