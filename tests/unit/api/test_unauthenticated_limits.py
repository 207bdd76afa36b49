"""Room for those who have not shown who they are: whoever stands there longest goes first."""

from hypothesis import given
from hypothesis import strategies as st

from palyra.api.limits import Doorstep


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"]), st.booleans()
        ),
        max_size=40,
    )
)
def test_there_are_never_more_than_there_is_room_for_and_the_newest_is_always_let_in(
    comings: list[tuple[str, bool]],
) -> None:
    doorstep = Doorstep(from_one_place=3, in_all=5)
    there: dict[int, str] = {}
    for number, (address, through) in enumerate(comings):
        place = "2001:db8::/64" if ":" in address else address
        same = [each for each, other in there.items() if other == place]
        goes = same[0] if len(same) >= 3 else next(iter(there)) if len(there) >= 5 else None
        before = dict(there)
        waiting = doorstep.enter(address, lambda number=number: there.pop(number))
        assert set(before) - set(there) == ({goes} if goes is not None else set())
        there[number] = place
        if through:
            doorstep.leave(waiting)
            doorstep.leave(waiting)
            del there[number]
        assert len(doorstep) == len(there) <= 5
