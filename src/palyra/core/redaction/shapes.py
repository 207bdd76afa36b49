"""What a value looks like on its own: drawn at random, a word, a name in code, a form to fill in.
No context is known here.
"""

import math
import re
from collections import Counter
from itertools import pairwise

from palyra.core.redaction.letters import fluency

UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_STANDARD = frozenset(
    {
        "258eafa5-e914-47da-95ca-c5ab0dc85b11",
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
    | ^(?:an?|the|some|any|this|new|old|no|not)[_\- ][a-z] | ^dummy | ^sample | ^fake[_\-] | ^foo | ^bar$ | ^baz
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


def entropy(value: str) -> float:
    """Bits per character (Shannon)."""
    size = len(value)
    return -sum(n / size * math.log2(n / size) for n in Counter(value).values()) if size else 0.0


def is_filler(value: str) -> bool:
    """Whether a token of a known format is a form to fill in."""
    return _FILLER.search(value) is not None


def stands_for_value(value: str) -> bool:
    """Whether this is a placeholder, a template or a constant of the language rather than a
    value.
    """
    return _STANDS_FOR.search(value) is not None or "EXAMPLE" in value or value.endswith("example")


def is_standard(value: str) -> bool:
    """Whether a standard prints this very UUID: the WebSocket handshake's (RFC 6455), the name
    spaces of RFC 9562.
    """
    return value.lower() in _STANDARD


def names_itself(value: str) -> bool:
    return _NAME_OF_IT.fullmatch(value) is not None


def is_code(value: str) -> bool:
    """Whether an unquoted value is code: a dotted name, a call, an index."""
    return _CALL.match(value) is not None or (
        _DOTTED.match(value) is not None
        and not any(is_random(part, 16) for part in _PARTS.split(value))
        and not _is_drawn(value)
    )


def _is_drawn(value: str) -> bool:
    """Whether a dotted value is no name: its letters make no words, the less so the fewer numbers
    are among them.
    """
    numbered = sum(map(has_digit_and_letter, _PARTS.split(value)))
    return len(value) >= 16 and fluency(value) < (_FLUENT if numbered > 1 else _JUMBLED)


def is_pattern(value: str) -> bool:
    """Whether the value is a regular expression or a format."""
    return _PATTERN.search(value) is not None


def is_hashed(value: str) -> bool:
    """A digest that names its algorithm, or an identifier that names its scheme."""
    return _HASHED.match(value) is not None


def is_made_up(value: str) -> bool:
    """Whether somebody typed it along the alphabet or the keyboard to have a value."""
    return _ALONG.search(value) is not None


def is_masked(value: str) -> bool:
    """Whether part of the value was overwritten along the alphabet, so that nobody can use it:
    00QCj-ABCDEFGHIJKL-0Hm.
    """
    return any(ten in value for ten in _TEN_IN_ORDER)


def is_sequence(value: str) -> bool:
    """Whether most characters follow the one before them in the alphabet."""
    return 2 * sum(ord(b) - ord(a) == 1 for a, b in pairwise(value)) > len(value)


def has_special(value: str) -> bool:
    return _SPECIAL.search(value) is not None


def has_digit_and_letter(value: str) -> bool:
    return _DIGITS.search(value) is not None and any(c.isalpha() for c in value)


def is_jumble(value: str) -> bool:
    """Whether these are letters in both cases that make no word, as a generated password may be."""
    mixed = not value.islower() and not value.isupper() and not value.istitle()
    return len(value) >= _JUDGED and value.isalpha() and mixed and fluency(value) < _FLUENT


def is_fluent(value: str) -> bool:
    """Whether the letters follow each other as in words only, numbers and marks aside."""
    letters = sum(map(str.isalpha, value))
    return (
        letters >= _JUDGED
        and 5 * letters >= 3 * len(value)
        and not _HEX.fullmatch(value)
        and fluency(value) >= _SPOKEN
    )


def is_words(value: str) -> bool:
    """Whether the value reads as a name: words, numbers and separators, in snake, kebab, dotted or
    camel case.
    """
    parts = [part for part in _SEPARATORS.split(value) if part]
    odd = sum(len(part) for part in parts if not _is_name(part))
    numbered = sum(part[-1].isdigit() and not part.isdigit() for part in parts)
    return (
        odd * 4 <= len(value)
        and numbered < 3
        and (len(value) < _JUDGED or fluency(value) >= _FLUENT)
    )


def _without_algorithms(value: str) -> str:
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
    """Whether the value looks drawn at random: long, not words, and with the spread of characters
    that chance gives.
    """
    value = _without_algorithms(value)
    if len(value) < least or is_filler(value) or is_words(value):
        return False
    digits = sum(map(len, _DIGITS.findall(value)))
    if digits == len(value):
        return False
    bits = entropy(value)
    if _HEX.fullmatch(value):
        return bits >= (2.5 if len(value) >= 32 else 2.6 if len(value) >= 14 else 2.9)
    return bits >= 2.9 and (digits > 0 or bits >= 3.6)


def lowered(text: str) -> str:
    """`text` in lower case, character for character: positions must hold."""
    lower = text.lower()
    return (
        lower if len(lower) == len(text) else text.replace("\u0130", "i").lower()
    )  # the only one that grows
