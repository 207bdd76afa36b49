"""What is kept of output, and what is told while it comes."""

from hypothesis import given
from hypothesis import strategies as st

from palyra.tools.shell.runner import OutputBuffer, OutputProgress


def test_little_output_is_kept_as_it_is() -> None:
    kept = OutputBuffer(100)
    kept.add(b"one\n")
    kept.add("zwei ö\n".encode())
    assert kept.text() == ("one\nzwei ö\n", 0)


def test_of_much_output_the_beginning_and_the_end_are_kept_and_the_rest_is_counted() -> None:
    kept = OutputBuffer(20)
    for number in range(100):
        kept.add(b"%02d " % number)
    text, dropped = kept.text()
    assert text == "00 01 02 0\n… [280 bytes left out] …\n 97 98 99 "
    assert (kept.total, dropped) == (300, 280)


@given(st.lists(st.text(max_size=40).map(str.encode), max_size=40), st.integers(16, 200))
def test_what_is_shown_and_what_is_left_out_add_up(chunks: list[bytes], most: int) -> None:
    kept = OutputBuffer(most)
    for chunk in chunks:
        kept.add(chunk)
    text, dropped = kept.text()
    whole = b"".join(chunks)
    assert kept.total == len(whole)
    if not dropped:
        assert text == whole.decode()
        return
    head, _, tail = text.partition(f"\n… [{dropped:,} bytes left out] …\n")
    assert whole.startswith(head.encode())
    assert whole.endswith(tail.encode())
    assert len(head.encode()) + len(tail.encode()) + dropped == len(whole)
    assert len(head.encode()) + len(tail.encode()) <= most


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    kept = OutputBuffer(100)
    kept.add(b"a\xff\xfeb")
    assert kept.text() == ("a\ufffd\ufffdb", 0)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_progress_is_told_in_whole_lines_and_not_too_often() -> None:
    told: list[str] = []
    clock = Clock()
    progress = OutputProgress(told.append, clock)
    progress.add(b"one\ntw")
    progress.add(b"o\nthree\n")
    assert told == ["one\n"]
    clock.now = 0.2
    progress.add(b"fo")
    assert told == ["one\n", "two\nthree\n"]
    progress.flush()
    assert told == ["one\n", "two\nthree\n", "fo"]


def test_a_thousand_lines_at_once_are_one_message_that_says_what_it_skips() -> None:
    told: list[str] = []
    clock = Clock()
    progress = OutputProgress(told.append, clock)
    progress.add(b"".join(b"line %04d\n" % number for number in range(1000)))
    (message,) = told
    first, _, rest = message.partition("\n")
    assert first.startswith("… [")
    assert "characters skipped" in first
    assert rest.endswith("line 0999\n")
    assert rest.startswith("line ")
    assert len(message) < 5000


def test_a_character_that_comes_in_two_pieces_is_one() -> None:
    told: list[str] = []
    progress = OutputProgress(told.append, Clock())
    progress.add("ö".encode()[:1])
    progress.add("ö".encode()[1:])
    progress.flush()
    assert "".join(told) == "ö"
