"""The keys of providers: each in the vault for its provider alone, or named in the settings."""

import logging
from urllib.parse import urlsplit

from palyra.core.errors import PalyraError
from palyra.core.ids import OWNER
from palyra.features.setup.model import NewProvider
from palyra.features.vault.service import Vault
from palyra.models.dialects import HOMES
from palyra.serve.config import ChosenModels, Provider

log = logging.getLogger("palyra.setup")

IN_VAULT = "vault:"


async def vault_keys(chosen: ChosenModels, vault: Vault) -> dict[str, str]:
    """The keys of providers that are in the vault, by their references. One that cannot be had is
    empty: then it says so.
    """
    found: dict[str, str] = {}
    for name, provider in chosen.providers.items():
        if provider.api_key.startswith(IN_VAULT):
            found[provider.api_key] = await from_vault(vault, name, provider.api_key)
    return found


async def from_vault(vault: Vault, name: str, reference: str) -> str:
    try:
        return await vault.resolve(reference, principal=OWNER, session="", tool=user_of(name))
    except PalyraError as error:
        log.warning("the key of the provider %s cannot be had: %s", name, error.message)
        return ""


def user_of(provider: str) -> str:
    """Return who may use a key: this provider, and no tool of an agent."""
    return f"model:{provider}"


def same_party(before: Provider, new: NewProvider) -> bool:
    """Return whether both are at the same place, so that a key of the one is known to the other
    already.
    """
    homes = {str(kind): home for kind, home in HOMES.items()}
    try:
        one, other = (urlsplit(each.base_url or homes.get(each.kind, "")) for each in (before, new))
    except ValueError:
        return False
    return (one.scheme.lower(), one.netloc.lower()) == (other.scheme.lower(), other.netloc.lower())
