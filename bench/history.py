"""Benchmark of the OpenAI door with programs that send their whole conversation each time: how much
of a prompt the next one begins with, which is what a provider's cache can use, and how many
sessions a conversation leaves.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests import history_clients
from tests.daemon import start

from bench.common import Table

_TURNS = 50


def tables() -> Iterator[Table]:
    rows: list[tuple[str, ...]] = []
    for name, converse in history_clients.CLIENTS.items():
        with history_clients.recording() as provider, tempfile.TemporaryDirectory() as folder:
            config = history_clients.CONFIG.format(url=provider.url)
            with start(Path(folder), config=config) as served:
                begun = time.perf_counter()
                converse(served, _TURNS)
                seconds = time.perf_counter() - begun
                share = history_clients.stability(provider.requests)
                sessions = len(history_clients.sessions(served))
        rows.append(
            (
                name,
                str(len(provider.requests)),
                f"{share:.2%}",
                str(sessions),
                f"{seconds / _TURNS * 1000:.0f}",
            )
        )
    yield Table(
        f"{_TURNS} turns of programs that send their whole history and name no session",
        ("program", "prompts", "prefix that stayed", "sessions", "ms a turn"),
        rows,
    )
