"""Digests of histories: one for each beginning, of one caller, without secrets."""

from collections.abc import Callable

from palyra.features.openai_api import history
from palyra.features.openai_api.answers import Answering, HandedCall
from palyra.features.openai_api.history import History, HistoryCall, HistoryTurn
from palyra.features.openai_api.names import CallerRun
from palyra.features.openai_api.wire_types import ContentPart

HI, HELLO = HistoryTurn("user", "hi"), HistoryTurn("assistant", "hello")


def read(
    *turns: HistoryTurn,
    scope: tuple[str, ...] = ("owner",),
    redact: Callable[[str], str] = lambda text: text,
) -> History:
    return history.read(scope, turns, len(turns), "", redact)


def answering(
    text: str = "", calls: tuple[HandedCall, ...] = (), finish: str = "stop"
) -> Answering:
    return Answering(CallerRun("", "", 0, named=True), text=[text], calls=calls, finish=finish)


def test_a_longer_history_begins_with_the_digests_of_a_shorter_one() -> None:
    assert read(HI, HELLO, HI).digests[:3] == read(HI, HELLO).digests


def test_everything_that_was_said_and_who_asks_is_in_the_digest() -> None:
    image = ContentPart(type="image_url", image_url="https://example.org/a.png")
    call = HistoryCall("call_1", "f", "{}")
    found = [
        read(HI),
        read(HI, scope=("owner", "a client")),
        read(HistoryTurn("user", "hi "), HELLO),
        read(HistoryTurn("assistant", "hi")),
        read(HistoryTurn("user", "hi", files=(image,))),
        read(HistoryTurn("assistant", "hi", (call,))),
        read(HistoryTurn("tool", "hi", call_id="call_1")),
        read(HistoryTurn("user", "h"), HistoryTurn("user", "i")),
    ]
    assert len({each.digest for each in found}) == len(found)


def test_secrets_are_taken_out_before_anything_is_made_of_them() -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2", "[redacted]")

    turn = HistoryTurn("assistant", "hunter2", (HistoryCall("c", "f", '"hunter2"'),))
    found = read(turn, redact=redact)
    assert "hunter2" not in repr(found)
    assert found.digest == read(*found.turns).digest


def test_an_answer_is_known_by_its_words_and_calls() -> None:
    handed = (HandedCall("call_1", "f", "{}"),)
    call = (HistoryCall("call_1", "f", '{ "as": "others write" }'),)
    assert history.repeats(HistoryTurn("assistant", " hello\n"), answering("hello"))
    assert not history.repeats(HistoryTurn("assistant", "hell"), answering("hello"))
    assert not history.repeats(HistoryTurn("assistant", "hello"), answering("hello", finish=""))
    assert history.repeats(HistoryTurn("assistant", "hello", call), answering("hello", handed))
    assert history.repeats(HistoryTurn("assistant", "", call), answering("hello", handed))
    assert not history.repeats(HistoryTurn("assistant", "other", call), answering("hello", handed))
    assert not history.repeats(HistoryTurn("assistant", "hello"), answering("hello", handed))
