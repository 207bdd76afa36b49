"""Names and ids on the wire are legal, unique and lead back to ours."""

import re

from hypothesis import given
from hypothesis import strategies as st

from palyra.core.messages import AssistantMessage, ModelCall, Native, ToolMessage
from palyra.models import wire_format
from palyra.models.wire_format import CallIds, ToolNames

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
awkward = (
    st.text("ab._:/- é", max_size=6) | st.text("a.", min_size=60, max_size=80) | st.text(max_size=4)
)


@given(st.lists(awkward, max_size=12))
def test_every_tool_has_a_legal_name_of_its_own_that_leads_back(tools: list[str]) -> None:
    names = ToolNames(tools)
    sent = {tool: names.to_wire(tool) for tool in tools}
    assert all(LEGAL.fullmatch(name) for name in sent.values())
    assert {tool: names.to_ours(name) for tool, name in sent.items()} == {
        tool: tool for tool in tools
    }


def test_a_legal_name_is_kept_even_if_a_mangled_one_wants_it() -> None:
    names = ToolNames(["fs.list", "mcp:git/log", "fs_list"])
    assert names.to_wire("fs_list") == "fs_list"
    assert names.to_wire("mcp:git/log") == "mcp_git_log"
    assert names.to_wire("fs.list").startswith("fs_list_")


def test_a_name_that_the_model_invents_comes_back_unchanged() -> None:
    assert ToolNames(["fs.list"]).to_ours("fs.delete:all") == "fs.delete:all"


@given(st.lists(st.sampled_from(["", "a", "b", "call_0", "call_1"]), max_size=8))
def test_ids_of_one_reply_are_unique_and_good_ones_are_kept(ids: list[str]) -> None:
    unique = wire_format.unique_ids(ids)
    assert len(set(unique)) == len(ids)
    assert "" not in unique
    assert set(ids) - {""} <= set(unique)


def test_ids_that_repeat_between_turns_are_told_apart_on_the_wire() -> None:
    ids = CallIds()
    first = ids.of_call(ModelCall("call_0", "x", "{}"))
    answered = ids.of_result(ToolMessage("call_0", "x", "1"))
    second = ids.of_call(ModelCall("call_0", "x", "{}"))
    assert (answered, ids.of_result(ToolMessage("call_0", "x", "2"))) == (first, second)
    assert first != second


def test_an_id_that_another_provider_made_is_rewritten_where_it_is_not_legal() -> None:
    assert CallIds(wire_format.MISTRAL_ID).of_call(ModelCall("toolu_01", "x", "{}")) == "000000000"
    assert CallIds(wire_format.MISTRAL_ID).of_call(ModelCall("aB3dE6gH9", "x", "{}")) == "aB3dE6gH9"
    assert wire_format.LEGAL_ID.fullmatch(
        CallIds().of_call(ModelCall("resp_1:call_0/é" * 9, "x", "{}"))
    )


def test_arguments_that_were_no_object_still_go_back_as_one() -> None:
    assert wire_format.arguments_object("") == {}
    assert wire_format.arguments_object('{"a": 1}') == {"a": 1}
    assert wire_format.arguments_object("{broken") == {"malformed_arguments": "{broken"}
    assert wire_format.arguments_text('{"a": 1}') == '{"a": 1}'
    assert wire_format.arguments_text("[1]") == '{"malformed_arguments":"[1]"}'


def test_a_native_record_is_used_only_by_its_own_dialect_and_while_it_fits() -> None:
    items = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "characters": 2},
        {"type": "call"},
    ]
    turn = AssistantMessage(
        text="hi", calls=(ModelCall("a", "x", "{}"),), native=Native("anthropic@h", items)
    )
    assert wire_format.native_items(turn, "anthropic@h") == items
    assert wire_format.native_items(turn, "anthropic@other") == []
    assert (
        wire_format.native_items(
            AssistantMessage(text="hi!", calls=turn.calls, native=turn.native), "anthropic@h"
        )
        == []
    )
    assert (
        wire_format.native_items(AssistantMessage(text="hi", native=turn.native), "anthropic@h")
        == []
    )
