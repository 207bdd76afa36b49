"""Notes and checkpoints are read and written as C2SP lays them out, and only good signatures count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core import signed_notes
from palyra.core.errors import InvalidInput
from palyra.core.signed_notes import COSIGNATURE, LogCheckpoint, NoteKey, SigningKey
from tests.material import material

FOREIGN_KEY = "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx"
KEY = SigningKey("palyra.test/log", bytes(range(32)))
WITNESS = SigningKey("attic.test", bytes(range(1, 33)), COSIGNATURE)


def test_checkpoints_of_another_implementation_are_read_and_verified() -> None:
    folder, key = material("tlog", "tessera_log"), NoteKey.decode(FOREIGN_KEY)
    for size in range(1, 16):
        note = signed_notes.parse((folder / f"checkpoint.{size}").read_text())
        assert note.signed_by(key)
        read = LogCheckpoint.parse(note.text)
        assert (read.origin, read.size) == (key.name, size)
        assert read.text() == note.text


def test_a_checkpoint_comes_back_as_it_was_signed() -> None:
    made = LogCheckpoint(KEY.name, 48_211, bytes(32), ("time 1700000000",))
    note = signed_notes.parse(signed_notes.sign(made.text(), [KEY]))
    assert note.signed_by(KEY.verifier)
    assert LogCheckpoint.parse(note.text) == made


def test_keys_survive_their_text_form() -> None:
    assert SigningKey.decode(KEY.encode()) == KEY
    assert NoteKey.decode(KEY.verifier.encode()) == KEY.verifier
    assert NoteKey.decode(WITNESS.verifier.encode()).algorithm == COSIGNATURE


def test_a_key_under_another_name_or_id_is_refused() -> None:
    text = KEY.verifier.encode()
    for wrong in (text.replace("palyra", "other"), text[:-4] + "AAA=", "a b+c+d", "", "x"):
        with pytest.raises(InvalidInput):
            NoteKey.decode(wrong)
    with pytest.raises(InvalidInput):
        SigningKey.decode(KEY.encode().replace("palyra", "other"))


@given(st.integers(0, 10_000))
def test_a_note_with_one_bit_changed_is_signed_by_nobody(bit: int) -> None:
    signed = signed_notes.sign(LogCheckpoint(KEY.name, 7, bytes(32)).text(), [KEY]).encode()
    at = bit % (len(signed) * 8)
    changed = bytearray(signed)
    changed[at // 8] ^= 1 << at % 8
    try:
        note = signed_notes.parse(changed.decode())
    except (InvalidInput, UnicodeDecodeError):
        return
    found = note.signed_by(KEY.verifier)
    # Base64 has bits that mean nothing; everything that means something is covered.
    assert found is None or note == signed_notes.parse(signed.decode())


def test_a_cosignature_covers_its_time() -> None:
    text = LogCheckpoint(KEY.name, 7, bytes(32)).text()
    note = signed_notes.sign(text, [KEY]) + WITNESS.line(text, 1_700_000_000)
    found = signed_notes.parse(note).signed_by(WITNESS.verifier)
    assert found is not None
    assert found.time_s == 1_700_000_000
    later = note.replace(WITNESS.line(text, 1_700_000_000), WITNESS.line(text, 1_700_000_001))
    assert signed_notes.parse(later) != signed_notes.parse(note)
    swapped = found.signature[:7] + b"\xff" + found.signature[8:]
    assert not WITNESS.verifier.verifies(text, swapped)


@pytest.mark.parametrize(
    "text",
    ["", "text", "text\n", "text\n\nsigned\n", "text\n\n\u2014 name\n", "text\n\n\u2014 n eA==\n"],
)
def test_what_is_no_note_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        signed_notes.parse(text)


@pytest.mark.parametrize(
    "text",
    ["", "log\n", "log\n1\n", "log\n01\n" + "A" * 43 + "=\n", "log\n1\nAAAA\n", "log\n-1\n\n"],
)
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        LogCheckpoint.parse(text)
