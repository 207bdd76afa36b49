"""Evidence that needs no list of vendors: how letters follow each other, whose name stands in
front, what a call takes.
"""

import base64
import random
import string
import uuid

import pytest
from bench import redaction, redaction_vendors

from palyra.core.redaction.letters import fluency
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
    "a password hash of a web server": ("ann:$apr1$" + drawn(8) + "$" + (end := drawn(22)), end),
}


@pytest.mark.parametrize("what", FOUND)
def test_it_is_found(what: str) -> None:
    text, secret = FOUND[what]
    assert secret not in REDACTOR.redact(text)


SPARED = {
    "a class with a number in its name": "isinstance(key, (Ed25519PrivateKey, Ed448PrivateKey)) and private_key: Ed25519PrivateKey",
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


def test_every_usage_says_where_its_secret_is() -> None:
    assert all(row.secret and row.secret in row.text for row in redaction_vendors.rows(2))
