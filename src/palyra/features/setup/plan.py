"""Settings of a provider that is being set up. Pure."""

from collections.abc import Sequence

import msgspec

from palyra.features.setup.model import FoundModel, FoundProvider, NewProvider


def listed(chosen: FoundProvider, models: Sequence[FoundModel], model: str) -> tuple[str, ...]:
    """The chosen model first; a server of one's own has all of them listed, a vendor the one."""
    others = [each.name for each in models] if chosen.local else []
    return tuple(dict.fromkeys((model, *others)))[:50]


def windows(
    listed: Sequence[str], models: Sequence[FoundModel], model: str, kept: int
) -> tuple[str, ...]:
    known = {each.name: each.context_tokens for each in models} | ({model: kept} if kept else {})
    return tuple(f"{name}={known[name]}" for name in listed if known.get(name))


def settings(new: NewProvider) -> dict[str, object]:
    """Return what is written, by key. A key itself never is."""
    table = f"providers.{new.name}"
    key = f"vault:provider-{new.name}" if new.key else f"env:{new.key_from}" if new.key_from else ""
    settings: dict[str, object] = {
        f"{table}.kind": new.kind,
        f"{table}.base_url": new.base_url,
        f"{table}.api_key": key,
        f"{table}.models": list(new.models),
        f"{table}.windows": list(new.windows or ()),
        f"{table}.vision": new.vision,
        "models.default": f"{new.name}/{new.models[0]}",
    }
    return {key: value for key, value in settings.items() if value not in ("", None, [])}


def toml(value: object) -> str:
    return msgspec.json.encode(value).decode()


def about(model: FoundModel | None, name: str) -> str:
    parts = [name]
    if model is not None and model.context_tokens:
        parts.append(f"{model.context_tokens:,} tokens")
    if model is not None and model.tools is not None:
        parts.append("tools" if model.tools else "no tools")
    if model is not None and model.vision:
        parts.append("vision")
    return " · ".join(parts)
