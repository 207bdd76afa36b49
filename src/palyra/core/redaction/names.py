"""Names of secrets: of which kind, where each ends, and whether it is about a secret only."""

import re

from palyra.core.redaction.keywords import KEYWORD
from palyra.core.redaction.values import Kind

SECRETS = frozenset(
    (
        *("secret", "token", "tkn", "credential", "credentials", "unseal", "psk", "geheimnis"),
        *("токен", "トークン", "令牌", "토큰", "jeton"),
    )
)
KEYS = frozenset(
    (
        *("key", "auth", "private", "access", "license", "bearer", "pat", "salt", "cred", "creds"),
        *("schlüssel", "schluessel", "clé", "chiave", "chave", "klucz", "klíč", "nyckel", "nøgle"),
        *("nøkkel", "sleutel", "anahtar", "ключ", "密钥", "密鑰", "金钥", "金鑰", "キー"),
    )
)
# A key of one of these is drawn by a machine; a key alone may name a column, a cache, a lock.
_DRAWN_KEY = re.compile(
    r"(?i)(?:account|shared|storage|secret|signing|encryption|master|auth|access|private|license|api)[_\-. ]?$"  # noqa: E501
)
_SET = re.compile(r"[\"']?\s{0,4}[:=]")
_OWNER = re.compile(r"[a-z0-9]{2}[_\-.]?$|[?&]$")
# The name goes on and means something about the secret, not the secret.
_ABOUT_WORDS = """
file path name length size bytes bits type types field fields label labels hint prompt policy regex pattern timeout count limit format
class usage index store manager provider service server host endpoint issuer version status state error message list column input form
page view link reset required enabled strength score fingerprint digest checksum prefix suffix start position kind reference source
location vault ring word words code stream pair realm number cryptogram sha1 sha224 sha256 sha384 sha512 col cols dict hash scope use uses
generator rotation material spec exchange handler helper cache metadata info arg args argument challenge
"""  # noqa: E501
_ABOUT_LONG = tuple(_ABOUT_WORDS.split())
_ABOUT_STEMS = ("expir", "alg", "func", "serial", "identi", "iter", "validation")
# Short words are parts of others: `min` of `admin`. They count as words of their own.
_ABOUT_SHORT = (
    *("url", "uri", "id", "ids", "len", "dir", "ttl", "max", "min", "env", "var", "vars", "msg"),
    *("set", "map", "ref", "arn", "at", "by", "in", "on", "mgr", "md5", "sum", "pos", "end"),
)
_REST = re.compile(r"(?:[_\-.]{0,2}[A-Z0-9][\w.\-]{0,31}|[_\-.][\w.\-]{0,31})?")


def is_about(rest: str) -> bool:
    """Return whether a name that goes on like this is about the secret."""
    rest = rest.rstrip("0123456789").rstrip("_-.")
    lower = rest.lower()
    if lower.endswith(_ABOUT_LONG) or any(stem in lower for stem in _ABOUT_STEMS):
        return True
    for word in _ABOUT_SHORT if lower.endswith(_ABOUT_SHORT) else ():
        if lower.endswith(word):
            before, tail = rest[: -len(word)], rest[-len(word) :]
            if not before or before[-1] in "_-." or (tail[0].isupper() and not tail.isupper()):
                return True
    return False


def kind_named(keyword: re.Match[str]) -> Kind:
    word = keyword[0]
    if word == "psk" and _SET.match(keyword.string, keyword.end()):
        return "password"  # of a network: somebody chose it
    if word not in SECRETS and word not in KEYS:
        return "password"
    if word in SECRETS or (
        word in KEYS
        and _DRAWN_KEY.search(keyword.string, max(0, keyword.start() - 12), keyword.start())
    ):
        return "secret"
    return (
        "owned"
        if _OWNER.search(keyword.string, max(0, keyword.start() - 12), keyword.start())
        else "key"
    )


def end_of_name(text: str, end: int) -> int | None:
    """Return where the whole name ends whose word for a secret ends at `end`, None if it goes on
    and means something about the secret, or if a later word in the same name decides.
    """
    rest = _REST.match(text, end)
    assert rest is not None
    if rest[0] and (is_about(rest[0]) or KEYWORD.search(rest[0].lower())):
        return None
    return rest.end()


def end_of_word(text: str, keyword: re.Match[str]) -> int:
    """Return where the word ends, with the s of several of them."""
    end = keyword.end()
    return end + (text[end : end + 1] in ("s", "S") and not text[end + 1 : end + 2].isalnum())
