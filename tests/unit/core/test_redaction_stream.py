"""A stream shows words as they come and never half of a secret, however the text was cut."""

import base64
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.redaction.stream import LONGEST_HELD
from palyra.system.redactor import Redactor
from tests.unit.core.test_redaction import ENCODERS, TOKENS, pem

KNOWN = ("swordfish-42", "correct horse battery staple", "日本語の秘密42")
REDACTOR = Redactor(b"k", KNOWN)
PLAIN = Redactor(b"k")
PLANTED = [*TOKENS.values(), *KNOWN]
SPOKEN = (
    f"Sure, here it is: {TOKENS['github']}. And the password is Zx9kLmP2q, as you know; swordfish-42 too.\n"
    f'config = {{"api_key": "{TOKENS["stripe"]}", "note": "correct horse battery staple"}}\n{pem()}\n日本語の秘密42 です。 Bye.\n'
)
SECRETS = (
    TOKENS["github"],
    "Zx9kLmP2q",
    *KNOWN,
    TOKENS["stripe"],
    *(line for line in pem().splitlines()[1:-1]),
)


def streamed(redactor: Redactor, text: str, sizes: list[int]) -> str:
    stream = redactor.stream()
    shown, at, turn = [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        shown.append(stream.feed(text[at : at + size]))
        at, turn = at + size, turn + 1
    return "".join(shown) + stream.finish()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12))
def test_no_secret_survives_any_cutting(sizes: list[int]) -> None:
    shown = streamed(REDACTOR, SPOKEN, sizes)
    assert [secret for secret in SECRETS if secret in shown] == []
    assert shown.startswith("Sure, here it is: [redacted:github:")
    assert shown.endswith(" です。 Bye.\n")


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(PLANTED),
    st.sampled_from(sorted(ENCODERS)),
    st.text(alphabet="abc .,\n", max_size=30),
    st.lists(st.integers(1, 30), min_size=1, max_size=8),
)
def test_no_encoded_secret_survives_any_cutting(
    secret: str, encoder: str, around: str, sizes: list[int]
) -> None:
    spelled = ENCODERS[encoder](secret)
    assert spelled not in streamed(REDACTOR, f"{around} {spelled} {around}", sizes)


@settings(max_examples=200, deadline=None)
@given(st.text(), st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_text_without_secrets_comes_out_as_it_went_in(text: str, sizes: list[int]) -> None:
    if PLAIN.redact(text) is text:
        assert streamed(PLAIN, text, sizes) == text


def test_words_pass_with_no_more_delay_than_the_current_word() -> None:
    stream = PLAIN.stream()
    shown = [
        stream.feed(word) for word in ("The", " quick", " brown", " fox,", " it", " jumps.", "\n")
    ]
    assert shown == ["", "The ", "quick ", "brown ", "fox, ", "it ", "jumps.\n"]


def test_a_script_without_blanks_is_not_held() -> None:
    stream = PLAIN.stream()
    assert stream.feed("你好，") + stream.feed("世界") == "你好，世界"


def test_a_certificate_passes() -> None:
    body = base64.encodebytes(random.Random(2).randbytes(480)).decode()
    text = f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\nok\n"
    assert streamed(PLAIN, text, [7]) == text


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_what_is_held_is_bounded(size: int) -> None:
    stream = PLAIN.stream()
    shown = fed = 0
    text = "a1" * LONGEST_HELD
    for at in range(0, len(text), size):
        fed += len(text[at : at + size])
        shown += len(stream.feed(text[at : at + size]))
        assert fed - shown <= LONGEST_HELD + size
    assert shown + len(stream.finish()) == len(text)


def test_a_secret_where_the_holding_ends_is_gone() -> None:
    token = TOKENS["github"]
    for shift in (-4200, -4100, -60, -20, 0, 20):
        text = "a/" * ((LONGEST_HELD + shift) // 2) + f"/{token}/" + "b/" * 6000
        assert token not in streamed(PLAIN, text, [997])


def test_a_private_key_that_never_ends_is_not_shown() -> None:
    line = base64.b64encode(random.Random(5).randbytes(48)).decode()
    shown = streamed(PLAIN, "-----BEGIN PRIVATE KEY-----\n" + f"{line}\n" * 3000, [61])
    assert line not in shown
