"""Answers that lead nowhere: when the model is told, when the run ends, and what is not mistaken."""

import random
import time

import pytest

from palyra.core import degenerate
from palyra.core.degenerate import Correct, EndRun, Repeats
from palyra.core.messages import Channel
from palyra.core.repetition import RepeatsItself, RepetitionDetector

WORDS = [
    "the",
    "run",
    "ends",
    "when",
    "a",
    "tool",
    "gives",
    "no",
    "result",
    "and",
    "somebody",
    "has",
    "to",
    "look",
    "at",
    "it",
    "again",
]


def fed(text: str, channel: Channel = "text", pieces: int = 7) -> int | None:
    """Where the text was stopped, if it was."""
    detector = RepetitionDetector(channel)
    try:
        for at in range(0, len(text), pieces):
            detector.feed(text[at : at + pieces])
    except RepeatsItself as repeated:
        return repeated.keep if repeated.channel == channel else -1
    return None


@pytest.mark.parametrize("pieces", [1, 7, 600, 100_000])
@pytest.mark.parametrize(
    "unit",
    [
        "I will now read the file. ",
        "Let me think about this again.\n\nWait, no.\n\n",
        "ha",
        "0",
        "请稍等。",
        "word " * 40 + ". ",
    ],
)
def test_a_stream_that_repeats_itself_is_stopped(unit: str, pieces: int) -> None:
    before = "".join(random.Random(1).choices(WORDS, k=50))
    kept = fed(before + unit * (60_000 // len(unit)), pieces=pieces)
    assert kept is not None
    assert kept < len(before) + 20_000


def test_reasoning_that_repeats_itself_is_named_as_reasoning() -> None:
    assert (fed("Wait, let me see. " * 1500, "reasoning") or -1) > 0


def test_phrases_that_vary_a_little_are_noticed() -> None:
    rng = random.Random(2)
    lines = ("I should call the tool now. ", "Now I should call the tool. ", "Let me call it. ")
    assert fed("".join(rng.choice(lines) for _ in range(4000))) is not None


def _table(rng: random.Random) -> str:
    rows = [f"| {n} | {rng.choice(WORDS)} | {rng.random():.3f} | ok |" for n in range(400)]
    return "| n | word | value | state |\n|---|---|---|---|\n" + "\n".join(rows)


def _code(rng: random.Random) -> str:
    return "\n".join(
        f"    def test_{rng.choice(WORDS)}_{n}(self) -> None:\n"
        f"        self.assertEqual({rng.randrange(100)}, compute({n}))\n"
        for n in range(300)
    )


def _log(rng: random.Random) -> str:
    return "\n".join(
        f"2026-01-01T10:{n // 60:02}:{n % 60:02}Z INFO worker-{rng.randrange(4)} request {n} done"
        f" in {rng.randrange(900)} ms"
        for n in range(500)
    )


def _list(rng: random.Random) -> str:
    return "\n".join(f"- [ ] {' '.join(rng.choices(WORDS, k=5))}" for n in range(400))


def _json(rng: random.Random) -> str:
    return "\n".join(
        f'{{"id": {n}, "name": "{rng.choice(WORDS)}", "ok": true}},' for n in range(400)
    )


def _matrix(rng: random.Random) -> str:
    return "\n".join(" ".join("0" for _ in range(40)) for _ in range(40))


def _html(rng: random.Random) -> str:
    return "".join(
        f'<tr><td class="cell">{n}</td><td class="cell">{rng.choice(WORDS)}</td></tr>\n'
        for n in range(400)
    )


@pytest.mark.parametrize("make", [_table, _code, _log, _list, _json, _matrix, _html])
def test_tables_code_lists_and_logs_are_not_repetition(make: object) -> None:
    assert callable(make)
    for number in range(20):
        assert fed(make(random.Random(number)), pieces=50) is None


def test_watching_costs_time_in_proportion() -> None:
    def cost(size: int) -> float:
        rng = random.Random(3)
        text = " ".join(str(rng.random()) for _ in range(size // 18))
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            assert fed(text, pieces=400) is None
            best = min(best, time.process_time() - began)
        return best

    assert cost(1_000_000) < 10 * 5 * max(cost(100_000), 0.002)


def _again(repeats: Repeats, turn: int, result: str = "same") -> None:
    repeats.turn_begins()
    repeats.finished(turn, ("fs.list", {"path": "."}), ("ok", result))


def test_the_same_call_with_the_same_result_is_told_and_then_ends() -> None:
    repeats = Repeats()
    for turn in (1, 2):
        _again(repeats, turn)
        assert degenerate.of_calls(["fs.list"], repeats, []) is None
    _again(repeats, 3)
    found = degenerate.of_calls(["fs.list"], repeats, [])
    assert isinstance(found, Correct)
    assert found.flaw == "loop"
    _again(repeats, 4)
    assert degenerate.of_calls(["fs.list"], repeats, ["loop"]) == EndRun("loop")


def test_two_calls_in_turn_are_a_loop_too() -> None:
    repeats = Repeats()
    for turn in range(1, 8):
        repeats.turn_begins()
        repeats.finished(turn, ("fs.read", {"path": "ab"[turn % 2]}), ("ok", "x"))
    assert isinstance(degenerate.of_calls(["fs.read"], repeats, []), Correct)


def test_something_new_in_between_is_no_loop() -> None:
    repeats = Repeats()
    for turn in range(1, 30, 2):
        repeats.turn_begins()
        repeats.finished(turn, ("fs.patch", {"patch": str(turn)}), ("ok", "done"))
        _again(repeats, turn + 1, "2 tests failed")
        assert degenerate.of_calls(["fs.list"], repeats, []) is None


def test_the_same_call_with_other_results_is_no_loop() -> None:
    repeats = Repeats()
    for turn in range(20):
        _again(repeats, turn, f"{turn} % done")
        assert degenerate.of_calls(["fs.list"], repeats, []) is None


def test_one_turn_with_the_same_call_many_times_is_no_loop() -> None:
    repeats = Repeats()
    for _ in range(5):
        repeats.finished(1, ("fs.list", {}), ("ok", "x"))
    assert degenerate.of_calls(["fs.list"], repeats, []) is None


def test_pieces_are_joined_without_what_they_repeat() -> None:
    assert degenerate.join(["one two", " three"]) == "one two three"
    assert degenerate.join(["The answer is", "The answer is 42."]) == "The answer is 42."
    assert degenerate.join(["Hi", "Hi"]) == "Hi"
    said = "and this is how the story of the long answer ends"
    assert degenerate.join([f"First, {said}", f"{said}, finally."]) == f"First, {said}, finally."
