"""The words that name a secret, and where they stand in a text."""

import re
from collections.abc import Iterator

KEYWORD = re.compile(
    r"p(?:ass(?:word|wort|wrd|wd|phrase|code)?|swd|sswd|sk|word|wd|sw|w|/w|rivate|at)|s(?:ecret|alt)|t(?:oken|kn)|cred(?:ential)?s?|unseal|key|a(?:uth|ccess)|license|bearer|"
    r"kennwort|contrase[nñ]a|senha|mot de"
    r" passe|mdp|wachtwoord|has[lł]o|heslo|парол[ья]|密[码碼]|口令|パスワード|비밀번호|비번|패스워드|암호|"  # noqa: E501
    r"[sş]ifre(?:m|miz|niz|si)?|clave|parola|jelsz[oó]|salasana(?: on)?|l[oö]senord|"
    r"m[aậ]t kh[aẩ]u|κωδικ[οό]ς|סיסמ(?:ה|א|ת)|كلمة (?:ال)?(?:مرور|سر)|"
    r"पासवर्ड|รหัสผ่าน|парола|暗証番号|"
    r"schl(?:ü|ue)ssel|clé|chiave|chave|klucz|klíč|nyckel|n(?:ø|ö)(?:gle|kkel)|sleutel|anahtar"
    r"|ключ|密[钥鑰]|金[钥鑰]|キー|токен|トークン|令牌|토큰|jeton|geheimnis"
)
# How keywords begin.
_STEMS = (
    r"a(?:ccess|nahtar|uth)|bearer|c(?:h(?:ave|iave)|lave|ontrase|red)|geheimnis|h(?:aslo|eslo)|jeton"
    r"|k(?:e(?:nnwort|y)|lucz)|license|m(?:dp|ot de passe)|nyckel"
    r"|p(?:/w|a(?:rola|ss|t)|rivate|s(?:k|sw|w)|w)"
    r"|s(?:al(?:asana|t)|chluessel|e(?:cret|nha)|ifre|leutel)|t(?:kn|oken)|unseal|wachtwoord"
)
_FOREIGN = (
    *(
        "hasło",
        "парол",
        "密码",
        "密碼",
        "口令",
        "パスワード",
        "비밀번호",
        "비번",
        "패스워드",
        "암호",
    ),
    *(
        "şifre",
        "jelszó",
        "lösenord",
        "mật kh",
        "κωδικ",
        "סיסמ",
        "كلمة ",
        "पासवर्ड",
        "รหัสผ่าน",
        "暗証番号",
    ),
    *(
        "schlüssel",
        "clé",
        "klíč",
        "nøgle",
        "nøkkel",
        "ключ",
        "密钥",
        "密鑰",
        "金钥",
        "金鑰",
        "キー",
    ),
    *("токен", "トークン", "令牌", "토큰"),
)
_BEGIN = re.compile(_STEMS)
_BEGIN_ANY = re.compile("|".join((_STEMS, *_FOREIGN)))


def named(lower: str) -> bool:
    """Return whether a keyword may stand in the text. Spelt out because every piece of a stream
    passes here: a loop takes longer.
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
        or "cred" in lower
        or "psw" in lower
        or "psk" in lower
        or "p/w" in lower
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
        or "clave" in lower
        or "parola" in lower
        or "schluessel" in lower
        or "chiave" in lower
        or "chave" in lower
        or "klucz" in lower
        or "nyckel" in lower
        or "sleutel" in lower
        or "anahtar" in lower
        or "jeton" in lower
        or "geheimnis" in lower
        or "salasana" in lower
        or (not lower.isascii() and any(stem in lower for stem in _FOREIGN))
    )


def keywords_in(lower: str) -> Iterator[re.Match[str]]:
    """Every keyword in order. One pattern of how they begin is faster than one for all of them."""
    end = 0
    for begin in (_BEGIN if lower.isascii() else _BEGIN_ANY).finditer(lower):
        found = KEYWORD.match(lower, begin.start()) if begin.start() >= end else None
        if found:
            end = found.end()
            yield found
