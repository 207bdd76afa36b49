"""What learned weights find and spare: tokens of vendors that nobody listed, and values that a
sentence, a label or a list gives to a name.
"""

import random
import string

import pytest

from palyra.core.redaction import assignments, drawn, formats, spoken
from palyra.core.redaction.shapes import Work
from palyra.system.redactor import Redactor

REDACTOR = Redactor(b"learned")
BODY = "k7Jq2ZpXw9Rt4LmV8sYc3HdN6bGf"

FOUND = {
    "a token of an unknown vendor": (f"use zebrafish_{BODY} please", BODY),
    "one with a word for a credential": (f"quokka_live_{BODY[:20].lower()}", BODY[:20].lower()),
    "one with dashes in it": ("wombat-pat-k7Jq2ZpXw-9Rt4LmV8sYc3-HdN6bGf", "9Rt4LmV8sYc3"),
    "one with dots": ("numbat.v1.k7Jq2ZpXw9Rt4LmV.8sYc3HdN6bGf", "k7Jq2ZpXw9Rt4LmV"),
    "words between": ("das Passwort für den alten Rechner lautet Krokus4417m", "Krokus4417m"),
    "words without a sign": ("Bitte als gast mit Passwort W1ese.Tal anmelden", "W1ese.Tal"),
    "a label above": ("Client Secret\nq8Zr2Lm5Xw0Tn7Bv\nCopy", "q8Zr2Lm5Xw0Tn7Bv"),
    "a sentence above": (
        "use this password to go on:\n\n4be1c0ffee5a4d8e9b7a6c5d4e3f2a1b",
        "4be1c0",
    ),
    "a list of arguments": ('["cache", "--requirepass", "t0pazRidge"]', "t0pazRidge"),
    "a flag with dots": ("fetch --user=a --password=m0ss.Fern https://x.example", "m0ss.Fern"),
    "a title": ("Temporary Password: Quiet.Harbor7", "Quiet.Harbor7"),
    # These have rules of their own: what is judged needs a digit, or a name.
    "a password of letters in a statement": (
        "CREATE USER a WITH PASSWORD 'heronbill'",
        "heronbill",
    ),
    "one in a list of machines": ("machine h login ann password heronbill", "heronbill"),
    "one behind a host": ("ssh ann@db.example.com (Fj39dkQw2)", "Fj39dkQw2"),
    "one of a network": ('WiFi.begin("home", "Fj39dkQw2x");', "Fj39dkQw2x"),
    "a pair": ("Passwort -> ops:v0lgaBoatman7", "v0lgaBoatman7"),
    "a key in another language": (
        "Der API-Schlüssel ist 49f9c75f0baa00603d6798205560db7a",
        "49f9c7",
    ),
}
SPARED = {
    "an object": f"price_{BODY} and thread_{BODY}",
    "an identifier with its time": "wrkspc_011CZkZaBF1tNoB5wlCeusgy",
    "a constant": 'case "PKIX_RSA_PKCS1V15_2048_SHA256":',
    "an open key": "cache_key_3593e630eaccb3e9bbb90c98801a8b41",
    "a digest with a name": f'"sha256": "blob_{BODY}"',
    "a known mark with a wrong length": "dop_v1_3593e630eaccb3e9bbb90c98801a8b41",
    "a verb": "we pass a Win32 path, then pass it to sha256sum2",
    "a class": "key: Ed25519PrivateKey | Ed448PrivateKey",
    "a type": '"AWS::OpsWorks::Instance": "0d620633630273ef"',
    "one of several names": "PushObject|PassCollisions|AxisAngle2Rot|Rot2",
    "a table's rule": "password ---- -------- 2024-05-03",
    "plain words": "password: ask Maria, token: see the wiki, Passwort steht im Safe",
    "a version": "tokens v0.84.0/go.mod, passport v0.166.0-2024010203",
    "words of a policy": "the password must have 12 characters and 1 digit",
}


@pytest.mark.parametrize("what", FOUND)
def test_it_is_found(what: str) -> None:
    text, secret = FOUND[what]
    assert secret not in REDACTOR.redact(text)


@pytest.mark.parametrize("what", SPARED)
def test_it_is_spared(what: str) -> None:
    assert REDACTOR.redact(SPARED[what]) == SPARED[what]


@pytest.mark.parametrize("what", FOUND)
def test_it_is_found_however_a_stream_is_cut(what: str) -> None:
    text, secret = FOUND[what]
    for size in (1, 5, 16):
        stream = REDACTOR.stream()
        pieces = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert secret not in "".join([*pieces, stream.finish()])


def test_each_feature_has_a_weight() -> None:
    marked = drawn.MARKED.search(f"zebrafish_{BODY}")
    guessed = spoken.guess("password is t0pazRidge", 8, "password")
    assert marked is not None
    assert guessed is not None
    assert list(drawn.features(marked) or ()) == list(drawn.WEIGHTS)
    assert list(spoken.features(guessed) or ()) == list(spoken.WEIGHTS)


def test_most_marked_tokens_of_any_vendor_are_found() -> None:
    rng = random.Random(5)
    alphabet = string.ascii_letters + string.digits
    tokens = [
        f"{''.join(rng.choices(string.ascii_lowercase, k=5))}_{''.join(rng.choices(alphabet, k=32))}"
        for _ in range(200)
    ]
    assert sum(REDACTOR.redact(token) != token for token in tokens) >= 180


def test_a_known_mark_is_left_to_its_format() -> None:
    marks = formats.known_marks()
    assert all(marks.match(token) for token in ("ghp_x", "glpat-x", "hvs.x", "xoxb-x"))
    assert not any(marks.match(token) for token in ("live_x", "api-x", "token-x", "zebrafish_x"))


def test_guesses_are_counted_against_the_budget_of_a_text() -> None:
    text = "".join(f"password is das{n}Ende " for n in range(2_000))
    work = Work(len(text))
    found = list(assignments.find(text, text.lower(), work))
    assert work.left < 0
    assert found[-1].rule == "unread" or len(found) >= 2_000
