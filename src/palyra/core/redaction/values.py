"""Secrecy of a value, by the kind of name that it is given to and by how it is written.

Role of a word in a text: the name of a secret, or part of another word, of a type or of the name of
a resource.
"""

import re
from typing import Literal, NamedTuple

from palyra.core.redaction import encodings, shapes

# Glued to a letter these are other words: compass, monkey, patch.
_SHORT = frozenset(
    {
        "pass",
        "pw",
        "psw",
        "key",
        "auth",
        "private",
        "access",
        "license",
        "pat",
        "salt",
        "bearer",
        "tkn",
        "pwd",
        "psk",
        "p/w",
        "pword",
        "cred",
        "creds",
        "clave",
        "parola",
    }
)
_GLUED_OWNER = re.compile(
    r"(?i)(?:user|bind|db|my|root|admin|sql|ftp|smtp|mail|ssh|x|pg|redis|api|app|proxy|login|secret|access|license|private|token|store|trust|key|require|auth|pass|client|master|server|device|site|instrumentation|subscription|encryption|signing|shared)$"
)
# A token or key of these is handed on in the open: it pages, locks, sorts or makes a request count
# once.
_OPEN = {
    "token": (
        *(
            "next",
            "prev",
            "previous",
            "page",
            "paging",
            "pagination",
            "continuation",
            "continue",
            "cursor",
            "lock",
            "sync",
            "starting",
        ),
        *("resume", "resumption", "idempotency", "request", "change"),
    ),
    "key": (
        *(
            "primary",
            "foreign",
            "partition",
            "sort",
            "range",
            "row",
            "cache",
            "object",
            "s3",
            "routing",
            "shard",
            "context",
            "dedup",
        ),
        *("dedupe", "deduplication", "idempotency", "concurrency"),
    ),
}
_PUBLIC = re.compile(r"(?i)(?:public|publishable|pub)[_\-. ]?(?:api[_\-. ]?)?(?:key[_\-. ]?)?$")
_TYPE_NAME = re.compile(r"\w::\w+::\w*$")  # AWS::IAM::AccessKey names a type
_TYPE_REACH, _ARN_REACH = 64, 120
_ARN = re.compile(r"arn:[\w:/.\-]*")


def is_name(text: str, keyword: re.Match[str]) -> bool:
    """Return whether the keyword stands in `text` as a word of its own and is not said to be
    public.
    """
    start, end = keyword.span()
    before = text[max(0, start - 24) : start]
    glued = before[-1:].isalpha() and before[-1:].islower() == text[start].islower()
    if glued and keyword[0] in _SHORT and not _GLUED_OWNER.search(before):
        return False
    after = text[end : end + 1]
    if after in ("s", "S") and not text[end + 1 : end + 2].isalnum():
        after = ""  # several of them
    if after.islower() and text[end - 1].islower():
        return False
    if keyword[0] in _SHORT and after.isupper() and text[end - 1].isupper() and after != "S":
        return False  # PATTERN, KEYBOARD
    is_open = keyword[0] in _OPEN and before.rstrip("_-. ").lower().endswith(_OPEN[keyword[0]])
    if is_open or (before[-1:] in ":-/_" and _is_in_arn(text, start)):
        return False
    if ("pub" in before or "Pub" in before or "PUB" in before) and _PUBLIC.search(before):
        return False
    return "::" not in (wide := text[max(0, start - _TYPE_REACH) : start]) or not _TYPE_NAME.search(
        wide
    )


def _is_in_arn(text: str, at: int) -> bool:
    """Return whether this is part of the name of a resource:
    arn:aws:secretsmanager:...:secret:name.
    """
    arn = text.rfind("arn:", max(0, at - _ARN_REACH), at)
    return arn >= 0 and _ARN.fullmatch(text, arn, at) is not None


# password: people choose them, so they may be words. secret: machines draw them. key: may also name
# a column, a cache, a lock. owned: a key of something, as `maps_key`.
Kind = Literal["password", "secret", "key", "owned"]

# pw dipPr10Gg!: chosen, and no word of a sentence.
CHOSEN = re.compile(
    r"(?=[^\s]{0,31}[a-z])(?=[^\s]{0,31}[A-Z])(?=[^\s]{0,31}\d)[A-Za-z0-9!#$%&*+?@^_\-]{8,32}(?=[\s,.;)]|$)"
)
_MARK = re.compile(r"[!#$%&*+?@^]")
_LISTED = re.compile(r"[a-z]{3,9}")
# Words of a name or of what a form asks for, none of a passphrase.
_ABOUT = re.compile(
    r"pass|secret|token|key|pwd|auth|login|user|account|admin|database|creden|config|manager|service|"
    r"server|client|field|input|form|reset|confirm|change|enter|must|required|valid|encrypt|strong|"
    r"weak|should|code|name|type|test|with|your|from|one-time"
)
DOMAIN = re.compile(r"[\w\-]+(?:\.[\w\-]+)+\.[a-z]{2,6}(?::\d+)?")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d|\Z)")
_ESCAPED = re.compile(r"(?:\\x[0-9a-fA-F]{2}.{0,8}|&#\d{2,5};.{0,8}){2}")
# A sentence in a script that leaves no blanks between words.
_PROSE = re.compile(r"[\u0e01-\u0e5b\u3041-\u30ff\u3400-\u9fff]{5}")
# rsaKey = test1024Key: a variable that is named after what it holds
VARIABLE = re.compile(r"[a-z]\w{0,48}[a-z0-9](?:Key|Token|Secret|Password|Credentials?)s?")
VERSION = re.compile(r"v?\d{1,4}\.\d{1,4}\.\d")
_KEYISH = re.compile(r"(?i)pass|secret|token|key|pwd")
_EQUALS = frozenset({"=", ":", "==", "===", "is", ":=", "=>", "--"})
# What gives a value only in passing: a blank, a dash, a bracket, a few words between.
QUOTED = '""'  # a string right behind the word
WEAK = frozenset({"", "-", "()", "(v)", "for", QUOTED})
_ALPHABET = 50  # so many characters, each of them once, are an alphabet
_LOCAL_NAME = re.compile(r"[a-z_]+\d{0,2}")
_FAMILIAR = re.compile(
    r"(?i)^(?:utf-?8|utf-?16(?:le|be)?|base64(?:url)?|hex|ascii|latin1|binary|sha\d+|md5|hs256|rs256)$|super.?[s$]ecret|open.?sesame|^(?:guest|anonymous|username|admin|root|(?:string|str|text|bytes|int|integer|number|bool|boolean|any)\??)$|^[a-z]+@$"
)
_FILE = re.compile(
    r"(?i)[a-z]:\\|[\w./\-]+\.(?:pem|key|crt|cer|bin|json|ya?ml|txt|md|py|js|ts|zip|gz|csv|log|cfg|ini|conf|toml|xml|html|png|jpe?g|pdf)\Z"
)
JUDGED = 160  # the beginning of a value says what it is
_LONG = 20
_LONGEST_CHOSEN, _LEAST_LETTERS = 32, 6
_INSIDE = re.compile(r"[A-Za-z]\d{1,2}(?=[A-Za-z])")  # a digit inside of a word
_LONG_NUMBER, _FEW, _LEAST_SET, _LEAST_PIN = 15, 4, 8, 6


class Value(NamedTuple):
    """Value behind a name: where, and how it was written."""

    start: int
    text: str
    operator: str  # "" if only blanks stand between
    quoted: bool = False
    shouting: bool = False  # the name is in capitals, as in an environment file
    connection: bool = False  # among the fields of a connection string, or in a file of properties
    then: str = ""  # the character that follows


def is_no_value(body: str) -> bool:
    """Return whether this stands for a value or is something else: a digest, a path, a date."""
    return (
        shapes.stands_for_value(body)
        or shapes.is_standard(body)
        or shapes.is_hashed(body)
        or shapes.is_filler(body)
        or (shapes.is_masked(body) and not shapes.is_sequence(body))
        or _PROSE.search(body) is not None
        or _DATE.match(body) is not None
        or _NUMBER.fullmatch(body) is not None
        or _ESCAPED.search(body) is not None  # what escapes hide is read without them
        or _is_path(body)
        or "://" in body
        or DOMAIN.fullmatch(body) is not None
    )


def names_a_key(body: str) -> bool:
    """Return whether this is a name in code of something that holds a secret: Ed25519PrivateKey."""
    return _KEYISH.search(body) is not None and shapes.is_words(shapes.without_algorithms(body))


def is_secret(kind: Kind, value: Value) -> bool:
    body = encodings.unwrapped(value.text[:JUDGED].strip("\"'` \\"))
    if len(body) < 4 or len(body.split(None, 1)) != 1:
        return False
    if is_no_value(body) or (not value.quoted and VARIABLE.fullmatch(body)):
        return False
    if shapes.is_pattern(body) or (not value.quoted and shapes.is_code(body)):
        return False
    if value.operator in (",", "("):  # two arguments in a row: often two names
        if _FAMILIAR.search(body):
            return False
        return (
            value.quoted
            and (shapes.has_digit_and_letter(body) or shapes.is_jumble(body))
            and (kind == "password" or _is_drawn(body, 12) or (kind == "secret" and _is_leet(body)))
        )
    if value.operator == "(v)" and kind != "password":
        return False  # a call
    if value.operator in WEAK or (value.operator == "for:" and kind != "password"):
        if kind == "password" and value.operator == QUOTED and body.isalnum():
            return shapes.has_digit_and_letter(body) and len(body) >= _LEAST_SET
        if kind == "password" and CHOSEN.fullmatch(body):
            marked = _MARK.search(body) is not None
            return (marked or not shapes.is_words(body)) and not _FAMILIAR.search(body)
        if shapes.UUID.fullmatch(body) or (value.shouting and shapes.is_grouped(body)):
            return kind == "secret" or (value.shouting and value.operator != "for")
        quoted = (
            not value.quoted
            or len(body) >= _LONG
            or (shapes.has_digit_and_letter(body) and not shapes.is_fluent(body))
        )
        return quoted and shapes.is_random(body) and not VERSION.match(body)
    if kind == "password":
        return _is_password(body, value)
    if shapes.UUID.fullmatch(body):
        return kind != "key" or value.operator == "--"
    if kind == "secret":
        return (
            _is_drawn(body, 8)
            or _is_phrase(body, value)
            or shapes.is_typed_hex(body)
            or shapes.is_grouped(body)
            or shapes.is_typed(body)
            or _is_leet(body)
            or _is_set(body, value)
        )
    if kind == "key" and "/" in body and shapes.UUID.search(body):
        return False  # the key of an object in a store
    return (
        _is_drawn(body, 12 if kind == "owned" else 16)
        and not encodings.is_readable(body)
        and not (len(body) > _ALPHABET and len(set(body)) == len(body))
    )


def _is_leet(body: str) -> bool:
    """Return whether digits stand for letters inside of words, as people disguise them."""
    return (
        _LEAST_SET <= len(body) <= _LONGEST_CHOSEN
        and body.replace("-", "").isalnum()
        and len(_INSIDE.findall(body)) > 1
        and sum(map(str.isalpha, body)) >= _LEAST_LETTERS
    )


def _is_path(body: str) -> bool:
    """Return whether the value is a path or a flag; base64 may begin with a slash as well."""
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


def _is_passphrase(body: str, value: Value) -> bool:
    """Return whether these are words from a list, drawn one after another: walnut-orbit-harbor."""
    words = body.split("-")
    enough = 3 if value.quoted or (value.shouting and value.operator == "=") else 4
    return (
        value.operator in _EQUALS
        and len(words) >= enough
        and all(_LISTED.fullmatch(word) for word in words)
        and not _ABOUT.search(body)
    )


def _is_set(body: str, value: Value) -> bool:
    """Return whether an environment file gives it, a word with numbers, or it is a long number."""
    if body.isdigit():
        return _LONG_NUMBER <= len(body) <= _LONG and len(set(body)) > _FEW
    return (
        value.shouting
        and value.operator == "="
        and len(body) >= _LEAST_SET
        and _MARK.sub("", body).isalnum()
        and shapes.has_digit_and_letter(body)
        and body[0].isalpha()
        and not _FAMILIAR.search(body)
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
    if body.isdigit() and _LEAST_PIN <= len(body) <= _LONG:
        return value.operator in ("=", ":") and (value.quoted or value.shouting)
    if not body.isalpha() or len(body) < 5:
        return _is_passphrase(body, value)
    if shapes.is_jumble(body):
        return True
    return value.operator in _EQUALS if value.quoted else value.shouting and value.operator == "="
