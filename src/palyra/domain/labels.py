"""Where content came from and how secret it is. Labels only ever join upwards: towards untrusted, towards secret."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Integrity = Literal["trusted", "untrusted"]
Confidentiality = Literal["public", "private", "secret"]

_INTEGRITY: tuple[Integrity, ...] = ("trusted", "untrusted")
_CONFIDENTIALITY: tuple[Confidentiality, ...] = ("public", "private", "secret")
_MOST_SOURCES = 16


class Label(Struct, frozen=True, omit_defaults=True):
    """`sources` name what lowered the integrity or raised the secrecy, for the person who is asked."""

    integrity: Integrity = "trusted"
    confidentiality: Confidentiality = "public"
    sources: tuple[str, ...] = ()


CLEAN = Label()


def join(labels: Iterable[Label]) -> Label:
    """The label of something made from all of these."""
    integrity = confidentiality = 0
    sources: dict[str, None] = {}
    for label in labels:
        if label == CLEAN:
            continue
        integrity = max(integrity, _INTEGRITY.index(label.integrity))
        confidentiality = max(confidentiality, _CONFIDENTIALITY.index(label.confidentiality))
        sources.update(dict.fromkeys(label.sources))
    if not (integrity or confidentiality or sources):
        return CLEAN
    return Label(
        integrity=_INTEGRITY[integrity],
        confidentiality=_CONFIDENTIALITY[confidentiality],
        sources=tuple(sources)[:_MOST_SOURCES],
    )
