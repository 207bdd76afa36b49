"""`palyra doctor --crash`: kill a daemon again and again while it works, and hold what is left
against what it promised.

Nothing that was acknowledged is lost, nothing happens twice, every run comes to its end, no process
is left behind and the journal verifies. The kills are spread evenly over the course of a run.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from palyra.core.events import ToolFinished, ToolProposed
from palyra.features.health import orphan_processes
from palyra.features.health.doctor import DoctorCheck
from palyra.serve.trials.daemon import Script, TrialDaemon, call, ground
from palyra.store import sqlite_files

_FIX = "this must never happen: keep what follows and report it"


def _script(runs: int) -> Script:
    def turns(number: int) -> list[dict[str, object]]:
        return [
            call("fs.write", path=f"written-{number}.txt", content=f"run {number}\n"),
            call("test.once", path="once.txt", line=str(number)),
            call("test.reversible", path="reversible.txt", line=str(number)),
            call("shell.run", command=f"sleep 0.1; echo {number}"),
            {"text": "done"},
        ]

    return {f"run {number}": turns(number) for number in range(runs)}


def trial(
    home: Path, env: Mapping[str, str], kills: int, progress: Callable[[int], None]
) -> Iterator[DoctorCheck]:
    with ground(home, env) as here:
        here.play(_script(kills + 1))
        here.start()
        # One that nobody disturbs says how long a run takes.
        began = time.monotonic()
        ended = [here.begin("run 0")]
        here.finish(ended[0].run_id)
        takes_s = time.monotonic() - began
        for number in range(1, kills + 1):
            run = here.begin(f"run {number}")
            ended.append(run)
            time.sleep(takes_s * (number - 0.5) / kills)
            here.kill()
            here.start()
            here.finish(run.run_id)
            progress(number)
        problems, denied = _account(here, [(run.session_id, run.run_id) for run in ended])
        here.stop()
        left = orphan_processes.carrying(orphan_processes.Marks(here.home).dead())
        if left:
            problems.append(f"processes outlived their daemon: {', '.join(map(str, left))}")
        report = sqlite_files.inspect(here.home / "journal.db")
        if not report.ok:
            problems.append(f"the journal does not verify: {report.bad}")
    times = f"killed {kills} times"
    if problems:
        yield DoctorCheck(
            id="crash",
            title="crash",
            state="fail",
            detail=f"{times}: {'; '.join(problems)}",
            fix=_FIX,
        )
        return
    detail = (
        f"{times}, and each run came to its end: nothing lost, nothing done twice, {report.entries}"
        " entries verify"
    )
    yield DoctorCheck(id="crash", title="crash", state="ok", detail=detail)
    if denied:
        detail = f"policy denied {', '.join(sorted(denied))}: that was not tried"
        yield DoctorCheck(id="crash:denied", title="crash", state="warn", detail=detail)


def _account(here: TrialDaemon, ended: list[tuple[str, str]]) -> tuple[list[str], set[str]]:
    """What is not as it was promised, and which tools were not let."""
    problems: list[str] = []
    denied: set[str] = set()
    lines = {name: Counter(_lines(here.work / name)) for name in ("once.txt", "reversible.txt")}
    for name, found in lines.items():
        problems += [
            f"{name} has the line {line} {times} times"
            for line, times in found.items()
            if times > 1
        ]
    for number, (session_id, run_id) in enumerate(ended):
        told = here.told(session_id)
        tools = {event.call_id: event.tool for event in told if isinstance(event, ToolProposed)}
        results = {
            tools.get(event.call_id, ""): event.outcome
            for event in told
            if isinstance(event, ToolFinished)
        }
        denied |= {tool for tool, outcome in results.items() if outcome == "denied"}
        run = here.finish(run_id)
        if run.state != "done":
            problems.append(f"run {number} ended as {run.state} ({run.reason})")
        for tool, name in (("test.once", "once.txt"), ("test.reversible", "reversible.txt")):
            if results.get(tool) == "ok" and not lines[name][str(number)]:
                problems.append(f"{name} lacks the line of run {number}, which the tape tells of")
        written = here.work / f"written-{number}.txt"
        if results.get("fs.write") == "ok" and (
            not written.exists() or written.read_text() != f"run {number}\n"
        ):
            problems.append(f"{written.name} is not what the tape tells")
    return problems, denied


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
