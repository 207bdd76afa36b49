"""Leaves journals of runs that were killed on the way and finished later, in a process of its own
because it forks.

Run as `python -m tests.crash.recorded_crashes FOLDER TRACES`.
"""

import json
import random
import sys
from pathlib import Path

from tests.crash.forking import killed, ready_to_fork
from tests.crash.harness import child, live, prepare
from tests.crash.scenarios import SCENARIOS, recorded

KILLS = 5
KILLS_OF_A_TRACE = 3


def main(root: Path, traces: Path) -> None:
    """One folder for each kill, and for each trace one without."""
    rng = random.Random(11)
    left = []
    scenarios = {name: (make(), KILLS) for name, make in SCENARIOS.items()}
    scenarios |= {
        f"trace{number}": (recorded(traces, number), KILLS_OF_A_TRACE) for number in range(3)
    }

    async def once() -> None:
        for name, (scenario, _) in scenarios.items():
            await live(prepare(root / "warm" / name, scenario), scenario)

    ready_to_fork(once)
    for name, (scenario, kills) in scenarios.items():
        whole = prepare(root / name, scenario)
        status, report = child(whole, scenario, 0)
        assert status == 0, f"{name} does not even run without a crash"
        left.append(str(whole))
        for point in sorted(rng.sample(range(2, report["points"]), kills)):
            folder = prepare(root / f"{name}-{point}", scenario)
            status, _ = child(folder, scenario, point)
            if killed(status):
                status, _ = child(folder, scenario, 0)
            assert status == 0, f"{name} was not finished after a kill at {point}"
            left.append(str(folder))
    sys.stdout.write(json.dumps(left) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
