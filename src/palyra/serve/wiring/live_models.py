"""Providers, keys and models that change while the daemon runs.

The rule: what would not open changes nothing. A call that is under way ends with the provider that
it began with; the next turn asks the new one.
"""

import logging
from collections.abc import Mapping

from palyra.core.errors import PalyraError
from palyra.core.ports import ModelProvider
from palyra.features.vault.service import Vault
from palyra.models.http import HttpClient
from palyra.models.routing import Models
from palyra.models.text_tools.modes import FoundModes
from palyra.serve import config, ollama
from palyra.serve.config import ChosenModels, Loaded, Provider
from palyra.serve.wiring import models as model_wiring
from palyra.serve.wiring.provider_keys import IN_VAULT, vault_keys

log = logging.getLogger("palyra.setup")

# A provider's settings and its key: if neither changed, neither does the provider.
_Opened = tuple[Provider, str]


class LiveModels:
    """`chosen` is what is in force now. `given` stand in for configured providers, for tests."""

    def __init__(
        self,
        env: Mapping[str, str],
        chosen: ChosenModels,
        http: HttpClient,
        vault: Vault | None,
        given: Mapping[str, ModelProvider],
        found: FoundModes,
    ) -> None:
        self.chosen = chosen
        self._env = env
        self._http = http
        self._vault = vault
        self._given = given
        self._found = found
        self._opened: dict[str, _Opened] = {}

    async def open(self, loaded: Loaded) -> Models:
        """Open the models that were chosen at the start."""
        keys = await self._keys(self.chosen)
        self._models = model_wiring.open_models(
            loaded, self.chosen, keys, self._http, self._given, self._found
        )
        self._opened = self._state(self.chosen, keys)
        self._loaded = loaded
        if self._vault is not None:
            self._vault.on_change.connect(self._renewed)
        return self._models

    async def _renewed(self, secret: str) -> None:
        """A secret has another value: whoever it is the key of is opened with that."""
        references = [each.api_key for each in self.chosen.providers.values()]
        if not any(each.startswith(IN_VAULT) and _name(each) == secret for each in references):
            return
        try:
            (await self.prepare(self._loaded)).put_into_force()
        except PalyraError as error:
            log.warning("the new key is not in use yet: %s", error.message)

    async def prepare(self, loaded: Loaded) -> "PreparedModels":
        """Open what changed settings say, beside what is in force. Raise ConfigInvalid if that
        cannot be.
        """
        found = config.detect(self._env, await ollama.models())
        chosen = config.choose(loaded.config, found)
        keys = await self._keys(chosen)
        state = self._state(chosen, keys)
        same = {
            name: provider
            for name, opened in state.items()
            if self._opened.get(name) == opened and (provider := self._models.opened(name))
        }
        fresh = model_wiring.open_models(
            loaded, chosen, keys, self._http, same | dict(self._given), self._found
        )
        return PreparedModels(self, fresh, chosen, state, loaded)

    def put_into_force(self, prepared: "PreparedModels") -> None:
        self._models.adopt(prepared.models)
        self.chosen, self._opened = prepared.chosen, prepared.state
        self._loaded = prepared.loaded

    async def _keys(self, chosen: ChosenModels) -> dict[str, str]:
        stored = await vault_keys(chosen, self._vault) if self._vault else {}
        return {**self._env, **stored}

    def _state(self, chosen: ChosenModels, keys: Mapping[str, str]) -> dict[str, _Opened]:
        return {
            name: (each, config.secret(each.api_key, keys) if each.api_key else "")
            for name, each in chosen.providers.items()
            if name not in self._given
        }


def _name(reference: str) -> str:
    return reference.removeprefix(IN_VAULT).rpartition("/")[2]


class PreparedModels:
    """Models that are opened and not in force yet."""

    def __init__(
        self,
        live: LiveModels,
        models: Models,
        chosen: ChosenModels,
        state: dict[str, _Opened],
        loaded: Loaded,
    ) -> None:
        self._live = live
        self.models = models
        self.chosen = chosen
        self.state = state
        self.loaded = loaded

    def put_into_force(self) -> None:
        self._live.put_into_force(self)
