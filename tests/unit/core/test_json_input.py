"""JSON that could be read in two ways, and names that nobody can read."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.errors import InvalidInput
from palyra.core.input_checks import as_line, check_json, check_line


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1, "b": {"c": [1, {"d": 1, "d" :2}]}}',
        '{"a": 1, "\\u0061": 2}',
        '{"\\u0061":1,"a":2}',
        '[{"a":1},{"a":1,"x":"{}","a":2}]',
        '{"a\\"b": 1, "a\\"b": 2}',
        '{"a":"\\\\","a":1}',
        '{"":1,"":2}',
    ],
)
def test_a_key_that_is_given_twice_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="twice"):
        check_json(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"a": {"a": 1}}}',
        '[{"a": 1}, {"a": 2}]',
        '{"text": "{\\"a\\": 1, \\"a\\": 2}"}',
        '{"a": "b", "b": "a"}',
        '{"a": ["a", "a"], "b": "a"}',
        '{"\\n": 1, "n": 2}',
        "",
        "{",
        '"',
        '{"a',
        "]]]]",
    ],
)
def test_what_has_no_key_twice_is_left_to_the_decoder(text: str) -> None:
    check_json(text.encode())


_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_VALUES, st.booleans())
def test_no_json_that_a_program_writes_is_refused(value: Any, ascii_only: bool) -> None:
    check_json(json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))


def _first_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise KeyError
    return dict(pairs)


@given(
    st.lists(
        st.sampled_from(["{", "}", "[", "]", ",", ":", '"a"', '"b"', '"\\u0061"', "1", " ", '"{"'])
    ).map("".join)
)
def test_it_agrees_with_a_reader_that_looks_for_it(text: str) -> None:
    try:
        json.loads(text, object_pairs_hook=_first_twice)
    except KeyError:
        with pytest.raises(InvalidInput):
            check_json(text.encode())
    except ValueError:
        return  # No JSON: the decoder says so.
    else:
        check_json(text.encode())


def test_nesting_is_bounded() -> None:
    check_json(b"[" * 64 + b"]" * 64)
    with pytest.raises(InvalidInput, match="deeper"):
        check_json(b"[" * 65 + b"]" * 65)


@pytest.mark.parametrize(
    "text",
    [
        b'"' + b'\\"' * 500_000,
        b'{"a":' * 1 + b'"' * 500_000,
        b'"\\' * 300_000,
        b"[],[{}]," * 100_000,
    ],
)
def test_no_text_costs_more_than_its_length(text: bytes) -> None:
    begun = time.process_time()
    check_json(text)
    # Quadratic would be minutes.
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("text", ["a\0b", "a\nb", "\x1b[31m", "\x7f", "\x85", "\u2028"])
def test_a_name_with_a_control_character_is_refused_and_can_be_made_readable(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"U\+"):
        check_line("name", text)
    check_line("name", as_line(text))


def test_a_name_may_have_every_other_character() -> None:
    check_line("name", "Ordnung für 東京 🙂 a\u00a0b")
