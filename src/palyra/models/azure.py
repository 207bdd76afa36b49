"""OpenAI's dialects at Azure: where a deployment is reached, and which header carries the key.

Azure has two doors. `/openai/v1` takes requests as OpenAI does, with the deployment as the model;
the older one has the deployment in its path and wants a dated `api-version`.
"""

from typing import Final
from urllib.parse import quote, urlsplit

from palyra.models.http import ProviderEndpoint
from palyra.models.prompt_cache import is_azure

_V1: Final = "/openai/v1"
_DEPLOYMENTS: Final = "/openai/deployments/"
# What a token of Entra ID begins with; a key of the resource never does.
_TOKEN: Final = "eyJ"


def key_header(endpoint: ProviderEndpoint) -> dict[str, str]:
    """A resource's key goes into a header of its own, a token of Entra ID into the usual one."""
    if not endpoint.api_key:
        return {}
    if _here(endpoint) and not endpoint.api_key.startswith(_TOKEN):
        return {"api-key": endpoint.api_key}
    return {"Authorization": f"Bearer {endpoint.api_key}"}


def path_of(endpoint: ProviderEndpoint, path: str, model: str) -> str:
    """The rest of the address behind the base, which may be the resource alone or one of its
    doors.
    """
    if not _here(endpoint):
        return path
    said = urlsplit(endpoint.base_url).path.rstrip("/")
    version = f"?api-version={quote(endpoint.api_version)}" if endpoint.api_version else ""
    if said.endswith(_V1) or _DEPLOYMENTS in f"{said}/":
        return f"{path}{version}"
    lead = "" if said.endswith("/openai") else "/openai"
    if not version:
        return f"{lead}/v1{path}"
    if path == "/chat/completions":
        return f"{lead}/deployments/{quote(model, safe='')}{path}{version}"
    return f"{lead}{path}{version}"


def _here(endpoint: ProviderEndpoint) -> bool:
    return bool(endpoint.api_version) or is_azure(endpoint.host)
