"""Identifiers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core import ids
from palyra.core.errors import InvalidInput


@given(st.integers(0, (1 << 48) - 1), st.binary(min_size=10, max_size=10))
def test_a_made_id_is_canonical(now_ms: int, entropy: bytes) -> None:
    made = ids.make(now_ms, entropy)
    assert len(made) == 26
    assert ids.check(made, "id") == made


@given(
    st.integers(0, (1 << 48) - 2),
    st.binary(min_size=10, max_size=10),
    st.binary(min_size=10, max_size=10),
)
def test_ids_sort_by_time(now_ms: int, first: bytes, second: bytes) -> None:
    assert ids.make(now_ms, first) < ids.make(now_ms + 1, second)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "01arz3ndektsv4rrffq69g5fav",
        "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "01ARZ3NDEKTSV4RRFFQ69G5FAI",
        "01ARZ3NDEKTSV4RRFFQ69G5FAV\n",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        ids.check(text, "id")


@pytest.mark.parametrize("text", ["user:owner", "channel:slack:U123", "worker:one", "system"])
def test_principals_are_known_by_their_form(text: str) -> None:
    assert ids.check_principal(text) == text


@pytest.mark.parametrize("text", ["", "owner", "user:", "user:a b", "channel:slack", "root:x"])
def test_other_principals_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        ids.check_principal(text)
