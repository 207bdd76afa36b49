"""Nodes of one journal whose leader is killed, stopped, cut off and drained at random moments while
people talk to them: how soon another one goes on, and whether anything was lost or done twice.

`--rounds N` harms, of one kind after the other; an independent ledger and the journal's own tables
say what happened. It ends with an error if anything was lost, doubled or out of order.
"""

import random
import tempfile
import time
from pathlib import Path

from tests import postgres_server
from tests.cluster_storm import HARMS, Storm

from bench.common import Table

NODES = 3
PEOPLE = 8


def tables(rounds: int, lease_ms: int) -> list[Table]:
    began, seed = time.monotonic(), random.SystemRandom().randrange(1 << 32)
    postgres_server.server(durable=True)
    with tempfile.TemporaryDirectory(prefix="palyra-cluster-") as folder:
        storm = Storm(Path(folder), nodes=NODES, people=PEOPLE, seed=seed, lease_ms=lease_ms)
        try:
            storm.begin()
            for number in range(rounds):
                storm.round(HARMS[number % len(HARMS)])
            storm.end()
            storm.check()
        finally:
            storm.close()
            postgres_server.end()
    title = (
        f"Nodes: {rounds} takeovers among {NODES}, {PEOPLE} people, lease {lease_ms} ms"
        f" (seed {seed}, {time.monotonic() - began:.0f} s)"
    )
    harms = [
        (harm, *_spread(storm.takeovers[harm]), *_spread(storm.progress[harm])[1:])
        for harm in HARMS
        if storm.takeovers[harm]
    ]
    found = [
        (
            str(len(storm.acknowledged)),
            "0",
            str(len(storm.ledger_at_end)),
            "0",
            str(storm.doubts),
        )
    ]
    columns = ("harm", "rounds", "taken over p50", "p99", "longest")
    return [
        Table(title, (*columns, "first entry p50", "p99", "longest"), harms),
        Table(
            "Nodes: what the ledger and the journal say",
            ("acknowledged", "lost", "effects", "done twice", "in doubt and asked"),
            found,
        ),
    ]


def _spread(seconds: list[float]) -> tuple[str, str, str, str]:
    ordered = sorted(seconds)
    middle, last = ordered[len(ordered) // 2], ordered[int(0.99 * (len(ordered) - 1) + 0.5)]
    return str(len(ordered)), f"{middle:.1f} s", f"{last:.1f} s", f"{ordered[-1]:.1f} s"
