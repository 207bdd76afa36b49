"""Selection of memory for a run: few items, few tokens, nothing where nothing fits."""

from collections.abc import Sequence

from palyra.features.memory import model as shapes
from palyra.features.memory import relevance
from palyra.features.memory.model import Found, Item, Recalled
from palyra.features.memory.service import Searched

_CHARACTERS_PER_TOKEN = 4
_LINE_TOKENS = 12


def told(
    standing: Sequence[Item],
    searched: Searched,
    limit_tokens: int = shapes.INJECTED_TOKENS,
) -> list[Recalled]:
    """Return what goes with every prompt, then what was found and answers the question."""
    scores = {each.item.memory_id: each for each in searched.found}
    wishes = [item for item in standing if item.kind == "preference" and item.origin == "learned"]
    others = [item for item in standing if item not in wishes][: shapes.MOST_PINNED_INJECTED]
    # How somebody wants things done has a small budget of its own: it is not crowded out, and
    # crowds nothing out.
    preferences = _within(
        [_held(item, scores.pop(item.memory_id, None)) for item in wishes],
        shapes.PREFERENCE_TOKENS,
        shapes.MOST_PREFERENCES,
    )
    chosen = [_held(item, scores.pop(item.memory_id, None)) for item in others]
    for at in _likely(searched):
        each = searched.found[at]
        if scores.pop(each.item.memory_id, None) is not None:
            likely = searched.relevance[at]
            unsure = not searched.words_only and likely < relevance.SURE_FROM
            chosen.append(Recalled(each.item, likely, each.parts, _tokens(each.item), unsure))
    return [*preferences, *_within(chosen, limit_tokens, shapes.MOST_INJECTED)]


def _likely(searched: Searched) -> list[int]:
    """Return which results are told, the likeliest first."""
    if not searched.words_only:
        return relevance.told(searched.relevance)
    return [at for at, each in enumerate(searched.relevance) if each >= searched.threshold]


def _held(item: Item, found: Found | None) -> Recalled:
    return Recalled(
        item, found.score if found else 0.0, found.parts if found else None, _tokens(item)
    )


def _tokens(item: Item) -> int:
    """A rule of thumb that errs on the safe side, with what stands around the text in a prompt."""
    return -(-len(item.text) // _CHARACTERS_PER_TOKEN) + _LINE_TOKENS


def _within(chosen: list[Recalled], limit_tokens: int, most: int) -> list[Recalled]:
    kept: list[Recalled] = []
    left = limit_tokens
    for each in chosen:
        if len(kept) == most:
            break
        if each.tokens <= left:
            kept.append(each)
            left -= each.tokens
    return kept
