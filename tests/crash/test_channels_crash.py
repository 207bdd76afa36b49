"""The daemon dies at any moment while people write; each message is accounted for. At full size: `python -m bench channels`."""

from pathlib import Path

from tests.crash.channel_storm import storm


def test_every_message_is_accounted_for_and_answered_once_however_the_daemon_dies(tmp_path: Path) -> None:
    found = storm(tmp_path, 120, conversations=8, kill_every_s=0.3, kill_after=12, seed=7, limit_s=150)
    assert found.problems == []
    assert sum(found.states.values()) == 120
    assert found.states.get("answered", 0) >= 100
    assert found.kills >= 1, "nobody was killed: this shows nothing"
    assert found.repeated >= 3
