"""Channels: many messages with a daemon that is killed every few seconds, platforms that break,
repeat and refuse, a provider that is slow and fails. First over all connectors at once, then over
two channels that cost next to nothing, as fast as it goes.
"""

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.crash import channel_storm, connector_storm
from tests.crash.channel_storm import CHANNELS

from bench.common import Table

COUNTS = {
    "discord": 2_200,
    "slack": 1_800,
    "telegram": 2_200,
    "webhook": 2_200,
    "email": 800,
    "matrix": 800,
}
PEOPLE = 40
MESSAGES = 10_000
CONVERSATIONS = 100
KILL_EVERY_S = 8.0
LIMIT_S = 3_000.0
HEAD = (
    "channel",
    "messages",
    "answered",
    "refused",
    "failed and told",
    "delivered again",
    "connections broken",
    "sends disturbed",
    "answers",
    "marked as possibly twice",
    "seen twice",
)


def tables() -> Iterator[Table]:
    yield _connectors()
    yield _bare()


def _connectors() -> Table:
    # The servers of the tests say a lot about what is done to them.
    logging.disable(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        found = connector_storm.storm(
            Path(folder), COUNTS, people=PEOPLE, kill_every_s=KILL_EVERY_S, seed=1, limit_s=LIMIT_S
        )
    assert not found.problems, found.problems[:10]
    total = sum(found.said.values())
    title = (
        f"{total} messages on six channels in {PEOPLE * len(COUNTS)} conversations, the daemon"
        f" killed {found.kills} times with SIGKILL; of {found.model_calls} calls of the model"
        f" {found.model_failures} failed and {found.slow} were slow: {found.seconds:.0f} s,"
        f" {total / found.seconds:.0f} a second, every one accounted for, order kept"
    )
    columns = (
        found.said,
        found.answered,
        found.refused,
        found.failed,
        found.repeated,
        found.dropped,
        found.disturbed,
        found.answers,
        found.marked,
        found.twice,
    )
    return Table(
        title, HEAD, [(name, *(str(column[name]) for column in columns)) for name in COUNTS]
    )


def _bare() -> Table:
    with tempfile.TemporaryDirectory() as folder:
        found = channel_storm.storm(
            Path(folder),
            MESSAGES,
            conversations=CONVERSATIONS,
            kill_every_s=KILL_EVERY_S,
            seed=1,
            limit_s=1_500,
        )
    assert not found.problems, found.problems[:10]
    title = (
        f"{found.messages} messages on {len(CHANNELS)} channels in {CONVERSATIONS * 2}"
        f" conversations, the daemon killed {found.kills} times with SIGKILL: {found.seconds:.0f}"
        f" s, {found.messages / found.seconds:.0f} a second, every one accounted for, order kept"
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
    return Table(title, head, [row])
