"""Finds credentials by the grammar around them (`grammars`, `commands`), and behind the flags of
programs. User and password go together.
"""

import re
from collections.abc import Iterator

from palyra.core.redaction import codes, commands, grammars, shapes, values
from palyra.core.redaction.formats import FormatMatch
from palyra.core.redaction.grammars import CredentialRule
from palyra.core.redaction.literals import Literals, Prefilter
from palyra.core.redaction.shapes import UNREAD, Work

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
    "P": ("sqlcmd", "bcp ", "isql", "zip -", "unzip ", "ipmitool"),
    "p": ("7z ", "7za "),
    "AX": ("snmpwalk", "snmpget", "snmpset"),
}
_BY_PROGRAM = tuple((flags, program) for flags, programs in _FLAGS.items() for program in programs)

_PASSWORD_FLAG = {
    flags: re.compile(rf"\s[-/][{flags}][\s:=]?[\"']?([^\s\"'$]{{4,128}})") for flags in _FLAGS
}
_USER_FLAG = re.compile(r"\s[-/][uU]\s?(\S{1,64})")
_LONGEST_LINE = 240
_TRIED = 3  # units of work for one try, and one more for so many characters of what was found
_LONG = 64
_ACCOUNT = re.compile(r"\w@[\w.\-]{5,64}(?:[:|;]|\s?/\s)")
_HAS_IP = Prefilter(r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")
_JUDGEMENT = 36
_IP = re.compile(r"(?<![\d.])[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?![\d.])")
_NOTED = re.compile(r"[^\s/:,;|()\[\]\"'<>]+")
_NO_NOTE = re.compile(r"[\"'`=<>{}#]|://|\(\)")  # code, settings, addresses of pages
_NOTE, _FEW_PARTS, _SPOKEN = 96, 7, 4.0


def _by_literal() -> dict[str, tuple[CredentialRule, ...]]:
    rules: dict[str, list[CredentialRule]] = {}
    for rule in (*grammars.RULES, *commands.RULES, *codes.RULES):
        for literal in rule.literals:
            rules.setdefault(literal, []).append(rule)
    return {literal: tuple(found) for literal, found in rules.items()}


_RULES = _by_literal()
_LITERALS = Literals(
    word
    for literal, rules in _RULES.items()
    for word in (literal, *(need for rule in rules for need in rule.needs))
)


def hinted(lower: str) -> bool:
    """Return whether a rule may hold that needs neither a long run nor the name of a secret."""
    if (
        "://" in lower
        or "identified" in lower
        or "account" in lower
        or "login(" in lower
        or ":5432:" in lower
        or ":3306:" in lower
        or "connect" in lower
        or "echo " in lower
        or "net use" in lower
        or "root" in lower
        or "ssh " in lower
        or "admin" in lower
        or "log in " in lower
        or "login " in lower
        or "sign in " in lower
        or "wifi" in lower
        or "wi-fi" in lower
        or "wlan" in lower
        or "mnemonic" in lower
        or " phrase" in lower
        or ("@" in lower and _ACCOUNT.search(lower) is not None)
        or "snmp-server" in lower
        or "openssl " in lower
        or "rclone " in lower
        or "crumb" in lower
        or "jwt." in lower
        or "cookieparser(" in lower
        or "-server key " in lower
    ):
        return True
    if codes.hinted(lower) or _HAS_IP.may_match(lower):
        return True
    return (" -" in lower or " /" in lower) and (
        " -u" in lower
        or " --user" in lower
        or "redis-cli" in lower
        or " -a " in lower
        or "echo" in lower
        or any(program in lower for _, program in _BY_PROGRAM)
    )


def find(text: str, lower: str, work: Work) -> Iterator[FormatMatch]:
    yield from _programs(text, lower, work)
    yield from _noted(text, work)
    held = _LITERALS.within(lower)
    for literal in held:
        for rule in _RULES.get(literal, ()):
            if rule.needs and not any(word in held for word in rule.needs):
                continue
            at = lower.find(literal)
            while at >= 0:
                if not work.spend(_TRIED):
                    yield FormatMatch(at, len(text), UNREAD)
                    return
                found = rule.pattern.match(text, at)
                work.spend(_JUDGEMENT + (found.end() - at) // _LONG if found else 0)
                if found and rule.holds(found):
                    yield FormatMatch(found.start(1), found.end(rule.last), rule.name)
                at = lower.find(literal, at + len(literal))


def _noted(text: str, work: Work) -> Iterator[FormatMatch]:
    """Yield passwords in short lines that hold the address of a machine and little else:
    192.0.2.7 ann ...
    """
    for address in _IP.finditer(text) if _HAS_IP.may_match(text) else ():
        if not work.spend(_TRIED):
            return
        start, end = address.span()
        low = text.rfind("\n", max(0, start - _NOTE), start) + 1
        high = text.find("\n", end, end + _NOTE)
        high = high if high >= 0 else min(len(text), end + _NOTE)
        if start - low >= _NOTE or high - end >= _NOTE or _NO_NOTE.search(text, low, high):
            continue
        parts = list(_NOTED.finditer(text, low, high))
        if len(parts) > _FEW_PARTS:
            continue
        work.spend(_JUDGEMENT)
        for part in parts:
            value = part[0].removesuffix(f"@{address[0]}")
            if values.CHOSEN.fullmatch(value) and is_no_name(value):
                yield FormatMatch(part.start(), part.start() + len(value), "password")


def is_no_name(password: str) -> bool:
    marked = any(c in "!#$%&*+?^" for c in password)
    return marked or (not shapes.is_words(password) and shapes.fluency(password) < _SPOKEN)


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
            if found and shapes.is_real("", found[1]):
                user = _USER_FLAG.search(text, at, found.start())
                yield FormatMatch(
                    user.start(1) if user else found.start(1),
                    found.end(1),
                    "basic-auth" if user else "password",
                )
            at = lower.find(program, end)
