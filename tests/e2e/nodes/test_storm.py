"""Nodes whose leader is killed, stopped, cut off and drained while people talk to them."""

from pathlib import Path

import pytest

from tests.cluster_storm import Harm, Storm

pytestmark = pytest.mark.postgres
# `python -m bench cluster` has all of them, many times.
_HARMS: tuple[Harm, ...] = ("kill", "freeze", "cut")


@pytest.mark.timeout(400)
def test_nothing_is_lost_and_nothing_is_done_twice_whatever_becomes_of_the_leader(
    tmp_path: Path,
) -> None:
    storm = Storm(tmp_path, nodes=2, people=4, seed="ci")
    try:
        storm.begin()
        for harm in _HARMS:
            storm.round(harm)
        storm.end()
        storm.check()
    finally:
        storm.close()
    assert len(storm.acknowledged) > 10
