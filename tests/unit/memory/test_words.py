"""The words that texts are found by."""

from hypothesis import given
from hypothesis import strategies as st

from palyra.features.memory import words


def test_inflections_and_accents_are_the_same_word_and_stop_words_are_none() -> None:
    assert words.terms("The cafés were running") == words.terms("cafe run")


def test_the_day_it_was_said_is_among_its_words() -> None:
    assert {"2023", *words.terms("May")} <= set(words.counted("hello", 1_683_500_000_000))


def test_texts_that_differ_in_case_punctuation_and_articles_say_the_same() -> None:
    assert words.same_key("I live in the Prague castle!") == words.same_key(
        "i live in Prague  castle"
    )


def test_texts_that_differ_in_a_number_a_sign_a_negation_or_the_order_do_not_say_the_same() -> None:
    texts = (
        "Anna owes Bob 5",
        "Anna owes Bob -5",
        "Anna owes Bob 50",
        "Bob owes Anna 5",
        "Anna does not owe Bob 5",
        "Anna owed Bob 5",
    )
    assert len({words.same_key(text) for text in texts}) == len(texts)


@given(st.text(max_size=200))
def test_any_text_has_words_and_a_key(text: str) -> None:
    assert len(words.terms(text)) <= words.MOST_TERMS
    assert len(words.same_key(text)) == 16
