"""Commands, statements and calls that take a password, one rule each, and accounts as people note
them down.
"""

import re

from palyra.core.redaction import shapes, values
from palyra.core.redaction.grammars import (
    CredentialRule,
    is_alone,
    is_pair,
    is_strong_alone,
    is_strong_pair,
)

_CHOSEN = 6  # characters of a password that somebody chose, at least
_TWO_STRINGS = re.compile(
    r"\w{4,24}s?(?:\.basic|\]::new)?\(\s{0,8}[\"']([^\"'\n]{1,128})[\"']\s{0,4},\s{0,8}[\"']([^\"'\n]{4,256})[\"']"
)

_TWO_ARGUMENTS = re.compile(
    r"[\w.]{4,24}\(\s{0,8}[\"']([^\"'\n]{1,128})[\"']\s{0,4},\s{0,8}[\"']([^\"'\n]{4,256})[\"']"
)
_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?[\s,;|]{1,4}\Z")
_HOST = 32
_DRAWN = 10
# Names of algorithms, which calls take beside a key.
_CIPHER = re.compile(r"(?i)(?:sha|aes|md5|hs|rs|es|des|rc|pbkdf|base|utf|hmac|rsa|ps)[\-_]?\d")


def _is_marked(password: str) -> bool:
    """Return whether this was chosen as a password: in both cases with a number, or with a mark."""
    return values.CHOSEN.fullmatch(password) is not None or (
        any(c in "!#$%&*+?@^" for c in password) and shapes.has_digit_and_letter(password)
    )


def _is_no_name(password: str) -> bool:
    """Return whether this was chosen as a password and is no name with a number in it."""
    return _is_marked(password) and (
        any(c in "!#$%&*+?@^" for c in password) or not shapes.is_words(password)
    )


RULES = (
    CredentialRule(
        "password",
        ("identified",),
        re.compile(
            r"(?i)identified\s{1,4}(?:with\s\w{1,32}\s)?by\s{1,4}(?:password\s)?[\"']([^\s\"']{4,128})[\"']"
        ),
        lambda found: (
            is_alone(found)
            and (
                found[0][0] == "I"
                or shapes.has_digit_and_letter(found[1])
                or shapes.has_special(found[1])
            )
        ),
    ),
    CredentialRule(
        "basic-auth",
        ("password for",),
        re.compile(
            r"(?i)password for (?:the )?(?:user|account|login) [\"'`]([^\s\"'`]{1,64})[\"'`] is"
            r" [\"'`]([^\s\"'`]{4,64})[\"'`]"
        ),
        is_pair,
        2,
        ("password",),
    ),
    CredentialRule(
        "basic-auth",
        # NetworkCredential, PSCredential, HTTPBasicAuth, HTTPDigestAuth, PasswordAuthentication
        (
            *("credential(", "credential]::new(", "credentials(", "credentials.basic("),
            *("basicauth(", "digestauth(", "authentication("),
        ),
        _TWO_STRINGS,
        is_pair,
        2,
        ("credential", "auth"),
    ),
    CredentialRule(
        "password",
        (":5432:", ":3306:", ":*:"),
        re.compile(r":(?:\d{2,5}|\*):[\w*\-]{1,64}:[\w*\-.@]{1,64}:([^\s\"'*,]{4,256})(?!\S)"),
        is_strong_alone,
    ),
    # auth=("user", "password"), as HTTP clients take it
    CredentialRule(
        "basic-auth",
        ("auth=", "auth = ", "auth:", 'auth":'),
        re.compile(
            r"auth\"? ?[=:]"
            r" ?[(\[]\s{0,8}[bu]?[\"']([^\"'\n]{0,128})[\"']\s{0,4},\s{0,8}[bu]?[\"']([^\"'\n]{4,256})[\"']"  # noqa: E501
        ),
        is_strong_pair,
        2,
    ),
    # id / password: ann / ...
    CredentialRule(
        "password",
        tuple(
            f"/{blank}{name}"
            for blank in ("", " ")
            for name in ("pw", "pass", "p/w", "парол", "密码", "口令", "비밀", "비번")
        ),
        re.compile(
            r"(?i)/ ?(?:p(?:ass(?:wor[dt]|wd|code|phrase)?|wd?|swd?|/w)|пароль|密码|口令|비밀번호|비번)"  # noqa: E501
            r"\)?\s{0,2}[:=\s]\s{0,4}[^\s/]{2,64}\s?/\s?(\S{4,64})"
        ),
        is_strong_alone,
        needs=("/p", "/ p", "парол", "密码", "口令", "비"),
    ),
    # root / ..., admin:...
    CredentialRule(
        "basic-auth",
        ("root", "admin"),
        re.compile(r"(?i)(root|admin)\s?[/:,]\s?([^\s/()\"',]{8,32})(?=[\s)\"',]|$)"),
        lambda found: (
            values.CHOSEN.fullmatch(found[2]) is not None
            and any(c in "!#$%&*+?@^" for c in found[2])
            and is_strong_pair(found)
        ),
        2,
    ),
    # log in with ann/..., credentials: ann:...
    CredentialRule(
        "basic-auth",
        ("log in ", "login ", "sign in ", "cred"),
        re.compile(
            r"(?i)(?:log ?in|sign in|cred(?:ential)?s?)(?: with| as| using| are| for)?[:=]?\s{1,3}"
            r"([\w.@\-]{2,64})\s?[/:]\s?([^\s\"'`,]{6,64})(?![^\s\"'`,])"
        ),
        lambda found: is_pair(found) and _is_marked(found[2]),
        2,
    ),
    # 192.0.2.7 root ...
    CredentialRule(
        "basic-auth",
        ("root ", "admin ", "administrator "),
        re.compile(
            r"(?i)(root|admin(?:istrator)?)\s{1,4}(?:[/:]\s)?([^\s()\"',]{6,32})(?=[\s)\"',]|$)"
        ),
        lambda found: (
            is_pair(found)
            and _is_marked(found[2])
            and _ADDRESS.search(found.string, max(0, found.start() - _HOST), found.start())
            is not None
        ),
        2,
    ),
    CredentialRule(
        "password",
        ("wifi", "wi-fi", "wlan"),
        re.compile(
            r"(?i)w(?:i-?fi|lan)(?:(?<=code wifi)|(?<=code wlan)"
            r"|[ \-]?(?:key|code|pass(?:word|phrase)?|pw))"
            r"\s?(?:is|ist|c'est|est|es|é|è|[:=])\s{1,3}"
            r"[\"']?([^\s\"']{8,63})"
        ),
        is_strong_alone,
    ),
    CredentialRule(
        "basic-auth",
        ("htpasswd ",),
        re.compile(
            r"htpasswd\s(?:-\w{1,4}\s){0,4}(?:-\w{0,4}b\w{0,4}\s)(?:-\w{1,4}\s){0,4}"
            r"(?:\S{1,128}\s)?(\S{1,64})\s[\"']?([^\s\"'$]{4,128})"
        ),
        is_pair,
        2,
    ),
    CredentialRule(
        "basic-auth",
        ("/user:",),
        re.compile(r"(?i)/user:([^\s\"']{1,96})\s{1,4}[\"']?([^\s\"'/*%$]{4,128})"),
        is_strong_pair,
        2,
        ("net use",),
    ),
    # What Bundler sends to the host that the name spells.
    CredentialRule(
        "basic-auth",
        ("bundle_",),
        re.compile(
            r"(?i)bundle_\w{2,80}__\w{2,8}[\"']?\s{0,4}[:=]\s{0,4}[\"']?([^\s\"':]{2,64}):([^\s\"']{4,128})"
        ),
        is_pair,
        2,
    ),
    # connect(host, port, "user", "password"): the last two of a few arguments
    CredentialRule(
        "basic-auth",
        ("connect(", "connection(", "pdo(", "mysqli("),
        re.compile(
            r"\w{3,12}\((?:\s{0,8}(?:[\w.$\->]{1,48}|[\"'][^\"'\n]{0,128}[\"'])\s{0,4},){1,2}\s{0,8}"
            r"[\"']([^\"'\n,]{1,64})[\"']\s{0,4},\s{0,8}[\"']([^\s\"']{4,128})[\"']"
        ),
        lambda found: (
            len(found[2]) >= _CHOSEN
            and is_strong_pair(found)
            and shapes.has_digit_and_letter(found[2])
            and "." not in found[2]
            and "/" not in found[2]
        ),
        2,
    ),
    # user:password as one string
    CredentialRule(
        "basic-auth",
        ("userpwd",),
        re.compile(
            r"(?i)userpwd\s{0,2}[,:=]>?\s{0,4}[\"']([^\s\"':]{1,128}):([^\s\"']{4,256})[\"']"
        ),
        is_pair,
        2,
    ),
    CredentialRule(
        "password",
        ("echo ",),
        re.compile(
            r"echo\s{1,4}(?:-\w\s)?[\"']?([^\s\"'|]{4,192})[\"']?\s?\|\s?"
            r"(?:(?:sudo )?chpasswd|sudo -S|kinit|[^\n|]{4,80}--password-stdin)"
        ),
        is_alone,
        needs=("echo ",),
    ),
    # lftp -u ann,..., smbclient -U ann%...
    CredentialRule(
        "basic-auth",
        (" -u ",),
        re.compile(r" -[uU] [\"']?([^\s\"'%,]{1,64})[%,]([^\s\"']{4,128})"),
        is_pair,
        2,
        ("lftp", "smbclient", "rpcclient", "winexe"),
    ),
    CredentialRule(
        "password",
        ("net use",),
        re.compile(
            r"(?i)net use\s(?:\w:\s{1,4})?\\\\\S{1,120}\s{1,4}([^\s/*]{4,128})\s{1,4}/user:"
        ),
        is_alone,
        needs=("user",),
    ),
    # String getPassword() { return "..."; }
    CredentialRule(
        "password",
        ("password()", "secret()", "token()"),
        re.compile(
            r"(?i)\w{5,8}\(\)(?:: ?string| -> ?\w{2,16})?\s{0,4}(?:\{|:|=>|=)\s{0,24}"
            r"(?:return\s{1,4})?[\"']([^\s\"']{4,128})[\"']"
        ),
        is_strong_alone,
    ),
    # find_element(By.ID, "password").send_keys("...")
    CredentialRule(
        "password",
        ("pass",),
        re.compile(
            r"(?i)pass(?:word|wd)?\]?[\"'](?:\)\.(?:send_?keys|fill)\(|,)\s{0,4}[\"']([^\s\"']{4,128})[\"']"
        ),
        is_strong_alone,
        needs=("keys(", "fill"),
    ),
    CredentialRule(
        "password",
        ("redis-cli",),
        re.compile(r"redis-cli(?=\s)[^\n]{0,80}? -a\s?[\"']?([^\s\"'$]{4,128})"),
        is_alone,
    ),
    CredentialRule("basic-auth", ("login(",), _TWO_STRINGS, is_strong_pair, 2),
    # --password-command "echo ...", --password-file <(echo ...)
    CredentialRule(
        "password",
        ("password-command", "password-file"),
        re.compile(
            r"password-\w{4,7}[= ](?:<\(|[\"'])?echo\s{1,4}[\"']?([^\s\"'$()]{4,128})[\"')]"
        ),
        is_alone,
        needs=("echo ",),
    ),
    # root:... in the list of cloud-init
    CredentialRule(
        "basic-auth",
        ("chpasswd:",),
        re.compile(
            r"chpasswd:(?:\s{1,16}(?:expire|list): ?[|\w]{0,5}){1,2}"
            r"\n\s{1,16}([\w.\-]{1,64}):([^\s:]{4,256})"
        ),
        is_pair,
        2,
    ),
    # What a switch or a router keeps, open or under a key that everybody knows.
    CredentialRule(
        "password",
        ("snmp-server community ",),
        re.compile(r"(?i)snmp-server community ([^\s\"']{6,64})(?=\s|$)"),
        is_alone,
    ),
    CredentialRule(
        "password",
        (
            "password 7 ",
            "key 7 ",
            "password 0 ",
            "secret 0 ",
            "secret 5 ",
            "secret 8 ",
            "secret 9 ",
        ),
        re.compile(
            r"(?i)\w{3,8} \d (\$\d\$\S{8,128}|[0-9a-f]{8,128}(?!\w)|(?=\S*\d)[^\s\"']{8,64})"
        ),
        is_strong_alone,
        needs=("enable ", "privilege ", "username ", "-server ", "ppp ", "neighbor "),
    ),
    CredentialRule(
        "password",
        ("pwd={",),
        re.compile(r"(?i)pwd=\{([^\s{}]{4,128})\}"),
        is_strong_alone,
        needs=("pwd={",),
    ),
    # Calls that take a key beside what it is used on.
    CredentialRule(
        "secret",
        ("hmac", "aes.", "keyspec(", "pgp_sym_", "cipher", "jwt.", "fernet(", "cookieparser("),
        re.compile(
            r"(?:createHmac|(?:hmac|HMAC)\.new|\.hmac|Hmac\w{0,12}|AES\.(?:new|(?:en|de)crypt)"
            r"|aes\.NewCipher|KeySpec|pgp_sym_(?:en|de)crypt|(?:createC|createDec|C)ipher(?:iv)?"
            r"|jwt\.(?:sign|verify|encode|decode)|Fernet|cookieParser)\("
            r"(?:[^\"'\n]{0,80}[\"'][\w\- ]{0,24}[\"']\s?,)?[^\"'\n]{0,80}?"
            r"[\"']([^\s\"']{8,128})[\"']"
        ),
        lambda found: (
            is_strong_alone(found)
            and shapes.has_digit_and_letter(found[1])
            and not _CIPHER.match(found[1])
            and not shapes.stands_for_value(found[1])
            and len(found[1]) >= _DRAWN
        ),
        needs=("crypt", "hmac", "jwt", "spec(", "aes.", "cookieparser("),
    ),
    # openssl enc -k ..., rclone obscure ..., gpg --passphrase ...
    CredentialRule(
        "password",
        (" -k ", " -pass pass:", "-passin pass:", "-passout pass:", "obscure ", "--passphrase "),
        re.compile(
            r"(?:\s-k\s|(?<=\w) -?pass\w{0,3} pass:|-?pass\w{0,3} pass:|obscure |-{2}passphrase )"
            r"[\"']?([^\s\"'$<>|;]{6,128})"
        ),
        is_strong_alone,
        needs=("openssl ", "rclone ", "gpg "),
    ),
    # requirepass ..., masterauth ...: the settings of Redis
    CredentialRule(
        "password",
        ("requirepass ", "masterauth "),
        re.compile(r"(?i)(?<![\w\-])\w{10,11} [\"']?([^\s\"'<>${}]{6,512})[\"']?(?=\s*(?:\n|\Z))"),
        is_alone,
    ),
    CredentialRule(
        "basic-auth",
        ("net user ",),
        re.compile(r"(?i)net user ([^\s\"'/]{1,64}) [\"']?([^\s\"'/*$%]{4,128})[\"']?\s{1,4}/add"),
        is_strong_pair,
        2,
    ),
    # expect "assword:"; send "..."
    CredentialRule(
        "password",
        ("send ",),
        re.compile(r"send (?:-- )?[\"']?([^\s\"'\\$]{4,64})\\[rn]"),
        is_strong_alone,
        needs=("assword",),
    ),
    # tacacs-server key ..., crypto isakmp key ..., neighbor 192.0.2.1 password ...
    CredentialRule(
        "password",
        ("-server key ", "isakmp key "),
        re.compile(r"(?i)(?:-server|isakmp) key (?:\d )?([^\s\"']{6,64})(?=\s|$)"),
        is_strong_alone,
    ),
    CredentialRule(
        "password",
        ("sp_addlogin ", "sp_password "),
        re.compile(r"(?i)sp_\w{8} N?'[^']{0,64}'\s?,\s?N?'([^\s']{4,128})'"),
        is_alone,
    ),
    # ann@host.example:..., as lists of accounts are written
    CredentialRule(
        "password",
        ("@",),
        re.compile(
            r"(?<=\w)@[\w\-]{2,40}(?:\.[\w\-]{2,24}){1,3}(?:[:|;]|\s?/\s)([^\s\"'`:/,|;]{8,64})(?=[\s,|;]|$)"
        ),
        lambda found: _is_marked(found[1]) and not found.string.endswith("git", 0, found.start()),
    ),
    CredentialRule(
        "password",
        ("with password", "encrypted password"),
        re.compile(r"(?i)\w{4,9} password\s{1,4}'([^\s']{4,128})'"),
        is_alone,
        1,
        ("password",),
    ),
    CredentialRule(
        "password",
        ("machine ",),
        re.compile(
            r"(?i)machine\s{1,4}\S{1,128}\s{1,8}login\s{1,4}\S{1,128}\s{1,8}password\s{1,4}(\S{4,256})"
        ),
        is_alone,
        1,
        ("password",),
    ),
    CredentialRule(
        "basic-auth",
        ("ssh ",),
        re.compile(
            r"ssh (?:-\w \S{1,40} ){0,3}([\w.\-]{1,64})@[\w.\-]{4,80}[ ,(]{1,3}"
            r"([^\s()\"']{8,32})(?=[\s)]|$)"
        ),
        lambda found: values.CHOSEN.fullmatch(found[2]) is not None and is_strong_pair(found),
        2,
    ),
    CredentialRule("basic-auth", ("wifi.begin(",), _TWO_ARGUMENTS, is_strong_pair, 2),
    CredentialRule(
        "password",
        ("alter role ", "alter user ", "create role "),
        re.compile(r"(?i)\w{5,6} \w{4} \S{1,64} [\w ]{0,40}password\s{1,4}'([^\s']{4,128})'"),
        is_alone,
        needs=(" password '",),
    ),
)
