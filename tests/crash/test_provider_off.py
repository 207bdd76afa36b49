"""A provider is off under a hundred messages by every door, with three restarts of the daemon."""

from pathlib import Path

from tests.crash.provider_off import tell

# What a daemon may grow by while nothing happens but waiting.
_FLAT_KB = 8 << 10


def test_everything_is_answered_once_and_in_order_when_the_provider_is_back(
    tmp_path: Path,
) -> None:
    told = tell(tmp_path, off_s=10, longest_pause_ms=1_000)
    assert told.messages == 100
    assert told.unanswered == []
    assert told.twice == []
    assert told.out_of_order == []
    assert told.told_to_send_again == []
    # Callers of the OpenAI API were sent away with a time to come back, and nothing else ended
    # without an answer.
    assert told.refusals > 0
    assert told.runs["run.failed"] == 0
    # A caller that lost its connection by a restart and did not name its request asks for another
    # run: nobody hears of the first.
    assert 80 <= told.runs["run.completed"] <= 80 + 3 * 10
    assert told.in_chat == {"answered": 20}
    assert told.most_at_once <= 20
    before, after = told.rss_kb
    assert after - before < _FLAT_KB
