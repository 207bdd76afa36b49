"""The daemon dies at any moment while people write; each message is accounted for. At full size:
`python -m bench channels`.
"""

from pathlib import Path

import pytest

from tests.crash import connector_storm
from tests.crash.channel_storm import storm


@pytest.mark.timeout(300)
def test_over_all_connectors_at_once_every_message_is_accounted_for_answered_once_and_in_order(
    tmp_path: Path,
) -> None:
    # Matrix has its own, with a real server: tests/e2e/channels/test_matrix.py.
    counts = dict.fromkeys(("discord", "slack", "telegram", "email", "webhook"), 24)
    found = connector_storm.storm(tmp_path, counts, people=4, kill_every_s=2.5, seed=5, limit_s=240)
    assert found.problems == []
    assert sum(found.answered.values()) + sum(found.failed.values()) == sum(counts.values())
    assert sum(found.answered.values()) >= 100
    assert found.kills >= 1, "nobody was killed: this shows nothing"
    assert found.model_failures + found.slow >= 1
    assert sum(found.repeated.values()) >= 3
    assert sum(found.disturbed.values()) >= 2


@pytest.mark.timeout(300)
def test_every_message_is_accounted_for_and_answered_once_however_the_daemon_dies(
    tmp_path: Path,
) -> None:
    found = storm(
        tmp_path, 120, conversations=8, kill_every_s=0.3, kill_after=12, seed=7, limit_s=240
    )
    assert found.problems == []
    assert sum(found.states.values()) == 120
    assert found.states.get("answered", 0) >= 100
    assert found.kills >= 1, "nobody was killed: this shows nothing"
    assert found.repeated >= 3
