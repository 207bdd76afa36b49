"""A stream that is cut never yields a call that the model did not finish, at whatever byte it is
cut.
"""

import pytest

from palyra.core.messages import ModelFailure, ModelReply
from tests.fake_provider import WRITERS, Script
from tests.material import material
from tests.model_reading import Recording, read, recordings

SCRIPT = Script(
    text=("Let me ", "löök"),
    reasoning=("hm",),
    calls=(("a", "fs_write", ('{"path": "a", ', '"text": "x"}')), ("b", "fs_list", ("{}",))),
)
# The first bytes of the event that ends a reply. Nothing before it may count as complete.
END_MARKS = {
    "openai-chat": (
        b'"finish_reason": "tool_calls"',
        b'"finish_reason":"tool_calls"',
        b'"finish_reason":"stop"',
        b"[DONE]",
    ),
    "openai-responses": (
        b'"type": "response.completed"',
        b'"type":"response.completed"',
        b"event: response.completed",
    ),
    "anthropic": (
        b'"stop_reason": "tool_use"',
        b'"stop_reason":"tool_use"',
        b'"stop_reason":"end_turn"',
    ),
    "gemini": (b'"finishReason"',),
}


def outcome(dialect: str, body: bytes) -> ModelReply | ModelFailure:
    try:
        return read(dialect, body, pieces=len(body) or 1)
    except ModelFailure as failure:
        return failure


def check_every_cut(dialect: str, body: bytes, step: int) -> None:
    whole = read(dialect, body)
    mark = min(at for sign in END_MARKS[dialect] if (at := body.find(sign)) >= 0)
    # One event may carry both the mark and, before it in the same object, everything else.
    begins = body.rfind(b"data:", 0, mark)
    for cut in range(0, len(body), step):
        result = outcome(dialect, body[:cut])
        assert isinstance(result, ModelReply) or result.failure in ("network", "cut", "malformed")
        if cut <= begins:
            assert isinstance(result, ModelFailure), f"cut at {cut}"
        elif isinstance(result, ModelReply):
            assert (result.calls, result.text) == (whole.calls, whole.text), f"cut at {cut}"


@pytest.mark.parametrize("dialect", WRITERS)
def test_a_reply_cut_at_any_byte_is_a_failure_or_the_whole_reply(dialect: str) -> None:
    check_every_cut(dialect, WRITERS[dialect](SCRIPT), 1)


@pytest.mark.parametrize("dialect", WRITERS)
def test_a_reply_is_not_refused_because_the_last_blank_line_is_missing(dialect: str) -> None:
    body = WRITERS[dialect](SCRIPT)
    assert read(dialect, body.rstrip()) == read(dialect, body)


def test_recordings_cut_at_many_bytes_are_failures_or_the_whole_reply() -> None:
    found = [each for each in recordings(material("cassettes")) if each.streamed]
    assert found
    for recording in found:
        check_every_cut(recording.dialect, recording.body, _step(recording))


def _step(recording: Recording) -> int:
    return 3 if len(recording.body) < 20_000 else 31


@pytest.mark.parametrize("dialect", WRITERS)
def test_a_call_whose_arguments_the_length_limit_cut_off_is_not_made_up(dialect: str) -> None:
    reply = read(dialect, WRITERS[dialect](Script(calls=(("a", "fs_remove", ()),), stop="length")))
    assert (reply.stop, [call.arguments for call in reply.calls]) == ("length", [""])


@pytest.mark.parametrize("dialect", WRITERS)
def test_a_whole_answer_that_is_cut_is_a_failure(dialect: str) -> None:
    body = b'{"choices": [{"message": {"content": "hi"}}], "content": [], "output": [], "x": 1}'
    for cut in range(1, len(body)):
        assert isinstance(outcome(dialect, body[:cut]), ModelFailure)


@pytest.mark.parametrize("dialect", WRITERS)
def test_an_empty_answer_is_a_failure(dialect: str) -> None:
    for body in (b"", b"\n\n", b": hello\n\n", b"data: {}\n\n"):
        assert isinstance(outcome(dialect, body), ModelFailure)
