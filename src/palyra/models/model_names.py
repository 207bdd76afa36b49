"""Which model a name means: `provider/model`, a provider for its first model, or a model's bare
name where only one model has it. Pure.
"""

from collections.abc import Sequence

from palyra.core.errors import InvalidInput

Known = tuple[str, str]


def matches(wanted: str, known: Sequence[Known]) -> list[Known]:
    """Return the models that a name can mean, as `(provider, model)`; the closest kind of match
    alone.

    A bare name may leave out what servers add to it: the maker before a slash, the tag behind a
    colon.
    """
    for provider, model in known:
        if wanted == f"{provider}/{model}":
            return [(provider, model)]
    for provider, model in known:
        if wanted == provider:
            return [(provider, model)]
    for same in (_exact, _without_maker, _without_tag):
        if found := [each for each in known if same(each[1]) == wanted]:
            return list(dict.fromkeys(found))
    return []


def one(wanted: str, known: Sequence[Known], *, key: str = "") -> Known | None:
    """Return the one model that a name means, None if it means none. Raise InvalidInput if it
    means several; `key` is the setting that holds the name.
    """
    found = matches(wanted, known)
    if len(found) > 1:
        names = [f"{provider}/{model}" for provider, model in found]
        raise InvalidInput(
            f"{f'{key}: ' if key else ''}{wanted[:100]!r} is the name of {len(names)} models: write"
            f" {', '.join(names[:-1])} or {names[-1]}",
            model=wanted[:100],
            candidates=names,
        )
    return found[0] if found else None


def _exact(model: str) -> str:
    return model


def _without_maker(model: str) -> str:
    return model.rpartition("/")[2]


def _without_tag(model: str) -> str:
    return _without_maker(model).partition(":")[0]
