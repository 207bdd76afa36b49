"""Whatever a server sends, the outcome is a reply or a ModelFailure, never another exception."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.messages import ModelFailure, ModelReply
from tests.fake_provider import WRITERS, Script
from tests.model_reading import read

SCRIPT = Script(
    text=("a", "b"), reasoning=("r",), calls=(("i", "f", ('{"x"', ": 1}")), ("j", "g", ("{}",)))
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "text", "error", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def attempt(dialect: str, body: bytes, pieces: int = 1 << 20) -> None:
    with suppress(ModelFailure):
        assert isinstance(read(dialect, body, pieces=pieces), ModelReply)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key in a JSON value."""
    for key, inner in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield value, key
        yield from places(inner)


@pytest.mark.parametrize("dialect", WRITERS)
@given(data=st.data())
def test_a_value_of_the_wrong_kind_anywhere_does_no_harm(dialect: str, data: st.DataObject) -> None:
    lines = WRITERS[dialect](SCRIPT).decode().split("\n")
    bearing = [at for at, line in enumerate(lines) if line.startswith("data: {")]
    for at in data.draw(st.lists(st.sampled_from(bearing), min_size=1, max_size=3, unique=True)):
        event = json.loads(lines[at][6:])
        container, key = data.draw(st.sampled_from(list(places(event))))
        container[key] = data.draw(VALUES)
        lines[at] = f"data: {json.dumps(event)}"
    attempt(dialect, "\n".join(lines).encode())


@pytest.mark.parametrize("dialect", WRITERS)
@given(
    value=VALUES,
    keys=st.sampled_from(["choices", "content", "output", "error", "message", "usage"]),
)
def test_a_whole_answer_of_the_wrong_kind_does_no_harm(dialect: str, value: Any, keys: str) -> None:
    attempt(dialect, json.dumps({keys: value}).encode())
    attempt(dialect, json.dumps({keys: [value]}).encode())
    attempt(dialect, json.dumps([value]).encode())


@pytest.mark.parametrize("dialect", WRITERS)
@given(noise=st.binary(max_size=60), at=st.integers(0, 5000), pieces=st.integers(1, 50))
def test_noise_in_a_stream_does_no_harm(dialect: str, noise: bytes, at: int, pieces: int) -> None:
    body = WRITERS[dialect](SCRIPT)
    attempt(dialect, body[: at % len(body)] + noise + body[at % len(body) :], pieces)
    attempt(dialect, noise, pieces)


@pytest.mark.parametrize("dialect", WRITERS)
def test_nesting_without_end_does_no_harm(dialect: str) -> None:
    deep = b'{"error": ' + b"[" * 100_000
    attempt(dialect, deep)
    attempt(dialect, b"data: " + deep + b"\n\n")
    attempt(dialect, b'data: {"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n")
