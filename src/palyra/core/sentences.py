"""Sentences, and what kind of thing one says: a wish, a decision, something left open, a fact.
Rules over words, nothing more.

The rule: in doubt a sentence counts as a wish of the user. One too many costs a line; one too few
is broken without notice.

Text that somebody decides about, in characters that cannot deceive.

Control characters act on a terminal, direction marks turn text around, and invisible ones hide it.
Each is written out as an escape, so that a person sees that it is there. Ends of lines and tabs
stay.
"""

import re

from palyra.core.redaction import PLACEHOLDER

# Controls but tab and newline, format characters, separators of lines, fillers that look like
# nothing, variation selectors but the one of emoji, lone surrogates, tags.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Return the text with every character written out that cannot be seen or that acts on what
    shows it.
    """
    return _UNSEEN.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] == "\r":
        return "\\r"
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else f"\\U{code:08x}"
    )


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
_NAMING = re.compile(
    r"\d|`[^`]+`|(?<![\w-])[\w-]++\.[A-Za-z]{1,5}\b|(?<![\w.-])[\w.-]++/[\w./-]+|https?://"
)
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


# "I prefer trains, can you find one?": what is told stands before what is asked.
_ASKED = re.compile(
    r"\s*[,;:–—-]\s+(?:(?:so|and|but|then|now|therefore)\s+)?(?:please\s+)?(?:can|could|would|will|may|might|shall|should|do|does|did|is|are|was"
    r"|what|which|who|whom|whose|where|when|why|how|any|kannst|könntest|würdest|was|wie|wo|wann|warum|welche[rs]?"
    r"|peux|pouvez|pourrais|quel(?:le)?s?|où|puedes|podrías|qué|cuál|dónde|můžeš|mohl|jak|kde|kdy|proč)\b[^.!?]*\?$",
    re.IGNORECASE,
)
_BECAUSE = re.compile(
    r"^(?:(?:since|as|because|given\s+that|seeing\s+that|considering(?:\s+that)?|da|weil|puisque|comme|como|ya\s+que|protože)\s+)",
    re.IGNORECASE,
)
_FEWEST_TOLD = 2


def told_before_asking(sentence: str) -> str:
    """Return the sentence as it is, or of a question the clause that tells something; nothing of
    one that only asks.
    """
    if not sentence.endswith("?"):
        return sentence
    asked = _ASKED.search(sentence)
    told = _BECAUSE.sub("", sentence[: asked.start()]).strip() if asked else ""
    return told[:1].upper() + told[1:] if len(told.split()) >= _FEWEST_TOLD else ""


def collapse(text: str) -> str:
    return " ".join(text.split())


def normal(text: str) -> str:
    """The words alone, so that two ways to write the same are the same."""
    return " ".join(word.strip(".:") for word in _NO_WORD.sub(" ", text.casefold()).split()).strip()


def topic(text: str, *, free: bool) -> str:
    """Return the topic of a sentence, without the value that it gives: a later one about the same
    replaces it.

    `free` also takes "the … is …" for that, which is fine for a fact and too bold for a wish.
    """
    words = normal(text)
    says = _SAYS.match(words) if free else None
    return f"{says[1]} is" if says else _VALUE.sub(r"\1 #", words)


def is_telling(sentence: str) -> bool:
    """Return whether a sentence of the user tells something that one may have to know later."""
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
