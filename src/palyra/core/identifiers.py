"""Identifiers in a text: addresses, URLs, hosts, accounts, phones, paths, amounts, dates, times and
names of things, each in one normal form, so that a value is found however it was spelled.

The rule: two spellings share a form only if a tool would treat them alike. A form that is missed
costs a question; a form that two different values share would cost trust.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from urllib.parse import unquote

# Letters that nobody sees: a value must not be hidden by them, nor a word be made of them.
_UNSEEN = re.compile(r"[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")
_WORD = re.compile(r"\w+")
# Each begins where a run of its characters begins, and nowhere inside of one: what fails is not
# tried again from the next character, so the time is in proportion to the text.
_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]++@[\w-]+(?:\.[\w-]+)+")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"'`{}|\\^]+", re.IGNORECASE)
_HOST = re.compile(
    r"(?<![@/.\-])\b(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{1,24}\b(?:/[^\s<>\"'`]*)?",
    re.I,
)
_ADDRESS = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b|\blocalhost(?::\d{1,5})?\b")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?\b", re.I)
_DIGITS = re.compile(r"\+?\(?\d(?:[ ()/.-]{0,2}\d){5,24}")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,.']*(?<![,.'])(?:\s?[kKmM]\b)?")
_PATH = re.compile(
    r"(?<![~\w.+-])[~\w.+-]*+(?:/[\w.+-]+)+/?"
    r"|(?<![\w+-])(?<![\w+-]\.)[\w+-]++(?:\.[\w+-]++)*\.[a-z]\w{0,7}\b",
    re.I,
)
_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"(?<![\w-])(?=[\w-]*\d)[\w-]{1,80}(?![\w-])|#\d+")
_TIME = re.compile(
    r"\b([01]?\d|2[0-3])[:h]([0-5]\d)(?::[0-5]\d)?(?!\d)\s?([ap]\.?m\b)?|\b(1[0-2]|0?[1-9])\s?([ap])\.?m\b",
    re.I,
)
_ISO_DATE = re.compile(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?=\D|T|\b)")
_SHORT_DATE = re.compile(r"\b(\d{1,2})[-/.](\d{1,2})(?:[-/.](\d{4}|\d{2}))?\b")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)[a-z]*\.?"
_DAY_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{_MONTH}(?:,?\s+(\d{{4}}))?\b", re.I
)
_DAYS_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th|\.)?\s*(?:to|until|till|-|–)\s*(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+"
    rf"(?:of\s+)?{_MONTH}(?:,?\s+(\d{{4}}))?\b",
    re.I,
)
_MONTH_DAY = re.compile(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(\d{{4}}))?\b", re.I)
# Months in other languages, as they stand behind a day.
_OTHER_MONTHS = """
januar enero janvier gennaio janeiro januari stycznia ledna января
februar febrero février febbraio fevereiro februari lutego února февраля
märz marzo mars março maart marca března марта
abril avril aprile kwietnia dubna апреля
mai mayo maggio maio mei maja května мая
juni junio juin giugno junho czerwca června июня
juli julio juillet luglio julho lipca července июля
agosto août augustus sierpnia srpna августа
septiembre septembre settembre setembro września září сентября
oktober octubre octobre ottobre outubro października října октября
noviembre novembre novembro listopada listopadu ноября
dezember diciembre décembre dicembre dezembro december grudnia prosince декабря
"""
_MONTH_OF = {
    word: number
    for number, line in enumerate(_OTHER_MONTHS.strip().splitlines(), 1)
    for word in line.split()
}
_OTHER_DATE = re.compile(
    r"\b(\d{1,2})(?:\.|º|er)?\s+(?:de\s+)?([^\W\d_]{3,12})(?:,?\s+(?:de\s+)?(\d{4}))?\b"
)
_OTHER_DAYS = re.compile(
    r"\b(\d{1,2})\.?\s*(?:bis|al|au|a|tot|do|až|по|-|–)\s*(?:zum\s+)?(\d{1,2})\.?\s+(?:de\s+)?"
    r"([^\W\d_]{3,12})(?:,?\s+(?:de\s+)?(\d{4}))?\b"
)
_EAST_DATE = re.compile(r"(?:(\d{4})\s?[年년]\s?)?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日号號일]")
_OTHER_TIME = re.compile(
    r"\b([01]?\d|2[0-3])\s?(?:uhr|hodin|часов)\b|(?<!\d)([01]?\d|2[0-3])\s?[時点點](?:\s?([0-5]\d)\s?分)?",
    re.I,
)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}|(?:[0-9a-fA-F]{2}){8,}")
_MOST_ENCODED = 4096

# What acts for somebody who follows it: it counts in a message's text, too.
ACTIONABLE = ("email", "url", "host", "account")


def plain(text: str) -> str:
    """The text without letters that nobody sees, in one form of Unicode."""
    if text.isascii():
        return text
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text))


def words(text: str) -> list[str]:
    """The words of a text that `plain` gave, in one case."""
    return _WORD.findall(text.casefold())


def found(text: str) -> set[str]:
    """Every identifier of a text that `plain` gave, as `kind:form`."""
    return names(text) | paths(text) | numbers(text)


def paths(text: str) -> set[str]:
    """The paths and file names in a text."""
    forms: set[str] = set()
    if "@" in text:
        text = _EMAIL.sub(" ", text)
    if "/" in text or "." in text:
        for match in _PATH.finditer(text):
            forms.update(_path_forms(match[0] if "/" in match[0] else match[0].lstrip("+-")))
    return forms


def numbers(text: str) -> set[str]:
    """The days, times and amounts in a text."""
    if "@" in text:
        text = _EMAIL.sub(" ", text)
    if not _DIGIT.search(text):
        return set()
    forms = dates(text) | times(text)
    # What is a part of an account, a day or a time is no amount.
    for pattern in (_IBAN, _ISO_DATE, _DAY_MONTH, _MONTH_DAY, _TIME):
        text = pattern.sub(" ", text)
    for each in _NUMBER.findall(text):
        forms.update(f"amount:{one}" for one in amounts(each))
    return forms


def names(text: str) -> set[str]:
    """The identifiers of somebody or something in a text: no amounts, days, times and paths."""
    forms: set[str] = set()
    if "@" in text:
        forms.update(map(email, _EMAIL.findall(text)))
        text = _EMAIL.sub(" ", text)
    if "://" in text:
        for match in _URL.finditer(text):
            forms.update(_url_forms(match[0]))
    if "." in text or "localhost" in text:
        for match in _HOST.finditer(text):
            forms.update(_url_forms(match[0]))
        forms.update(f"host:{each.lower()}" for each in _ADDRESS.findall(text))
    if _DIGIT.search(text):
        forms.update(account(each[0]) for each in _IBAN.finditer(text))
        forms.update(map(account, _DIGITS.findall(text)))
        forms.update(f"id:{each.lstrip('#').casefold()}" for each in _TOKEN.findall(text))
    return forms


def email(text: str) -> str:
    return f"email:{text.strip('.').casefold()}"


def account(text: str) -> str:
    """An account or a phone number: what is left without what only helps to read it."""
    compact = re.sub(r"[^0-9A-Za-z]", "", text).upper()
    return f"account:{compact.removeprefix('00') if compact.isdecimal() else compact}"


def _url_forms(text: str) -> Iterator[str]:
    normal = url(text)
    if normal:
        yield f"url:{normal}"
        yield f"host:{host_of(normal)}"


def url(text: str) -> str:
    """A URL without its scheme, in one spelling; the path as it is, because servers tell cases
    apart.
    """
    text = text.strip().rstrip(".,;:!?)]>'\"")
    scheme, mark, rest = text.partition("://")
    rest = rest if mark else scheme
    rest = rest.partition("#")[0]
    place, slash, path = rest.partition("/")
    if not slash and "?" in place:
        place, _, path = place.partition("?")
        path = f"?{path}"
    place = place.rpartition("@")[2].lower().rstrip(".")
    for port in (":80", ":443"):
        place = place.removesuffix(port)
    place = place.removeprefix("www.")
    path = (unquote(path) if "%" in path else path).rstrip("/")
    return f"{place}/{path}" if path else place


def host_of(normal_url: str) -> str:
    return normal_url.partition("/")[0].partition("?")[0]


def host(text: str) -> str:
    return host_of(url(text))


def amounts(text: str) -> set[str]:
    """The numbers that a spelling may mean: `1,200` is one thing here and another there."""
    text = text.strip()
    times_ = 1
    if text[-1:] in "kKmM":
        times_ = 1000 if text[-1] in "kK" else 1_000_000
        text = text[:-1].strip()
    text = text.replace("'", "")
    readings = {text.replace(",", "")}
    if "," in text:
        readings.add(text.replace(".", "").replace(",", "."))
    elif text.count(".") > 1 or re.fullmatch(r"-?\d{1,3}\.\d{3}", text):
        readings.add(text.replace(".", ""))
    found_: set[str] = set()
    for each in readings:
        try:
            number = Decimal(each) * times_
        except InvalidOperation:
            continue
        if number.is_finite() and abs(number) < 10**18:
            found_.add(number_form(number))
    return found_


def number_form(number: Decimal) -> str:
    text = f"{number:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def path(text: str) -> str:
    text = text.strip()
    if "%" in text:
        text = unquote(text)
    if "/" not in text:
        return "" if text == "." else text.casefold()
    pieces = [each for each in text.removeprefix("file://").split("/") if each not in ("", ".")]
    return "/".join(pieces).casefold()


def _path_forms(text: str) -> Iterator[str]:
    normal = path(text)
    if normal:
        yield f"path:{normal}"
        last = normal.rpartition("/")[2]
        if "." in last:
            yield f"path:{last}"


def dates(text: str) -> set[str]:
    """Days: with and without their year. A short one means both orders."""
    found_: set[str] = set()
    for match in _ISO_DATE.finditer(text):
        _day(found_, match[1], match[2], match[3])
    for match in _SHORT_DATE.finditer(text):
        _day(found_, match[3] or "", match[1], match[2])
        _day(found_, match[3] or "", match[2], match[1])
    for match in _DAY_MONTH.finditer(text):
        _day(found_, match[3] or "", str(_month(match[2])), match[1])
    for match in _DAYS_MONTH.finditer(text):
        _day(found_, match[4] or "", str(_month(match[3])), match[1])
    for match in _MONTH_DAY.finditer(text):
        _day(found_, match[3] or "", str(_month(match[1])), match[2])
    for match in _OTHER_DATE.finditer(text):
        if (month := _MONTH_OF.get(match[2].casefold())) is not None:
            _day(found_, match[3] or "", str(month), match[1])
    for match in _OTHER_DAYS.finditer(text):
        if (month := _MONTH_OF.get(match[3].casefold())) is not None:
            _day(found_, match[4] or "", str(month), match[1])
    if not text.isascii():
        for match in _EAST_DATE.finditer(text):
            _day(found_, match[1] or "", match[2], match[3])
    return found_


def _month(name: str) -> int:
    return _MONTHS.index(name[:3].casefold()) + 1


def _day(into: set[str], year: str, month: str, day: str) -> None:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return
    into.add(f"day:{int(month):02}-{int(day):02}")
    if year:
        year = f"20{year}" if len(year) == 2 else year
        into.add(f"date:{year}-{int(month):02}-{int(day):02}")


def times(text: str) -> set[str]:
    found_: set[str] = set()
    for match in _TIME.finditer(text):
        hour, minute = int(match[1] or match[4]), match[2] or "00"
        half = (match[3] or match[5] or "")[:1].lower()
        if half and hour <= 12:
            hour = hour % 12 + (12 if half == "p" else 0)
        found_.add(f"time:{hour:02}:{minute}")
    for match in _OTHER_TIME.finditer(text):
        found_.add(f"time:{int(match[1] or match[2]):02}:{match[3] or '00'}")
    return found_


def decoded(text: str) -> list[str]:
    """Decode simple encodings in a text: percent signs, base64, hexadecimal, backwards."""
    seen: list[str] = []
    if "%" in text:
        seen.append(unquote(text))
    for match in _ENCODED.finditer(text):
        each = match[0][:_MOST_ENCODED]
        for decode in (_base64, _hex):
            if got := decode(each):
                seen.append(got)
    if len(text) <= _MOST_ENCODED:
        seen.append(text[::-1])
    return seen


def _base64(text: str) -> str:
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _readable(base64.b64decode(body + "=" * (-len(body) % 4), validate=True))
    except (binascii.Error, ValueError):
        return ""


def _hex(text: str) -> str:
    try:
        return _readable(bytes.fromhex(text))
    except ValueError:
        return ""


def _readable(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return text if text.isprintable() else ""
