"""A model's arguments become typed values, or a message that the model can act on."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.errors import InvalidInput, NotFound
from palyra.tools import standard
from palyra.tools.catalogue import Catalogue
from palyra.tools.files.list import List
from palyra.tools.paths import PathGuard
from tests.tools_at_work import catalogue


@pytest.mark.parametrize(
    ("given_arguments", "normal"),
    [
        ({"path": "a", "offset": "5", "limit": 5.0}, {"path": "a", "offset": 5, "limit": 5}),
        ({"path": "a", "offset": " 5 "}, {"path": "a", "offset": 5}),
        ({"path": "a", "offset": "5.0"}, {"path": "a", "offset": 5}),
        ({"path": 2024}, {"path": "2024"}),
        ({"path": "a", "offset": None, "limit": None}, {"path": "a"}),
    ],
)
def test_harmless_spellings_of_scalars_are_put_right(
    given_arguments: dict[str, Any], normal: dict[str, Any]
) -> None:
    assert catalogue().parse("fs.read", given_arguments)[2] == normal


def test_one_object_may_stand_for_a_list_of_one() -> None:
    edit = {"path": "a.txt", "search": "red", "replace": "blue"}
    assert catalogue().parse("fs.patch", {"edits": edit})[2]["edits"] == [edit]


@pytest.mark.parametrize("spelling", ["true", "True", " TRUE ", True])
def test_a_boolean_may_be_spelled_as_a_word(spelling: object) -> None:
    assert catalogue().parse("fs.list", {"ignored": spelling})[2] == {"ignored": True}


def test_scalars_inside_lists_are_put_right_too() -> None:
    arguments = {"edits": [{"path": "a", "search": 1, "replace": 2.5, "all": "false"}]}
    assert catalogue().parse("fs.patch", arguments)[2] == {
        "edits": [{"path": "a", "search": "1", "replace": "2.5"}]
    }


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("fs.read", {"path": "a", "ofset": 1}, ["'ofset'", "'offset'"]),
        ("fs.read", {"file": "a"}, ["'file'", "did you mean 'path'?"]),
        ("fs.read", {"path": "a", "zzz": 1}, ["'zzz'", "path: string"]),
        ("fs.read", {}, ["missing required argument path"]),
        ("fs.read", {"path": ["a"]}, ["argument path", "expected str"]),
        ("fs.read", {"path": "a", "offset": "many"}, ["argument offset", "expected int"]),
        ("fs.read", {"path": "a", "offset": 0}, ["argument offset", ">= 1"]),
        ("fs.read", {"path": "a", "offset": 1.5}, ["argument offset"]),
        ("fs.read", {"path": "a", "offset": True}, ["argument offset"]),
        ("fs.patch", {"edits": [{"path": "a", "search": "x"}]}, ["edits[0]", "replace"]),
        ("fs.write", {"path": "a", "content": {"k": 1}}, ["argument content", "expected str"]),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    name: str, arguments: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        catalogue().parse(name, arguments)
    for word in words:
        assert word in refusal.value.message


def test_an_unknown_tool_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(NotFound, match=r"did you mean fs\.read\?"):
        catalogue().get("fs.reed")


def test_two_tools_cannot_have_the_same_name() -> None:
    with pytest.raises(ValueError, match=r"fs\.list"):
        Catalogue([List(PathGuard()), List(PathGuard())])


def test_schemas_are_small_and_have_no_references() -> None:
    for spec in catalogue().specs():
        text = json.dumps(spec.parameters)
        assert "$ref" not in text
        assert "$defs" not in text
        assert spec.parameters["type"] == "object"
        assert not {"additionalProperties", "maximum", "maxLength", "title"} & set(
            text.replace(chr(34), " ").split()
        )


def test_a_nested_type_is_written_out_in_its_place() -> None:
    (patch,) = [spec for spec in catalogue().specs() if spec.name == "fs.patch"]
    edit = patch.parameters["properties"]["edits"]["items"]
    assert set(edit["properties"]) == {"path", "search", "replace", "all"}
    assert edit["required"] == ["path", "search", "replace"]


def test_the_file_tools_together_cost_little_of_every_request() -> None:
    tools = Catalogue(standard.tools(PathGuard(), lambda artifact, session: None)).specs()
    sent = json.dumps(
        [
            {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
            for spec in tools
        ]
    )
    # Schemas have about 3.5 characters per token; the limit for all of them is 1,500 tokens.
    assert len(sent) < 3_600


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(-9, 9)
    | st.text(max_size=5)
    | st.just("3")
    | st.lists(st.text(), max_size=1)
)


@given(
    st.dictionaries(
        st.sampled_from(["path", "pattern", "context", "limit", "ignored", "glob", "x"]), SCALARS
    )
)
def test_normal_arguments_stay_as_they_are(arguments: dict[str, Any]) -> None:
    tools = catalogue()
    try:
        _, typed, normal = tools.parse("fs.search", arguments)
    except InvalidInput:
        return
    assert tools.parse("fs.search", json.loads(json.dumps(normal)))[1:] == (typed, normal)


def test_a_group_is_replaced_as_a_whole_and_our_own_tools_stay_first() -> None:
    tools = Catalogue([List(PathGuard())])
    offered = tools.specs()
    assert tools.specs() is offered
    search, read = (catalogue().get(name) for name in ("fs.search", "fs.read"))
    tools.renew("z", [search])
    tools.renew("a", [read])
    assert [spec.name for spec in tools.specs()] == ["fs.list", "fs.read", "fs.search"]
    tools.renew("z", [])
    assert [spec.name for spec in tools.specs()] == ["fs.list", "fs.read"]
    with pytest.raises(NotFound):
        tools.get("fs.search")


def test_a_group_cannot_take_a_name_that_is_taken() -> None:
    tools = Catalogue([List(PathGuard())])
    with pytest.raises(ValueError, match=r"fs\.list"):
        tools.renew("z", [List(PathGuard())])
    assert [spec.name for spec in tools.specs()] == ["fs.list"]
