"""Ids of one millisecond sort in the order in which they were made."""

from palyra.core import ids
from tests.clocks import HeldClock


def test_ids_of_one_millisecond_sort_as_they_were_made() -> None:
    clock = HeldClock()
    made = [clock.new_id() for _ in range(1_000)]
    assert made == sorted(set(made))
    assert all(map(ids.is_ulid, made))
    clock.advance(1)
    assert clock.new_id() > made[-1]
