"""What servers that call themselves compatible really send, and what we make of it."""

import json
from typing import Any

import pytest

from palyra.core.messages import FailureClass, ModelCall, ModelFailure, ModelReply, Native, Usage
from tests.fake_provider import chat_chunk, sse
from tests.model_reading import read

STOP = chat_chunk(finish_reason="stop")


def chat(*events: Any, **more: Any) -> ModelReply:
    return read("openai-chat", sse(*events), **more)


def piece(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    return chat_chunk(tool_calls=[more | {"function": {"name": name, "arguments": arguments}}])


def calls(reply: ModelReply) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in reply.calls]


def test_gemini_leaves_out_the_index_ends_with_stop_and_wants_its_thought_signature_back() -> None:
    signature = {"google": {"thought_signature": "abc"}}
    reply = chat(
        piece(
            "read", '{"path":"a"}', id="function-call-1", type="function", extra_content=signature
        ),
        piece("read", '{"path":"b"}', id="function-call-2", type="function"),
        STOP,
        "[DONE]",
    )
    assert calls(reply) == [
        ("function-call-1", "read", '{"path":"a"}'),
        ("function-call-2", "read", '{"path":"b"}'),
    ]
    assert reply.stop == "tool_calls"
    assert reply.native == Native(
        "openai-chat@127.0.0.1", [{"extra_content": {"0": signature}, "calls": 2}]
    )


def test_ollama_numbers_every_call_0_and_may_send_arguments_as_an_object() -> None:
    reply = chat(
        piece("a", {"x": 1}, index=0, id="call_1"), piece("b", {"y": 2}, index=0, id="call_2"), STOP
    )
    assert calls(reply) == [("call_1", "a", '{"x":1}'), ("call_2", "b", '{"y":2}')]


def test_calls_without_ids_at_one_index_are_told_apart_by_whole_arguments() -> None:
    reply = chat(piece("a", '{"x": 1}', index=0), piece("a", '{"x": 2}', index=0), STOP)
    assert calls(reply) == [("call_0", "a", '{"x": 1}'), ("call_1", "a", '{"x": 2}')]


def test_a_server_that_repeats_name_and_id_with_every_piece_makes_one_call() -> None:
    reply = chat(piece("a", '{"x"', index=0, id="i"), piece("a", ": 1}", index=0, id="i"), STOP)
    assert calls(reply) == [("i", "a", '{"x": 1}')]


def test_a_server_that_invents_a_new_id_for_every_piece_makes_one_call() -> None:
    reply = chat(
        piece("a", "", index=0, id="i1"),
        piece(None, '{"x"', index=0, id="i2"),
        piece("", ": 1}", index=0, id="i3"),
        STOP,
    )
    assert calls(reply) == [("i1", "a", '{"x": 1}')]


def test_pieces_without_index_and_id_continue_the_last_call() -> None:
    reply = chat(
        piece("a", "", id="i"),
        piece(None, '{"x":'),
        piece(None, " 1}"),
        piece("b", "{}", id="j"),
        STOP,
    )
    assert calls(reply) == [("i", "a", '{"x": 1}'), ("j", "b", "{}")]


def test_interleaved_parallel_calls_are_sorted_out_by_index() -> None:
    reply = chat(
        piece("a", "", index=0, id="i"),
        piece("b", "", index=1, id="j"),
        piece(None, "{", index=1),
        piece(None, "{", index=0),
        piece(None, "}", index=1),
        piece(None, "}", index=0),
        chat_chunk(finish_reason="tool_calls"),
    )
    assert calls(reply) == [("i", "a", "{}"), ("j", "b", "{}")]


def test_missing_and_repeated_ids_are_replaced() -> None:
    reply = chat(
        piece("a", "{}", index=0, id=""),
        piece("a", "{}", index=1, id="x"),
        piece("a", "{}", index=2, id="x"),
        STOP,
    )
    assert [call.id for call in reply.calls] == ["call_0", "x", "call_1"]


def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert calls(chat(piece("now", None, index=0, id="i"), STOP)) == [("i", "now", "{}")]


def test_the_old_function_call_form_is_a_call() -> None:
    reply = chat(
        chat_chunk(function_call={"name": "a", "arguments": ""}),
        chat_chunk(function_call={"arguments": '{"x": 1}'}),
        chat_chunk(finish_reason="function_call"),
    )
    assert (calls(reply), reply.stop) == ([("call_0", "a", '{"x": 1}')], "tool_calls")


def test_tools_that_the_server_runs_by_itself_are_no_calls_of_ours() -> None:
    reply = chat(
        piece("web_search", '{"q": "x"}', index=0, id="s", type="openrouter:web_search"),
        chat_chunk(content="found"),
        STOP,
    )
    assert (reply.calls, reply.text, reply.stop) == ((), "found", "end")


def test_a_wire_name_comes_back_as_ours_and_is_announced_once() -> None:
    heard: list[Any] = []
    reply = chat(
        piece("mcp_git_log", "", index=0, id="i"),
        piece(None, "{}", index=0),
        STOP,
        tools=("mcp:git/log",),
        heard=heard,
    )
    assert reply.calls == (ModelCall("i", "mcp:git/log", "{}"),)
    assert heard == [("call", "mcp:git/log")]


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"reasoning_content": "hm", "reasoning": "hm"},
        {
            "reasoning": "hm",
            "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}],
        },
        {
            "reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}],
            "content": "",
        },
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    ],
)
def test_reasoning_is_kept_apart_under_all_its_names(delta: dict[str, Any]) -> None:
    heard: list[Any] = []
    reply = chat(chat_chunk(**delta), chat_chunk(content="so"), STOP, heard=heard)
    assert (reply.reasoning, reply.text) == ("hm", "so")
    assert heard == [("reasoning", "hm"), ("text", "so")]


def test_pieces_of_one_reasoning_detail_are_put_together_for_the_way_back() -> None:
    reply = chat(
        chat_chunk(reasoning_details=[{"type": "reasoning.text", "text": "a", "index": 0}]),
        chat_chunk(
            reasoning_details=[
                {"type": "reasoning.text", "text": "b", "index": 0, "signature": "s"}
            ]
        ),
        chat_chunk(reasoning_details=[{"type": "reasoning.encrypted", "data": "x", "index": 1}]),
        STOP,
    )
    assert reply.native is not None
    assert reply.native.items[0]["reasoning_details"] == [
        {"type": "reasoning.text", "text": "ab", "index": 0, "signature": "s"},
        {"type": "reasoning.encrypted", "data": "x", "index": 1},
    ]


def test_mistral_may_send_content_as_parts() -> None:
    assert (
        chat(
            chat_chunk(
                content=[{"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}]
            ),
            STOP,
        ).text
        == "a"
    )


def test_a_refusal_is_shown() -> None:
    assert chat(chat_chunk(refusal="no"), STOP).text == "no"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "end"),
        ("eos", "end"),
        ("STOP", "end"),
        ("length", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("tool_calls", "tool_calls"),
    ],
)
def test_finish_reasons_have_one_meaning_however_they_are_spelt(reason: str, stop: str) -> None:
    assert chat(chat_chunk(content="x"), chat_chunk(finish_reason=reason)).stop == stop


def test_done_without_a_finish_reason_is_an_end_and_an_empty_reason_is_none() -> None:
    assert chat(chat_chunk(content="x", finish_reason=""), "[DONE]").text == "x"
    with pytest.raises(ModelFailure) as caught:
        chat(chat_chunk(content="x", finish_reason=""))
    assert caught.value.failure == "cut"


def test_azure_begins_with_filter_results_and_ends_with_a_choice_without_a_delta() -> None:
    reply = chat(
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0}], "model": "", "usage": None},
        chat_chunk(content="hi"),
        {
            "choices": [
                {
                    "index": 0,
                    "finish_reason": None,
                    "content_filter_offsets": {},
                    "content_filter_results": {},
                }
            ]
        },
        STOP,
        "[DONE]",
    )
    assert (reply.text, reply.model) == ("hi", "fake-1")


def test_nulls_everywhere_do_no_harm() -> None:
    nothing = {
        "id": None,
        "model": None,
        "choices": [
            {
                "index": None,
                "delta": {"content": None, "tool_calls": None, "role": None, "reasoning": None},
                "finish_reason": None,
            }
        ],
        "usage": None,
        "error": None,
    }
    assert (
        chat(
            nothing,
            {"choices": None},
            {"choices": [{"delta": None}]},
            chat_chunk(content="x"),
            STOP,
        ).text
        == "x"
    )


def test_keep_alives_that_are_no_json_and_numbers_that_are_none_are_borne() -> None:
    body = (
        b"data: \n\ndata: ping\n\n"
        + sse(chat_chunk(content="x"))
        + b'data: {"choices":[{"delta":{"content":"y"},"logprobs":NaN}]}\n\n'
        + sse(STOP)
    )
    assert read("openai-chat", body).text == "xy"


def test_half_a_surrogate_pair_becomes_a_replacement_and_not_an_error() -> None:
    body = rb'data: {"choices":[{"delta":{"content":"a\ud83d"}}]}' + b"\n\n" + sse(STOP)
    assert read("openai-chat", body).text == "a?"


def test_a_stream_of_crlf_lines_with_pretty_printed_data_is_read() -> None:
    pretty = "".join(
        f"data: {line}\r\n" for line in json.dumps(chat_chunk(content="x"), indent=1).split("\n")
    )
    assert read("openai-chat", pretty.encode() + b"\r\n" + sse(STOP)).text == "x"


def test_other_choices_than_the_first_are_left_out() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "other"}}]}
    assert chat(chat_chunk(content="x"), other, STOP).text == "x"


def test_broken_json_is_malformed() -> None:
    with pytest.raises(ModelFailure) as caught:
        read("openai-chat", b'data: {"choices": [}\n\ndata: [DONE]\n\n')
    assert caught.value.failure == "malformed"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}, Usage(9, 4)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "prompt_cache_hit_tokens": 6,
                "prompt_cache_miss_tokens": 3,
            },
            Usage(9, 4, 6),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "cached_tokens": 2}, Usage(9, 4, 2)),
        ({"prompt_tokens": 9.0, "completion_tokens": None}, Usage(9, 0)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "total_tokens": 13,
                "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 1},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(9, 4, 5, 1, 3),
        ),
        # xAI: the reasoning is not in the completion.
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "total_tokens": 16,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            Usage(9, 7, 0, 0, 3),
        ),
    ],
)
def test_usage_is_read_in_our_terms(usage: dict[str, Any], expected: Usage) -> None:
    assert (
        chat(
            chat_chunk(content="x") | {"usage": {"prompt_tokens": 1, "completion_tokens": 1}},
            STOP | {"usage": usage},
        ).usage
        == expected
    )
    assert (
        chat(STOP, {"choices": [], "usage": usage}, {"choices": [], "usage": {}}, "[DONE]").usage
        == expected
    )


def test_groq_hides_its_usage() -> None:
    assert chat(
        STOP | {"x_groq": {"id": "r", "usage": {"prompt_tokens": 9, "completion_tokens": 4}}}
    ).usage == Usage(9, 4)


@pytest.mark.parametrize(
    ("dialect", "event", "failure"),
    [
        (
            "openai-chat",
            {
                "error": {"code": 502, "message": "Provider disconnected"},
                "choices": [{"delta": {}, "finish_reason": "error"}],
            },
            "overloaded",
        ),
        (
            "openai-chat",
            {
                "error": {
                    "message": "Rate limit reached",
                    "type": "tokens",
                    "code": "rate_limit_exceeded",
                }
            },
            "rate_limited",
        ),
        ("openai-chat", {"error": "out of memory", "error_type": "overloaded"}, "overloaded"),
        (
            "openai-chat",
            {
                "object": "error",
                "message": "maximum context length is 10",
                "type": "BadRequestError",
                "code": 400,
            },
            "context_too_long",
        ),
        ("openai-chat", chat_chunk(finish_reason="error"), "overloaded"),
        ("openai-chat", chat_chunk(finish_reason="insufficient_system_resource"), "overloaded"),
        ("openai-chat", chat_chunk(finish_reason="MALFORMED_FUNCTION_CALL"), "malformed"),
        (
            "openai-responses",
            {"type": "error", "code": "rate_limit_exceeded", "message": "slow"},
            "rate_limited",
        ),
        (
            "openai-responses",
            {"type": "error", "error": {"type": "server_error", "message": "x"}},
            "overloaded",
        ),
        (
            "openai-responses",
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "context_length_exceeded"}},
            },
            "context_too_long",
        ),
        (
            "openai-responses",
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "server_error"}},
            },
            "overloaded",
        ),
        (
            "anthropic",
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
            "overloaded",
        ),
        (
            "anthropic",
            {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}},
            "rate_limited",
        ),
        ("anthropic", {"error": {"message": "gateway", "code": 504}}, "timeout"),
    ],
)
def test_an_error_in_mid_stream_or_as_the_whole_answer_has_its_class(
    dialect: str, event: dict[str, Any], failure: FailureClass
) -> None:
    for body in (sse(event), json.dumps(event).encode()):
        if body.startswith(b"{") and ("choices" in event or "response" in event):
            continue
        with pytest.raises(ModelFailure) as caught:
            read(dialect, body)
        assert caught.value.failure == failure


def test_an_error_in_an_array_is_an_error() -> None:
    with pytest.raises(ModelFailure) as caught:
        read(
            "openai-chat",
            b'[{"error": {"code": 429, "message": "Resource exhausted", "status": "RESOURCE_EXHAUSTED"}}]',
        )
    assert caught.value.failure == "rate_limited"


def test_anthropic_blocks_keep_their_order_and_their_signatures_for_the_way_back() -> None:
    def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    reply = read(
        "anthropic",
        sse(
            {
                "type": "message_start",
                "message": {
                    "model": "c",
                    "usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 1},
                },
            },
            *block(0, {"type": "redacted_thinking", "data": "zzz"}),
            *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "one"}),
            *block(
                2,
                {"type": "thinking", "thinking": "", "signature": ""},
                {"type": "thinking_delta", "thinking": "hm"},
                {"type": "signature_delta", "signature": "sig"},
            ),
            *block(
                3,
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                {"type": "input_json_delta", "partial_json": "{}"},
            ),
            *block(4, {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}),
            *block(
                5,
                {"type": "tool_use", "id": "t", "name": "f", "input": {}},
                {"type": "input_json_delta", "partial_json": ""},
            ),
            *block(6, {"type": "text", "text": "two"}),
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use"},
                "usage": {"output_tokens": 9, "input_tokens": None},
            },
        ),
    )
    assert reply == ModelReply(
        text="onetwo",
        reasoning="hm",
        calls=(ModelCall("t", "f", "{}"),),
        stop="tool_calls",
        usage=Usage(7, 9, 2),
        model="c",
        native=Native(
            "anthropic@127.0.0.1",
            [
                {"type": "redacted_thinking", "data": "zzz"},
                {"type": "text", "characters": 3},
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "call"},
                {"type": "text", "characters": 3},
            ],
        ),
    )


def test_deltas_of_blocks_that_were_never_announced_still_count() -> None:
    events = (
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": piece}}
        for piece in ("a", "b")
    )
    assert read("anthropic", sse(*events, {"type": "message_stop"})).text == "ab"


def test_responses_without_a_final_output_are_read_from_their_items() -> None:
    items: list[dict[str, Any]] = [
        {
            "type": "reasoning",
            "id": "r",
            "encrypted_content": "e",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "status": None,
        },
        {"type": "function_call", "id": "f", "call_id": "", "name": "f", "arguments": ""},
    ]
    heard: list[Any] = []
    reply = read(
        "openai-responses",
        sse(
            *(
                {"type": "response.output_item.done", "output_index": at, "item": item}
                for at, item in enumerate(items)
            ),
            {"type": "response.completed", "response": {"status": "completed", "output": []}},
        ),
        heard=heard,
    )
    assert (reply.reasoning, reply.calls, heard) == (
        "hm",
        (ModelCall("f", "f", "{}"),),
        [("reasoning", "hm")],
    )
    assert reply.native is not None
    assert reply.native.items[0] == {
        key: value for key, value in items[0].items() if key != "status"
    }


def test_ids_that_change_with_every_event_of_an_item_do_not_matter() -> None:
    call = {
        "type": "function_call",
        "id": "z",
        "call_id": "c",
        "name": "f",
        "arguments": '{"x": 1}',
    }
    reply = read(
        "openai-responses",
        sse(
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {**call, "id": "x", "arguments": ""},
            },
            {
                "type": "response.function_call_arguments.delta",
                "item_id": "y",
                "output_index": 0,
                "delta": '{"x": 1}',
            },
            {"type": "response.output_item.done", "output_index": 0, "item": call},
            {"type": "response.completed", "response": {"status": "completed", "output": [call]}},
        ),
    )
    assert reply.calls == (ModelCall("c", "f", '{"x": 1}'),)


def test_a_response_that_only_ends_is_shown_at_its_end() -> None:
    heard: list[Any] = []
    message = {
        "type": "message",
        "content": [{"type": "output_text", "text": "all"}, {"type": "refusal", "refusal": "no"}],
    }
    reply = read(
        "openai-responses",
        sse({"type": "response.completed", "response": {"output": [message]}}),
        heard=heard,
    )
    assert (reply.text, heard) == ("allno", [("text", "allno")])


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "content_filter")]
)
def test_an_incomplete_response_says_why(reason: str, stop: str) -> None:
    event = {
        "type": "response.incomplete",
        "response": {
            "status": "incomplete",
            "incomplete_details": {"reason": reason},
            "output": [],
        },
    }
    assert read("openai-responses", sse(event)).stop == stop
