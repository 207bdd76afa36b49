"""Shapes of values without context: drawn at random, a word, a name in code, a form to fill in.

The score of letter pairs, as in words. Random values have pairs such as `xq`; names and prose do
not.

The work budget of one text. Judging is bounded by the text's length, so no text can hold the
redactor up.

One unit is about a microsecond. Ordinary text uses a few per cent of its budget. A text that is
nothing but names of secrets uses it up, and then the redactor fails safe: the rest of that stretch
goes unread, behind one placeholder.
"""

import math
import re
from collections import Counter
from itertools import pairwise
from operator import add

# A short text may be dense: an environment file, a list of accounts.
_LEAST = 1_200
_CHARACTERS = 2  # so many of them earn one unit
UNREAD = "unread"  # the rule under which a stretch goes that the budget did not reach


class Work:
    """Work budget left for a text of `size` characters."""

    __slots__ = ("judged", "left")

    def __init__(self, size: int) -> None:
        self.judged: dict[
            tuple[object, ...], bool
        ] = {}  # the same value under the same kind of name is judged once
        self.left = _LEAST + size // _CHARACTERS

    def spend(self, units: int) -> bool:
        """Spend `units`. Return False once there are none left."""
        self.left -= units
        return self.left >= 0


# From 0 (hardly ever) to 9 (far more often than by chance): one row per first letter, one column
# per second letter. Counted over the words of source code and documentation in English.
_PAIRS = (
    "25651350503767050768432230"  # a
    "74547421740833630663600040"  # b
    "72537207506631820547500030"  # c
    "64359430810432620463521130"  # d
    "53674441200657242876143520"  # e
    "73447720801623710645600040"  # f
    "61329256700546530763611020"  # g
    "82239100700342810546501040"  # h
    "54655450001659740567050304"  # i
    "83318301605130842072825030"  # j
    "63349342800524441373424120"  # k
    "71258210801711730155530060"  # l
    "85138200700351770153500030"  # m
    "72677481603224630178440020"  # n
    "34561340403668560856645100"  # o
    "71338215601722750856500050"  # p
    "42242301003544002562902220"  # q
    "72449240703354730566430040"  # r
    "50628326703432661178612040"  # s
    "71428206800421630765402050"  # t
    "56545440500768360777000000"  # u
    "81329010800111630232110000"  # v
    "80347206802426730663012000"  # w
    "53757413700552482358301640"  # x
    "53545442600666580477134024"  # y
    "80129200700423630121121134"  # z
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SCORE = {
    first + second: int(_PAIRS[26 * a + b])
    for a, first in enumerate(_LETTERS)
    for b, second in enumerate(_LETTERS)
}
_WORDS = 9.0  # of a text without two letters in a row: nothing speaks against words


def fluency(value: str) -> float:
    """Return the mean score of neighbouring letters: 3.3 for what is drawn at random, 6.6 for names
    in code.

    Of names with eight letters or more, one in two hundred is below 4.6; of 16 characters drawn,
    fourteen in fifteen are.
    """
    lower = value.lower()
    scores = [_SCORE[pair] for pair in map(add, lower, lower[1:]) if pair in _SCORE]
    return sum(scores) / len(scores) if scores else _WORDS


UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_STANDARD = frozenset(
    {
        "258eafa5-e914-47da-95ca-c5ab0dc85b11",
        "550e8400-e29b-41d4-a716-446655440000",
        *(f"6ba7b81{n}-9dad-11d1-80b4-00c04fd430c8" for n in (0, 1, 2, 4)),
    }
)
_HEX = re.compile(r"[0-9a-fA-F]+")
_WORD = re.compile(
    r"[A-Z]?[a-z]{3,}|[A-Z][a-z]{2}(?![a-z])|[A-Z]{3,}(?![a-z])|[a-z]{1,2}(?![A-Za-z])"
)
_DIGITS = re.compile(r"\d+")
_SEPARATORS = re.compile(r"[_\-./:+]+")
# A run of x or stars is a blank; so is one digit seven times over (unlike A, which is how base64
# writes zero bytes).
_FILLER = re.compile(r"[xX]{6}|\*{3}|\.{3}|…|(\d)\1{6}")

# Values that stand for a value.
_STANDS_FOR = re.compile(r"""(?ix)
      ^[\s.*_\-\#~]*$                                   # nothing but decoration
    | ^(.)\1*$                                         # one character, repeated
    | ^x+[\-_.x]*$ | x{4} | \*{3} | \.{3} | …
    | ^<.*>$ | ^&lt; | ^\[[^\]]*\]$                    # <your key>, [secret]
    | ^\$[\w{(\[] | \$\{ | \$\( | ^%\w+% | \#\{ | \{\{ | \{\w*\}
    | \#\w+\# | \{[a-z_][\w.]*[(\[.!:][^{}]*\} | ^\{.*\}$ | ^%[sdr(] | ^@\w+@$ | ^env[.:(] | ^ENC\( | ^\\\(
    | your[_\-. ]?\w | ^my[_\-]?(?:secret|pass(?:word|wd)?|token|key|api[_\-]?key)[_\-]?\d{0,3}$
    | change[_\-. ]?(?:me|it|this) | replace[_\-. ]?(?:me|with|this|by) | place[_\-. ]?holder | redacted | masked | hidden
    | insert[_\-. ]?(?:your|here|key|token) | (?:goes|key|token|string)[_\-. ]?here
    | ^(?:an?|the|some|any|this|new|old|no|not)[_\- ][a-z] | ^dummy | ^sample | ^fake[_\-] | ^(?:foo|ba[rz])(?:[_\-.]|ba[rz]|\d{0,3}$)
    | ^test(?:ing)?$ | ^tbd$ | ^todo
    | not[_\-. ]?(?:set|used|needed|required|a[_\-. ]?real)
    | ^(?:none|null|nil|undefined|true|false|yes|no|on|off|empty|default|optional|required|unset|unknown|n/a)$
    """)  # noqa: E501
# A password nobody would call one: the name of the thing instead of the thing.
_NAME_OF_IT = re.compile(
    r"(?i)(?:(?:my|the|your|new|old|user|db|admin|root|a|test|some|default|current|raw|plain|hashed|confirm|auth|access|client|api|app|"
    r"hash|enter|bad|wrong|invalid|forgot|reset|change|super|top|set|get|use|has|is|no|private|public|secret|encrypted|"
    r"basic|bearer|login|account|key)?[_\-."
    r" ]?)(?:pass|passwd|passwords?|passphrase|pwd|pw|secrets?|tokens?|keys?|api[_\-]?key|"
    r"credentials?|auth|hash|user|username|login|value|string|str|text|bytes|input|data|name|type|field|var|variable)[_\-]?\d{0,3}"
)
_SPECIAL = re.compile(r"[^\w\s.,\-/:]")
_DOTTED = re.compile(r"[A-Za-z_$@&*!][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_][\w$]*)+|\*|&[a-z]")
_PARTS = re.compile(r"\.|->|::")
_CALL = re.compile(r"[A-Za-z_$@&*!][\w$.]*(?:(?:->|::|\?\.)[\w.]*)*[(\[{]|[(\[{]")
_PATTERN = re.compile(r"\(\?|0-9a-z|a-zA-Z|A-Z0-9|\\[wdsbS]|\[\^?\w-\w|\]\*|\)\?|\.\*|\{\d,?\d*\}")
_ALONG = re.compile(r"(?i)abcde|bcdef|aabbcc|12345|67890|qwert|asdfg|(?:fake){2}|example")
_LONGEST = 24  # part of a constant
_LONG_SEQUENCE = 20
_JUDGED, _JUMBLED, _FLUENT, _SPOKEN = (
    8,
    4.0,
    4.6,
    5.9,
)  # so many characters tell by their pairs of letters whether they are words
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_TEN_IN_ORDER = [
    order[at : at + 10] for order in (_ALPHABET, _ALPHABET.upper()) for at in range(17)
]
_ALGORITHM = re.compile(
    r"(?:(?i:ed|x|curve)25519|(?i:ed|x)448|(?i:chacha20|poly1305|hkdf|pbkdf2|secp\d{3}[kr]1)|(?:AES|aes)[-_]?\d{3}|(?:SHA|sha)[-_]?(?:256|384|512))(?![a-z0-9])"
)
_HASHED = re.compile(
    r"(?i)^(?:sha\d{1,3}|md5|h1|blake\w*|crc\w*|sri|pbkdf2\w*|urn|arn|xxh\w*)[\-:=_]"
)


# n·log2 n, so that the entropy of a token needs no logarithm for each of its characters.
_COUNTED = 128
_WEIGHTS = [0.0, *(n * math.log2(n) for n in range(1, _COUNTED))]


def entropy(value: str) -> float:
    """Bits per character (Shannon)."""
    size = len(value)
    if not size:
        return 0.0
    if size < _COUNTED:
        return math.log2(size) - sum([_WEIGHTS[value.count(each)] for each in set(value)]) / size
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values())


def is_filler(value: str) -> bool:
    """Return whether a token of a known format is a form to fill in."""
    return _FILLER.search(value) is not None


def stands_for_value(value: str) -> bool:
    """Return whether this is a placeholder, a template or a constant of the language rather than a
    value.
    """
    return _STANDS_FOR.search(value) is not None or "EXAMPLE" in value or value.endswith("example")


def is_standard(value: str) -> bool:
    """Return whether a standard prints this very UUID: the WebSocket handshake's (RFC 6455), the
    name spaces of RFC 9562.
    """
    return value.lower() in _STANDARD


def names_itself(value: str) -> bool:
    return _NAME_OF_IT.fullmatch(value) is not None


def is_code(value: str) -> bool:
    """Return whether an unquoted value is code: a dotted name, a call, an index."""
    return _CALL.match(value) is not None or (
        _DOTTED.match(value) is not None
        and not any(is_random(part, 16) for part in _PARTS.split(value))
        and not _is_drawn(value)
    )


def _is_drawn(value: str) -> bool:
    """Return whether a dotted value is no name: its letters make no words, the less so the fewer
    numbers are among them.
    """
    numbered = sum(map(has_digit_and_letter, _PARTS.split(value)))
    return len(value) >= 16 and fluency(value) < (_FLUENT if numbered > 1 else _JUMBLED)


def is_pattern(value: str) -> bool:
    """Return whether the value is a regular expression or a format."""
    return _PATTERN.search(value) is not None


def is_hashed(value: str) -> bool:
    """A digest that names its algorithm, or an identifier that names its scheme."""
    return _HASHED.match(value) is not None


def is_made_up(value: str) -> bool:
    """Return whether somebody typed it along the alphabet or the keyboard to have a value."""
    return _ALONG.search(value) is not None


def is_masked(value: str) -> bool:
    """Return whether part of the value was overwritten along the alphabet, so that nobody can use
    it: 00QCj-ABCDEFGHIJKL-0Hm.
    """
    return any(ten in value for ten in _TEN_IN_ORDER)


def is_sequence(value: str) -> bool:
    """Return whether most characters follow the one before them in the alphabet, in either case."""
    return 2 * sum(ord(b) - ord(a) == 1 for a, b in pairwise(value.lower())) > len(value)


_GROUPS = re.compile(r"[0-9A-Za-z]{3,12}(?:-[0-9A-Za-z]{3,12}){3,7}")
_TYPED = re.compile(r"(?:[a-z]{3,6}\d{3,6}){2,8}(?:[a-z]{1,6})?")
_LEAST_DIGITS = 4


def is_grouped(value: str) -> bool:
    """Return whether these are four or more groups between dashes, as in the key of a licence or a
    typed identifier, and no words.
    """
    return (
        _GROUPS.fullmatch(value) is not None
        and sum(map(str.isdigit, value)) >= _LEAST_DIGITS
        and sum(part.isalpha() and part.islower() for part in value.split("-")) < 2
    )


def is_typed(value: str) -> bool:
    """Return whether somebody typed letters and digits by turns, or along the alphabet."""
    return _TYPED.fullmatch(value) is not None or (
        len(value) >= _LONG_SEQUENCE and value.isalnum() and is_sequence(value)
    )


def has_special(value: str) -> bool:
    return _SPECIAL.search(value) is not None


def has_digit_and_letter(value: str) -> bool:
    return _DIGITS.search(value) is not None and any(c.isalpha() for c in value)


def is_jumble(value: str) -> bool:
    """Return whether these are letters in both cases that make no word, as a generated password may
    be.
    """
    mixed = not value.islower() and not value.isupper() and not value.istitle()
    return len(value) >= _JUDGED and value.isalpha() and mixed and fluency(value) < _FLUENT


def is_fluent(value: str) -> bool:
    """Return whether the letters follow each other as in words only, numbers and marks aside."""
    letters = sum(map(str.isalpha, value))
    return (
        letters >= _JUDGED
        and 5 * letters >= 3 * len(value)
        and not _HEX.fullmatch(value)
        and fluency(value) >= _SPOKEN
    )


def is_words(value: str) -> bool:
    """Return whether the value reads as a name: words, numbers and separators, in snake, kebab,
    dotted or camel case.
    """
    parts = [part for part in _SEPARATORS.split(value) if part]
    if len(parts) > 3 and value.isupper() and "_" in value:  # a constant: AR_TKN_U32_MODULE_ID
        return sum(not part.isalpha() for part in parts) < 2 and max(map(len, parts)) < _LONGEST
    odd = sum(len(part) for part in parts if not _is_name(part))
    numbered = sum(part[-1].isdigit() and not part.isdigit() for part in parts)
    return (
        odd * 4 <= len(value)
        and numbered < 3
        and (len(value) < _JUDGED or fluency(value) >= _FLUENT)
    )


def without_algorithms(value: str) -> str:
    """`value` without the names of algorithms in it, which have digits among their letters as drawn
    values do.
    """
    return _ALGORITHM.sub("", value) if _ALGORITHM.search(value) else value


def _is_name(part: str) -> bool:
    letters = part.rstrip("0123456789")
    if not letters:
        return True
    if len(part) - len(letters) > 5:
        return False
    inside = _DIGITS.findall(letters)
    if inside and (len(inside) > 1 or len(inside[0]) > 3):
        return False  # Socks4Response is a name; what has more numbers in it is none
    words = _WORD.findall(letters)
    letters = letters.replace(inside[0], "") if inside else letters
    # No word is that long, and a few letters may be left over: initials, a plural.
    return all(len(word) <= 23 for word in words) and (
        len(letters) - sum(map(len, words))
    ) * 4 <= len(letters)


def is_random(value: str, least: int = 14) -> bool:
    """Return whether the value looks drawn at random: long, not words, and with the spread of
    characters that chance gives.
    """
    value = without_algorithms(value)
    if len(value) < least or is_filler(value) or is_words(value):
        return False
    digits = sum(map(len, _DIGITS.findall(value)))
    if digits == len(value):
        return False
    bits = entropy(value)
    if _HEX.fullmatch(value):
        return bits >= (2.5 if len(value) >= 32 else 2.6 if len(value) >= 14 else 2.9)
    return bits >= 2.9 and (digits > 0 or bits >= 3.6)


def is_typed_hex(value: str) -> bool:
    """Return whether the value is hex of some length that somebody typed: deadbeef01dead..."""
    return len(value) >= 20 and _HEX.fullmatch(value) is not None and len(set(value)) > 4


def lowered(text: str) -> str:
    """`text` in lower case, character for character: positions must hold."""
    lower = text.lower()
    return (
        lower if len(lower) == len(text) else text.replace("\u0130", "i").lower()
    )  # the only one that grows


_TRIVIAL = re.compile(
    r"(?i)\d{1,5}|password\d?|mypassword|passwd|your.*|.*replace.*|pwd|abc|foo|bar|token|x+|user|username|(.)\1*"
)


def is_real(user: str, password: str) -> bool:
    """Return whether user and password are more than an illustration."""
    password = password.strip("\"'")
    if len(password) < 4 or password == user or _TRIVIAL.fullmatch(password):
        return False
    return not stands_for_value(password) and not password.startswith(
        ("$", "{", "<", "%(", "%s", "[")
    )
