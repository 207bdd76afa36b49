"""Values that are secret because of the name in front of them. The name decides how much the value
must look like a secret.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

from palyra.core.redaction import shapes
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.names import is_name
from palyra.core.redaction.values import CHOSEN, DOMAIN, JUDGED, Kind, Value, is_secret
from palyra.core.redaction.work import UNREAD, Work

KEYWORD = re.compile(
    r"p(?:ass(?:word|wort|wrd|wd|phrase|code)?|swd|sswd|sk|wd|sw|w|rivate|at)|s(?:ecret|alt)|t(?:oken|kn)|credentials?|unseal|key|a(?:uth|ccess)|license|bearer|"
    r"kennwort|contrase[nñ]a|senha|mot de"
    r" passe|mdp|wachtwoord|has[lł]o|heslo|парол[ья]|密[码碼]|パスワード|비밀번호|암호|[sş]ifre"
)
# How keywords begin, so that text without any is done.
_STEMS = (
    *(
        "pass",
        "secret",
        "token",
        "key",
        "auth",
        "access",
        "private",
        "credential",
        "pw",
        "psk",
        "psw",
        "pssw",
        "tkn",
        "pat",
        "salt",
    ),
    *(
        "unseal",
        "bearer",
        "license",
        "kennwort",
        "contrase",
        "senha",
        "mot de passe",
        "mdp",
        "wachtwoord",
        "haslo",
        "heslo",
    ),
    "sifre",
)
_FOREIGN = ("hasło", "парол", "密码", "密碼", "パスワード", "비밀번호", "암호", "şifre")
_SECRETS = frozenset({"secret", "token", "tkn", "credential", "credentials", "unseal", "psk"})
_KEYS = frozenset({"key", "auth", "private", "access", "license", "bearer", "pat", "salt"})
# A key of one of these is drawn by a machine; a key alone may name a column, a cache, a lock.
_DRAWN_KEY = re.compile(
    r"(?i)(?:account|shared|storage|secret|signing|encryption|master|auth|access|private|license|api)[_\-. ]?$"  # noqa: E501
)

_OWNER = re.compile(r"[a-z0-9]{2}[_\-.]?$|[?&]$")

# The name goes on and means something about the secret, not the secret.
_ABOUT = re.compile(
    r"(?i)(?:url|uri|file|path|dir|name|ids?|length|len|size|bytes|bits|types?|fields?|labels?|hint|prompt|policy|regex|pattern|expir\w*|ttl|"
    r"timeout|count|limit|max|min|format|class|env|vars?|alg\w*|usage|index|store|manager|provider|service|server|host|endpoint|issuer|version|"
    r"status|state|error|message|msg|list|set|map|column|input|form|page|view|link|reset|required|enabled|strength|score|fingerprint|digest|"
    r"checksum|prefix|suffix|start|end|pos|position|kind|ref|reference|source|location|arn|vault|ring|words?|code|stream|at|by|in|on|func\w*|"
    r"pair|mgr|realm|serial\w*|number|identi\w+|cryptogram|sha\d{1,3}|md5|cols?|dict|iter\w*|sum|hash|scope|uses?|validation\w*|generator|rotation|material|spec|exchange|handler|helper|cache|metadata|info|args?|argument|challenge)$"
)
_REST = re.compile(r"(?:[_\-.]{0,2}[A-Z0-9][\w.\-]{0,31}|[_\-.][\w.\-]{0,31})?")
_OPERATOR = re.compile(r"""(?x)
    (?P<close>(?:\\*["'`]|[\])}>]|\*{1,3}|&quot;){0,3})
    (?P<op>
        </\w{1,40}>\s{0,16}<\w{1,40}>  # <key>password</key><string>...</string>
      | [ ]?\{[^{}\n]{0,24}\}[ ]?=[ ]?(?=["'])  # string Token { get; set; } = "..."
      | [ ]\{\s{0,8}(?:[a-z]{4,11}[ ]{1,8}=[ ][^\n{}]{1,80}\n\s{0,8}){0,3}default[ ]{1,8}=[ ]  # variable "x" { default =
      | \([ \t]{0,4}(?=["'`])  # setPassword("...")
      |
        [,\s]{1,40}["']?value["']?\s{0,4}[:=]\s{0,4}  # <add key="password" value="...">, {"name": "TOKEN", "value": "..."}
      | [ \t]{0,6}(?:[：＝]|[:?|+!]{0,3}=[=>~]{0,2}|:{1,3}|->|,|\|)[ \t]{0,8}
      | [ \t]+(?:is|was|to|as)[ \t]*:?[ \t]+
      | [ \t]+[A-Za-z]{3,12}[ \t]*:?=[ \t]*(?=["'`])  # var token string = "..."
      | [ \t]{1,4}
      | [\-_]
      | (?<=>)
    )""")  # noqa: E501
_TYPE = re.compile(
    r"&?(?:'static )?[A-Za-z_](?:[\w. |*<>?:]|\[[\w\[, .|]{0,24}\]){0,24}=[ \t]*(?=[bru]?[\"'])"
)
_QUOTE = re.compile(r"[bBrRuULf@]{0,2}(\\*(?:\"\"\"|'''|[\"'`])|&quot;|&\#34;|<!\[CDATA\[)")
_BARE = re.compile(r"[^\s\"'`<>]{1,512}")
_FIELD = re.compile(r"[^\s\"'`<>&;,]{1,512}")  # behind "=", where more fields may follow
_NAKED = re.compile(r"[A-Za-z0-9/+][A-Za-z0-9+/_.~:\-]{13,511}={0,2}")
# token: Bearer 4d9f1e2b...
_SECOND = re.compile(r"(?<=[A-Za-z]) ([A-Za-z0-9+/_.\-]{20,512}={0,2})(?=[\s\"'`,;]|$)")
_LATER = re.compile(
    r"[^\n:=]{0,60}:[ \t]*\r?\n[ \t]*(?:\r?\n[ \t]*)?([A-Za-z0-9+/=_\-]{16,128})[ \t]*(?=\r?\n|$)"
)
_SETTING = re.compile(r"(?:^|\n)[ \t]*(?:ENV|ARG|setx?|setenv)[ \t]+\w*\Z")  # ENV NAME value
_FIRST = re.compile(r"[(\[{]\s{0,8}\\*[\"'`][\w.\-]*\Z")
_FLAG = re.compile(r"(?:^|[\s\"'])--?[A-Za-z][\w\-]{0,24}$")
_CONNECTION = re.compile(
    r"(?i)(?:user ?id|uid|server|data source|initial catalog|database|username|user|host)["
    r" ]?=[^;\n]{1,80};"
)
_NAME_BACK = re.compile(r"[\w.\-]*")
_CODE = re.compile(
    r"[A-Za-z_$][\w$]{0,24}(?:[(\[{]|[=!<>]=\w|\.[a-z_$][a-zA-Z_$]{0,24}(?:[(\[.,;|&)]|\Z)|\|\||&&)|[(\[{!]"
)
# A call whose name begins so reads or compares what it is given.
_READING = re.compile(
    r"(?i)(?:split|parse|check|is|has|valid\w{0,5}|verify|read|load|find|test|hash|quote|format|assert\w{0,5}|get)_?\Z"
)
_LONGEST_QUOTED = 512
_LOOKED_AT, _JUDGEMENT = 8, 20  # units of work; a judgement costs more for each two characters
# The other half of a pair: worth nothing alone, so it goes only when its secret is near.
_CLIENT = re.compile(
    r"(?i)(?:client[_\-]?id|auth\w{0,8}[_\-]?domain)[\"']?\s{0,4}[:=]\s{0,4}[\"']?([A-Za-z0-9_.\-]{16,128})"
)
_NEAR = 300
_FENCED = (" KEY-----", "-----")
_AWS = re.compile(r"(?i)aws[\w.\-]{0,12}secret")


def named(lower: str) -> bool:
    """Whether a keyword may stand in the text. Spelt out because every piece of a stream passes
    here: a loop takes longer.
    """
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
        or "psw" in lower
        or "psk" in lower
        or "pssw" in lower
        or "tkn" in lower
        or "pat" in lower
        or "salt" in lower
        or "unseal" in lower
        or "bearer" in lower
        or "license" in lower
        or "kennwort" in lower
        or "contrase" in lower
        or "senha" in lower
        or "mot de passe" in lower
        or "mdp" in lower
        or "wachtwoord" in lower
        or "haslo" in lower
        or "heslo" in lower
        or "sifre" in lower
        or (not lower.isascii() and any(stem in lower for stem in _FOREIGN))
    )


def _keywords(lower: str) -> Iterator[re.Match[str]]:
    """Every keyword in order. Looking for the beginnings that are there is faster than one pattern
    for all of them.
    """
    places: list[int] = []
    for stem in _STEMS if lower.isascii() else (*_STEMS, *_FOREIGN):
        at = lower.find(stem)
        while at >= 0:
            places.append(at)
            at = lower.find(stem, at + len(stem))
    end = 0
    for at in sorted(places):
        found = KEYWORD.match(lower, at) if at >= end else None
        if found:
            end = found.end()
            yield found


def find(text: str, lower: str, work: Work) -> Iterator[FormatMatch]:
    """`lower` is `text` in lower case, character for character."""
    near: list[int] = []
    for keyword in _keywords(lower):
        # A secret that was taken out leaves line breaks; the words of a fence name no value.
        start, end = keyword.span()
        if text.startswith("\n\n\n", end + 1) or text.startswith(_FENCED, end):
            continue
        if text.startswith(text[start : end + 1], end + 1):
            continue  # the same name again: that one decides
        if not work.spend(_LOOKED_AT):
            yield FormatMatch(keyword.start(), len(text), UNREAD)
            return
        hit = _behind(text, keyword, work)
        if hit is not None:
            near.append(hit.start)
            yield hit
    if near and "client" in lower:
        yield from _clients(text, near)


def _clients(text: str, near: list[int]) -> Iterator[FormatMatch]:
    for found in _CLIENT.finditer(text):
        after = bisect_left(near, found.start() - _NEAR)
        is_near = after < len(near) and near[after] < found.start() + _NEAR
        if is_near and (shapes.is_random(found[1], 16) or DOMAIN.fullmatch(found[1])):
            yield FormatMatch(*found.span(1), "client-id")


def judge(name: str, value: str) -> bool:
    """Whether `value`, standing alone under `name` (as in JSON), is secret."""
    keywords = list(KEYWORD.finditer(name.lower())) if len(name) <= 80 else []
    if not keywords or not is_name(name, keywords[-1]):
        return False
    rest = name[keywords[-1].end() :]
    return not _ABOUT.search(rest) and is_secret(
        _kind(keywords[-1]), Value(0, value, ":", quoted=True, shouting=name.isupper())
    )


def _kind(keyword: re.Match[str]) -> Kind:
    word = keyword[0]
    if word not in _SECRETS and word not in _KEYS:
        return "password"
    if word in _SECRETS or (
        word == "key"
        and _DRAWN_KEY.search(keyword.string, max(0, keyword.start() - 12), keyword.start())
    ):
        return "secret"
    return (
        "owned"
        if _OWNER.search(keyword.string, max(0, keyword.start() - 12), keyword.start())
        else "key"
    )


def _behind(text: str, keyword: re.Match[str], work: Work) -> FormatMatch | None:
    if not is_name(text, keyword):
        return None
    kind, end = _kind(keyword), keyword.end()
    tail = _tail(text, end)
    if tail is not None:
        return FormatMatch(*tail, "key" if kind == "owned" else kind)
    rest = _REST.match(text, end)
    assert rest is not None
    if rest[0] and (_ABOUT.search(rest[0]) or KEYWORD.search(rest[0].lower())):
        return None  # about the secret, or a later keyword in the same name decides
    value = _value(text, keyword, rest.end())
    if value is not None and (
        len(value.text) < 4 or (not value.quoted and _CODE.match(value.text))
    ):
        return None
    if (
        value is not None
        and len(value.text) > 40
        and _AWS.search(text, max(0, keyword.start() - 24), end)
    ):
        return None  # AWS draws forty characters
    rule = "key" if kind == "owned" else kind
    if (
        value is not None
        and not _is_in_name(text, keyword, rest.end(), value.text)
        and _judged(kind, value, work)
    ):
        return FormatMatch(value.start, value.start + len(value.text), rule)
    if (
        value is not None
        and value.operator
        and rule != "key"
        and (second := _SECOND.match(text, value.start + len(value.text)))
    ):
        return FormatMatch(*second.span(1), rule) if shapes.is_random(second[1], 20) else None
    later = _LATER.match(text, rest.end()) if rule != "key" else None
    return FormatMatch(*later.span(1), rule) if later and shapes.is_random(later[1], 16) else None


def _is_in_name(text: str, keyword: re.Match[str], end: int, value: str) -> bool:
    """Whether the value is a word of its own name: INCORRECT_PASSWORD = "incorrect"."""
    if not value.isalpha():
        return False
    back = _NAME_BACK.match(text[max(0, keyword.start() - 32) : keyword.start()][::-1])
    return value.lower() in text[keyword.start() - (back.end() if back else 0) : end].lower()


def _tail(text: str, at: int) -> tuple[int, int] | None:
    """vendor-access-4d9f1e2b...: a long random tail joined to the name itself."""
    if text[at : at + 1] not in ("-", "_"):
        return None
    tail = _NAKED.match(text, at + 1)
    if tail is None or len(tail[0]) < 20 or shapes.is_words(tail[0].partition("/")[0]):
        return None
    return tail.span() if shapes.is_random(tail[0], 20) else None


def _value(text: str, keyword: re.Match[str], at: int) -> Value | None:
    found = _OPERATOR.match(text, at)
    if found is None:
        return None
    start = found.end()
    operator = found["op"].strip()
    if not _may_give(text, keyword, operator, found["close"]):
        return None
    if operator == ":" and (typed := _TYPE.match(text, start)):
        start = typed.end()
    if (
        not operator
        and text.find("-", max(0, keyword.start() - 32), at) >= 0
        and _FLAG.search(text, max(0, keyword.start() - 32), keyword.end())
    ):
        operator = "--"
    if operator.startswith("</") or (not operator and found["close"].endswith(">")):
        operator = ">"
    elif operator.endswith("="):
        operator = "=" if operator[0] == "{" else operator
    shouting = text[keyword.start() : at].isupper()
    if (
        not operator
        and shouting
        and _SETTING.search(text, max(0, keyword.start() - 48), keyword.start())
    ):
        operator = "="
    quote = _QUOTE.match(text, start)
    if quote is not None:
        return _quoted(text, quote, operator, shouting)
    if not operator:
        naked = _NAKED.match(text, start) or CHOSEN.match(text, start)
        return Value(start, naked[0].rstrip(".,"), "") if naked else None
    bare = (_FIELD if operator.endswith("=") else _BARE).match(text, start)
    if (
        bare is None
        or bare[0].endswith("...")
        or (found["close"] == "]" and operator.endswith("="))
    ):
        return None  # cut off, or row[pw] = column: a variable for another
    body = bare[0].partition("\\n")[0].rstrip(")]}.,:;\\|")
    if operator == "|" and "|" in body:
        return None  # alternatives of a pattern, columns of a table
    if (
        operator == ">"
        and found["close"].endswith(">")
        and text[bare.end() : bare.end() + 1] not in ("<", "\n", "")
    ):
        return None  # <user>:<password>@host is a form, not an element
    chosen = keyword[0] not in _SECRETS and keyword[0] not in _KEYS
    connection = chosen and operator == "=" and _is_field(text, keyword.start(), bare.end())
    then = text[start + len(body) : start + len(body) + 1]
    return Value(start, body, operator, shouting=shouting, connection=connection, then=then)


def _may_give(text: str, keyword: re.Match[str], operator: str, close: str) -> bool:
    """Whether this operator gives a value to this name here."""
    if operator in ("to", "as"):
        return keyword[0] != "pass"  # the verb
    if operator == "(":
        before = text[max(0, keyword.start() - 16) : keyword.start()]
        # should_pass("…"): the verb
        return not _READING.search(before) and (
            keyword[0] != "pass" or before.lower().endswith("set")
        )
    # Two arguments: the name is a string and the first of them.
    return operator != "," or (
        any(mark in close for mark in "\"'`")
        and _FIRST.search(text, max(0, keyword.start() - 48), keyword.start()) is not None
    )


def _is_field(text: str, start: int, end: int) -> bool:
    """Whether this is one field of a connection string: Server=...;Password=...;"""
    low, high = max(0, start - 160), end + 80
    return text.find(";", low, high) >= 0 and _CONNECTION.search(text, low, high) is not None


def _quoted(text: str, quote: re.Match[str], operator: str, shouting: bool) -> Value:
    mark, start = quote[1], quote.end()
    mark = "]]>" if mark == "<![CDATA[" else mark
    end = text.find(mark, start, start + _LONGEST_QUOTED)
    if (
        len(mark) != 3
        and (line := text.find("\n", start, end if end >= 0 else start + _LONGEST_QUOTED)) >= 0
    ):
        end = line
    if end < 0:  # cut off, or not a string at all
        bare = _BARE.match(text, start)
        end = bare.end() if bare else start
    return Value(start, text[start:end], operator, quoted=True, shouting=shouting)


def _judged(kind: Kind, value: Value, work: Work) -> bool:
    """The same as `is_secret`, which is costly, once for each value in a text."""
    asked = (kind, *value[1:])
    verdict = work.judged.get(asked)
    if verdict is None:
        work.spend(_JUDGEMENT + min(len(value.text), JUDGED) // 2)
        verdict = work.judged[asked] = is_secret(kind, value)
    return verdict
