"""The windows of a provider's models: one for all of them, and those of single models."""

from palyra.serve.config.sections import Provider


def of(provider: Provider, model: str) -> int:
    """Return how many tokens a model's window has; 0 if the settings do not say."""
    for each in provider.windows:
        name, _, tokens = each.rpartition("=")
        if name == model:
            return int(tokens)
    return provider.context_tokens


def objection(value: tuple[str, ...]) -> str:
    """Say what is wrong with the setting `windows`; empty if nothing is."""
    for each in value:
        name, _, tokens = each.rpartition("=")
        if not name or not tokens.isdecimal() or not 0 < int(tokens) < 1 << 40:
            return 'each must be a model and its tokens, such as "qwen3:8b=40960"'
    return ""
