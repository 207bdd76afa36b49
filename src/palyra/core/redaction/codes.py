"""Short codes that open something: a PIN, the code of a door, what a second factor shows or keeps.
A number is one only behind a word for it.
"""

import re

from palyra.core.redaction import shapes
from palyra.core.redaction.grammars import CredentialRule

# One of these stands before every such number.
WORDS = (
    *("pin", "otp", "cod", "cód", "код"),
    *("验证码", "驗證碼", "認証", "暗証", "인증"),
)
_NAMED = (
    r"(?:(?<!\w)(?:pin|otp|2fa)(?:[ \-]?(?:codes?|kode?))?"
    r"|(?<=verification )code|(?<=confirmation )code|(?<=security )code|(?<=one-time )code"
    r"|(?<=access )code|(?<=alarm )code|(?<=door )code|(?<=login )code|(?<=backup )codes?"
    r"|(?<=bestätigungs)code|(?<=sicherheits)code|(?<=zugangs)code"
    r"|code (?:secret|de (?:vérification|confirmation|sécurité)|d'accès)"
    r"|c[oó]d(?:ice|igo) (?:segreto|secreto|secreta|di (?:verifica|accesso|conferma)"
    r"|de (?:verificaci[oó]n|verificação|seguridad|segurança|acceso|acesso))"
    r"|код (?:подтверждения|доступа)|验证码|驗證碼|認証コード|暗証番号|인증 ?(?:번호|코드)"
    r"|(?<!\w)code(?= (?:for|of|to) (?:the |my |our )?(?:\w{1,12} )?"
    r"(?:door|gate|alarm|safe|lock|garage|house|building)(?!\w)))"
)
_WHOSE = r"(?: (?:for|of|to|für|der|du|de la|de|del|della|do|da|zu[rm]?) [^\n.:=\d]{1,40}?)?"
_IS = r"(?:[\"']?\s{0,2}[:：=]{1,2}|\s?[は是는은]|\s(?:is|was|ist|war|lautet|est|es|é|è|e'|je|to|jest|är|er))?"  # noqa: E501
_NUMBERS = r"(\d{4,10}(?:[ ,]{1,2}\d{6,10}){0,15}|\d{3}[ \-]\d{3})(?![\w%]|[.,:/\-]\d)"
_LEAD = r"(?:[\-*•] ?|\d{1,2}[.)] )?"
_RECOVERY = r"[a-z0-9]{4,16}+(?:-[a-z0-9]{3,16}+){0,3}+"
_FEW = 4
_DIGITS = re.compile(r"\d{4}|\d{3}[ \-]\d{3}|\d[a-z]")


def hinted(lower: str) -> bool:
    """Return whether such a code may stand in the text."""
    return (
        "cod" in lower
        or "pin" in lower
        or "otp" in lower
        or (not lower.isascii() and any(word in lower for word in WORDS))
    ) and _DIGITS.search(lower) is not None


def _is_chosen(found: re.Match[str]) -> bool:
    return len(set(found[1])) > 1


RULES = (
    CredentialRule(
        "code",
        WORDS,
        re.compile(
            rf"(?i)(?=[^\d\n]{{2,72}}\d{{3}}){_NAMED}{_WHOSE}{_IS}\s{{0,3}}[\"']?{_NUMBERS}"
        ),
        _is_chosen,
    ),
    # 493027 is your code
    CredentialRule(
        "code",
        (" is your ",),
        re.compile(r"(?i)(?<=(?<![\w.,\-])(\d{6})) is your (?:[\w\-]{1,16} ){0,3}(?:code|otp|pin)"),
        _is_chosen,
    ),
    CredentialRule(
        "code",
        ("cod",),
        re.compile(
            rf"(?i)(?:(?<=recovery )|(?<=backup ))codes?\b[^\n\d:]{{0,40}}[:\n]\s{{0,8}}"
            rf"({_LEAD}{_RECOVERY}(?:[\s,;]{{1,4}}{_LEAD}(?=[a-z\-]{{0,20}}\d){_RECOVERY}){{1,15}})(?![\w\-])"
        ),
        lambda found: sum(map(str.isdigit, found[1])) >= _FEW,
    ),
    # What an authenticator makes its numbers from
    CredentialRule(
        "code",
        ("otp",),
        re.compile(
            r"(?i:otp)(?i:[\w\- ]{0,12})[\"']?\s?[:=]\s?[\"']?"
            r"([A-Z2-7]{16,64})(?![A-Za-z0-9])"
        ),
        lambda found: any(map(str.isdigit, found[1])) and not shapes.is_filler(found[1]),
    ),
)
