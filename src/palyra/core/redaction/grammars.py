"""Grammars of the web that hold a credential, one rule each: URLs, headers, hooks, signatures. A
rule says where it begins, what it looks like and when it holds.
"""

import binascii
import re
from collections.abc import Callable
from typing import NamedTuple

from palyra.core.redaction import shapes, vendors

_PLACE = 12  # curl -u KEY:x, KEY:unused
_NEAR = 400
_HOST = 80
_JUDGED = 160  # the beginning of a value says what it is
_FEW = 4


# Whose keys a program that signs is given: accounts: ["0x..."]
_ACCOUNTS = re.compile(r"accounts[\"']?\s{0,2}[:=]\s{0,4}\[\s{0,8}[\"']\Z")


def is_pair(found: re.Match[str]) -> bool:
    return shapes.is_real(found[1], found[2])


def is_pair_or_key(found: re.Match[str]) -> bool:
    """Return whether user and password are real, or the user is a key and the password only
    fills its place.
    """
    return is_pair(found) or (
        len(found[2]) < _PLACE
        and shapes.is_random(found[1], 16)
        and not shapes.stands_for_value(found[1])
    )


def is_strong_pair(found: re.Match[str]) -> bool:
    return is_pair(found) and is_strong(found[2]) and " " not in found[2]


def is_strong(password: str) -> bool:
    return (
        shapes.has_digit_and_letter(password)
        or shapes.has_special(password)
        or shapes.is_jumble(password)
    )


def is_alone(found: re.Match[str]) -> bool:
    return shapes.is_real("", found[1])


def is_strong_alone(found: re.Match[str]) -> bool:
    return is_alone(found) and is_strong(found[1])


def is_random(found: re.Match[str]) -> bool:
    value = found[1][:_JUDGED]
    return shapes.is_random(value, 16) and not shapes.stands_for_value(value)


def is_random_or_uuid(found: re.Match[str]) -> bool:
    return shapes.UUID.fullmatch(found[1]) is not None or is_random(found)


def is_hook(found: re.Match[str]) -> bool:
    """Return whether this is the address of a hook: a URL on this line whose last part is drawn."""
    return (
        is_random_or_uuid(found)
        and "://" in found.string[max(0, found.start() - _HOST) : found.start()]
    )


def is_token(found: re.Match[str]) -> bool:
    """Return whether the user of a URL is a token. For SSH it is the name of an account."""
    return is_random(found) and not found.string.endswith(("ssh", "sftp"), 0, found.start())


def is_wallet(found: re.Match[str]) -> bool:
    """Return whether a long hex number stands near the words for a wallet."""
    near = found.string[max(0, found.start() - _NEAR) : found.end() + _NEAR].lower()
    return is_drawn(found) and (
        any(word in near for word in ("wallet", "mnemonic", "private"))
        or _ACCOUNTS.search(found.string, max(0, found.start() - _HOST), found.start()) is not None
    )


def is_drawn(found: re.Match[str]) -> bool:
    if shapes.is_masked(found[1]) and not shapes.is_sequence(found[1]):
        return False
    return not shapes.is_filler(found[1]) and not found[1].endswith(("EXAMPLE", "EXAMPLEKEY"))


def is_header(found: re.Match[str]) -> bool:
    value = found[1][:_JUDGED]
    if found.string[max(0, found.start() - 24) : found.start()].count("::") > 1:
        return False  # the name of a type
    if shapes.stands_for_value(value) or shapes.names_itself(value):
        return False
    if "basic" in found[0][: found.start(1) - found.start()].lower():
        return is_basic(found[1][:_JUDGED])
    return shapes.is_random(value, 16) or shapes.UUID.fullmatch(value) is not None


def is_basic(value: str) -> bool:
    try:
        return _PAIR.fullmatch(binascii.a2b_base64(value + "=" * (-len(value) % 4))) is not None
    except binascii.Error:
        return False


class CredentialRule(NamedTuple):
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
    r"0?123456789\d{2,3}|((\d)\2{3}-?){3}|1234-5678-9012"
)  # accounts of the documentation
_PAIR = re.compile(rb"[\x21-\x39\x3b-\x7e]{0,128}:[\x20-\x7e]{0,256}")

RULES = (
    CredentialRule(
        "url-credentials",
        ("://",),
        re.compile(r"://([^\s:/\"'<>`\\]{0,128}):([^\s/\"'<>`\\]{1,256})@(?=[\w\[%{(\-.])"),
        is_pair,
        2,
    ),
    CredentialRule(
        "url-credentials",
        ("://",),
        re.compile(r"://([A-Za-z0-9_\-]{20,256})(?::x-oauth-basic|:)?@"),
        is_token,
    ),
    CredentialRule(
        "url-credentials",
        (":thin:",),
        re.compile(r"(?i):thin:(\w{1,64})/([^\s/@\"']{4,128})@"),
        is_pair,
        2,
    ),
    CredentialRule(
        "bearer",
        ("bearer",),
        re.compile(r"(?i)bearer\s{1,4}([A-Za-z0-9+/=_.~\-]{16,4096})"),
        is_random,
    ),
    CredentialRule(
        "authorization",
        ("authorization",),
        re.compile(
            r"(?i)authorization[\"']?\]?\s{0,4}[:=,]\s{0,8}[\"']?(?:[\w\-]{3,20}\s{1,4})?([A-Za-z0-9+/=_.~:\-|!]{6,4096})"
        ),
        is_header,
    ),
    CredentialRule(
        "basic-auth",
        (" -u", " --user", " --proxy-user", " -a ", " --auth"),
        re.compile(
            r"(?i)\s(?:-u|--user|--proxy-user|-a|--auth)(?:\s{1,4}|=)?[\"']?([^\s:\"'$]{0,128})[\"']?:(?!//)[\"']?([^\s\"'\\]{0,256})"
        ),
        is_pair_or_key,
        2,
        ("curl", "wget", "http"),
    ),
    CredentialRule(
        "aws-key",
        ("aws",),
        re.compile(
            r"(?i)aws[\w.\-]{0,24}(?:secret|sk)[\w.\-"
            r" ]{0,16}[\"']?\s{0,4}[:=]>?\s{0,4}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
        lambda found: not found[1].endswith(("EXAMPLE", "EXAMPLEKEY")),
    ),
    CredentialRule(
        "aws-account",
        ("aws",),
        re.compile(
            r"(?i)aws[_\-. ]?account[_\-."
            r" ]?(?:id|number)?[\"']?\s{0,4}[:=]>?\s{0,4}[\"']?(\d{12}|\d{4}-\d{4}-\d{4})(?!\d)"
        ),
        lambda found: _NOBODYS.fullmatch(found[1]) is None,
    ),
    CredentialRule(
        "basic-auth",
        ("basic ",),
        re.compile(r"(?i)basic ([A-Za-z0-9+/]{12,512}={0,2})(?![A-Za-z0-9+/=])"),
        lambda found: is_basic(found[1]),
    ),
    CredentialRule(
        "basic-auth",
        ('"auth"', "_auth"),
        re.compile(
            r"[\"_]auth\"?\s{0,4}[:=]\s{0,4}\"?([A-Za-z0-9+/]{8,512}={0,2})(?![A-Za-z0-9+/=])"
        ),
        lambda found: is_basic(found[1]),
    ),
    CredentialRule(
        "private-key",
        ('"d"', '"p"', '"q"', '"dp"', '"dq"', '"qi"', '"k"'),
        re.compile(r"\"\w{1,2}\"\s{0,4}:\s{0,4}\"([\w\-]{20,1024})\""),
        is_drawn,
        needs=("kty",),
    ),
    CredentialRule(
        "token",
        ("appid=",),
        re.compile(r"(?i)appid=([0-9a-f]{32}|[A-Z0-9]{6}-[A-Z0-9]{10})(?![0-9a-z])"),
        is_drawn,
    ),
    CredentialRule(
        "basic-auth",
        ("sqlplus ",),
        re.compile(r"(?i)sqlplus\s(?:-\w+\s)?(\w{1,64})/([^\s/@\"']{4,128})@?"),
        is_pair,
        2,
    ),
    CredentialRule(
        "url-key",
        ("/key/", "/token/", "/apikey/"),
        re.compile(r"/\w{3,6}/([A-Za-z0-9_\-]{24,128})(?![\w.\-])"),
        lambda found: (
            is_random(found) and not found[1].islower() and not shapes.UUID.fullmatch(found[1])
        ),
        needs=("://",),
    ),
    # Whoever knows the address of a hook may call it.
    CredentialRule(
        "webhook",
        ("hook",),
        re.compile(
            r"(?i)hooks?[/.](?:[\w.\-]{1,48}/){0,5}((?=[\w\-]{0,64}\d)[A-Za-z0-9_\-]{20,128})(?![\w.\-])"
        ),
        is_hook,
        needs=("://",),
    ),
    CredentialRule(
        "webhook",
        ("hooks/catch/",),
        re.compile(r"hooks/catch/(\d{4,10}/[a-z0-9]{6,12})(?![\w\-])"),
        lambda found: shapes.has_digit_and_letter(found[1].partition("/")[2]),
        needs=("://",),
    ),
    CredentialRule(
        "signature",
        ("signature=",),
        re.compile(r"(?i)signature=([0-9a-f]{64,1024}|[\w%+/\-]{40,400})"),
        is_random,
    ),
    # Who rents what there: worth something only with a secret, and shown nowhere all the same.
    CredentialRule(
        "azure",
        tuple(
            f"{whose}_{what}"
            for whose in ("azure", "arm", "aad", "ad")
            for what in ("tenant", "subscription")
        ),
        re.compile(
            rf"(?i)[a-z]{{2,5}}_\w{{6,16}}[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?({vendors.UUID})"
        ),
        lambda found: not shapes.is_standard(found[1]) and len(set(found[1])) > _FEW,
        needs=("_tenant", "_subscription"),
    ),
    CredentialRule(
        "password",
        ("convertto-securestring",),
        re.compile(r"(?i)convertto-securestring\s[^\n\"']{0,40}[\"']([^\s\"']{4,128})[\"']"),
        is_alone,
    ),
    CredentialRule(
        "azure", ("sig=",), re.compile(r"sig=([A-Za-z0-9%/+]{42,80}(?:%3[dD]|=))"), is_random
    ),
    CredentialRule(
        "sonarqube",
        ("sonar.login",),
        re.compile(r"sonar\.login[\"']?\s{0,4}[:=]\s{0,4}[\"']?([0-9a-f]{40})"),
        is_random,
    ),
    CredentialRule(
        "okta",
        ("00",),
        re.compile(r"(?<![\w\-])(00[\w\-]{40})(?![\w\-])"),
        is_drawn,
        needs=("okta", "ssws"),
    ),
    CredentialRule(
        "private-key",
        ("0x",),
        re.compile(r"(?<!\w)0x([0-9a-fA-F]{64})(?![0-9a-zA-Z])"),
        is_wallet,
        needs=("wallet", "mnemonic", "accounts"),
    ),
    # Whoever sends the cookie of a session is its user.
    CredentialRule(
        "cookie",
        ("cookie: ",),
        re.compile(
            r"(?i)cookie: (?:[\w.\-]{1,40}=[^;\s]{0,200}; ){0,3}"
            r"[\w.\-]{0,24}(?:sess\w{0,8}|sid|auth|token)=([^;\s\"']{16,512})"
        ),
        is_random,
    ),
    CredentialRule(
        "cookie",
        ("cookie", "sessid=", "sessionid=", "connect.sid="),
        re.compile(
            r"(?i)(?:cookie[\w :\"']{0,24}?(?<!\w)(?:[\w\-]{1,24}[._\-])?sid|sessid"
            r"|(?<=[jt_])sessionid|connect\.sid)=([^;\s\"'&]{16,512})"
        ),
        is_random,
        needs=("sid=", "sessionid="),
    ),
    CredentialRule(
        "authorization",
        ("digest ",),
        re.compile(r"(?i)digest [^\n]{0,400}?response=\"?([0-9a-f]{32,64})(?![0-9a-f])"),
        is_random,
        needs=("response=",),
    ),
    CredentialRule(
        "private-key",
        ("<d>", "<p>", "<q>", "<dp>", "<dq>", "<inverseq>"),
        re.compile(r"<\w{1,8}>\s{0,8}([A-Za-z0-9+/=\s]{20,1024})</"),
        is_drawn,
        needs=("rsakeyvalue",),
    ),
    # {SSHA}..., as directories keep passwords
    CredentialRule(
        "password-hash",
        ("{ssha", "{sha"),
        re.compile(r"(?i)\{S?SHA(?:256|384|512)?\}([A-Za-z0-9+/]{22,128}={0,2})"),
        is_random,
    ),
    # The words from which a wallet is made.
    CredentialRule(
        "private-key",
        (
            "mnemonic",
            "seed phrase",
            "recovery phrase",
            "backup phrase",
            "secret phrase",
            "paper key",
        ),
        re.compile(
            r"(?i)(?:mnemonic|paper key|(?:seed|recovery|backup|secret) phrase)\w{0,8}[\"']?"
            r"(?: (?:of|for|to|are|from) [^\n:=]{1,40}?)?"
            r"(?: (?:is|are):?|\s{0,2}[:=]|(?= [\"'`]|\r?\n))\s{0,4}[\"'`]?"
            r"((?:[a-z]{3,8} ){11,23}[a-z]{3,8})(?![a-z ])"
        ),
        lambda found: True,
        needs=("mnemonic", " phrase", "paper key"),
    ),
    CredentialRule(
        "cookie",
        ("_session=",),
        re.compile(r"_session=([0-9a-f]{32,64}|[\w%\-]{40,2048})(?![\w%\-])"),
        is_random,
    ),
    CredentialRule(
        "token",
        ("oauth:",),
        re.compile(r"oauth:([a-z0-9]{30})(?!\w)"),
        is_random,
    ),
    # What Jenkins asks for beside a session.
    CredentialRule(
        "token",
        ("crumb",),
        re.compile(r"(?i)crumb[\"']?\s{0,4}[:=,]\s{0,4}[\"']?([0-9a-f]{32,64})(?![0-9a-zA-Z])"),
        is_random,
    ),
    # What servers keep of a password, under the name of what keeps it.
    CredentialRule(
        "password-hash",
        ("*",),
        re.compile(r"\*([0-9A-F]{40})(?![0-9A-Za-z])"),
        is_random,
        needs=("mysql", "mariadb", "identified", "password"),
    ),
    CredentialRule(
        "password-hash",
        ("0x0100", "0x0200"),
        re.compile(r"(0x0[12]00[0-9a-fA-F]{48,136})(?![0-9a-zA-Z])"),
        is_random,
    ),
    CredentialRule(
        "password-hash",
        ("::",),
        re.compile(r"::[\w.\-]{0,32}:([0-9a-fA-F]{16}:[0-9a-fA-F]{32}:[0-9a-fA-F]{32,1024})"),
        is_random,
    ),
    CredentialRule(
        "sumologic",
        ("sumo",),
        re.compile(r"(?i)sumo[\w.\-]{0,24}[\"']?\s{0,4}[:=]\s{0,4}[\"']?(su[A-Za-z0-9]{12})(?!\w)"),
        is_drawn,
    ),
)
