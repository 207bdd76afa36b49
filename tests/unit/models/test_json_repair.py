"""Repair of nearly valid JSON: what means one thing is read, everything else is refused."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.agent import call_arguments
from palyra.core.messages import ModelCall
from palyra.models.json_repair import NotRepairable, repair

_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(_TEXT, _VALUES, max_size=4)


@given(_OBJECTS, st.booleans())
def test_valid_json_needs_no_repair(value: dict[str, Any], ascii_only: bool) -> None:
    found = repair(json.dumps(value, ensure_ascii=ascii_only))
    assert (found.value, found.notes) == (value, ())


@given(_OBJECTS)
def test_what_python_prints_is_read_as_it_was_meant(value: dict[str, Any]) -> None:
    """Python writes escapes that JSON does not know: then it is refused, never misread."""
    try:
        found = repair(repr(value))
    except NotRepairable:
        return
    assert found.value == value


@given(_OBJECTS, st.data())
def test_a_text_cut_anywhere_is_never_another_value_of_a_key(
    value: dict[str, Any], data: st.DataObject
) -> None:
    """Only brackets are added: what is there of each string, number and word is whole."""
    text = json.dumps(value)
    try:
        found = repair(text[: data.draw(st.integers(0, len(text)))])
    except NotRepairable:
        return
    for key, kept in found.value.items():
        if not isinstance(kept, dict | list):
            assert kept == value[key]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': 'b'}", {"a": "b"}),
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2,]}', {"a": [1, 2]}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ('{"a": {"b": "c"', {"a": {"b": "c"}}),
        ('{"a": 1}}', {"a": 1}),
        ("{a: True, b: None, c: False}", {"a": True, "b": None, "c": False}),
        ('// why\n{"a": 1 /* not */} # end', {"a": 1}),
        ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('{"url": "http://x/#y"}', {"url": "http://x/#y"}),
        ("{'a': 'it\\'s'}", {"a": "it's"}),
    ],
)
def test_a_slip_is_repaired_and_named(text: str, value: Any) -> None:
    found = repair(text)
    assert found.value == value
    assert bool(found.notes) == (text != json.dumps(value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        '"text"',
        "{",
        '{"a"',
        '{"a":',
        '{"a": "b',
        '{"a": "b",',
        '{"a": 12',
        '{"a": tru',
        '{"a": 1,, "b": 2}',
        '{"a": 1 "b": 2}',
        "{'a': 'it's'}",
        '{"a": "say "hi" now"}',
        '{"a": 1, "a": 2}',
        '{"a": "\\d"}',
        '{"a": NaN}',
        '{"a": 0x10}',
        '{"a": yes}',
        '{"a": 1} {"b": 2}',
        '{"a": [1, 2,}',
        '{"a": "\\ud800"}',
        "[" * 1000,
        '{"a":' * 1000,
    ],
)
def test_what_could_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(NotRepairable):
        repair(text)


def test_arguments_of_a_reply_that_was_cut_off_are_never_repaired() -> None:
    call = ModelCall("1", "fs.write", '{"path": "a", "content": "b"')
    assert call_arguments.read(call, "tool_calls") == (
        {"path": "a", "content": "b"},
        "",
        "missing bracket",
    )
    for stop in ("length", "content_filter", "interrupted", "cut"):
        read = call_arguments.read(call, stop)
        assert not read.arguments
        assert "cut off" in read.malformed


@pytest.mark.parametrize("unit", ["{", "[", '{"a":', "'", '"', "//", "/*", "\\", "1", " ", "a,"])
def test_hostile_text_costs_time_in_proportion(unit: str) -> None:
    def cost(size: int) -> float:
        text = '{"a": ' + unit * (size // len(unit))
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            with pytest.raises(NotRepairable):
                repair(text)
            best = min(best, time.process_time() - began)
        return best

    small, large = cost(40_000), cost(800_000)
    assert large < 20 * 6 * max(small, 0.002)
