"""Nothing that users and programs rely on has changed: routes, gRPC, settings, events, exit codes,
commands, --json.

What was recorded lies in tests/architecture/recorded. A change that is meant is recorded by `python
scripts/record_contracts.py`, and the difference is part of the change.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.architecture import contracts, json_shapes

_SCHEMA = "#/components/schemas/"
RENEW = "if this is meant: python scripts/record_contracts.py"


class Renamed:
    """Two documents with schemas under names of their own, compared by what the names stand for."""

    def __init__(self, recorded: dict[str, Any], now: dict[str, Any]) -> None:
        self._recorded, self._now = recorded, now
        # Pairs that are being compared, or were: a schema may contain itself.
        self._seen: set[tuple[str, str]] = set()

    def differences(self, recorded: Any, now: Any, where: str) -> Iterator[str]:
        if _reference(recorded) and _reference(now):
            pair = recorded.removeprefix(_SCHEMA), now.removeprefix(_SCHEMA)
            if pair not in self._seen:
                self._seen.add(pair)
                yield from self.differences(
                    self._recorded[pair[0]], self._now[pair[1]], f"{where} ({pair[0]})"
                )
        elif isinstance(recorded, dict) and isinstance(now, dict):
            # The alternatives of a union with tags are in its mapping; their order means nothing.
            left_out = (
                {"anyOf"} if "discriminator" in recorded and "discriminator" in now else set()
            )
            for key in sorted((recorded.keys() | now.keys()) - left_out):
                if key not in now:
                    yield f"{where}.{key} is gone"
                elif key not in recorded:
                    yield f"{where}.{key} is new"
                else:
                    yield from self.differences(recorded[key], now[key], f"{where}.{key}")
        elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
            for number, (each, other) in enumerate(zip(recorded, now, strict=True)):
                yield from self.differences(each, other, f"{where}[{number}]")
        elif recorded != now:
            yield f"{where} is {str(now)[:200]}, not {str(recorded)[:200]}"


def _reference(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_SCHEMA)


def compare(recorded: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Where two documents differ, by the paths to it."""
    of_schemas = Renamed(recorded.get("schemas", {}), now.get("schemas", {}))
    kept = [
        {key: value for key, value in each.items() if key != "schemas"} for each in (recorded, now)
    ]
    return list(of_schemas.differences(kept[0], kept[1], ""))


@pytest.mark.parametrize("name", contracts.READERS)
def test_it_is_what_it_was(name: str) -> None:
    found = compare(contracts.load(name), contracts.READERS[name]())
    assert found == [], RENEW


@pytest.mark.timeout(300)
def test_commands_print_the_same_shapes_as_json() -> None:
    recorded, now = contracts.load("json_shapes"), json_shapes.json_shapes()
    assert list(json_shapes.differences(recorded, now)) == [], RENEW


def test_a_renamed_schema_is_no_difference_and_a_changed_one_is_named() -> None:
    node = {"properties": {"next": {"$ref": f"{_SCHEMA}Node"}, "value": {"type": "integer"}}}
    before = {"operations": {"GET /x": {"$ref": f"{_SCHEMA}Node"}}, "schemas": {"Node": node}}
    renamed = {"properties": {"next": {"$ref": f"{_SCHEMA}Link"}, "value": {"type": "integer"}}}
    after = {"operations": {"GET /x": {"$ref": f"{_SCHEMA}Link"}}, "schemas": {"Link": renamed}}
    assert compare(before, after) == []
    renamed["properties"]["value"] = {"type": "string"}
    del renamed["properties"]["next"]
    assert compare(before, after) == [
        ".operations.GET /x.$ref (Node).properties.next is gone",
        ".operations.GET /x.$ref (Node).properties.value.type is string, not integer",
    ]


def test_a_shape_differs_where_a_key_is_gone_or_new_or_of_another_type() -> None:
    recorded = json_shapes.shape({"list": [{"a": 1, "b": "x"}, {"a": 2}], "gone": None})
    assert recorded == {"gone": "null", "list": [{"a": "number", "b?": "text"}]}
    assert (
        list(
            json_shapes.differences(recorded, json_shapes.shape({"list": [{"a": 3}], "gone": None}))
        )
        == []
    )
    changed = json_shapes.shape({"list": [{"a": "one", "c": 1}]})
    assert sorted(json_shapes.differences(recorded, changed)) == [
        ".gone is gone",
        ".list[].a is text, not number",
        ".list[].c is new",
    ]
