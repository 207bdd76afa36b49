"""Models in OpenAI's words. `palyra` is the agent with the model that its settings
choose.
"""

from typing import Literal

from msgspec import Struct

from palyra.api.about import ModelInfo, models_of
from palyra.api.calls import ApiCall, DaemonInfo, HttpResponse, Nothing, ok
from palyra.core.errors import NotFound
from palyra.core.services import Services
from palyra.features.memory.service import Memory
from palyra.features.openai_api.parse_request import AGENT
from palyra.models.routing import Models


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
