"""The worker as a process: its lock, its log, its signals."""

import asyncio
import logging
import signal
from collections.abc import Callable
from pathlib import Path

from palyra.features.workers.node.execute import DEFAULT
from palyra.features.workers.node.home import Home
from palyra.features.workers.node.worker import Worker


async def run(
    folder: Path,
    offered: tuple[str, ...],
    *,
    slots: int,
    say: Callable[[str], None],
    quic: bool = False,
    rehearsal: bool = False,
) -> None:
    """Run until told to end, or turned away permanently, which is a PalyraError."""
    home = Home(folder)
    home.identity()
    home.make()
    logging.basicConfig(
        filename=home.state / "worker.log",
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    with home.locked():
        worker = Worker(
            home, offered or DEFAULT, slots=slots, say=say, quic=quic, rehearsal=rehearsal
        )
        loop = asyncio.get_running_loop()
        # Ctrl-C lets what runs finish; whoever ends services does not wait for that.
        loop.add_signal_handler(signal.SIGINT, worker.leave)
        loop.add_signal_handler(signal.SIGTERM, worker.end)
        await worker.run()
