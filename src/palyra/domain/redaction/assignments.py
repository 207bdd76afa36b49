"""Values that are secret because of the name in front of them. The name decides how much the value must look like a secret."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Literal, NamedTuple

from palyra.domain.redaction import encodings, shapes
from palyra.domain.redaction.formats import Hit
from palyra.domain.redaction.work import UNREAD, Work

# password: people choose them, so they may be words. secret: machines draw them. key: may also name a column, a cache, a lock.
Kind = Literal["password", "secret", "key"]

KEYWORD = re.compile(
    r"pass(?:word|wrd|wd|phrase|code)?|pswd|psswd|pwd|psw|pw|secret|token|tkn|credentials?|unseal|key|auth|private|access|license|bearer|pat|salt"
)
_SECRETS = frozenset({"secret", "token", "tkn", "credential", "credentials", "unseal"})
_KEYS = frozenset({"key", "auth", "private", "access", "license", "bearer", "pat", "salt"})
# A key of one of these is drawn by a machine; a key alone may name a column, a cache, a lock.
_DRAWN_KEY = re.compile(r"(?i)(?:account|shared|storage|secret|signing|encryption|master|auth|access|private|license|api)[_\-. ]?$")

# Glued to a letter these are other words: compass, monkey, patch.
_SHORT = frozenset({"pass", "pw", "psw", "key", "auth", "private", "access", "license", "pat", "salt", "bearer", "tkn", "pwd"})
_GLUED_OWNER = re.compile(
    r"(?i)(?:user|db|my|root|admin|sql|ftp|smtp|mail|ssh|x|pg|redis|api|app|proxy|login|secret|access|license|private|token)$"
)
_PUBLIC = re.compile(r"(?i)(?:public|publishable|pub)[_\-. ]?(?:api[_\-. ]?)?$")
# The name goes on and means something about the secret, not the secret.
_ABOUT = re.compile(
    r"(?i)(?:url|uri|file|path|dir|name|ids?|length|len|size|bytes|bits|types?|fields?|labels?|hint|prompt|policy|regex|pattern|expir\w*|ttl|"
    r"timeout|count|limit|max|min|format|class|env|vars?|alg\w*|usage|index|store|manager|provider|service|server|host|endpoint|issuer|version|"
    r"status|state|error|message|msg|list|set|map|column|input|form|page|view|link|reset|required|enabled|strength|score|fingerprint|digest|"
    r"checksum|prefix|suffix|start|end|pos|position|kind|ref|reference|source|location|arn|vault|ring|words?|code|stream|at|by|in|on|func\w*|"
    r"pair|cols?|dict|iter\w*|sum|hash|scope|uses?|validation\w*|generator|rotation|material|spec|exchange|handler|helper|cache|metadata|info)$"
)
_REST = re.compile(r"(?:[_\-.]{0,2}[A-Z0-9][\w.\-]{0,31}|[_\-.][\w.\-]{0,31})?")
_OPERATOR = re.compile(
    r"""(?x)
    (?P<close>(?:\\*["'`]|[\])}>]|&quot;){0,3})
    (?P<op>
        [,\s]{1,40}["']?value["']?\s{0,4}[:=]\s{0,4}  # <add key="password" value="...">, {"name": "TOKEN", "value": "..."}
      | [ \t]{0,6}(?:[:?|+!]{0,3}=[=>~]{0,2}|:{1,3}|->|,|\|)[ \t]{0,8}
      | [ \t]+(?:is|was|to|as)[ \t]*:?[ \t]+
      | [ \t]+[A-Za-z]{3,12}[ \t]*:?=[ \t]*(?=["'`])  # var token string = "..."
      | [ \t]{1,4}
      | [\-_]
      | (?<=>)
    )"""
)
_TYPE = re.compile(r"[A-Za-z_][\w\[\]., |*]{0,24}=[ \t]*(?=[bru]?[\"'])")
_QUOTE = re.compile(r"[bBrRuULf@]{0,2}(\\*(?:\"\"\"|'''|[\"'`])|&quot;|&\#34;|<!\[CDATA\[)")
_BARE = re.compile(r"[^\s\"'`<>]{1,512}")
_FIELD = re.compile(r"[^\s\"'`<>&;,]{1,512}")  # behind "=", where more fields may follow
_NAKED = re.compile(r"[A-Za-z0-9][A-Za-z0-9+/_.~\-]{13,511}={0,2}")
# token: Bearer 4d9f1e2b...
_SECOND = re.compile(r"(?<=[A-Za-z]) ([A-Za-z0-9+/_.\-]{20,512}={0,2})(?=[\s\"'`,;]|$)")
_LATER = re.compile(r"[^\n:=]{0,60}:[ \t]*\r?\n[ \t]*(?:\r?\n[ \t]*)?([A-Za-z0-9+/=_\-]{16,128})[ \t]*(?=\r?\n|$)")
_FLAG = re.compile(r"(?:^|[\s\"'])--?[A-Za-z][\w\-]{0,24}$")
_CONNECTION = re.compile(r"(?i)(?:user ?id|uid|server|data source|initial catalog|database|username|user|host)[ ]?=[^;\n]{1,80};")
_LOCAL_NAME = re.compile(r"[a-z_]+\d{0,2}")
_DOMAIN = re.compile(r"[\w\-]+(?:\.[\w\-]+)+\.[a-z]{2,6}(?::\d+)?")
_VERSION = re.compile(r"v?\d{1,4}\.\d{1,4}\.\d")
_FAMILIAR = re.compile(r"(?i)super.?[s$]ecret|open.?sesame|^(?:guest|anonymous|string|username|admin|root)$|^\w+@$")
_KEYISH = re.compile(r"(?i)pass|secret|token|key|pwd")
_EQUALS = frozenset({"=", ":", "==", "===", "is", ":=", "=>", "--"})
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_LONGEST_QUOTED = 512
_JUDGED = 160  # the beginning of a value says what it is
_LOOKED_AT, _JUDGEMENT = 4, 16  # units of work; a judgement costs more for each two characters
# The other half of a pair: worth nothing alone, so it goes only when its secret is near.
_CLIENT = re.compile(r"(?i)(?:client[_\-]?id|auth\w{0,8}[_\-]?domain)[\"']?\s{0,4}[:=]\s{0,4}[\"']?([A-Za-z0-9_.\-]{16,128})")
_NEAR = 300
_AWS = re.compile(r"(?i)aws[\w.\-]{0,12}secret")


class Value(NamedTuple):
    """What stands behind a name: where, and how it was written."""

    start: int
    text: str
    operator: str  # "" if only blanks stand between
    quoted: bool = False
    shouting: bool = False  # the name is in capitals, as in an environment file
    connection: bool = False  # among the fields of a connection string
    then: str = ""  # the character that follows


def named(lower: str) -> bool:
    """Whether a keyword may stand in the text; much cheaper than to look for each."""
    return (
        "key" in lower
        or "pass" in lower
        or "token" in lower
        or "secret" in lower
        or "auth" in lower
        or "pw" in lower
        or "access" in lower
        or "private" in lower
        or "credential" in lower
        or "bearer" in lower
        or "license" in lower
        or "psw" in lower
        or "pssw" in lower
        or "tkn" in lower
        or "pat" in lower
        or "salt" in lower
        or "unseal" in lower
    )


def find(text: str, lower: str, work: Work) -> Iterator[Hit]:
    """`lower` is `text` in lower case, character for character."""
    near: list[int] = []
    for keyword in KEYWORD.finditer(lower):
        if not work.spend(_LOOKED_AT):
            yield Hit(keyword.start(), len(text), UNREAD)
            return
        hit = _behind(text, keyword, work)
        if hit is not None:
            near.append(hit.start)
            yield hit
    if near and "client" in lower:
        yield from _clients(text, near)


def _clients(text: str, near: list[int]) -> Iterator[Hit]:
    for found in _CLIENT.finditer(text):
        after = bisect_left(near, found.start() - _NEAR)
        is_near = after < len(near) and near[after] < found.start() + _NEAR
        if is_near and (shapes.is_random(found[1], 16) or _DOMAIN.fullmatch(found[1])):
            yield Hit(*found.span(1), "client-id")


def judge(name: str, value: str) -> bool:
    """Whether `value`, standing alone under `name` (as in JSON), is secret."""
    keywords = list(KEYWORD.finditer(name.lower())) if len(name) <= 80 else []
    if not keywords or not _is_name(name, keywords[-1]):
        return False
    rest = name[keywords[-1].end() :]
    return not _ABOUT.search(rest) and _is_secret(_kind(keywords[-1]), Value(0, value, ":", quoted=True, shouting=name.isupper()))


def _kind(keyword: re.Match[str]) -> Kind:
    word = keyword[0]
    if word not in _SECRETS and word not in _KEYS:
        return "password"
    if word in _SECRETS or (word == "key" and _DRAWN_KEY.search(keyword.string, max(0, keyword.start() - 12), keyword.start())):
        return "secret"
    return "key"


def _is_name(text: str, keyword: re.Match[str]) -> bool:
    """Whether the keyword stands in `text` as a word of its own and is not said to be public."""
    start, end = keyword.span()
    before = text[max(0, start - 24) : start]
    glued = before[-1:].isalpha() and before[-1:].islower() == text[start].islower()
    if glued and keyword[0] in _SHORT and not _GLUED_OWNER.search(before):
        return False
    if text[end : end + 1].islower() and text[end - 1].islower():
        return False
    return not _PUBLIC.search(before)


def _behind(text: str, keyword: re.Match[str], work: Work) -> Hit | None:
    if not _is_name(text, keyword):
        return None
    kind, end = _kind(keyword), keyword.end()
    tail = _tail(text, end)
    if tail is not None:
        return Hit(*tail, kind)
    rest = _REST.match(text, end)
    assert rest is not None
    if rest[0] and (_ABOUT.search(rest[0]) or KEYWORD.search(rest[0].lower())):
        return None  # about the secret, or a later keyword in the same name decides
    value = _value(text, keyword, rest.end())
    if value is not None:
        work.spend(_JUDGEMENT + min(len(value.text), _JUDGED) // 2)
    if value is not None and len(value.text) > 40 and _AWS.search(text, max(0, keyword.start() - 24), end):
        return None  # AWS draws forty characters
    if value is not None and _is_secret(kind, value):
        return Hit(value.start, value.start + len(value.text), kind)
    if value is not None and value.operator and kind != "key" and (second := _SECOND.match(text, value.start + len(value.text))):
        return Hit(*second.span(1), kind) if shapes.is_random(second[1], 20) else None
    later = _LATER.match(text, rest.end()) if kind != "key" else None
    return Hit(*later.span(1), kind) if later and shapes.is_random(later[1], 16) else None


def _tail(text: str, at: int) -> tuple[int, int] | None:
    """vendor-access-4d9f1e2b...: a long random tail joined to the name itself."""
    if text[at : at + 1] not in ("-", "_"):
        return None
    tail = _NAKED.match(text, at + 1)
    return tail.span() if tail and len(tail[0]) >= 20 and shapes.is_random(tail[0], 20) else None


def _value(text: str, keyword: re.Match[str], at: int) -> Value | None:
    found = _OPERATOR.match(text, at)
    if found is None:
        return None
    start = found.end()
    operator = found["op"].strip()
    if operator == ":" and (typed := _TYPE.match(text, start)):
        start = typed.end()
    if (
        not operator
        and text.find("-", max(0, keyword.start() - 32), at) >= 0
        and _FLAG.search(text, max(0, keyword.start() - 32), keyword.end())
    ):
        operator = "--"
    if not operator and found["close"].endswith(">"):
        operator = ">"
    shouting = text[keyword.start() : at].isupper()
    quote = _QUOTE.match(text, start)
    if quote is not None:
        return _quoted(text, quote, operator, shouting)
    if not operator:
        naked = _NAKED.match(text, start)
        return Value(start, naked[0].rstrip(".,"), "") if naked else None
    bare = (_FIELD if operator.endswith("=") else _BARE).match(text, start)
    if bare is None or bare[0].endswith("..."):
        return None
    body = bare[0].rstrip(")]}.,:;\\|")
    connection = operator == "=" and _is_field(text, keyword.start(), bare.end())
    then = text[start + len(body) : start + len(body) + 1]
    return Value(start, body, operator, shouting=shouting, connection=connection, then=then)


def _is_field(text: str, start: int, end: int) -> bool:
    """Whether this is one field of a connection string: Server=...;Password=...;"""
    low, high = max(0, start - 160), end + 80
    return text.find(";", low, high) >= 0 and _CONNECTION.search(text, low, high) is not None


def _quoted(text: str, quote: re.Match[str], operator: str, shouting: bool) -> Value:
    mark, start = quote[1], quote.end()
    mark = "]]>" if mark == "<![CDATA[" else mark
    end = text.find(mark, start, start + _LONGEST_QUOTED)
    if len(mark) != 3 and (line := text.find("\n", start, end if end >= 0 else start + _LONGEST_QUOTED)) >= 0:
        end = line
    if end < 0:  # cut off, or not a string at all
        bare = _BARE.match(text, start)
        end = bare.end() if bare else start
    return Value(start, text[start:end], operator, quoted=True, shouting=shouting)


def _is_secret(kind: Kind, value: Value) -> bool:
    body = value.text[:_JUDGED].strip("\"'` \\")
    if len(body) < 4 or len(body.split(None, 1)) != 1:
        return False
    if shapes.stands_for_value(body) or shapes.is_hashed(body) or shapes.is_filler(body):
        return False
    if body.startswith(("/", "./", "../", "~/", "--")) or "://" in body or _DOMAIN.fullmatch(body):
        return False
    if shapes.is_pattern(body) or (not value.quoted and shapes.is_code(body)):
        return False
    if value.operator == ",":  # two arguments in a row: often two names
        return value.quoted and shapes.has_digit_and_letter(body) and (kind == "password" or _is_drawn(body, 12))
    if not value.operator:
        return not value.quoted and shapes.is_random(body) and not shapes.UUID.fullmatch(body) and not _VERSION.match(body)
    if kind == "password":
        return _is_password(body, value)
    if shapes.UUID.fullmatch(body):
        return kind == "secret"
    if kind == "secret":
        return _is_drawn(body, 8) or _is_phrase(body, value)
    return _is_drawn(body, 16) and not encodings.is_readable(body) and not (_ALPHABET in body and _ALPHABET.upper() in body)


def _is_drawn(body: str, least: int) -> bool:
    return shapes.is_random(body, least) and (len(body) >= 20 or shapes.has_digit_and_letter(body))


def _is_phrase(body: str, value: Value) -> bool:
    """A chosen secret: letters with a mark or two among them."""
    marks = sum(c in "#!$&*^@%" for c in body)
    letters = sum(c.isalpha() for c in body)
    return value.quoted and letters >= 8 and 0 < marks <= len(body) // 4 and not _FAMILIAR.search(body)


def _is_password(body: str, value: Value) -> bool:
    if shapes.names_itself(body) or _FAMILIAR.search(body):
        return False
    plain = body.strip("#!$&*^@%.,:;+-_=?~|")
    if _KEYISH.search(plain) and shapes.is_words(plain) and not any(c.isdigit() for c in plain):
        return False
    if value.connection and value.operator == "=":
        return True
    if shapes.has_digit_and_letter(body) or shapes.has_special(body):
        in_code = not value.quoted and value.operator == "=" and value.then in ("(", ")", ".", ",", "[")
        return not (in_code and _LOCAL_NAME.fullmatch(body)) and sum(c.isalnum() for c in body) >= 4
    if not body.isalpha() or len(body) < 5:
        return False
    return value.operator in _EQUALS if value.quoted else value.shouting and value.operator == "="
