"""Looking for providers: keys in the environment, servers on this machine, and the models that a
server says it has.
"""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from palyra.features.setup import servers, vendors
from palyra.features.setup.model import FoundProvider, NewProvider
from palyra.models.call_limits import is_local
from palyra.models.dialects import HOMES
from palyra.models.http import HttpClient
from palyra.serve.config import ChosenModels

# A server on this machine answers at once or is not there; one elsewhere may take a while.
_HERE_S: Final = 2.0
_ELSEWHERE_S: Final = 15.0
_VERSION: Final = {"anthropic-version": "2023-06-01"}


class ProviderSearch:
    def __init__(
        self, env: Mapping[str, str], http: HttpClient, in_force: Callable[[], ChosenModels]
    ) -> None:
        self._env = env
        self._http = http
        self._in_force = in_force

    async def found(self) -> list[FoundProvider]:
        """Return what could be set up: servers on this machine, then keys in the environment."""
        places = servers.usual_places(self._env)
        answers = await asyncio.gather(
            *(servers.examine(each, self._asking("", "openai-chat", _HERE_S)) for each in places)
        )
        local = {each.base_url: each for each in answers if each is not None}
        keys = list(vendors.in_environment(self._env))
        return [self._known(each) for each in (*_named_apart(list(local.values())), *keys)]

    async def models_of(self, new: NewProvider, key: str) -> FoundProvider:
        """Return what a provider offers, as it says itself; without models and with advice if it
        does not say.
        """
        homes = {str(kind): home for kind, home in HOMES.items()}
        base_url = new.base_url or homes.get(new.kind, "")
        ask = self._asking(key, new.kind, _HERE_S if is_local(base_url) else _ELSEWHERE_S)
        if is_local(base_url):
            found = await servers.examine(servers.root_of(base_url), ask)
            if found is not None:
                return self._known(replace(found, name=new.name))
        models = await servers.listed(base_url, ask)
        advice = "" if models else _nobody(base_url) if models is None else "It lists no models"
        return self._known(
            FoundProvider(
                name=new.name,
                title=new.name,
                kind=new.kind,
                base_url=new.base_url,
                models=tuple(models or ()),
                local=is_local(base_url),
                advice=advice,
            )
        )

    async def kept(self, new: NewProvider, model: str) -> int:
        """Return how many tokens the server keeps of a prompt for a model that it has just answered
        with; 0 if it does not say.
        """
        if not is_local(new.base_url):
            return 0
        ask = self._asking("", new.kind, _HERE_S)
        return await servers.kept_by_ollama(servers.root_of(new.base_url), ask, model)

    def _known(self, found: FoundProvider) -> FoundProvider:
        return replace(found, configured=found.name in self._in_force().providers)

    def _asking(self, key: str, kind: str, limit_s: float) -> servers.Ask:
        headers = {"Accept": "application/json"}
        if key:
            headers |= _key_headers(key, kind)

        async def ask(url: str, body: bytes | None) -> Any:
            sent = headers if body is None else {**headers, "Content-Type": "application/json"}
            status, said = await self._http.fetch(url, headers=sent, body=body, limit_s=limit_s)
            if status == HTTPStatus.SERVICE_UNAVAILABLE:
                return servers.LOADING
            try:
                return msgspec.json.decode(said) if status == 200 else None
            except msgspec.DecodeError:
                return None

        return ask


def _key_headers(key: str, kind: str) -> dict[str, str]:
    match kind:
        case "anthropic":
            return {"x-api-key": key, **_VERSION}
        case "gemini":
            return {"x-goog-api-key": key}
        case _:
            return {"Authorization": f"Bearer {key}"}


def _named_apart(found: list[FoundProvider]) -> list[FoundProvider]:
    """Two servers of a kind get two names."""
    seen: dict[str, int] = {}
    named = []
    for each in found:
        seen[each.name] = seen.get(each.name, 0) + 1
        count = seen[each.name]
        named.append(each if count == 1 else replace(each, name=f"{each.name}{count}"))
    return named


def _nobody(base_url: str) -> str:
    if is_local(base_url):
        return f"No model server answers at {base_url}. Is it running?"
    return f"No list of models at {base_url}/models. Check the address and the key, or name a model"
