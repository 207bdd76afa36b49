"""Values that are secret because of the name in front of them. The name decides how much the value
must look like a secret.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

from palyra.core.redaction import shapes, spoken
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.keywords import KEYWORD, keywords_in
from palyra.core.redaction.names import (
    KEYS,
    SECRETS,
    end_of_name,
    end_of_word,
    is_about,
    kind_named,
)
from palyra.core.redaction.operators import OPERATOR, kind_of
from palyra.core.redaction.shapes import UNREAD, Work
from palyra.core.redaction.values import (
    CHOSEN,
    DOMAIN,
    JUDGED,
    QUOTED,
    WEAK,
    Kind,
    Value,
    is_name,
    is_secret,
)

# password: process.env.PW || "..."
_ELSE = re.compile(
    r"[A-Za-z_][\w.]{0,60}(?:\(\s?[\"'][\w.\-]{1,48}[\"']\s?\)|\[[\"'][\w.\-]{1,48}[\"']\])?"
    r" (?:\|\||\?[?:]|or) (?=[\"'])"
)
_TAG = re.compile(r"<(?:[\w.\-]{1,24}:)?[\w.\-]{0,32}\Z")
# Password: <code>...</code>
_MARKUP = re.compile(r"<(?:code|b|strong|i|em|span|tt|kbd|pre|td)>")
_PLAIN = re.compile(r"[!-~]+")  # of a value that a word in another script follows
# $(echo value)
_ECHOED = re.compile(r"\$\(\s?(?:echo|printf)\s{1,4}(?:-\w\s{1,4})?(?=[^\s$`()]{1,512}\))")
# password = String::from("..."), token = os.environ.get("TOKEN", "...")
_WRAPPER = re.compile(
    r"(?:new |\[\])?(?:[A-Za-z_]\w{0,24}(?:\.|::|->)){0,4}[A-Za-z_]\w{0,24}\(\s{0,4}"
    r"(?:[bru]?[\"'][\w.\-]{1,48}[\"'],\s{0,4})?(?=[bru]?[\"'])"
)
_TYPE = re.compile(
    r"&?(?:'static )?[A-Za-z_](?:[\w. |*<>?:]|\[[\w\[, .|]{0,24}\]){0,24}=[ \t]*(?=[bru]?[\"'])"
)
_QUOTE = re.compile(r"[bBrRuULfN@]{0,2}(\\*(?:\"\"\"|'''|[\"'`])|&quot;|&\#34;|<!\[CDATA\[)")
_BARE = re.compile(r"[^\s\"'`<>]{1,512}")
_FIELD = re.compile(r"[^\s\"'`<>&;,]{1,512}")  # behind "=", where more fields may follow
_NAKED = re.compile(r"[A-Za-z0-9/+][A-Za-z0-9+/_.~:\-]{13,511}={0,2}")
# token: Bearer 4d9f1e2b...
_SECOND = re.compile(r"(?<=[A-Za-z]) ([A-Za-z0-9+/_.\-]{20,512}={0,2})(?=[\s\"'`,;]|$)")
_SETTING = re.compile(r"(?:^|\n)[ \t]*(?:ENV|ARG|setx?|setenv)[ \t]+\w*\Z")  # ENV NAME value
# #define WIFI_PASSWORD "...", storePassword "...": a line that begins with the name
_DIRECTIVE = re.compile(r"(?:^|\n)[ \t]*(?:#[ \t]*define[ \t]+)?[\w.\-]*\Z")
_DEFINED = re.compile(r"(?:^|\n)[ \t]*#[ \t]*define[ \t]+[\w.\-]*_\Z")
_FIRST = re.compile(r"[(\[{]\s{0,8}\\*[\"'`][\w.\-]*\Z")
_TUPLE = re.compile(r"\{\s{0,4}[a-z_]{0,24}\Z")  # {password, "..."}
_DEFINING = re.compile(r"(?i)(?:define|setenv|setproperty|putenv)\(\s{0,4}[\"'][\w.\-]*\Z")
_PROPERTY = re.compile(
    r"(?:\A|\n)(?!self|this)[a-z][a-z0-9_\-]*\.(?:[a-z0-9_\-]+\.)[a-z0-9_.\-]*\Z"
)
_FLAG = re.compile(r"(?:^|[\s\"'])--?[A-Za-z][\w\-]{0,24}$")
_CONNECTION = re.compile(
    r"(?i)(?:user ?id|uid|server|data source|initial catalog|database|username|user|host)["
    r" ]?=[^;\n]{1,80};"
)
# host=... user=... password=..., as libpq takes it
_CONNINFO = re.compile(r"(?<!\w)(?:host|hostaddr|dbname|user)=[^\s=;,]{1,64}(?=[ \"'])")
_NAME_BACK = re.compile(r"[\w.\-]*")
_CODE = re.compile(
    r"[A-Za-z_$][\w$]{0,24}(?:[(\[{]|[=!<>]=\w|\.[a-z_$][a-zA-Z_$]{0,24}(?:[(\[.,;|&)]|\Z)|\|\||&&)|[(\[{!]"
)
# A call whose name begins so reads or compares what it is given.
_READING = re.compile(
    r"(?i)(?:split|parse|check|is|has|valid\w{0,5}|verify|read|load|find|test|hash|quote|format|assert\w{0,5}|get)_?\Z"
)
_SPOKEN = frozenset({"password", "passphrase", "passcode", "passwort", "kennwort"})
_GIVES = frozenset({"=", ":", ":=", "=>"})
_LONGEST_QUOTED = 512
_LEAST_PART = 14
_LOOKED_AT, _JUDGEMENT = 8, 20  # units of work; a judgement costs more for each two characters
# The other half of a pair: worth nothing alone, so it goes only when its secret is near.
_CLIENT = re.compile(
    r"(?i)(?:client[_\-]?id|auth\w{0,8}[_\-]?domain)[\"']?\s{0,4}[:=]\s{0,4}[\"']?([A-Za-z0-9_.\-]{16,128})"
)
_NEAR = 300
# What stands between a value and its name behind it.
_THEN = re.compile(r" (?:is|as) (?:(?:the|my|our|your|a) (?:[\w'\-]{1,16} ){0,2})?\Z")
_ABOUT_IT = re.compile(r"\w+(?:[\-_]\w|s\b| (?:hash|digest|id|name|of the (?:file|map|cache)))")
_REACH = 48
_LAST_WORD = re.compile(r"[\"'`)]?([^\s\"'`()<>{},;]{8,128})(?=[\s\"'`(]|\Z)")
_LEFT = 132
_ITEM = re.compile(r"[\"']\s{0,4},\s{0,8}[bru]?[\"']([^\s\"']{4,512})(?=[\"'])")
_USER_FIELD = re.compile(r"(?i)\b(?:user ?id|uid|username|user)[ ]?=[ ]?([^\s;\"'&$%{<]{2,64});")
_FIELDS = 80
_FENCED = (" KEY-----", "-----")
_AWS = re.compile(r"(?i)aws[\w.\-]{0,12}secret")
_OF_AWS = re.compile(r"(?i)(?<![a-z])aws(?![a-z])")


def find(text: str, lower: str, work: Work) -> Iterator[FormatMatch]:
    """`lower` is `text` in lower case, character for character."""
    near: list[int] = []
    for keyword in keywords_in(lower):
        # A secret that was taken out leaves line breaks; the words of a fence name no value.
        start, end = keyword.span()
        if text.startswith("\n\n\n", end + 1) or text.startswith(_FENCED, end):
            continue
        if text.startswith(text[start : end + 1], end + 1):
            continue  # the same name again: that one decides
        if not work.spend(_LOOKED_AT):
            yield FormatMatch(keyword.start(), len(text), UNREAD)
            return
        if text[start - 1 : start] == " " and (hit := _before(text, lower, start)):
            yield hit
        hit = _behind(text, keyword, work)
        if hit is not None:
            near.append(hit.start)
            yield hit
            if text[end : end + 1] in ("s", "S"):
                yield from _listed(text, keyword, hit, work)
    if near and "client" in lower:
        yield from _clients(text, near)
    if near and ";" in text and ("user" in lower or "uid" in lower):
        yield from _users(text, near)


def _before(text: str, lower: str, start: int) -> FormatMatch | None:
    """Return the value whose name stands behind it: use ... as the password, ... is my token."""
    low = max(0, start - _LEFT)
    then = _THEN.search(lower, max(low, start - _REACH), start)
    if then is None or _ABOUT_IT.match(lower, start):
        return None
    back = _LAST_WORD.match(text[low : then.start()][::-1])
    if back is None or not _is_given(back[1][::-1], lower[start : start + 4]):
        return None
    return FormatMatch(then.start() - back.end(1), then.start() - back.start(1), "secret")


def _is_given(value: str, name: str) -> bool:
    if shapes.stands_for_value(value) or shapes.is_hashed(value) or shapes.is_masked(value):
        return False
    if name == "pass" and CHOSEN.fullmatch(value):
        return not shapes.is_words(value) or any(c in "!#$%&*+?@^" for c in value)
    return shapes.is_random(value, 16) and shapes.has_digit_and_letter(value) and "/" not in value


def _listed(
    text: str, keyword: re.Match[str], hit: FormatMatch, work: Work
) -> Iterator[FormatMatch]:
    """Yield the others of a list whose first was a secret: tokens = ["...", "..."]"""
    at = hit.end
    while (item := _ITEM.match(text, at)) and work.spend(_LOOKED_AT):
        at = item.end(1)
        if _judged(kind_named(keyword), Value(item.start(1), item[1], "=", quoted=True), work):
            yield FormatMatch(*item.span(1), hit.rule)


def _clients(text: str, near: list[int]) -> Iterator[FormatMatch]:
    for found in _CLIENT.finditer(text):
        after = bisect_left(near, found.start() - _NEAR)
        is_near = after < len(near) and near[after] < found.start() + _NEAR
        if is_near and (shapes.is_random(found[1], 16) or DOMAIN.fullmatch(found[1])):
            yield FormatMatch(*found.span(1), "client-id")


def _users(text: str, near: list[int]) -> Iterator[FormatMatch]:
    """Yield the users of connection strings whose password was found: the two go together."""
    for found in _USER_FIELD.finditer(text):
        after = bisect_left(near, found.end())
        if (
            after < len(near)
            and near[after] < found.end() + _FIELDS
            and not shapes.stands_for_value(found[1])
        ):
            yield FormatMatch(*found.span(1), "account")


def judge(name: str, value: str) -> bool:
    """Return whether `value`, standing alone under `name` (as in JSON), is secret."""
    keywords = list(KEYWORD.finditer(name.lower())) if len(name) <= 80 else []
    if not keywords or not is_name(name, keywords[-1]):
        return False
    rest = name[keywords[-1].end() :]
    return not is_about(rest) and is_secret(
        kind_named(keywords[-1]), Value(0, value, ":", quoted=True, shouting=name.isupper())
    )


def _behind(text: str, keyword: re.Match[str], work: Work) -> FormatMatch | None:
    """Return the value of a name: what an operator gives it, or else what is likely to be it."""
    if not is_name(text, keyword):
        return None
    kind, end = kind_named(keyword), end_of_word(text, keyword)
    rule = "key" if kind == "owned" else kind
    tail = _tail(text, end)
    if tail is None and kind == "password":
        tail = _chosen_tail(text, end, work)
    if tail is not None:
        return FormatMatch(*tail, rule)
    name = end_of_name(text, end)
    if name is None:
        return None
    hit = _given(text, keyword, kind, name, work)
    if hit is not None:
        return hit
    span = spoken.likely(text, name, kind, work)
    # AWS draws forty characters: that has decided.
    is_aws = span and _OF_AWS.search(text, max(0, keyword.start() - 24), end)
    return FormatMatch(*span, rule) if span and not is_aws else None


def _given(
    text: str, keyword: re.Match[str], kind: Kind, name: int, work: Work
) -> FormatMatch | None:
    """Return the value that an operator gives to the name that ends at `name`."""
    end = end_of_word(text, keyword)
    several = end > keyword.end()
    value = _value(text, keyword, name)
    if value is not None and several:
        value = value._replace(operator="for")
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
        and not _is_in_name(text, keyword, name, value.text)
        and _judged(kind, value, work)
    ):
        return FormatMatch(value.start, value.start + len(value.text), rule)
    if (
        value is not None
        and value.operator
        and kind != "key"
        and (second := _SECOND.match(text, value.start + len(value.text)))
    ):
        return FormatMatch(*second.span(1), rule) if shapes.is_random(second[1], 20) else None
    return None


def _is_in_name(text: str, keyword: re.Match[str], end: int, value: str) -> bool:
    """Return whether the value is a word of its own name: INCORRECT_PASSWORD = "incorrect"."""
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
    if tail[0].islower() and max(map(len, re.split(r"[_\-.:/]", tail[0]))) < _LEAST_PART:
        return None  # auth-service-7d4f9c-x2x9q: the name of a process
    return tail.span() if shapes.is_random(tail[0], 20) else None


def _chosen_tail(text: str, at: int, work: Work) -> tuple[int, int] | None:
    """Return the place of a chosen password that a dash joins to its name: pw-dipPr10Gg!"""
    chosen = CHOSEN.match(text, at + 1) if text[at : at + 1] == "-" else None
    if chosen is not None:
        work.spend(_JUDGEMENT)
    if chosen is None or shapes.is_words(chosen[0]) or "-" in chosen[0] or "_" in chosen[0]:
        return None
    return chosen.span()


def _value(text: str, keyword: re.Match[str], at: int) -> Value | None:
    found = OPERATOR.match(text, at)
    if found is None:
        return None
    start = found.end()
    operator = kind_of(found["op"].strip())
    if not _may_give(text, keyword, operator, found["close"]):
        return None
    if operator == "@>":
        operator = ">"
    if operator == ":" and (markup := _MARKUP.match(text, start)):
        start = markup.end()
    if operator == ":" and (typed := _TYPE.match(text, start)):
        start = typed.end()
    if operator in _GIVES and (given := _ELSE.match(text, start)):
        start, operator = given.end(), "("
    if operator in _GIVES and (wrapper := _WRAPPER.match(text, start)):
        start, operator = wrapper.end(), "("
    if text.startswith("$(", start) and (echoed := _ECHOED.match(text, start)):
        start = echoed.end()
    quote = _QUOTE.match(text, start)
    if operator == "(" and quote is None:
        operator = "(v)"
    if operator == "," and _DEFINING.search(text, max(0, keyword.start() - 64), keyword.start()):
        operator = "="
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
    if quote is not None and _is_end_of_string(text, keyword, quote, found["op"]):
        return None
    if quote is not None:
        if not operator and _is_directive(text, keyword, quote[1]):
            operator = "="
        elif not operator and keyword[0] in _SPOKEN and quote[1] in ("'", '"'):
            operator = QUOTED
        return _quoted(text, quote, operator, shouting)
    if operator in WEAK:
        naked = _NAKED.match(text, start) or CHOSEN.match(text, start)
        return Value(start, naked[0].rstrip(".,"), operator, shouting=shouting) if naked else None
    tight = operator == ":" and text[start - 1] == ":"  # {key:s,v:i}
    bare = (_FIELD if tight or operator.endswith("=") else _BARE).match(text, start)
    if (
        bare is None
        or bare[0].endswith("...")
        or (found["close"] == "]" and operator.endswith("="))
    ):
        return None  # cut off, or row[pw] = column: a variable for another
    body = bare[0]
    if not keyword[0].isascii() and (plain := _PLAIN.match(body)):
        body = plain[0]
    body = body.partition("\\n")[0].rstrip(")]}.,:;\\|")
    if operator == "|" and "|" in body:
        return None  # alternatives of a pattern, columns of a table
    if (
        operator == ">"
        and found["close"].endswith(">")
        and text[bare.end() : bare.end() + 1] not in ("<", "\n", "")
    ):
        return None  # <user>:<password>@host is a form, not an element
    chosen = keyword[0] not in SECRETS and keyword[0] not in KEYS
    connection = chosen and (
        (operator == "=" and _is_field(text, keyword.start(), bare.end()))
        or _is_property(text, keyword.start(), start, bare.end())
    )
    then = text[start + len(body) : start + len(body) + 1]
    return Value(start, body, operator, shouting=shouting, connection=connection, then=then)


def _is_end_of_string(text: str, keyword: re.Match[str], quote: re.Match[str], op: str) -> bool:
    """Return whether the quote ends the string that the name begins: "PWD=" + folder."""
    if op not in ("=", ":") or quote.end() - quote.start() != 1:
        return False
    back = _NAME_BACK.match(text[max(0, keyword.start() - 32) : keyword.start()][::-1])
    begin = keyword.start() - (back.end() if back else 0)
    return text[begin - 1 : begin] == quote[1] and text[quote.end() : quote.end() + 2].lstrip()[
        :1
    ] in ("+", ",", ")", ".", "%", ";", "]", "}", "")


def _is_directive(text: str, keyword: re.Match[str], mark: str) -> bool:
    pattern = _DEFINED if keyword[0] == "pass" else _DIRECTIVE
    return (
        mark in "\"'"
        and pattern.search(text, max(0, keyword.start() - 48), keyword.start()) is not None
    )


def _may_give(text: str, keyword: re.Match[str], operator: str, close: str) -> bool:
    """Return whether this operator gives a value to this name here."""
    if operator in ("to", "as"):
        return keyword[0] != "pass"  # the verb
    if operator == "(":
        before = text[max(0, keyword.start() - 16) : keyword.start()]
        # should_pass("…"): the verb
        return not _READING.search(before) and (
            keyword[0] != "pass" or before.lower().endswith("set")
        )
    if operator == "@>":
        start = max(0, keyword.start() - 64)
        return not close and _TAG.search(text, start, keyword.start()) is not None
    # Two arguments: the name is a string and the first of them.
    if operator != ",":
        return True
    start = max(0, keyword.start() - 48)
    if any(mark in close for mark in "\"'`"):
        return _FIRST.search(text, start, keyword.start()) is not None
    return not close and _TUPLE.search(text, start, keyword.start()) is not None


def _is_field(text: str, start: int, end: int) -> bool:
    """Return whether this is one field of a connection string: Server=...;Password=...;"""
    low, high = max(0, start - 160), end + 80
    if text.find(";", low, high) >= 0 and _CONNECTION.search(text, low, high) is not None:
        return True
    return text[start - 1 : start] == " " and _CONNINFO.search(text, low, high) is not None


def _is_property(text: str, name: int, start: int, end: int) -> bool:
    """Return whether this is a line of a file of properties: spring.datasource.password=..."""
    return (
        text[end : end + 1] in ("", "\n", "\r")
        and text[start - 1] == "="
        and _PROPERTY.search(text, max(0, name - 80), name) is not None
    )


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
