"""Evidence that needs no list of vendors: how letters follow each other, whose name stands in
front, what a call takes.
"""

import base64
import random
import string
import uuid

import pytest
from bench import (
    redaction,
    redaction_alike,
    redaction_fresh,
    redaction_kinds,
    redaction_vendors,
)

from palyra.core.redaction.shapes import fluency
from palyra.system.redactor import Redactor

REDACTOR = Redactor(b"general")
RNG = random.Random(411)
ALNUM = string.ascii_letters + string.digits


def drawn(size: int, alphabet: str = ALNUM) -> str:
    return "".join(RNG.choices(alphabet, k=size))


HEX32, UUID, MIXED = (
    drawn(32, "0123456789abcdef"),
    str(uuid.UUID(bytes=RNG.randbytes(16), version=4)),
    drawn(32),
)

FOUND = {
    "a digest behind the name of a service": (f"shodan init {HEX32}", HEX32),
    "a UUID behind the name of a service": (f"snyk auth {UUID}", UUID),
    "both strings of a call": (f"algoliasearch('APPLICATION', '{HEX32}')", HEX32),
    "the string of a call that takes a credential": (f'api = Client("{MIXED}")', MIXED),
    "a token that is marked as services mark theirs": (
        f"it printed qzx_live_{MIXED} and went on",
        MIXED,
    ),
    "hex that is marked as a token": (f"it printed sk-qzx-{HEX32} and went on", HEX32),
    "a mark in capitals": (f"it printed QZPAT-{MIXED}w4 and went on", MIXED),
    "a mark with a version": (f"it printed qzx_v1_{MIXED} and went on", MIXED),
    "a marked token with dashes": (
        f"it printed qz_sk_{drawn(17)}-{(rest := drawn(18))}_{drawn(3)} and went on",
        rest,
    ),
    "letters that make no word": ("spring.datasource.password=XDLuKKjFlPdw", "XDLuKKjFlPdw"),
    "a key in place of a user": (f'curl -u "{HEX32}:x" https://host.example/v1', HEX32),
    "user and password of an HTTP client": ('get(url, auth=("ann", "tr0ub4dor"))', "tr0ub4dor"),
    "the address of a hook": (f"https://hooks.host.example/catch/12345/{MIXED}", MIXED),
    "the default of a variable": (
        f'variable "db_password" {{\n  type = string\n  default = "{drawn(12)}x1"\n}}',
        "x1",
    ),
    "a UUID as the key of something": (f"maps_key={UUID}", UUID),
    "a UUID behind a flag": (f"run --record --key {UUID}", UUID),
    "a key with dots": ("zenkit_token=Zq3kX9.bW7rTq.v4HxJ2pLmQ", "Zq3kX9.bW7rTq.v4HxJ2pLmQ"),
    "a name without the word for it": (f"quantiva_api = '{HEX32}'", HEX32),
    "a shared key of a network": ('psk="7chG8Ctcxvxx"', "7chG8Ctcxvxx"),
    "a password behind the flag of a program": (
        "tool login -u ann -p 0UAqFzWsDK4F1",
        "0UAqFzWsDK4F1",
    ),
    "a password of an archive": ("unzip -P if00Vgttmd1 x.zip", "if00Vgttmd1"),
    "a password behind a user": ("sqlplus scott/mbDJdMIIf1@//db:1521/XE", "mbDJdMIIf1"),
    "a password without a user": (f'curl --user ":{HEX32}" https://host.example/v1', HEX32),
    "a password in the settings of a cache": (f"requirepass {MIXED}", MIXED),
    "a digest behind a command": (f"tool hub login {HEX32}", HEX32),
    "a UUID as the key of a URL": (f"https://host.example/v3/apple?key={UUID}", UUID),
    "a key in the path of a URL": (f"https://host.example/trigger/x/with/key/{MIXED}", MIXED),
    "a key whose name is one word": (f"authkey: {MIXED}", MIXED),
    "a password that ends in an at sign": ("password: d8bU0bW5@", "d8bU0bW5@"),
    "a password behind a dash": ("pw-dKpr19Ggx!", "dKpr19Ggx!"),
    "a password in brackets": ("pw(dKpr19Ggx!)", "dKpr19Ggx!"),
    "a password with a remark": ("password (staging): dKpr19Ggx!", "dKpr19Ggx!"),
    "a password in Chinese": ("口令: dKpr19Ggx!", "dKpr19Ggx!"),
    "a password in a list": ('passwords = ["dKpr19Ggx!"]', "dKpr19Ggx!"),
    "a token of somebody": (f"api token for the build server: {HEX32}", HEX32),
    "a name that ends as another word": ('pwd_admin = "dKpr19Ggx!"', "dKpr19Ggx!"),
    "a number as a token": ("discord_token = 834729384756102938", "834729384756102938"),
    "a word with numbers in an environment file": ("APP_SECRET=iloveyou2", "iloveyou2"),
    "hex that somebody typed": ('accessToken: "deadbeef01deadbeef01dead"', "deadbeef01dead"),
    "an account of two": ("id / pw : master / dKpr19Ggx!", "dKpr19Ggx!"),
    "an account of a host": ("ssh ann@10.20.30.40 (dKpr19Ggx!)", "dKpr19Ggx!"),
    "the last two of a call": ('mysqli_connect("h", "ann", "tr0ub4dor", "db")', "tr0ub4dor"),
    "user and password as one option": ('CURLOPT_PROXYUSERPWD, "ann:tr0ub4dor"', "tr0ub4dor"),
    "a password for chpasswd": ("echo 'ann:tr0ub4dor' | chpasswd", "tr0ub4dor"),
    "a password before its user": ("net use Z: \\\\h\\s tr0ub4dor /user:ann", "tr0ub4dor"),
    "a password behind a comma": ("lftp -u ann,tr0ub4dor sftp://host.example", "tr0ub4dor"),
    "a password that a method returns": (
        'String getPassword() { return "tr0ub4dor"; }',
        "tr0ub4dor",
    ),
    "a password typed into a page": ("page.fill('#password', 'tr0ub4dor')", "tr0ub4dor"),
    "a pair for Bundler": ("BUNDLE_GEMS__HOST__COM=cafeb4b3:d3adb33f", "d3adb33f"),
    "the user of a connection string": ("Server=h;Uid=annlee;Pwd=tr0ub4dor;", "annlee"),
    "the cookie of a session": (f"Cookie: lang=en; sessionid={MIXED}", MIXED),
    "the words of a wallet": (
        "mnemonic: able acid aunt barn beef bird blue boat bone book born bus",
        "barn beef bird",
    ),
    "a password of a directory": (f"rootpw {{SSHA}}{MIXED}", MIXED),
    "what one opaque string makes": (f"client = Quantiva('{MIXED}')", MIXED),
    "a line of an OpenSSH key": (
        f" * {(line := base64.b64encode(RNG.randbytes(60)).decode()[:70])}",
        line,
    ),
    "a string that a constructor takes": ('let password = String::from("tr0ub4dor");', "tr0ub4dor"),
    "the default of a variable of the environment": (
        f'bot_token = os.environ.get("T", "{MIXED}")',
        MIXED,
    ),
    "a password for somebody": ("temporary passcode for ann: Winter-6197", "Winter-6197"),
    "a password in a tuple": ('{password, "tr0ub4dor"}', "tr0ub4dor"),
    "the shared key of a home network": ('ssid="home"\n psk="qwerty@95x"', "qwerty@95x"),
    "a string behind a defined name": ('#define WIFI_PASSWORD "Summer-493x"', "Summer-493x"),
    "a column of a table": (
        "| host | user | password |\n|---|---|---|\n| db1 | root | tr0ub4dor& |",
        "tr0ub4dor&",
    ),
    "a column of a sheet": ("name,token\nann,x\nbob," + MIXED + "\n", MIXED),
    "a column of an insert": (
        "INSERT INTO users (login, password) VALUES ('ann', 'x1y2'), ('bob', 'tr0ub4dor');",
        "tr0ub4dor",
    ),
    "an account to log in with": ("Log in with ann/tr0ub4dor& on the stage", "tr0ub4dor&"),
    "an account behind an address": ("192.0.2.7 root tr0ub4dor&", "tr0ub4dor&"),
    "a password in brackets behind an account": ("ann (password tr0ub4dor&)", "tr0ub4dor&"),
    "the key of a home network in a sentence": ("my wifi key is dKpr19Ggx!", "dKpr19Ggx!"),
    "a password for a web server": ("htpasswd -cb .htpasswd ann tr0ub4dor&", "tr0ub4dor&"),
    "a password behind its user": ("net use Z: \\\\h\\s /user:d\\ann tr0ub4dor&", "tr0ub4dor&"),
    "a password in a German sentence": ("mein Passwort lautet tr0ub4dor&", "tr0ub4dor&"),
    "a password in a Japanese sentence": ("パスワードはtr0ub4dor&です", "tr0ub4dor&"),
    "a password in a Spanish sentence": ("mi clave es tr0ub4dor&", "tr0ub4dor&"),
    "a password that is said to be still so": ("the password is still tr0ub4dor&", "tr0ub4dor&"),
    "a password before its name": ("use Tr0ub4dor& as the password", "Tr0ub4dor&"),
    "a token before its name": (f"{HEX32} is the token of the bot", HEX32),
    "a number that opens a door": ("the code for the front door: 6285", "6285"),
    "a number that was sent": ("395453 is your login code", "395453"),
    "codes for later": ("recovery codes:\n5j5hk-oecg7\nlhxp7-3aowu", "lhxp7-3aowu"),
    "what an authenticator keeps": ("totp: JUIDZGJ7UK4YSVXZ4UCNF62L", "JUIDZGJ7UK4YSVXZ4UCNF62L"),
    "words drawn from a list": (
        "PASSPHRASE=walnut-orbit-harbor-maple",
        "walnut-orbit-harbor-maple",
    ),
    "the second of a list": ('PASSWORDS = ("Orbit$12x", "Tiger$34y")', "Tiger$34y"),
    "the key of a call": (f"createHmac('sha256', '{MIXED}')", MIXED),
    "the output of a command": (f"token=$(echo {MIXED})", MIXED),
    "the password of a switch": ("enable secret 5 $1$mERr$hx5rVt7rPNoS4wqbXKX7m0", "hx5rVt7r"),
    "a cookie that is set": (f"PHPSESSID={MIXED}", MIXED),
    "an account in a list": ("ann@host.example:Tr0ub4dor&", "Tr0ub4dor&"),
    "a password hash with commas": (
        f"$argon2id$v=19$m=65536,t=3,p=4${drawn(22)}${(rest := drawn(43))}",
        rest,
    ),
    "a password hash of a web server": ("ann:$apr1$" + drawn(8) + "$" + (end := drawn(22)), end),
}


@pytest.mark.parametrize("what", FOUND)
def test_it_is_found(what: str) -> None:
    text, secret = FOUND[what]
    assert secret not in REDACTOR.redact(text)


SPARED = {
    "a password that is wrong": "das Passwort ist falsch, la contraseña es incorrecta",
    "a number of lines": "the code is 1,200 lines, pin 1.2.3 and the exit code is 1234",
    "the rules for a password": 'password: "must-not-be-empty"',
    "a key that is partly masked": "okta_api_key: 00QCjAl4MlV-WPXM-ABCDEFGHIJKL-0HmjFx-vbGu-",
    "the digest of a file before its name": f"sha256:{drawn(64, 'abcdef0123456789')} is the key",
    "a class with a number in its name": "isinstance(key, (Ed25519PrivateKey, Ed448PrivateKey)) and private_key: Ed25519PrivateKey",
    "an account of the documentation": '"AwsAccountId": "123456789111"',
    "a digest that is marked": f"build_{HEX32} img-{HEX32} cache_key_{HEX32}",
    "the name of a process": "auth-service-11f3933e7-fkzjj 1/1 Running",
    "several of a type": "mbx_keys: MailboxKeys, cl_keys: CleanupKeys",
    "an alphabet": 'BASE62_KEY = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"',
    "words about a wallet": "The mnemonic was made from some very long list that people read out loud.",
    "a method that says what it returns": "def set_password(self, raw): return make1(raw)",
    "a cipher suite": '0xCCAC: "TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256",',
    "a number": "AUTH_PSK = 0x03",
    "a word of the name": 'INCORRECT_PASSWORD = "Incorrect"',
    "a colour": "Token.Name.Function: '#ansiblue',",
    "a form": 'char *key = "__cb_#name#";',
    "a variable for another": "row[x + pw] = char2",
    "a digest of a type": '"AWS::Timestream::InfluxDBInstance": "3e77afbb54e1a249",',
    "a page of a service": f"https://www.notion.so/Meeting-notes-{HEX32}",
    "an identifier of a service": f"heroku app_id: {UUID}",
    "an identifier of a message": f"chatcmpl-{MIXED} msg_{MIXED} call_{drawn(24)}",
    "a commit": f"sentry release {drawn(40, '0123456789abcdef')}",
    "an example of a vendor": "AKIAEXAMPLE123456789 AROA123456789EXAMPLE",
    "a comparison": "key: default_rc==0",
    "a flag that means something else": "unzip -p archive123.zip readme.txt; tool -a https://host.example/x1.jpg",
    "a verb": "should_pass(\"Open('./data1.db')\"); assertEqual(passValue('string1'), 'string1')",
    "a pattern": 'token = r"[-!#$%&*+.^_|~0-9a-zA-Z]+"',
    "the token of a public key": '<assemblyIdentity publicKeyToken="1fc8b3b9a1e18e3b"/>',
    "a UUID of a standard": 'WS_KEY: bytes = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"',
    "the name of a test": "def test_ContinuousDistributionHandmade1():",
    "a path of 64 characters": '"FunctionConfiguration/Properties/RequestMappingTemplateS3Location"',
    "sentences in Japanese": '"pass": "lang属性の値が有効な言語の一覧に含まれています"',
    "a constant": "#define AR_TKN_U32_MODULE_HW_IF_IDX 250",
    "a variable that is named after a key": "rsaPrivateKey = test1024Key, PrivateKey: testRSA2048Key",
    "a string that ends": 'env = append(env, "PWD="+r.Dir)',
    "code without blanks": "f={key:s,v:i,i:c,children:e.children}",
    "fences in code": 'A = "-----BEGIN PRIVATE KEY-----"\nB = "-----END PRIVATE KEY-----"',
    "a function that is called": "p = simdV31loadResultInArg0Imm8(s, v)",
    "the version of a key": 'KEY_VERSION_1 = unhexlify("be0c690b9f66575a1d766b54e368c84e")',
    "a table of tests": "| name | pass | fail |\n|---|---|---|\n| unit | 100ms | 0 |",
    "a parameter of Go": "func run(pass *analysis.Pass) (any, error) {",
    "a sentence with a flag": "Pass `-Dpamconfdir=no` to meson",
    "lines of base64 in base64": "\n".join(
        ["WW1sdVlYSjVJR2QxYm1zK0FBRUNBenhzYjNSeklHOW1JR0pwYm1GeWVTQm5k"] * 3
    ),
}


def certificate() -> str:
    """Lines of a certificate as far as they matter: the number of a name's part among what is
    drawn.
    """
    part = bytes.fromhex("0603550406130255533110300e06035504080c07")
    body = base64.b64encode(b"".join(RNG.randbytes(30) + part for _ in range(12))).decode()
    return "\n".join(body[at : at + 64] for at in range(0, len(body), 64)) + "\n"


def test_a_certificate_without_its_fences_is_spared_and_a_key_is_not() -> None:
    lines = certificate()
    assert REDACTOR.redact(lines) == lines
    key = "\n".join(base64.b64encode(RNG.randbytes(48)).decode() for _ in range(8)) + "\n"
    assert not any(line in REDACTOR.redact(key) for line in key.split())


@pytest.mark.parametrize("width", [60, 64, 76, 77])
def test_a_long_picture_in_lines_of_base64_is_read_to_its_end(width: int) -> None:
    body = base64.b64encode(bytes(at % 251 for at in range(30_000)) + RNG.randbytes(9_000)).decode()
    text = (
        'data = """'
        + "\n".join(body[at : at + width] for at in range(0, len(body), width))
        + '"""\n'
    )
    assert not [found for found in REDACTOR.find(text) if found.rule == "unread"]


@pytest.mark.parametrize("what", SPARED)
def test_it_is_spared(what: str) -> None:
    assert REDACTOR.redact(SPARED[what]) == SPARED[what]


def test_letters_of_names_follow_each_other_better_than_those_of_drawn_values() -> None:
    names = [
        "get_token_from_request",
        "PasswordAuthentication",
        "continuation",
        "EllipticCurvePrivateKey",
        "kubeconfig",
        "database_url",
    ]
    assert min(map(fluency, names)) > 5 > sum(fluency(drawn(24)) for _ in range(50)) / 50


@pytest.mark.parametrize("side", [0, 1])
def test_services_are_known_as_their_manuals_show_them(side: int) -> None:
    rows = [row for row in redaction_vendors.rows(1) if redaction.half(row.kind) == side]
    assert sum(map(redaction.is_gone, rows)) >= 0.94 * len(rows)


def test_what_a_test_suite_of_a_scanner_would_hold_is_found() -> None:
    rows = [
        row
        for rows in (redaction_fresh.named(3), redaction_fresh.paired(3), redaction_fresh.placed(3))
        for row in rows
    ]
    assert sum(map(redaction.is_gone, rows)) >= 0.92 * len(rows)


@pytest.mark.parametrize("side", [0, 1])
def test_usages_of_every_kind_are_found_and_what_is_like_them_is_spared(side: int) -> None:
    gone = [
        redaction_kinds.is_gone(secret, REDACTOR.redact(text))
        for kind, text, secrets in redaction_kinds.usages(3)
        for secret in secrets
        if redaction.half(kind) == side
    ]
    assert sum(gone) >= 0.9 * len(gone) > 200
    alike = [
        text for kind, text, _ in redaction_kinds.look_alikes(3) if redaction.half(kind) == side
    ]
    assert sum(REDACTOR.redact(text) != text for text in alike) <= 0.1 * len(alike)


@pytest.mark.parametrize("kind", redaction_alike.ALIKE)
def test_what_only_looks_alike_is_spared(kind: str) -> None:
    texts = [text for other, text in redaction_alike.look_alikes(3) if other == kind]
    assert [REDACTOR.redact(text) for text in texts] == texts


def test_every_usage_says_where_its_secret_is() -> None:
    assert all(row.secret and row.secret in row.text for row in redaction_vendors.rows(2))


def test_no_ulid_is_taken_for_a_key() -> None:
    """Two letters in the middle of one may be a vendor's mark."""
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    rng = random.Random(7)
    for mark in ("CK", "PK", "MA", "SA", "SG", "AC", "AP", "SK"):
        for _ in range(200):
            drawn = "".join(rng.choice(alphabet) for _ in range(20))
            ulid = ("01M7M0" + mark + drawn)[:26]
            for text in (f"approve {ulid}", f"run {ulid}, approval {ulid}", ulid):
                assert REDACTOR.redact(text) == text
