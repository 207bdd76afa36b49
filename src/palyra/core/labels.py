"""Labels: where content came from and how secret it is. Labels only ever join upwards: towards
untrusted, towards secret.

A joined label names at most a few sources of each kind. When there would be more, the deepest are
named together by what they lie below (`file:src/…`), so that a name may become less exact and is
never lost.

Detection of text that looks as if it wants to tell the agent what to do: a person reviews it before
it is remembered as true.

The rule: better one review too many. Held text is not lost, and nothing here decides anything else.
"""

import re
from collections.abc import Callable, Iterable
from typing import Literal

from msgspec import Struct, structs

# Nobody who states a fact writes like this, whoever it is.
_ALWAYS = re.compile(
    r"""
    \b(ignore|disregard|forget|override|bypass)\b.{0,40}\b(instructions?|rules?|polic(y|ies)|prompts?|previous|prior|above|guardrails?)\b
    | \bsystem\s+prompt\b | \bnew\s+instructions?\b | \bdeveloper\s+mode\b | \bjailbreak
    | <\|?/?(system|assistant|user|im_start|im_end|tool|instructions?)\b | ^[\ \t]*+\#*+[\ \t]*+(system|assistant|developer)\s*:
    | \b(do\s+not|don't|never)\s+(tell|inform|mention\s+(this\s+)?to|ask|alert|warn)\s+(the\s+)?(user|owner|human|anyone|anybody)\b
    | \bwithout\s+(asking|telling|informing|approval|confirmation|permission)\b
    | \b(act|behave|respond|pretend)\s+as\s+(if|though|an?|the)\b.{0,40}\b(assistant|ai|model|admin|root|no\s+restrictions)\b
    | \byou\s+are\s+now\b | \bfrom\s+now\s+on,?\s+you\b
    | (curl|wget)\s+[^|\n]{0,200}\|\s*(ba|z|da)?sh\b | \brm\s+-rf\b | \bbase64\s+(-d|--decode)\b
    """,  # noqa: E501
    re.IGNORECASE | re.VERBOSE | re.MULTILINE | re.DOTALL,
)
# An agent that writes such things down is writing orders to itself; a person may put a preference
# like this.
_FROM_A_MODEL = re.compile(
    r"""
    \b(you|the\s+(assistant|agent|ai|model))\s+(must|should|shall|will|need\s+to|have\s+to|are\s+to)\b
    | \b(always|never)\s+(run|call|execute|send|forward|open|visit|fetch|download|upload|approve|allow|include|add)\b
    | ^[\ \t]*+(please\s+)?(run|execute|send|forward|upload|download|visit|click|open|fetch|delete|install|email|post|transfer|reveal|
        write|include|append|add|insert|encode|decode|translate|explain|create|provide|respond|reply|answer|tell|list|describe|give|
        identify|recommend|generate|modify|set|reverse|substitute|change|incorporate|introduce|advise|share|suggest|inject|
        conduct|utilize|use|discuss|convert|replace)\b
    | \b(shell\.run|http\.fetch|fs\.(write|patch)|tool\s+call|function\s+call|api\s+key|password)\b
    """,  # noqa: E501
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)


# The role before a turn of a conversation, as exports have it: only in front, and none that gives
# orders.
_SPEAKER = re.compile(r"\A\s*assistant\s*:\s*", re.IGNORECASE)


def commands(text: str, *, by_a_person: bool) -> str:
    """The words that look like an instruction to the agent, or nothing. A person's own words get
    the benefit of the doubt, and so does who is named as the speaker of a turn that they bring.
    """
    if by_a_person:
        text = _SPEAKER.sub("", text)
    found = _ALWAYS.search(text) or (None if by_a_person else _FROM_A_MODEL.search(text))
    return " ".join(found.group(0).split())[:80] if found else ""


Integrity = Literal["trusted", "untrusted"]
Confidentiality = Literal["public", "private", "secret"]

_INTEGRITY: tuple[Integrity, ...] = ("trusted", "untrusted")
_CONFIDENTIALITY: tuple[Confidentiality, ...] = ("public", "private", "secret")
MOST_SOURCES = 16
_LONGEST_NAME = 160
_MORE = "…"


class Label(Struct, frozen=True, omit_defaults=True):
    """Label of content. For approvals, `sources` name what is untrusted, `private_sources` what is
    private or secret.
    """

    integrity: Integrity = "trusted"
    confidentiality: Confidentiality = "public"
    sources: tuple[str, ...] = ()
    private_sources: tuple[str, ...] = ()


CLEAN = Label()


def untrusted(*sources: str) -> Label:
    return Label(integrity="untrusted", sources=tuple(map(_named, sources)))


def private(*sources: str) -> Label:
    return Label(confidentiality="private", private_sources=tuple(map(_named, sources)))


def secrecy(label: Label) -> int:
    """0 for public; higher is more secret."""
    return _CONFIDENTIALITY.index(label.confidentiality)


def join(labels: Iterable[Label]) -> Label:
    """The label of something made from all of these."""
    found = CLEAN
    for label in labels:
        found = merge(found, label)
    return found


def merge(one: Label, other: Label) -> Label:
    """Both together; `one` itself if the other adds nothing, which is what a long conversation
    mostly does.
    """
    if other is one or other == CLEAN:
        return one
    if (
        one == CLEAN
        and len(other.sources) <= MOST_SOURCES
        and len(other.private_sources) <= MOST_SOURCES
    ):
        return other
    integrity = max(one.integrity, other.integrity, key=_INTEGRITY.index)
    confidentiality = max(one.confidentiality, other.confidentiality, key=_CONFIDENTIALITY.index)
    sources = _union(one.sources, other.sources)
    private_sources = _union(one.private_sources, other.private_sources)
    joined = Label(integrity, confidentiality, sources, private_sources)
    return one if joined == one else joined


def renamed(label: Label, rename: Callable[[str], str]) -> Label:
    """The same with its sources under other names; itself if none has another."""
    sources, private_sources = (
        tuple(map(rename, label.sources)),
        tuple(map(rename, label.private_sources)),
    )
    if (sources, private_sources) == (label.sources, label.private_sources):
        return label
    return structs.replace(label, sources=sources, private_sources=private_sources)


def is_several(name: str) -> bool:
    """Return whether a name stands for more than one source."""
    return name.endswith(_MORE)


def names(shown: str, source: str) -> bool:
    """Return whether a name that a label shows stands for this source."""
    return shown == source or (is_several(shown) and source.startswith(shown[: -len(_MORE)]))


def _named(source: str) -> str:
    """Short, and never one of ours for several: those are not a tool's to give."""
    source = source.replace(_MORE, "...")
    return source if len(source) <= _LONGEST_NAME else source[:_LONGEST_NAME] + _MORE


def _union(have: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    fresh = [name for name in more if not any(names(shown, name) for shown in have)]
    if not fresh and len(have) <= MOST_SOURCES:
        return have
    return _fewer(tuple(dict.fromkeys((*have, *fresh))))


def _fewer(found: tuple[str, ...]) -> tuple[str, ...]:
    """At most so many names that still stand for all of these."""
    while len(found) > MOST_SOURCES:
        deepest = max(map(_depth, found))
        if deepest <= 1:
            # Nothing lies above a host: name those that were first, and say that there are others.
            return (*found[: MOST_SOURCES - 1], _MORE)
        wider = tuple(
            dict.fromkeys(_above(name) if _depth(name) == deepest else name for name in found)
        )
        found = tuple(
            name
            for name in wider
            if not any(other != name and names(other, name) for other in wider)
        )
    return found


def _split(name: str) -> tuple[str, str]:
    """Split a source into kind and place: `https://` and `host/page`, `file:` and `src/a.py`."""
    _, colon, rest = name.partition(":")
    if not colon:
        return "", name
    below = rest.removeprefix("//")
    return name[: len(name) - len(below)], below


def _depth(name: str) -> int:
    where = _split(name)[1].removesuffix(_MORE).rstrip("/")
    return where.count("/") + 1 if where else 0


def _above(name: str) -> str:
    kind, where = _split(name)
    folder, slash, _ = where.removesuffix(_MORE).rstrip("/").rpartition("/")
    return f"{kind}{folder}{slash}{_MORE}"
