"""Model servers, asked what they are and which models they have: Ollama, LM Studio, llama.cpp,
vLLM, and whatever else speaks OpenAI's chat.

A server is known by how it answers, not by its port. Nothing is believed that has not the right
form, and nobody is waited for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from palyra.features.setup.model import FoundModel, FoundProvider
from palyra.models.call_limits import is_local

Ask = Callable[[str, bytes | None], Awaitable[Any]]
# What `Ask` gives for 503: llama.cpp says so on every path while it reads its model.
LOADING: Final = object()
# Where they usually listen: Ollama, LM Studio, llama.cpp, vLLM.
PORTS: Final = (11434, 1234, 8080, 8000)
_MOST_MODELS: Final = 50
_LONGEST_NAME: Final = 200
_AT_ONCE: Final = 8
# Ollama cuts off what is longer without a word, and keeps no more than this by default.
OLLAMA_KEEPS: Final = 8_192
_NO_MODELS: Final = {
    "ollama": "Ollama has no models yet. Try: ollama pull qwen3:8b",
    "lmstudio": "LM Studio has no models yet. Download one on its Discover page",
    "llamacpp": "llama.cpp has no model loaded. Start it with: llama-server -m MODEL.gguf --jinja",
    "vllm": "vLLM serves no model. Start it with: vllm serve MODEL --enable-auto-tool-choice",
}
_TITLES: Final = {
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
    "local": "OpenAI-compatible server",
}


def usual_places(env: Mapping[str, str]) -> list[str]:
    """The roots of loopback addresses where a server may listen."""
    places = [f"http://127.0.0.1:{port}" for port in PORTS]
    if own := _own_ollama(env.get("OLLAMA_HOST", "")):
        places.insert(0, own)
    return list(dict.fromkeys(places))


def _own_ollama(given: str) -> str:
    """Return OLLAMA_HOST, if that is on this machine: `host`, `host:port` or an address."""
    try:
        parts = urlsplit(given if "://" in given else f"http://{given}")
        port = parts.port or PORTS[0]
    except ValueError:
        return ""
    # It is also where Ollama is told to listen: on every address.
    host = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(parts.hostname or "", parts.hostname)
    if host not in ("127.0.0.1", "localhost", "::1"):
        return ""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def root_of(base_url: str) -> str:
    """The address of a server without the path of its API."""
    return base_url.rstrip("/").removesuffix("/v1").rstrip("/")


async def examine(root: str, ask: Ask) -> FoundProvider | None:
    """Return what listens at an address; None if that is no model server. `ask` raises OSError or
    TimeoutError, or gives None, where there is no answer, and LOADING for "not yet".
    """
    paths = ("/api/tags", "/api/v0/models", "/props", "/v1/models")
    tags, studio, props, listed = await asyncio.gather(
        *(_answer(ask, root + path) for path in paths)
    )
    if LOADING in (props, listed):
        return FoundProvider(
            name="local",
            title=_TITLES["local"],
            kind="openai-chat",
            base_url=f"{root}/v1",
            local=is_local(root),
            advice=f"The model server at {root} is still loading its model. Try again in a moment",
            loading=True,
        )
    # First, because llama.cpp answers to Ollama's paths as well.
    if isinstance(props, dict) and "default_generation_settings" in props:
        return _made(
            "llamacpp", root, [_of_llamacpp(e, props) for e in _rows(listed, "data") or ()]
        )
    if (rows := _rows(tags, "models")) is not None and all("name" in each for each in rows):
        return _made("ollama", root, await _ollama(root, ask, rows))
    if (rows := _rows(studio, "data")) is not None and all("id" in each for each in rows):
        return _made("lmstudio", root, [m for each in rows if (m := _of_studio(each))])
    if (rows := _rows(listed, "data")) is None:
        return None
    name = "vllm" if any(_text(each, "owned_by") == "vllm" for each in rows) else "local"
    return _made(name, root, [_of_listed(each) for each in rows])


async def listed(base_url: str, ask: Ask) -> list[FoundModel] | None:
    """The models of a vendor's API; None if it has no list."""
    answer = await _answer(ask, base_url.rstrip("/") + "/models")
    rows = _rows(answer, "data")
    if rows is None and (of_gemini := _rows(answer, "models")) is not None:
        return _good([_of_gemini(each) for each in of_gemini])
    return None if rows is None else _good([_of_listed(each) for each in rows])


async def kept_by_ollama(root: str, ask: Ask, model: str) -> int:
    """Return how many tokens Ollama keeps of a prompt for a model that is loaded now; 0 if it does
    not say.
    """
    for each in _rows(await _answer(ask, root + "/api/ps"), "models") or ():
        if model in (_text(each, "name"), _text(each, "model")):
            return _number(each.get("context_length"))
    return 0


def _made(name: str, root: str, models: Sequence[FoundModel]) -> FoundProvider:
    good = _good(models)
    advice = "" if good else _NO_MODELS.get(name, f"The server at {root} lists no models")
    return FoundProvider(
        name=name,
        title=_TITLES[name],
        kind="openai-chat",
        base_url=f"{root}/v1",
        models=tuple(good),
        local=is_local(root),
        advice=advice,
    )


def _good(models: Sequence[FoundModel]) -> list[FoundModel]:
    """Return the models with a name that can be written down, once each."""
    kept = {
        each.name: each
        for each in models
        if 0 < len(each.name) <= _LONGEST_NAME and each.name.isprintable()
    }
    return list(kept.values())[:_MOST_MODELS]


async def _ollama(root: str, ask: Ask, rows: list[dict[str, Any]]) -> list[FoundModel]:
    loaded = {
        _text(each, "name"): _number(each.get("context_length"))
        for each in _rows(await _answer(ask, root + "/api/ps"), "models") or ()
    }
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(row: dict[str, Any]) -> FoundModel | None:
        name = _text(row, "name")
        async with turns:
            shown = await _answer(ask, root + "/api/show", msgspec.json.encode({"model": name}))
        about = shown if isinstance(shown, dict) else {}
        able = about.get("capabilities")
        able = able if isinstance(able, list) else None
        if able is not None and "completion" not in able:
            return None
        return FoundModel(
            name=name,
            context_tokens=_ollama_window(about, loaded.get(name, 0)),
            tools="tools" in able if able is not None else None,
            vision="vision" in able if able is not None else None,
        )

    found = await asyncio.gather(*(one(each) for each in rows[:_MOST_MODELS]))
    return [each for each in found if each is not None]


def _ollama_window(about: Mapping[str, Any], loaded: int) -> int:
    """Return the context window that Ollama keeps, mostly less than what the model could take."""
    info = about.get("model_info")
    could = next(
        (
            _number(value)
            for key, value in (info.items() if isinstance(info, dict) else ())
            if str(key).endswith(".context_length")
        ),
        0,
    )
    for line in _text(about, "parameters").splitlines():
        name, _, value = line.partition(" ")
        if name == "num_ctx" and value.strip().isdecimal():
            return int(value)
    return loaded or min(could or OLLAMA_KEEPS, OLLAMA_KEEPS)


def _of_studio(row: Mapping[str, Any]) -> FoundModel | None:
    if _text(row, "type") == "embeddings":
        return None
    able = row.get("capabilities")
    return FoundModel(
        name=_text(row, "id"),
        context_tokens=_number(row.get("loaded_context_length"))
        or _number(row.get("max_context_length")),
        tools="tool_use" in able if isinstance(able, list) else None,
        vision=_text(row, "type") == "vlm" if row.get("type") else None,
    )


def _of_llamacpp(row: Mapping[str, Any], props: Mapping[str, Any]) -> FoundModel:
    settings, sees = props["default_generation_settings"], props.get("modalities")
    window = _number(settings.get("n_ctx")) if isinstance(settings, dict) else 0
    return FoundModel(
        name=_text(row, "id"),
        context_tokens=window or _number(props.get("n_ctx")),
        vision=bool(sees.get("vision")) if isinstance(sees, dict) else None,
    )


def _of_listed(row: Mapping[str, Any]) -> FoundModel:
    """A row of OpenAI's list, with what vLLM, OpenRouter, Groq and Mistral say beside its name."""
    names = ("max_model_len", "context_length", "context_window", "max_context_length")
    able = row.get("supported_parameters")
    return FoundModel(
        # Gemini's list puts a folder before the name.
        name=_text(row, "id").removeprefix("models/"),
        context_tokens=next((found for each in names if (found := _number(row.get(each)))), 0),
        tools="tools" in able if isinstance(able, list) else None,
    )


def _of_gemini(row: Mapping[str, Any]) -> FoundModel:
    """A row of Gemini's own list. What cannot generate text has no name here."""
    able = row.get("supportedGenerationMethods")
    writes = not isinstance(able, list) or "generateContent" in able
    return FoundModel(
        name=_text(row, "name").removeprefix("models/") if writes else "",
        context_tokens=_number(row.get("inputTokenLimit")),
    )


async def _answer(ask: Ask, url: str, body: bytes | None = None) -> Any:
    try:
        return await ask(url, body)
    except (OSError, TimeoutError):
        return None


def _rows(answer: Any, key: str) -> list[dict[str, Any]] | None:
    rows = answer.get(key) if isinstance(answer, dict) else None
    return [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else None


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < 1 << 40 else 0
