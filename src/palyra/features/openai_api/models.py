"""Models and embeddings in OpenAI's words. `palyra` is the agent with the model that its settings
choose.
"""

from array import array
from base64 import b64encode
from sys import byteorder
from typing import Any, Literal

from msgspec import Struct

from palyra.api.about import ModelInfo, models_of
from palyra.api.calls import ApiCall, DaemonInfo, HttpResponse, Nothing, ok
from palyra.core.errors import InvalidInput, NotFound
from palyra.core.services import Services
from palyra.features.memory.service import Memory
from palyra.features.openai_api.parse_request import AGENT
from palyra.features.openai_api.wire_types import (
    EmbeddingList,
    EmbeddingRequest,
    EmbeddingUsage,
    OneEmbedding,
)
from palyra.models import usage_estimate
from palyra.models.routing import Models

_LONGEST = 2_000
_DIMENSIONS = 384


class OpenAIModel(Struct, frozen=True, kw_only=True):
    id: str
    created: int
    owned_by: str
    object: Literal["model"] = "model"


class ModelList(Struct, frozen=True, kw_only=True):
    """`models` is for our own screens, `data` for programs that know OpenAI's."""

    models: list[ModelInfo]
    data: list[OpenAIModel]
    object: Literal["list"] = "list"


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(ModelList(models=models_of(call.services), data=_data(call.services)))


async def get(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    wanted = call.path["model"]
    found = next((each for each in _data(call.services) if each.id == wanted), None)
    if found is None:
        raise NotFound(f"there is no model {wanted[:100]!r}: see /v1/models", model=wanted[:100])
    return ok(found)


def _data(services: Services) -> list[OpenAIModel]:
    created = services.get(DaemonInfo).started_ms // 1000
    found = [OpenAIModel(id=AGENT, created=created, owned_by="palyra")]
    found += [
        OpenAIModel(id=target.name, created=created, owned_by=target.provider)
        for target in services.get(Models).targets
    ]
    if services.get(Memory).embedding.name:
        found.append(
            OpenAIModel(id=services.get(Memory).embedding.name, created=created, owned_by="palyra")
        )
    return found


async def embeddings(call: ApiCall[Nothing, EmbeddingRequest]) -> HttpResponse:
    body, embedding = call.body, call.services.get(Memory).embedding
    texts = [body.input] if isinstance(body.input, str) else body.input
    if embedding.name and body.model not in ("", AGENT, embedding.name):
        raise NotFound(
            f"{body.model!r} is no embedding model here: ask for {embedding.name}", model=body.model
        )
    if body.dimensions not in (None, _DIMENSIONS):
        raise InvalidInput(
            f"the vectors have {_DIMENSIONS} dimensions: leave dimensions out", path="$.dimensions"
        )
    for text in texts:
        if not text.strip() or len(text) > _LONGEST:
            raise InvalidInput(
                f"a text has 1 to {_LONGEST} characters: cut longer ones up",
                path="$.input",
                limit=_LONGEST,
            )
    vectors = await embedding.vectors(texts)
    plain = body.encoding_format == "float"
    data: list[Any] = [
        OneEmbedding(
            index=index, embedding=_numbers(vector) if plain else b64encode(vector).decode()
        )
        for index, vector in enumerate(vectors)
    ]
    used = sum(map(usage_estimate.tokens, texts))
    return ok(EmbeddingList(data=data, model=embedding.name, usage=EmbeddingUsage(used, used)))


def _numbers(vector: bytes) -> list[float]:
    numbers = array("f", vector)
    if byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
