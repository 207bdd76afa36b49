"""What is said between a daemon and its workers: whatever comes in is a message or is refused, and
nothing else.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.errors import InvalidInput
from palyra.features.workers.protocol import (
    MOST_FIRST_FRAME,
    PIECE_BYTES,
    Assign,
    Beat,
    Finished,
    Frames,
    HeldCall,
    Hello,
    ProgressReport,
    Shipped,
    WorkerMessage,
    frame,
    from_daemon,
    from_worker,
    pieces,
)

CALL = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
FILE = Shipped("a/b.txt", "0" * 64, 3)
MESSAGES: tuple[WorkerMessage, ...] = (
    Hello(
        protocol=1,
        version="1",
        instance=CALL,
        tier="C",
        tools=("shell.run",),
        calls=(HeldCall(CALL, 1, "lost"),),
    ),
    Beat(number=7),
    ProgressReport(call_id=CALL, attempt=1, text="half"),
    Finished(call_id=CALL, attempt=2, outcome="ok", text="done", data={"code": 0}, files=(FILE,)),
)


def read(data: bytes, most: int = MOST_FIRST_FRAME) -> list[Any]:
    return [from_worker(body) for body in Frames(most).feed(data)]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_out_as_it_went_in(message: WorkerMessage) -> None:
    assert read(frame(message)) == [message]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_bytes_of_a_stranger_are_messages_or_refused(data: bytes) -> None:
    for reader in (read, lambda given: [from_daemon(body) for body in Frames().feed(given)]):
        try:
            reader(data)
        except InvalidInput:
            continue


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(MESSAGES),
    st.integers(min_value=4, max_value=10_000),
    st.integers(min_value=0, max_value=255),
)
def test_a_message_with_a_byte_changed_is_another_or_refused(
    message: WorkerMessage, at: int, byte: int
) -> None:
    data = bytearray(frame(message))
    data[min(at, len(data) - 1)] = byte
    try:
        found = read(bytes(data))
    except InvalidInput:
        return
    assert all(isinstance(each, WorkerMessage) for each in found)


@pytest.mark.parametrize(
    "wrong",
    [
        {"is": "finished", "call_id": "../../etc", "attempt": 1, "outcome": "ok", "text": ""},
        {"is": "finished", "call_id": CALL, "attempt": 0, "outcome": "ok", "text": ""},
        {"is": "finished", "call_id": CALL, "attempt": 1, "outcome": "splendid", "text": ""},
        {"is": "piece", "digest": "0" * 63, "data": b""},
        {"is": "piece", "digest": "0" * 64, "data": bytes(PIECE_BYTES + 1)},
        {"is": "hello", "protocol": 1, "version": "1", "instance": "../x"},
        {"is": "hello", "protocol": 1, "version": "1", "instance": CALL, "slots": 0},
        {"is": "assign"},
        {},
        [],
        None,
    ],
)
def test_what_does_not_fit_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        from_worker(msgspec.msgpack.encode(wrong))


def test_a_message_that_is_too_long_is_refused_when_it_is_announced() -> None:
    with pytest.raises(InvalidInput):
        Frames(100).feed((101).to_bytes(4, "big"))
    assert Frames(100).feed((100).to_bytes(4, "big")) == []
    huge = Assign(
        call_id=CALL,
        attempt=1,
        session_id=CALL,
        tool="t",
        arguments={"text": "x" * (5 << 20)},
        time_ms=1,
    )
    with pytest.raises(InvalidInput):
        frame(huge)


def test_a_content_travels_in_parts_that_make_it_whole() -> None:
    for size in (0, 1, PIECE_BYTES, PIECE_BYTES + 1):
        content = bytes(size)
        parts = pieces("0" * 64, content)
        assert b"".join(part.data for part in parts) == content
        assert [part.last for part in parts] == [False] * (len(parts) - 1) + [True]
