"""Whether a value is secret, by the kind of name that it is given to and by how it is written."""

import re
from typing import Literal, NamedTuple

from palyra.core.redaction import encodings, shapes

# password: people choose them, so they may be words. secret: machines draw them. key: may also name
# a column, a cache, a lock. owned: a key of something, as `maps_key`.
Kind = Literal["password", "secret", "key", "owned"]

# pw dipPr10Gg!: chosen, and no word of a sentence.
CHOSEN = re.compile(
    r"(?=[^\s]{0,31}[a-z])(?=[^\s]{0,31}[A-Z])(?=[^\s]{0,31}\d)[A-Za-z0-9!#$%&*+?@^_\-]{8,32}(?=[\s,.;)]|$)"
)
DOMAIN = re.compile(r"[\w\-]+(?:\.[\w\-]+)+\.[a-z]{2,6}(?::\d+)?")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d|\Z)")
_ESCAPED = re.compile(r"(?:\\x[0-9a-fA-F]{2}.{0,8}|&#\d{2,5};.{0,8}){2}")
_VERSION = re.compile(r"v?\d{1,4}\.\d{1,4}\.\d")
_KEYISH = re.compile(r"(?i)pass|secret|token|key|pwd")
_EQUALS = frozenset({"=", ":", "==", "===", "is", ":=", "=>", "--"})
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_LOCAL_NAME = re.compile(r"[a-z_]+\d{0,2}")
_FAMILIAR = re.compile(
    r"(?i)^(?:utf-?8|utf-?16(?:le|be)?|base64(?:url)?|hex|ascii|latin1|binary|sha\d+|md5|hs256|rs256)$|super.?[s$]ecret|open.?sesame|^(?:guest|anonymous|username|admin|root|(?:string|str|text|bytes|int|integer|number|bool|boolean|any)\??)$|^\w+@$"
)
_FILE = re.compile(
    r"(?i)[a-z]:\\|[\w./\-]+\.(?:pem|key|crt|cer|bin|json|ya?ml|txt|md|py|js|ts|zip|gz|csv|log|cfg|ini|conf|toml|xml|html|png|jpe?g|pdf)\Z"
)
JUDGED = 160  # the beginning of a value says what it is
_LONG = 20


class Value(NamedTuple):
    """What stands behind a name: where, and how it was written."""

    start: int
    text: str
    operator: str  # "" if only blanks stand between
    quoted: bool = False
    shouting: bool = False  # the name is in capitals, as in an environment file
    connection: bool = False  # among the fields of a connection string
    then: str = ""  # the character that follows


def is_secret(kind: Kind, value: Value) -> bool:
    body = encodings.unwrapped(value.text[:JUDGED].strip("\"'` \\"))
    if len(body) < 4 or len(body.split(None, 1)) != 1:
        return False
    if (
        shapes.stands_for_value(body)
        or shapes.is_standard(body)
        or shapes.is_hashed(body)
        or shapes.is_filler(body)
    ):
        return False
    if _DATE.match(body) or _NUMBER.fullmatch(body) or _ESCAPED.search(body):
        return False  # what escapes hide is read without them
    if _is_path(body) or "://" in body or DOMAIN.fullmatch(body):
        return False
    if shapes.is_pattern(body) or (not value.quoted and shapes.is_code(body)):
        return False
    if value.operator in (",", "("):  # two arguments in a row: often two names
        if _FAMILIAR.search(body):
            return False
        return (
            value.quoted
            and shapes.has_digit_and_letter(body)
            and (kind == "password" or _is_drawn(body, 12))
        )
    if not value.operator:
        if kind == "password" and not value.quoted and CHOSEN.fullmatch(body):
            return not shapes.is_words(body) and not _FAMILIAR.search(body)
        if shapes.UUID.fullmatch(body):
            return kind == "secret"
        quoted = (
            not value.quoted
            or len(body) >= _LONG
            or (shapes.has_digit_and_letter(body) and not shapes.is_fluent(body))
        )
        return quoted and shapes.is_random(body) and not _VERSION.match(body)
    if kind == "password":
        return _is_password(body, value)
    if shapes.UUID.fullmatch(body):
        return kind != "key" or value.operator == "--"
    if kind == "secret":
        return _is_drawn(body, 8) or _is_phrase(body, value)
    if kind == "key" and "/" in body and shapes.UUID.search(body):
        return False  # the key of an object in a store
    return (
        _is_drawn(body, 12 if kind == "owned" else 16)
        and not encodings.is_readable(body)
        and not (_ALPHABET in body and _ALPHABET.upper() in body)
    )


def _is_path(body: str) -> bool:
    """Whether the value is a path or a flag; base64 may begin with a slash as well."""
    drawn = (
        body[0] == "/"
        and len(body) >= 20
        and "." not in body
        and shapes.entropy(body) >= 4.2
        and shapes.is_random(body, 20)
    )
    return not drawn and (
        body.startswith(("/", "./", "../", "~/", "--")) or _FILE.match(body) is not None
    )


def _is_drawn(body: str, least: int) -> bool:
    if len(body) >= _LONG:
        return shapes.is_random(body, least)
    # Less of it tells less: numbers among its letters and no words, or a jumble of letters.
    return shapes.is_jumble(body) or (
        shapes.is_random(body, least)
        and shapes.has_digit_and_letter(body)
        and not shapes.is_fluent(body)
    )


def _is_phrase(body: str, value: Value) -> bool:
    """A chosen secret: letters with a mark or two among them."""
    marks = sum(c in "#!$&*^@%" for c in body.removeprefix("#"))  # a colour, an anchor
    letters = sum(c.isalpha() for c in body)
    return (
        value.quoted and letters >= 8 and 0 < marks <= len(body) // 4 and not _FAMILIAR.search(body)
    )


def _is_password(body: str, value: Value) -> bool:
    if shapes.names_itself(body) or _FAMILIAR.search(body):
        return False
    plain = body.strip("#!$&*^@%.,:;+-_=?~|")
    if _KEYISH.search(plain) and shapes.is_words(plain) and not any(c.isdigit() for c in plain):
        return False
    if value.connection and value.operator == "=":
        return True
    if shapes.has_digit_and_letter(body) or shapes.has_special(body):
        in_code = (
            not value.quoted and value.operator == "=" and value.then in ("(", ")", ".", ",", "[")
        )
        return not (in_code and _LOCAL_NAME.fullmatch(body)) and sum(c.isalnum() for c in body) >= 4
    if not body.isalpha() or len(body) < 5:
        return False
    if shapes.is_jumble(body):
        return True
    return value.operator in _EQUALS if value.quoted else value.shouting and value.operator == "="
