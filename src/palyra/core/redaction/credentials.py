"""Credentials recognised by the grammar around them: URLs, headers, command lines, calls. User and
password go together.
"""

import binascii
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from palyra.core.redaction import shapes
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.work import UNREAD, Work


def _is_pair(found: re.Match[str]) -> bool:
    return _is_real(found[1], found[2])


def _is_pair_or_key(found: re.Match[str]) -> bool:
    """Whether user and password are real, or the user is a key and the password only fills its
    place.
    """
    return _is_pair(found) or (
        len(found[2]) < _PLACE
        and shapes.is_random(found[1], 16)
        and not shapes.stands_for_value(found[1])
    )


def _is_strong_pair(found: re.Match[str]) -> bool:
    return _is_pair(found) and _is_strong(found[2]) and " " not in found[2]


def _is_strong(password: str) -> bool:
    return (
        shapes.has_digit_and_letter(password)
        or shapes.has_special(password)
        or shapes.is_jumble(password)
    )


def _is_alone(found: re.Match[str]) -> bool:
    return _is_real("", found[1])


def _is_strong_alone(found: re.Match[str]) -> bool:
    return _is_alone(found) and _is_strong(found[1])


def _is_random(found: re.Match[str]) -> bool:
    value = found[1][:_JUDGED]
    return shapes.is_random(value, 16) and not shapes.stands_for_value(value)


def _is_random_or_uuid(found: re.Match[str]) -> bool:
    return shapes.UUID.fullmatch(found[1]) is not None or _is_random(found)


def _is_hook(found: re.Match[str]) -> bool:
    """Whether this is the address of a hook: a URL on this line whose last part is drawn."""
    return (
        _is_random_or_uuid(found)
        and "://" in found.string[max(0, found.start() - _HOST) : found.start()]
    )


def _is_token(found: re.Match[str]) -> bool:
    """Whether the user of a URL is a token. For SSH it is the name of an account."""
    return _is_random(found) and not found.string.endswith(("ssh", "sftp"), 0, found.start())


def _is_wallet(found: re.Match[str]) -> bool:
    """Whether a long hex number stands near the words for a wallet."""
    near = found.string[max(0, found.start() - _NEAR) : found.end() + _NEAR].lower()
    return _is_drawn(found) and any(word in near for word in ("wallet", "mnemonic", "private"))


def _is_drawn(found: re.Match[str]) -> bool:
    return not shapes.is_filler(found[1]) and not found[1].endswith(("EXAMPLE", "EXAMPLEKEY"))


def _is_header(found: re.Match[str]) -> bool:
    value = found[1][:_JUDGED]
    if found.string[max(0, found.start() - 24) : found.start()].count("::") > 1:
        return False  # the name of a type
    if shapes.stands_for_value(value) or shapes.names_itself(value):
        return False
    if "basic" in found[0][: found.start(1) - found.start()].lower():
        return _is_basic(found[1][:_JUDGED])
    return shapes.is_random(value, 16) or shapes.UUID.fullmatch(value) is not None


def _is_basic(value: str) -> bool:
    try:
        return _PAIR.fullmatch(binascii.a2b_base64(value + "=" * (-len(value) % 4))) is not None
    except binascii.Error:
        return False


class _Rule(NamedTuple):
    """`pattern` is tried where one of `literals` (lower case) begins. The secret is group 1, or all
    from there to group `last`.
    """

    name: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    holds: Callable[[re.Match[str]], bool]
    last: int = 1
    needs: tuple[str, ...] = ()  # one of these must stand anywhere in the text


_NOBODYS = re.compile(
    r"0?123456789012?|((\d)\2{3}-?){3}|1234-5678-9012"
)  # accounts of the documentation
_PAIR = re.compile(rb"[\x21-\x39\x3b-\x7e]{0,128}:[\x20-\x7e]{0,256}")
# Programs that take a password, by the flags for it: `unzip -p` means something else.
_FLAGS = {
    "pPwW": (
        *(
            "psexec",
            "sshpass",
            "smbclient",
            "plink",
            "mysql",
            "mongo",
            "rdesktop",
            "xfreerdp",
            "winexe",
            "net use",
            "ldapsearch",
        ),
        *(
            "ldapadd",
            "ldapmodify",
            "beeline",
            " login ",
        ),
    ),
    "P": ("sqlcmd", "bcp ", "isql", "zip -", "unzip "),
    "p": ("7z ", "7za "),
    "AX": ("snmpwalk", "snmpget", "snmpset"),
}
_BY_PROGRAM = tuple((flags, program) for flags, programs in _FLAGS.items() for program in programs)

_PASSWORD_FLAG = {
    flags: re.compile(rf"\s[-/][{flags}][\s:]?[\"']?([^\s\"'$]{{4,128}})") for flags in _FLAGS
}
_USER_FLAG = re.compile(r"\s[-/][uU]\s?(\S{1,64})")
_LONGEST_LINE = 240
_PLACE = 12  # curl -u KEY:x, KEY:unused
_TRIED = 3  # units of work for one try, and one more for so many characters of what was found
_LONG = 64
_NEAR = 400
_HOST = 80
_JUDGEMENT = 36
_JUDGED = 160  # the beginning of a value says what it is

_TWO_STRINGS = re.compile(
    r"\w{4,24}s?\(\s{0,8}[\"']([^\"'\n]{1,128})[\"']\s{0,4},\s{0,8}[\"']([^\"'\n]{4,256})[\"']"
)

RULES = (
    _Rule(
        "url-credentials",
        ("://",),
        re.compile(r"://([^\s:/\"'<>`\\]{0,128}):([^\s/\"'<>`\\]{1,256})@(?=[\w\[%{(\-.])"),
        _is_pair,
        2,
    ),
    _Rule(
        "url-credentials",
        ("://",),
        re.compile(r"://([A-Za-z0-9_\-]{20,256})(?::x-oauth-basic|:)?@"),
        _is_token,
    ),
    _Rule(
        "url-credentials",
        (":thin:",),
        re.compile(r"(?i):thin:(\w{1,64})/([^\s/@\"']{4,128})@"),
        _is_pair,
        2,
    ),
    _Rule(
        "authorization",
        ("authorization",),
        re.compile(
            r"(?i)authorization[\"']?\]?\s{0,4}[:=,]\s{0,8}[\"']?(?:[\w\-]{3,20}\s{1,4})?([A-Za-z0-9+/=_.~:\-|!]{6,4096})"
        ),
        _is_header,
    ),
    _Rule(
        "bearer",
        ("bearer",),
        re.compile(r"(?i)bearer\s{1,4}([A-Za-z0-9+/=_.~\-]{16,4096})"),
        _is_random,
    ),
    _Rule(
        "basic-auth",
        (" -u", " --user", " --proxy-user", " -a ", " --auth"),
        re.compile(
            r"(?i)\s(?:-u|--user|--proxy-user|-a|--auth)(?:\s{1,4}|=)?[\"']?([^\s:\"'$]{0,128})[\"']?:(?!//)[\"']?([^\s\"'\\]{0,256})"
        ),
        _is_pair_or_key,
        2,
        ("curl", "wget", "http"),
    ),
    _Rule(
        "password",
        ("identified",),
        re.compile(
            r"(?i)identified\s{1,4}(?:with\s\w{1,32}\s)?by\s{1,4}(?:password\s)?[\"']([^\s\"']{4,128})[\"']"
        ),
        lambda found: (
            _is_alone(found)
            and (
                found[0][0] == "I"
                or shapes.has_digit_and_letter(found[1])
                or shapes.has_special(found[1])
            )
        ),
    ),
    _Rule(
        "basic-auth",
        ("password for",),
        re.compile(
            r"(?i)password for (?:the )?(?:user|account|login) [\"'`]([^\s\"'`]{1,64})[\"'`] is"
            r" [\"'`]([^\s\"'`]{4,64})[\"'`]"
        ),
        _is_pair,
        2,
        ("password",),
    ),
    _Rule(
        "password",
        ("with password", "encrypted password"),
        re.compile(r"(?i)\w{4,9} password\s{1,4}'([^\s']{4,128})'"),
        _is_alone,
        1,
        ("password",),
    ),
    _Rule(
        "basic-auth",
        # NetworkCredential, PSCredential, HTTPBasicAuth, HTTPDigestAuth, PasswordAuthentication
        ("credential(", "basicauth(", "digestauth(", "authentication("),
        _TWO_STRINGS,
        _is_pair,
        2,
        ("credential", "auth"),
    ),
    _Rule(
        "aws-key",
        ("aws",),
        re.compile(
            r"(?i)aws[\w.\-]{0,24}(?:secret|sk)[\w.\-"
            r" ]{0,16}[\"']?\s{0,4}[:=]>?\s{0,4}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
        lambda found: not found[1].endswith(("EXAMPLE", "EXAMPLEKEY")),
    ),
    _Rule(
        "aws-account",
        ("aws",),
        re.compile(
            r"(?i)aws[_\-. ]?account[_\-."
            r" ]?(?:id|number)?[\"']?\s{0,4}[:=]>?\s{0,4}[\"']?(\d{12}|\d{4}-\d{4}-\d{4})(?!\d)"
        ),
        lambda found: _NOBODYS.fullmatch(found[1]) is None,
    ),
    _Rule(
        "password",
        ("machine ",),
        re.compile(
            r"(?i)machine\s{1,4}\S{1,128}\s{1,8}login\s{1,4}\S{1,128}\s{1,8}password\s{1,4}(\S{4,256})"
        ),
        _is_alone,
        1,
        ("password",),
    ),
    _Rule(
        "password",
        (":5432:", ":3306:", ":*:"),
        re.compile(r":(?:\d{2,5}|\*):[\w*\-]{1,64}:[\w*\-.@]{1,64}:([^\s\"'*,]{4,256})(?!\S)"),
        _is_strong_alone,
    ),
    _Rule(
        "basic-auth",
        ("basic ",),
        re.compile(r"(?i)basic ([A-Za-z0-9+/]{12,512}={0,2})(?![A-Za-z0-9+/=])"),
        lambda found: _is_basic(found[1]),
    ),
    _Rule(
        "basic-auth",
        ('"auth"',),
        re.compile(r"\"auth\"\s{0,4}:\s{0,4}\"([A-Za-z0-9+/]{8,512}={0,2})\""),
        lambda found: _is_basic(found[1]),
    ),
    _Rule(
        "private-key",
        ('"d"', '"p"', '"q"', '"dp"', '"dq"', '"qi"', '"k"'),
        re.compile(r"\"\w{1,2}\"\s{0,4}:\s{0,4}\"([\w\-]{20,1024})\""),
        _is_drawn,
        needs=("kty",),
    ),
    _Rule(
        "token",
        ("appid=",),
        re.compile(r"(?i)appid=([0-9a-f]{32}|[A-Z0-9]{6}-[A-Z0-9]{10})(?![0-9a-z])"),
        _is_drawn,
    ),
    # auth=("user", "password"), as HTTP clients take it
    _Rule(
        "basic-auth",
        ("auth=", "auth = "),
        re.compile(
            r"auth ?="
            r" ?[(\[]\s{0,8}[bu]?[\"']([^\"'\n]{0,128})[\"']\s{0,4},\s{0,8}[bu]?[\"']([^\"'\n]{4,256})[\"']"  # noqa: E501
        ),
        _is_strong_pair,
        2,
    ),
    _Rule(
        "basic-auth",
        ("sqlplus ",),
        re.compile(r"(?i)sqlplus\s(?:-\w+\s)?(\w{1,64})/([^\s/@\"']{4,128})@?"),
        _is_pair,
        2,
    ),
    _Rule(
        "url-key",
        ("/key/", "/token/", "/apikey/"),
        re.compile(r"/\w{3,6}/([A-Za-z0-9_\-]{24,128})(?![\w.\-])"),
        lambda found: (
            _is_random(found) and not found[1].islower() and not shapes.UUID.fullmatch(found[1])
        ),
        needs=("://",),
    ),
    # Whoever knows the address of a hook may call it.
    _Rule(
        "webhook",
        ("hook",),
        re.compile(
            r"(?i)hooks?[/.](?:[\w.\-]{1,48}/){0,5}((?=[\w\-]{0,64}\d)[A-Za-z0-9_\-]{20,128})(?![\w.\-])"
        ),
        _is_hook,
        needs=("://",),
    ),
    _Rule(
        "signature",
        ("signature=",),
        re.compile(r"(?i)signature=([0-9a-f]{64,1024}|[\w%+/\-]{40,400})"),
        _is_random,
    ),
    _Rule(
        "password",
        ("id/p", "id / p", "user/p", "login/p", "account/p"),
        re.compile(
            r"(?i)\w{2,8} ?/"
            r" ?p(?:ass(?:wor[dt]|wd|code|phrase)?|wd?|swd?)\s{0,2}[:=\s]\s{0,4}[^\s/]{2,64}\s?/\s?(\S{4,64})"  # noqa: E501
        ),
        _is_strong_alone,
    ),
    _Rule(
        "password",
        ("redis-cli",),
        re.compile(r"redis-cli\s[^\n]{0,80}? -a\s?[\"']?([^\s\"'$]{4,128})"),
        _is_alone,
    ),
    _Rule(
        "password",
        ("convertto-securestring",),
        re.compile(r"(?i)convertto-securestring\s[^\n\"']{0,40}[\"']([^\s\"']{4,128})[\"']"),
        _is_alone,
    ),
    _Rule("basic-auth", ("login(",), _TWO_STRINGS, _is_strong_pair, 2),
    _Rule("azure", ("sig=",), re.compile(r"sig=([A-Za-z0-9%/+]{43,80}(?:%3[dD]|=))"), _is_random),
    _Rule(
        "sonarqube",
        ("sonar.login",),
        re.compile(r"sonar\.login[\"']?\s{0,4}[:=]\s{0,4}[\"']?([0-9a-f]{40})"),
        _is_random,
    ),
    _Rule(
        "okta",
        ("00",),
        re.compile(r"(?<![\w\-])(00[\w\-]{40})(?![\w\-])"),
        _is_drawn,
        needs=("okta",),
    ),
    _Rule(
        "private-key",
        ("0x",),
        re.compile(r"(?<!\w)0x([0-9a-fA-F]{64})(?![0-9a-zA-Z])"),
        _is_wallet,
        needs=("wallet", "mnemonic"),
    ),
)
_TRIVIAL = re.compile(
    r"(?i)\d{1,5}|password\d?|mypassword|passwd|your.*|.*replace.*|pwd|abc|foo|bar|token|x+|user|username|(.)\1*"
)


def hinted(lower: str) -> bool:
    """Whether a rule may hold that needs neither a long run nor the name of a secret."""
    if (
        "://" in lower
        or "identified" in lower
        or "account" in lower
        or "login(" in lower
        or ":5432:" in lower
        or ":3306:" in lower
    ):
        return True
    return (" -" in lower or " /" in lower) and (
        " -u" in lower
        or " --user" in lower
        or "redis-cli" in lower
        or any(program in lower for _, program in _BY_PROGRAM)
    )


def find(text: str, lower: str, work: Work) -> Iterator[FormatMatch]:
    yield from _programs(text, lower, work)
    there: dict[str, bool] = {}
    for rule in RULES:
        if rule.needs and not any(_has(lower, word, there) for word in rule.needs):
            continue
        for literal in rule.literals:
            at = lower.find(literal) if _has(lower, literal, there) else -1
            while at >= 0:
                if not work.spend(_TRIED):
                    yield FormatMatch(at, len(text), UNREAD)
                    return
                found = rule.pattern.match(text, at)
                work.spend(_JUDGEMENT + (found.end() - at) // _LONG if found else 0)
                if found and rule.holds(found):
                    yield FormatMatch(found.start(1), found.end(rule.last), rule.name)
                at = lower.find(literal, at + len(literal))


def _has(lower: str, word: str, there: dict[str, bool]) -> bool:
    """Whether the word stands in the text; asked for once."""
    found = there.get(word)
    if found is None:
        found = there[word] = word in lower
    return found


def _programs(text: str, lower: str, work: Work) -> Iterator[FormatMatch]:
    """Commands that take a password: each line is looked at once, whatever stands in it."""
    flagged = " -p" in lower or " /p" in lower or " -w" in lower or " /w" in lower or " -a" in lower
    for flags, program in _BY_PROGRAM if flagged else ():
        at = lower.find(program)
        while at >= 0:
            if not work.spend(_TRIED):
                yield FormatMatch(at, len(text), UNREAD)
                return
            end = text.find("\n", at, at + _LONGEST_LINE)
            end = end if end >= 0 else min(len(text), at + _LONGEST_LINE)
            found = _PASSWORD_FLAG[flags].search(text, at, end)
            if found and _is_real("", found[1]):
                user = _USER_FLAG.search(text, at, found.start())
                yield FormatMatch(
                    user.start(1) if user else found.start(1),
                    found.end(1),
                    "basic-auth" if user else "password",
                )
            at = lower.find(program, end)


def _is_real(user: str, password: str) -> bool:
    """Whether user and password are more than an illustration."""
    password = password.strip("\"'")
    if len(password) < 4 or password == user or _TRIVIAL.fullmatch(password):
        return False
    return not shapes.stands_for_value(password) and not password.startswith(
        ("$", "{", "<", "%(", "%s", "[")
    )
