"""Intent in the user's own words: send, pay, create, delete, and to what. A call that no word asks
for was not the user's idea.

The rule: only words of the user count. Nouns are no orders: "read my mail" does not ask to mail
anybody. An order is about what its own part of the sentence names: "find a hotel and book a table"
does not ask for the hotel.
"""

import itertools
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from palyra.core import identifiers
from palyra.core.call_values import MOST_CALLS
from palyra.core.intent_words import (
    AND_THEN,
    DETERMINERS,
    INSIDE,
    LEADING,
    MANY,
    MANY_INSIDE,
    OBJECTS,
    OBJECTS_INSIDE,
    OFTEN_NOUNS,
    ORDERS,
    PRONOUNS,
    QUESTIONS,
    READS,
    TELLING,
    TO_ME,
)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_MONEY = frozenset({"money", "payment", "transaction", "transfer"})
_DONE_TO_MONEY = {"update": frozenset({"update"}), "cancel": frozenset({"delete"})}
# The words of tools that are not verbs of people, or mean one thing only there.
_TOOL_WORDS: dict[str, frozenset[str]] = {
    "send": frozenset({"send"}),
    "money": frozenset({"pay"}),
    "payment": frozenset({"pay"}),
    "transaction": frozenset({"pay"}),
    "transfer": frozenset({"pay"}),
    "add": frozenset({"create", "save", "update", "share"}),
    "reply": frozenset({"send"}),
    "forward": frozenset({"send"}),
    "write": frozenset({"save", "update"}),
    "new": frozenset({"create", "save"}),
    "append": frozenset({"save", "update"}),
    "create": frozenset({"create", "save"}),
    "reserve": frozenset({"book"}),
    "schedule": frozenset({"create"}),
    "archive": frozenset({"update"}),
    "mark": frozenset({"update"}),
    "move": frozenset({"update"}),
    "update": frozenset({"update"}),
    "edit": frozenset({"update"}),
    "change": frozenset({"update"}),
    "set": frozenset({"update", "create"}),
    "remove": frozenset({"delete"}),
    "delete": frozenset({"delete"}),
    "drop": frozenset({"delete"}),
    "share": frozenset({"share"}),
    "post": frozenset({"post"}),
    "book": frozenset({"book"}),
    "get": frozenset(),
    "cancel": frozenset({"delete"}),
    "invite": frozenset({"share", "send"}),
    "merge": frozenset({"run", "update"}),
}
_TOOL_NOUNS = _set(
    "file email mail message text document note log record comment label list copy report draft"
    " contact invoice"
)
_MAKE = r"\bmak(?:e|ing) (?:an?|the|another|our|my)(?: \w+)?"
# Two words that mean something else than each of them.
_PHRASES: tuple[tuple[str, frozenset[str]], ...] = (
    (r"\bget(?:ting)? rid of\b", frozenset({"delete"})),
    (r"\b(?:call|take) (?:it |that )?off\b", frozenset({"delete"})),
    (r"\bset(?:ting)? up\b", frozenset({"create", "pay"})),
    (r"\b(?:set|put)\b[^.!?]{0,40}\baside\b", frozenset({"pay", "save"})),
    (r"\bmake (?:that|it|this) happen\b", frozenset({"create", "update", "pay", "book"})),
    (r"\bheads[- ]up\b", frozenset({"send"})),
    (r"\b(?:go for|take) (?:it|that|this|the)\b", frozenset({"book"})),
    (
        r"(?:\b\d[\d.,]{0,15}\s?(?:eur|euros?|usd|dollars?|pounds?|quid|gbp|chf|kč|zł|€|\$|£)|[€$£]\s?\d[\d.,]{0,15})"
        r"\s+(?:to|an|a|à|na|naar|para|til)\b",
        frozenset({"pay"}),
    ),
    (r"\bi(?:'d| would)? (?:need|want|like) (?:a|an|the|some)\b", frozenset({"book"})),
    (r"\bcopy in\b|\bcc\b", frozenset({"send"})),
    (
        r"\bmak(?:e|ing) (?:a|an|the|another|our|my) (?:\w+ )?(?:reservation|booking)",
        frozenset({"book"}),
    ),
    (
        r"\bmak(?:e|ing) (?:a|an|the|another|our|my) (?:\w+ )?(?:payment|transfer)",
        frozenset({"pay"}),
    ),
    (r"\b\d[\d.,]{0,15}\s+(?:to|an|a|à|na|naar)\s+#", frozenset({"pay"})),
)
_PHRASE = re.compile("|".join(f"({pattern})" for pattern, _ in _PHRASES), re.IGNORECASE)
# Names, addresses and what stands in quotes are no orders.
_NO_ORDER = re.compile(
    r"(?<!\w)#[\w-]+|(?<![\w.+%-])[\w.+%-]+@[\w.-]+|\b[a-z][a-z0-9+.-]{1,15}://\S+|(?<![\w-])[\w-]+(?:\.[\w-]+)+|"
    r"\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|«[^»\n]{1,200}»|(?<!\w)'[^'\n]{1,200}'(?!\w)",
    re.IGNORECASE,
)
_FILE = re.compile(r"(?<!@)\b[\w-]+\.(?:[a-z]{2,4}\d?)[\"'”»]?$", re.IGNORECASE)
_SENTENCE = re.compile(r"[.?!;:]\s+|\n|[。！？；]|$")
_COUNTED = "two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: number + 2 for number, word in enumerate(_COUNTED.split(" "))}
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+|[,¿¡#]")
_SPLIT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# Of a long message the beginning and the end are read: what lies between was mostly pasted.
_HEAD, _TAIL = 3_000, 1_000
_MOST_ORDERS = 200
LIGHT = "light"
_TALK = frozenset({"channel", "message", "chat", "room", "thread"})
_PEOPLE = _set(
    "user users member members person people attendee attendees participant participants guest"
    " guests collaborator collaborators channel team group email recipient recipients invitee"
)
_REQUESTS = frozenset({"request", "requests"})
# Before these a word in -ing is an order: "by sending", "would you mind sending".
_BEFORE_ING = frozenset({"by", "mind", "about", "consider", "start", "try"})
_ENGLISH = _set("the an and of with please for from into this that it is his her if at")
_OFTEN_ENGLISH = _set("a on in my to me as by i")
_NEVER = DETERMINERS | PRONOUNS | QUESTIONS | LEADING | TO_ME
# Words of names that say nothing of what a tool is about.
_NO_NOUNS = _set(
    "all and any are args body content data date day description end from for get html id ids into"
    " item items key list name names new not number object off only out page query start state"
    " string text that the time title type user value when with"
)
_RIGHTS = frozenset({"rights", "access", "permission", "permissions"})
_JOINING = frozenset({",", "and", "und", "y", "et", "e", "en", "a", "i", "и"})


class Order(Struct, frozen=True):
    """`things`: what it is done to, as far as the words are known; none: it may be anything.
    `named`: so many names and addresses stand with it. `loose`: what it is done to stands elsewhere
    in the message. `words`: those that stand with it; `about`: those among which a tool's nouns are
    looked for.
    """

    verb: str
    classes: frozenset[str]
    count: int = 1
    named: int = 0
    things: frozenset[str] = frozenset()
    loose: bool = False
    words: frozenset[str] = frozenset()
    about: frozenset[str] = frozenset()


def _stands_for(found: re.Match[str]) -> str:
    """Return the mark that replaces a name, an address or a quotation, with what it names."""
    text = found[0]
    if "://" in text:
        return " # webpage "
    return " # datei " if _FILE.search(text) else " # "


def _stems(word: str) -> tuple[str, ...]:
    found = [word]
    if word.isascii():
        for end, more in (("ing", "e"), ("ing", ""), ("s", ""), ("ies", "y"), ("es", "")):
            if word.endswith(end) and len(word) > len(end) + 2:
                found.append(word[: -len(end)] + more)
    return tuple(found)


def _listed(table: dict[str, frozenset[str]], word: str) -> frozenset[str]:
    """Return what a table lists for a word, also as a part of a hyphenated one."""
    found: frozenset[str] = frozenset()
    for each in (word, *(word.split("-") if "-" in word else ())):
        for stem in _stems(each):
            found |= table.get(stem, frozenset())
    return found


def _things(words: Sequence[str]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for word in words:
        found |= _listed(OBJECTS, word)
    return found


def _read(said: str) -> str:
    return said if len(said) <= _HEAD + _TAIL else f"{said[:_HEAD]}\n{said[-_TAIL:]}"


def _words(text: str) -> list[str]:
    return [each.casefold() for each in _WORD.findall(text)]


class _Part(Struct):
    """A verb with the words after it, up to the next verb. `own`: words that may be verbs which no
    table lists, each with the number of words that stand before it.
    """

    verb: str
    classes: frozenset[str]
    words: list[str]
    named: int = 0
    own: list[tuple[str, int]] = []


@lru_cache(maxsize=64)
def orders(said: str) -> tuple[Order, ...]:
    """Return the orders in the user's words, one after another."""
    text = _NO_ORDER.sub(_stands_for, identifiers.plain(_read(said)))
    everything = _words(text)
    things = _things(everything)
    found: list[Order] = []
    for sentence in _SENTENCE.split(text):
        parts = [_Part("", frozenset(), [])]
        phrases = [
            (each[0].casefold(), _PHRASES[number - 1][1], _words(sentence[each.end() :]))
            for each in _PHRASE.finditer(sentence)
            if (number := each.lastindex or 0)
        ]
        before, asks = "", False
        written = _WORD.findall(_PHRASE.sub(" ", sentence))
        listed = [each.casefold() for each in written]
        # "a" is a Czech "and".
        english = _is_english(sentence, listed)
        for number, word in enumerate(listed):
            first = before in ("", ",", "¿", "¡")
            asks = asks or (number <= 1 and first and word in QUESTIONS)
            after = listed[number + 1] if number + 1 < len(listed) else ""
            before = "the" if before == "a" and english else before
            leading = before in AND_THEN if asks else first or before in LEADING
            classes = _order(word, before, after, asks=asks, leading=leading)
            if classes is not None:
                if len(parts) > _MOST_ORDERS:
                    break
                parts.append(_Part(word, classes, []))
            else:
                if leading and word.isalpha() and word not in _NEVER:
                    parts[-1].own.append((word, len(parts[-1].words)))
                parts[-1].words.append(word)
                parts[-1].named += word == "#" or word in _JOINING or written[number][0].isupper()
            before = word
        asked = frozenset[str]().union(*(each.classes for each in parts))
        asked = asked.union(*(each.classes for each in found))
        for phrase, meant, after_it in phrases:
            # "I need a car. Take the cheapest" asks once.
            if meant.isdisjoint(asked):
                parts.append(_Part(phrase, meant, after_it))
                asked |= meant
        for number, part in enumerate(parts):
            if part.classes:
                found.append(_made(part, parts[number - 1], things, everything))
            for word, at in part.own:
                # Only a tool that is named by this very word can be meant.
                alone = _Part(word, _itself(word), part.words[at + 1 :])
                found.append(_made(alone, _Part("", frozenset(), []), things, everything))
        found += _inside(sentence)
        if len(found) > _MOST_ORDERS:
            break
    return tuple(found[:_MOST_ORDERS])


def _is_english(sentence: str, words: Sequence[str]) -> bool:
    if not _ENGLISH.isdisjoint(words):
        return True
    return sentence.isascii() and len(_OFTEN_ENGLISH.intersection(words)) > 1


def _itself(word: str) -> frozenset[str]:
    """The class of the one verb: what a tool does that is named by it."""
    return frozenset(f"={stem}" for stem in _stems(word))


def _order(
    word: str, before: str, after: str, *, asks: bool, leading: bool
) -> frozenset[str] | None:
    """The classes of a verb that begins an order, none for one that only reads; None: it begins
    nothing.
    """
    if after in _RIGHTS or after in _REQUESTS:
        return None  # "edit rights" are a thing, and so is a merge request.
    if word.endswith("ing") and word not in ORDERS:
        if before not in _BEFORE_ING:
            return None  # "a reply saying that" says what the reply says.
        leading = True
    if not leading and before in DETERMINERS:
        return None
    base = next((stem for stem in _stems(word) if stem in ORDERS or stem in READS), "")
    if not base or (asks and not leading):
        return None
    if base in OFTEN_NOUNS and not (leading and (before != "to" or after in DETERMINERS)):
        return None
    if after in TO_ME and base in TELLING:
        return frozenset()
    found = ORDERS.get(base, frozenset())
    return found | _itself(word) if found else found


def _made(part: _Part, before: _Part, things: frozenset[str], everything: Sequence[str]) -> Order:
    """An order with what it is done to: named after the verb, or before it where the verb comes
    last, or before in the message where only a pronoun stands.
    """
    named = _things(part.words)
    if not named and not before.classes:
        named = _things(before.words)
    loose = not named
    words = part.words
    if loose or not PRONOUNS.isdisjoint(part.words):
        named |= things
        words = list(everything)
    counted = (*part.words, *before.words)
    many = max([1, *(_NUMBERS.get(each, 1) for each in counted)])
    if not MANY.isdisjoint(counted) or (
        not MANY.isdisjoint(everything) and not PRONOUNS.isdisjoint(part.words)
    ):
        many = _exactly(part.words) or MOST_CALLS
    near = _with_stems(part.words)
    wide = near if words is part.words else _with_stems(words)
    return Order(part.verb, part.classes, many, part.named, named, loose, near, wide)


def _exactly(words: Sequence[str]) -> int:
    """How many "these 12" are; 0 if no number stands behind such a word."""
    for word, after in itertools.pairwise(words):
        number = _NUMBERS.get(after) or (int(after) if after.isdecimal() and len(after) < 3 else 0)
        if word in MANY and 1 < number <= MOST_CALLS:
            return number
    return 0


def _with_stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(stem for word in words for stem in _stems(word))


def _inside(sentence: str) -> list[Order]:
    if sentence.isascii():
        return []
    found: frozenset[str] = frozenset()
    verb = ""
    for word, names in INSIDE.items():
        if word in sentence:
            found, verb = found | names, verb or word
    if not found:
        return []
    things: frozenset[str] = frozenset()
    for word, names in OBJECTS_INSIDE.items():
        if word in sentence:
            things |= names
    many = any(word in sentence for word in MANY_INSIDE)
    named = sentence.count("#")
    return [Order(verb, found, MOST_CALLS if many else 1, named, things)]


@lru_cache(maxsize=1024)
def classes(tool: str) -> frozenset[str]:
    """Return the classes of action in a tool's name: from its verb, and whether money moves."""
    pieces = _pieces(tool)
    named = _verbs(pieces)
    known = [each for each in named if each in _TOOL_WORDS or each in ORDERS]
    if not _MONEY.isdisjoint(known):
        verb = next((each for each in known if each not in _MONEY), "")
        return frozenset({"pay", *_selves(named)}) | (_DONE_TO_MONEY.get(verb, frozenset()))
    verbs = [each for each in known if each not in _TOOL_NOUNS] or known
    # The verb stands first or last; where no table lists that, only the same word asks for it.
    own = [each for each in (*named[:1], *named[-1:]) if each not in OBJECTS]
    found = frozenset[str]()
    if verbs and (verbs[0] in (named[0], named[-1]) or not _unlisted(own)):
        found = _TOOL_WORDS.get(verbs[0], ORDERS.get(verbs[0], frozenset()))
        if verbs[0] == "add" and _PEOPLE.isdisjoint(pieces):
            found -= {"share"}
    # What is said to a channel is said to people, and put up there.
    talks = not _TALK.isdisjoint(pieces) and not found.isdisjoint({"send", "post"})
    found -= {LIGHT}
    return found | _selves((*own, *verbs[:1])) | ({"send", "post"} if talks else frozenset())


def _selves(verbs: Iterable[str]) -> frozenset[str]:
    return frozenset(f"={each}" for each in verbs if each not in _TOOL_NOUNS)


def _unlisted(own: Sequence[str]) -> bool:
    """Return whether a tool's first word may be a verb that no table lists."""
    return bool(own) and own[0] not in _TOOL_WORDS and own[0] not in ORDERS


@lru_cache(maxsize=1024)
def things(tool: str) -> frozenset[str]:
    """Return the kinds of object that a tool's name mentions."""
    return _things(_pieces(tool))


def _verbs(pieces: Sequence[str]) -> list[str]:
    """The words of a tool's name without what is asked for: a merge request merges nothing."""
    return [
        each
        for at, each in enumerate(pieces)
        if each not in _REQUESTS and (at + 1 == len(pieces) or pieces[at + 1] not in _REQUESTS)
    ]


@lru_cache(maxsize=1024)
def _pieces(tool: str) -> tuple[str, ...]:
    """The words of a tool's name, without that of its server in front."""
    place, _, last = tool.rpartition("/")
    name = last.rpartition(".")[2]
    server = {each.lower() for each in _SPLIT.findall(place.partition(":")[2])}
    found = [each.lower() for each in _SPLIT.findall(name)]
    while len(found) > 1 and found[0] in server:
        del found[0]
    return tuple(found)


# What is said with a verb of these says what is meant; others are about some thing.
_PLAIN = frozenset({"send", "post", "pay", "share"})


def fits(order: Order, tool: str, arguments: Sequence[str] = ()) -> bool:
    """Return whether an order may mean a tool: it asks for such a thing to be done, and to nothing
    else than the tool does it to. `arguments`: their names say what that is, too.
    """
    does = classes(tool) & order.classes
    nouns = _nouns(tool, tuple(arguments))
    if not does:
        return LIGHT in order.classes and not nouns.isdisjoint(order.words)
    about = things(tool)
    if not does.isdisjoint(_PLAIN) or not about.isdisjoint(order.things):
        return True
    if not nouns.isdisjoint(order.about):
        return True
    # A thing that no list has must be named, unless the very verb is.
    itself = any(each.startswith("=") for each in does)
    fitting_noun = itself or not _nouns(tool, ())
    return not about and fitting_noun and (order.loose or not order.things)


@lru_cache(maxsize=1024)
def _nouns(tool: str, arguments: tuple[str, ...]) -> frozenset[str]:
    """Return the words for what a tool is about: those of its name behind the first, and those of
    its arguments.
    """
    pieces = _pieces(tool)
    named = [*pieces[1:], *(piece for each in arguments for piece in _pieces(each))]
    return frozenset(each for each in named if len(each) > 2 and each not in _NO_NOUNS)


def uses_up(meant: Iterable[Order], tool: str, made: str) -> bool:
    """Return whether a call that was made used up one of the orders that a tool would. Where only
    its values say that the tool is meant, any call of the kind did.
    """
    return any(
        made == tool
        or fits(each, made)
        or ((each.loose or not fits(each, tool)) and bool(classes(made) & each.classes))
        for each in meant
    )


def _says_one(said: str, values: Iterable[str]) -> bool:
    text = identifiers.plain(_read(said))
    words = f" {' '.join(identifiers.words(text))} "
    days = identifiers.dates(text)
    for value in values:
        if days and not days.isdisjoint(identifiers.dates(value[:200])):
            return True
        wanted = " ".join(identifiers.words(identifiers.plain(value[:200])))
        if len(wanted) > 3 and f" {wanted} " in words:
            return True
    return False


def fitting(
    said: str, tool: str, values: Iterable[str] = (), arguments: Sequence[str] = ()
) -> tuple[Order, ...]:
    """The orders in the user's words that may mean a tool; also those that name another thing, if
    the call's own values are in the message.
    """
    does = classes(tool)
    everything = orders(said)
    alike = [each for each in everything if not does.isdisjoint(each.classes)]
    found = tuple(each for each in everything if fits(each, tool, arguments))
    if len(found) >= len(alike) or not _says_one(said, values):
        return found
    return tuple(alike)


def count(meant: Iterable[Order], *, addressed: bool) -> int:
    """Return how many calls these orders ask for at most. What goes to somebody goes to each that
    is named.
    """
    each = (max(one.count, one.named) if addressed else one.count for one in meant)
    return min(MOST_CALLS, sum(each))
