"""Channels: many messages with a daemon that is killed every few seconds, a platform that breaks, repeats and refuses."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.crash.channel_storm import storm

from bench.common import Table

MESSAGES = 10_000
CONVERSATIONS = 100
KILL_EVERY_S = 8.0


def tables() -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        found = storm(Path(folder), MESSAGES, conversations=CONVERSATIONS, kill_every_s=KILL_EVERY_S, seed=1, limit_s=1_500)
    assert not found.problems, found.problems[:10]
    title = (
        f"{found.messages} messages on two channels in {CONVERSATIONS * 2} conversations, the daemon killed {found.kills} times "
        f"with SIGKILL: {found.seconds:.0f} s, {found.messages / found.seconds:.0f} a second, every one accounted for, order kept"
    )
    head = (
        "answered",
        "refused",
        "failed and told",
        "delivered again",
        "sends refused",
        "answers lost",
        "marked as possibly twice",
    )
    row = (
        str(found.states.get("answered", 0)),
        str(found.states.get("refused", 0)),
        str(found.states.get("failed", 0)),
        str(found.repeated),
        str(found.refused_sends),
        str(found.lost_answers),
        str(found.marked),
    )
    yield Table(title, head, [row])
