"""What the tests of scanners ask for: typed keys, short ones, disguised words, last lines of keys,
and settings in the syntaxes of many programs.
"""

import base64
import random
import string

import pytest
from bench import redaction_kinds

from palyra.system.redactor import Redactor

REDACTOR = Redactor(b"scanners")
RNG = random.Random(1313)
ALNUM = string.ascii_letters + string.digits


def drawn(size: int, alphabet: str = ALNUM) -> str:
    return "".join(RNG.choices(alphabet, k=size))


HEX32, MIXED = drawn(32, "0123456789abcdef"), drawn(32)
TAIL = base64.b64encode(RNG.randbytes(28)).decode()
CAPITALS = drawn(64, string.ascii_uppercase + string.digits)
SHORT = "k3Jd82mXq0Lz"
LEET = "n0tSoSecr3t9"
CHOSEN = "Fj39dkQw2"
ALONG = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"

FOUND = {
    "groups between dashes": ("ZORK_SECRET=0123-4567-890abc-def012-34567890", "890abc"),
    "a UUID behind a name in capitals": (
        "zork KEY a1b2c3d4-e5f6-7890-abcd-ef1234567890",
        "e5f6-7890",
    ),
    "a few drawn characters": (f"zork SECRET {SHORT}", SHORT),
    "letters and digits by turns": ("zork_token = abc123def456", "abc123def456"),
    "the alphabet in both cases": (
        f"zork_client_secret={ALONG * 3}abcdefghijklmnopqr",
        "AbCdEfGhIj",
    ),
    "a key along the alphabet behind a service": ("mailchimp abcdefghij0123456789", "0123456789"),
    "digits that stand for letters": (f'api_key = "{LEET}"', LEET),
    "such a word with dashes": ("config['SECRET_KEY'] = 'nob0dy-kn0ws-th1s'", "nob0dy"),
    "a short name with its credential glued to it": (f"adobeClientId = '{HEX32}'", HEX32),
    "a password without small letters": ("utilisateur ann pwd 6JSCAK3!@", "6JSCAK3!@"),
    "letters that make no word, in a call": ('.password("qzfZOhcBLM")', "qzfZOhcBLM"),
    "a quoted word with a number": ('the password "centurion7" opens it', "centurion7"),
    "a note with the address of a machine": (f"192.0.2.17 ann/{CHOSEN}", CHOSEN),
    "a password in front of an address": (f"ann:{CHOSEN}@192.0.2.17", CHOSEN),
    "a name in brackets": (f'my_password ["{LEET}"]', LEET),
    "a folded block": (f"password: >-\n  {LEET}", LEET),
    "an anchor": (f"secret_key: &anchor {LEET}", LEET),
    "a type in words": (f'Dim password As String = "{LEET}"', LEET),
    "an optional property": (f"secret?: string = '{LEET}'", LEET),
    "a delegate": (f'val apiKey by extra("{LEET}")', LEET),
    "an element with attributes": (f'<password type="text">{LEET}</password>', LEET),
    "the content of an element of metadata": (f'<meta name="api-key" content="{LEET}">', LEET),
    "a setting with a value inside": (
        f'<setting name="Token" serializeAs="String"><value>{MIXED}</value></setting>',
        MIXED,
    ),
    "dots up to the value": (f"Password .......: {LEET}", LEET),
    "bold type": (f"**Password:** {LEET}", LEET),
    "code in a list": (f"<li>Password: <code>{LEET}</code></li>", LEET),
    "a constant that is defined": ("define('DB_PASSWORD', 'rabbitwhole');", "rabbitwhole"),
    "a line of properties": ("spring.datasource.password=tigerlily", "tigerlily"),
    "the parameters of libpq": ('psql "host=h user=u password=rabbitwhole"', "rabbitwhole"),
    "a national string": (f"CREATE LOGIN ann WITH PASSWORD = N'{LEET}'", LEET),
    "bytes": (f'var hmacKey = []byte("{MIXED}")', MIXED),
    "what a password was changed to": (f"password changed to {CHOSEN}! on Monday", CHOSEN),
    "a value before its name": (f'use "{CHOSEN}!" as password', CHOSEN),
    "a block of secrets": (f"secrets:\n  db: {CHOSEN}Lm20", CHOSEN),
    "the password of Redis": ("requirepass rabbitwhole", "rabbitwhole"),
    "the key of a command": ("openssl enc -aes-256-cbc -k Silver2514! -in a", "Silver2514!"),
    "a flag with an equals sign": (f'docker login -u="a" -p="{CAPITALS}" quay.example', CAPITALS),
    "a login that is piped": (
        f"echo {CHOSEN} | docker login -u ann --password-stdin",
        CHOSEN,
    ),
    "a key of a switch": (f"crypto isakmp key {CHOSEN} address 0.0.0.0", CHOSEN),
    "a password of a router": ("username ann password 7 2961C4A93F4F1E8A", "2961C4A93F4F1E8A"),
    "an account that is added": (f"net user ann {CHOSEN} /add", CHOSEN),
    "a stored procedure": (f"EXEC sp_addlogin 'ann', '{CHOSEN}'", CHOSEN),
    "a cipher": (f'cipher = AES.new("{MIXED}", AES.MODE_CBC)', MIXED),
    "a secret of cookies": (f"cookieParser('{LEET}')", LEET),
    "a value in columns": (f'password         = "{CHOSEN}"', CHOSEN),
    "a value for want of another": (f"password: process.env.PW || '{CHOSEN}'", CHOSEN),
    "what a call gives for want of another": (f'getenv("TOKEN") ?: "{CHOSEN}Lm20"', CHOSEN),
    "what is typed into a prompt": (f'expect "assword:"; send "{CHOSEN}\\r"', CHOSEN),
    "a credential of a shell": (f'[pscredential]::new("ann", "{CHOSEN}")', CHOSEN),
    "a crumb": (f"Jenkins-Crumb: {HEX32}", HEX32),
    "the cookie of a session": (f"_example_session={HEX32}", HEX32),
    "a hash of SQL Server": (f"sa 0x0200{HEX32.upper() * 3}", HEX32.upper()),
    "a hash of MySQL": (f"MYSQL password hash *{HEX32.upper()}89ABCDEF", HEX32.upper()),
    "an answer of NTLM": (f"ann::DOM:{HEX32[:16]}:{HEX32}:{HEX32}{HEX32}", HEX32[:16]),
    "the key of an account of a chain": (f'accounts: ["0x{HEX32}{HEX32}"]', HEX32),
    "a last line of a key in a log": (f"2026-01-02 10:00:00 {TAIL}", TAIL),
    "a last line of a key in a comment": (f"// {TAIL}", TAIL),
    "a last line of a key in a string": (f'     + "{TAIL}\\n"', TAIL),
    "a last line of a key behind a whole one": (f"{drawn(62)}+/\n{TAIL}", TAIL),
    "a token of a sure prefix with a letter glued to it": (
        f"xglsa_{string.ascii_lowercase}012345_89abcdef",
        "glsa_abc",
    ),
}
SPARED = {
    "an address in settings": '"CidrIpv4": "192.0.2.0/24",',
    "an address in a log": '192.0.2.17 - - "GET /a1B2c3D4e5 HTTP/1.1" 200',
    "a note without a password": "192.0.2.17 db-primary-01 up 3 days",
    "an identifier of a part": '"SegmentId": "b66c9e42f71444b2aa2e0ffc1df28f60",',
    "a UUID of a client": 'client_id = "73082700-1f09-405b-80d0-3131bfd6272d"',
    "a key behind a word": "the row with key a1b2c3d4-e5f6-7890-abcd-ef1234567890 is gone",
    "text in a comment": f"# {base64.b64encode(b'this is meant to be read').decode()}",
    "the base64 of a file that ends in a fence": (
        "# S1poUTJOVnV1M0t3a2JaTDUzRjBRM+Ci0tLS0tRU5EIENFUlRJRklD"
    ),
    "a property that is another variable": "self.password=tigerlily",
    "an attribute that is none of an element": 'name="password" class="wide">Please choose one',
    "a name for want of another": 'token = options.token || "anonymous"',
    "an argument that is to be passed": "pass `asn1Spec` to guide the decoder, or pass 'asn1Spec2'",
    "the name of an algorithm": 'token = "rsa-sha2-nistp256-ctr"',
    "a prefix with a letter glued to it and no token": f"xtskey-auth-{'A' * 12}-{'B' * 24}",
}


@pytest.mark.parametrize("what", FOUND)
def test_it_is_found(what: str) -> None:
    text, secret = FOUND[what]
    assert secret not in REDACTOR.redact(text)


@pytest.mark.parametrize("what", SPARED)
def test_it_is_spared(what: str) -> None:
    assert REDACTOR.redact(SPARED[what]) == SPARED[what]


@pytest.mark.parametrize(
    ("rows", "least"),
    [(redaction_kinds.scanned, 0.94), (redaction_kinds.scanned_last, 0.94)],
    ids=["written first", "written last"],
)
def test_rows_in_the_manner_of_scanners_tests_are_found(
    rows: redaction_kinds.Rows, least: float
) -> None:
    found = [
        redaction_kinds.is_gone(secret, REDACTOR.redact(text))
        for _, text, secrets in rows(2)
        for secret in secrets
    ]
    assert len(found) > 200
    assert sum(found) >= least * len(found)


def test_what_such_tests_want_spared_is_spared() -> None:
    rows = list(redaction_kinds.scanned_alike(2))
    touched = [text for _, text, _ in rows if REDACTOR.redact(text) != text]
    assert len(rows) > 300
    assert len(touched) <= 0.03 * len(rows)
