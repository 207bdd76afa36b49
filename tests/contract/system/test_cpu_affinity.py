"""The daemon's own threads keep to one processor; what it starts, and what takes long, has all of
them.
"""

import json
import os
import subprocess
import sys

_SCRIPT = """
import json, os, subprocess, sys, threading
from palyra.system import cpu_affinity as processors
from palyra.system.thread_pool import ThreadPool as Hands

SHOW = "import os; print(sorted(os.sched_getaffinity(0)))"
def started():
    return json.loads(subprocess.run([sys.executable, "-c", SHOW], capture_output=True, check=True).stdout)
def mine():
    return sorted(os.sched_getaffinity(0))

def found():
    plain, roaming = Hands("a", least=1, most=1), Hands("b", least=1, most=1, roams=True)
    report = {"loop": mine(), "hand": plain.run_sync(mine), "long": roaming.run_sync(mine)}
    with processors.roaming():
        report["program"] = started()
    report["after"] = mine()
    def in_a_long_one():
        with processors.roaming():
            pass
        return mine()
    report["long, after a program"] = roaming.run_sync(in_a_long_one)
    return report

before = found()
processors.keep_together()
print(json.dumps({"before": before, "together": found()}))
"""


def _found(processors: set[int]) -> dict[str, dict[str, list[int]]]:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        capture_output=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, processors),
    )
    found: dict[str, dict[str, list[int]]] = json.loads(done.stdout)
    return found


def test_threads_keep_together_and_programs_do_not() -> None:
    given = sorted(os.sched_getaffinity(0))
    found = _found(set(given))
    assert all(each == given for each in found["before"].values())
    together = found["together"]
    one = together["loop"]
    assert len(one) == 1
    assert set(one) <= set(given)
    assert (together["hand"], together["after"]) == (one, one)
    assert (together["long"], together["program"], together["long, after a program"]) == (
        given,
        given,
        given,
    )


def test_where_there_is_only_one_there_is_nothing_to_choose() -> None:
    one = min(os.sched_getaffinity(0))
    assert set(map(tuple, _found({one})["together"].values())) == {(one,)}
