"""What the user's own words ask to be done: send, pay, create, delete. A tool whose name asks for
none of it was not the user's idea.

The rule: only words of the user count. Nouns are no orders: "read my mail" does not ask to mail
anybody.
"""

import re
from functools import lru_cache


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_CLASSES: dict[str, str] = {
    "send": "send email mail message write tell inform notify reply respond answer forward dm ping"
    " text contact remind thank let invite ask report announce deliver confirm",
    "post": "post publish tweet comment announce share message send reply write answer review",
    "share": "share grant invite give add permit",
    "pay": "pay transfer send refund settle donate tip wire reimburse repay spend",
    "create": "create add make schedule plan book put arrange organise organize file draft open"
    " raise register log note record write start enter compose block prepare generate set remind",
    "save": "save write store note log record append export copy put document draft keep create add"
    " fill collect list summarise summarize",
    "update": "update change edit modify reschedule move rename set adjust correct fix replace mark"
    " label star tag archive flag complete close assign pin raise increase lower reduce extend"
    " postpone shift sort push unflag resolve tick check clean file add put merge",
    "delete": "delete remove cancel clear drop unsubscribe kick revoke discard trash erase clean",
    "book": "book reserve order buy purchase rent get",
    "run": "run execute start test build deploy merge push commit install",
    "upload": "upload send put publish",
}
_BY_WORD: dict[str, frozenset[str]] = {}
for _name, _words in _CLASSES.items():
    for _word in _words.split():
        _BY_WORD[_word] = _BY_WORD.get(_word, frozenset()) | {_name}
_MONEY = frozenset({"money", "payment", "transaction", "transfer"})
_DONE_TO_MONEY = {"update": frozenset({"update"}), "cancel": frozenset({"delete"})}
_OFTEN_NOUNS = _set(
    "file email mail message text document note log order record comment label list copy post"
    " report draft schedule contact invoice"
)
# The words of tools that are not verbs of people, or mean one thing only there.
_TOOL_WORDS: dict[str, frozenset[str]] = {
    "send": frozenset({"send"}),
    "money": frozenset({"pay"}),
    "payment": frozenset({"pay"}),
    "transaction": frozenset({"pay"}),
    "transfer": frozenset({"pay"}),
    "add": frozenset({"create", "update", "share"}),
    "reply": frozenset({"send"}),
    "forward": frozenset({"send"}),
    "write": frozenset({"save"}),
    "append": frozenset({"save", "update"}),
    "create": frozenset({"create", "save"}),
    "reserve": frozenset({"book"}),
    "schedule": frozenset({"create"}),
    "archive": frozenset({"update"}),
    "mark": frozenset({"update"}),
    "move": frozenset({"update"}),
    "cancel": frozenset({"delete"}),
    "invite": frozenset({"share", "send"}),
    "merge": frozenset({"run", "update"}),
}
_NOUN_AFTER = _set(
    "the a an my his her our their its this that these those last latest new first second all"
    " any of in from your each every unread recent which what whose no next by with inbox for"
)
_MANY = _set("each every all both everyone everybody them these those any everything several")
# A question wants an answer; what is to be done follows an "and".
_QUESTION = _set(
    "what who whom whose which when where why how did do does is are was were has have had am"
)
_AND_THEN = _set("and then please also")
_SENTENCE = re.compile(r"[.?!;\n]\s+|\n|$")
_COUNTED = "two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: number + 2 for number, word in enumerate(_COUNTED.split(" "))}
_WORD = re.compile(r"[A-Za-z]+|\d+")
_SPLIT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# However many things "all" are, a run of calls beyond this is looked at by a person.
MOST = 20


def _stems(word: str) -> tuple[str, ...]:
    found = [word]
    for end, more in (("ing", "e"), ("ing", ""), ("s", ""), ("ies", "y"), ("es", "")):
        if word.endswith(end) and len(word) > len(end) + 2:
            found.append(word[: -len(end)] + more)
    return tuple(found)


@lru_cache(maxsize=256)
def asked_for(said: str) -> dict[str, int]:
    """What the user's words ask for, each with how often at most."""
    found: dict[str, int] = {}
    listed = [each.lower() for each in _WORD.findall(said)]
    many = 1
    if not _MANY.isdisjoint(listed):
        many = MOST
    else:
        many = max([1, *(_NUMBERS.get(each, 1) for each in listed)])
    for sentence in _SENTENCE.split(said):
        before, asks = "", False
        for number, each in enumerate(_WORD.findall(sentence)):
            word = each.lower()
            asks = asks or (number == 0 and word in _QUESTION)
            order = before in _AND_THEN if asks else before not in _NOUN_AFTER
            for stem in _stems(word) if order else ():
                for name in _BY_WORD.get(stem, ()):
                    found[name] = found.get(name, 0) + 1
            before = word
    return {name: min(MOST, max(count, many)) for name, count in found.items()}


@lru_cache(maxsize=1024)
def classes(tool: str) -> frozenset[str]:
    """What a tool's name says that it does: by its verb, and whether money moves."""
    name = tool.rpartition("/")[2].rpartition(".")[2]
    pieces = [each.lower() for each in _SPLIT.findall(name)]
    known = [each for each in pieces if each in _TOOL_WORDS or each in _BY_WORD]
    if not _MONEY.isdisjoint(known):
        verb = next((each for each in known if each not in _MONEY), "")
        return frozenset({"pay"}) | (_DONE_TO_MONEY.get(verb, frozenset()))
    verbs = [each for each in known if each not in _OFTEN_NOUNS] or known
    if not verbs:
        return frozenset()
    return _TOOL_WORDS.get(verbs[0]) or _BY_WORD[verbs[0]]


def planned(said: str, tool: str) -> int:
    """Return how many calls of a tool the user's words ask for; 0: none."""
    wanted = asked_for(said)
    return max([0, *(wanted.get(name, 0) for name in classes(tool))])
