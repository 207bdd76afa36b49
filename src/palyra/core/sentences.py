"""Sentences, and what kind of thing one says: a wish, a decision, something left open, a fact.
Rules over words, nothing more.

The rule: in doubt a sentence counts as a wish of the user. One too many costs a line; one too few
is broken without notice.
"""

import re

from palyra.core.redaction import PLACEHOLDER

CONSTRAINT = re.compile(
    r"""\b(?:never|always|must(?:n['’]t)?|do\s+not|don['’]t|only|no\s+(?:more|less|later|earlier)\s+than|at\s+(?:most|least)
    |not\s+allowed|may\s+not|should(?:\s+not|n['’]t)|forbidden|prohibited|requires?|required|requirement|constraint|budget|deadline
    |due\s+(?:by|on)|limit(?:ed)?\s+(?:is|to|of)|avoid|no\s+circumstances|make\s+sure|ensure|without\s+exception|prefer
    |nie(?:mals)?|immer|muss|müssen|darf|dürfen|nur|keinesfalls|nunca|siempre|debe|sólo|jamais|toujours|doit|seulement
    |nikdy|vždy|musí|nesmí|pouze|mai|sempre|deve)\b""",
    re.IGNORECASE | re.VERBOSE,
)
DECISION = re.compile(
    r"""\b(?:decid(?:e|ed|es|ing)|decisions?|agreed|agree\s+(?:on|to|that)|let['’]?s\s+(?:use|go|keep|take|stick)
    |we(?:['’]ll|\s+will|\s+shall)?\s+(?:use|go\s+with|keep|stick\s+(?:to|with)|take)|going\s+with|(?:i|we)\s+(?:chose|choose|picked?)
    |settled\s+on|approved|entschieden|entscheidung|beschlossen|décid\w+|decidid\w+|rozhod\w+)\b""",
    re.IGNORECASE | re.VERBOSE,
)
OPEN = re.compile(
    r"""\b(?:open\s+(?:question|issue|point)s?|to-?do|tbd|undecided|unresolved|unclear|still\s+(?:need|open|to|missing|unknown)
    |not\s+yet|remains?\s+(?:open|to\s+be)|offene\s+frage)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_TELLING = re.compile(
    r"""\b(?:remember|note\s+that|fyi|fact|called|named)\b
    |^(?:the|our|my|their|his|her|its)\b.{1,80}?\b(?:is|are|was|were|lives?|uses?|runs?|costs?|belongs?)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NAMING = re.compile(r"\d|`[^`]+`|\b[\w-]+\.[A-Za-z]{1,5}\b|\b[\w.-]+/[\w./-]+|https?://")
_END = re.compile(r"(?<=[.!?。！？])[\"'”’)]*\s+(?=\S)")
_BULLET = re.compile(r"^(?:[-*•>]|\d{1,3}[.)])\s+")
_NO_WORD = re.compile(r"[^\w\[\]:/.%$€£#@+-]+")
# A number that is what a sentence is about to say, not the name of what it speaks of.
_VALUE = re.compile(
    r"\b(is|are|to|than|most|least|exceed|exceeds|under|below|above|until|limit|budget|deadline)("
    r" now)? [$€£]?\d[\w.,:%/-]*"
)
_SAYS = re.compile(
    r"^(?:remember |note |that |fact |fyi )*(?:the|our|my|their|his|her|its) (.{1,60}?)"
    r" (?:is|are)(?: now)? (.{1,40})$"
)


def sentences(text: str) -> list[str]:
    """One line each, without marks of lists."""
    found: list[str] = []
    for line in text.splitlines():
        plain = _BULLET.sub("", collapse(line))
        if plain:
            found += _END.split(plain)
    return found


def collapse(text: str) -> str:
    return " ".join(text.split())


def normal(text: str) -> str:
    """The words alone, so that two ways to write the same are the same."""
    return " ".join(word.strip(".:") for word in _NO_WORD.sub(" ", text.casefold()).split()).strip()


def topic(text: str, *, free: bool) -> str:
    """What a sentence is about, without the value that it gives: a later one about the same takes
    its place.

    `free` also takes "the … is …" for that, which is fine for a fact and too bold for a wish.
    """
    words = normal(text)
    says = _SAYS.match(words) if free else None
    return f"{says[1]} is" if says else _VALUE.sub(r"\1 #", words)


def is_telling(sentence: str) -> bool:
    """Whether a sentence of the user tells something that one may have to know later."""
    return bool(names_something(sentence) or _TELLING.search(sentence))


def names_something(sentence: str) -> bool:
    """A number, a file, an address, a name in backticks, or what stands for a secret."""
    return bool(_NAMING.search(sentence) or PLACEHOLDER.search(sentence))


def cut(text: str, most: int, at: int = 0) -> str:
    """At most about so many characters, with what is at a place in it; never through what stands
    for a secret.
    """
    text = collapse(text)
    if len(text) <= most:
        return text
    begin = 0 if at < most * 3 // 4 else text.rfind(" ", 0, at - most // 2) + 1
    end = (
        text.rfind(" ", begin + 1, begin + most)
        if " " in text[begin + 1 : begin + most]
        else begin + most
    )
    for secret in PLACEHOLDER.finditer(text):
        if secret.start() < begin < secret.end():
            begin = secret.start()
        if secret.start() < end < secret.end():
            end = secret.end()
    return f"{'… ' if begin else ''}{text[begin:end]}{' …' if end < len(text) else ''}"
