"""What the vault knows stays out of streamed text too, also where plain words would pass unlooked
at.
"""

import random

import pytest

from palyra.system.redactor import Redactor

WORDS = "the quick brown fox, it jumps! (over) the lazy dog; and that's all. "


@pytest.mark.parametrize(
    "value",
    [
        "swordfish",
        "open sesame",
        "it's a, secret!",
        "abcdefghijklmno",
        "abcdefghijklmnop",
        "x" * 40,
        "hunter22",
        "dog; and",
        "a.b.c(d)",
    ],
)
@pytest.mark.parametrize("late", [False, True], ids=["known before", "learned on the way"])
def test_a_known_value_never_passes_through_a_stream_whatever_it_looks_like(
    value: str, late: bool
) -> None:
    rng = random.Random(value)
    for _ in range(60):
        redactor = Redactor(b"k")
        stream = redactor.stream()
        shown = stream.feed(WORDS) if late else ""
        redactor.learn([value])
        text = WORDS * rng.randint(0, 2) + value + rng.choice((" ", ", ", ".", "")) + WORDS
        at = 0
        while at < len(text):
            size = rng.randint(1, 9)
            shown += stream.feed(text[at : at + size])
            at += size
        shown += stream.finish()
        fresh = shown[len(WORDS) :] if late else shown
        assert value not in fresh
        assert "[redacted:known:" in fresh


def test_words_are_let_go_one_by_one_beside_values_that_are_none() -> None:
    redactor = Redactor(b"k")
    redactor.learn(["tok-41f0c2", "A" * 40])
    stream = redactor.stream()
    assert [stream.feed(word) for word in ("The", " quick", " fox,", " jumps.", "\n")] == [
        "",
        "The ",
        "quick ",
        "fox, ",
        "jumps.\n",
    ]


def test_learning_replaces_what_was_learned_and_keeps_what_was_given() -> None:
    redactor = Redactor(b"k", ["given-value-1"])
    redactor.learn(["learned-value-2"])
    redactor.learn(["learned-value-3"])
    out = redactor.redact("given-value-1 learned-value-2 learned-value-3")
    assert out.count("[redacted:known:") == 2
    assert "learned-value-2" in out
