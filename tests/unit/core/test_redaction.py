"""What is secret goes, what is ordinary stays, and whatever went once stays gone."""

import base64
import json
import random
import re
import string
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core.redaction import PLACEHOLDER, SecretFinding, SecretRedactor

REDACTOR = SecretRedactor(b"test key")
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def drawn(alphabet: str, size: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=size))


def pem(lines: int = 4) -> str:
    rng = random.Random(11)
    body = "\n".join(base64.b64encode(rng.randbytes(48)).decode() for _ in range(lines))
    fence = "PRIVATE KEY-----"
    return f"-----BEGIN RSA {fence}\n{body}\nKs14IReLcYgADhoXk56ZzXI=\n-----END RSA {fence}"


# One made-up token per family; they are put together here so that no file holds one.
TOKENS = {
    "aws-key": "AKIA" + drawn(string.ascii_uppercase + "234567", 16, 1),
    "google": "AIza" + drawn(ALNUM, 35, 2),
    "github": "ghp_" + drawn(ALNUM, 36, 3),
    "gitlab": "glpat-" + drawn(ALNUM, 20, 4),
    "slack": "xoxb-" + drawn(string.digits, 12, 5) + "-" + drawn(ALNUM, 24, 6),
    "stripe": "sk_live_" + drawn(ALNUM, 24, 7),
    "sendgrid": "SG." + drawn(ALNUM, 22, 8) + "." + drawn(ALNUM, 43, 9),
    "npm": "npm_" + drawn(ALNUM, 36, 10),
    "pypi": "pypi-AgEIcHlwaS5vcmc" + drawn(ALNUM, 60, 11),
    "anthropic": "sk-ant-api03-" + drawn(ALNUM, 93, 12) + "AA",
    "openai": "sk-proj-" + drawn(ALNUM, 74, 13),
    "huggingface": "hf_" + drawn(string.ascii_letters, 34, 14),
    "notion": "ntn_" + drawn(string.digits, 11, 15) + drawn(ALNUM, 35, 16),
    "vault-token": "hvs." + drawn(ALNUM, 90, 17),
    "figma": "figd_" + drawn(ALNUM, 40, 18),
    "grafana": "glsa_" + drawn(ALNUM, 32, 19) + "_" + drawn(HEX, 8, 20),
    "linear": "lin_api_" + drawn(ALNUM, 40, 21),
    "shopify": "shpat_" + drawn(HEX, 32, 22),
    "square": "sq0csp-" + drawn(ALNUM, 43, 23),
    "telegram": drawn("123456789", 10, 24) + ":AA" + drawn(ALNUM, 33, 25),
    "digitalocean": "dop_v1_" + drawn(HEX, 64, 26),
    "twilio": "SK" + drawn(HEX, 32, 27),
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + drawn(ALNUM, 43, 28),
    "azure": drawn(ALNUM, 3, 29) + "8Q~" + drawn(ALNUM, 34, 30),
}
CONTEXTS = (
    "{}",
    "the key is {} and nothing else",
    'TOKEN="{}"',
    "curl -H 'X-Api-Key: {}' https://api.example.com/v1",
    '{{"config": {{"value": "{}"}}}}',
    "https://api.example.com/?q=1&sig={}&page=2",
    "log line\n\t{}\nnext line",
)


@pytest.mark.parametrize("rule", TOKENS)
def test_a_token_of_a_known_format_is_gone_in_every_context(rule: str) -> None:
    for context in CONTEXTS:
        assert TOKENS[rule] not in REDACTOR.redact(context.format(TOKENS[rule])), context


ENCODERS = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 inside more": lambda text: base64.b64encode(
        f"some words before {text} and after".encode()
    ).decode(),
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(f"x: {text}".encode())).decode(),
    "base64 url-safe": lambda text: base64.urlsafe_b64encode(f"??>>{text}??>>".encode()).decode(),
    "base64 in lines": lambda text: base64.encodebytes(
        f"{'some words before, ' * 4}{text} and after".encode()
    ).decode(),
    "url": lambda text: quote(text, safe=""),
    "url, every byte": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "json": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "json, every character": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "hex": lambda text: text.encode().hex(),
}


def readings(text: str) -> str:
    """All that the parts of `text` may still say when read as base64, at every alignment."""
    runs = [
        run.replace("-", "+").replace("_", "/")
        for part in PLACEHOLDER.split(text)
        for run in part.split()
    ]
    return " ".join(
        base64.b64decode(run[skip : skip + (len(run) - skip) // 4 * 4], validate=False).decode(
            "latin-1"
        )
        for run in ("".join(c for c in run if c in ALNUM + "+/") for run in runs)
        for skip in range(min(4, len(run)))
    )


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("rule", ["github", "anthropic", "aws-key", "stripe", "slack"])
def test_a_token_is_found_inside_every_encoding(rule: str, encoder: str) -> None:
    spelled = ENCODERS[encoder](TOKENS[rule])
    text = f'payload: "{spelled}" end'
    out = REDACTOR.redact(text)
    assert out != text
    assert spelled not in out
    assert PLACEHOLDER.search(out)
    assert TOKENS[rule][3:-3] not in readings(out)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize(
    "value", ["swordfish-42", "correct horse battery", "päss/wörd+1", 'quo"te\\d/9']
)
def test_a_known_value_is_found_in_every_encoding(value: str, encoder: str) -> None:
    spelled = ENCODERS[encoder](value)
    out = SecretRedactor(b"k", [value]).redact(f"a {spelled} b")
    assert spelled not in out
    assert out.startswith("a ")
    assert out.endswith(" b")


def test_the_same_secret_has_the_same_placeholder_under_one_key_only() -> None:
    token = TOKENS["github"]
    first, again = REDACTOR.redact(f"a {token}"), REDACTOR.redact(f"b {token} c")
    assert PLACEHOLDER.findall(first) == PLACEHOLDER.findall(again)
    assert PLACEHOLDER.findall(SecretRedactor(b"other").redact(token)) != PLACEHOLDER.findall(first)


def test_an_encoded_token_has_the_placeholder_of_the_token_itself() -> None:
    token = TOKENS["github"]
    assert REDACTOR.redact("".join(f"\\u{ord(c):04x}" for c in token)) == REDACTOR.redact(token)


def test_findings_are_spans_of_the_original_text() -> None:
    token = TOKENS["github"]
    assert REDACTOR.find(f"use {token} now") == [SecretFinding(4, 4 + len(token), "github")]


def test_known_values_can_be_added() -> None:
    first = SecretRedactor(b"k", ["alpha-value-1"])
    assert (
        first.with_known(["beta-value-2"])
        .redact("alpha-value-1 beta-value-2")
        .count("[redacted:known:")
        == 2
    )
    assert first.redact("beta-value-2") == "beta-value-2"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("password = 'Tr0ub4dor&3'", "Tr0ub4dor&3"),
        ("my password is hunter2.", "hunter2"),
        ("DB_PASSWORD=whitecastle", "whitecastle"),
        ('"client_secret": "' + drawn(ALNUM, 32, 40) + '"', drawn(ALNUM, 32, 40)),
        ("export API_TOKEN=" + drawn(ALNUM, 24, 41), drawn(ALNUM, 24, 41)),
        ("apiKey := `" + drawn(HEX, 32, 42) + "`", drawn(HEX, 32, 42)),
        ("<password>s3cr3tPa55</password>", "s3cr3tPa55"),
        ("--api-key " + drawn(ALNUM, 40, 43), drawn(ALNUM, 40, 43)),
        ("- name: DB_PASSWORD\n  value: kfp92Lmq!", "kfp92Lmq!"),
        ("postgres://app:kfp92Lmq@db.internal:5432/app", "kfp92Lmq"),
        ("redis://:kfp92Lmq@cache:6379/0", "kfp92Lmq"),
        ("Server=db;User ID=app;Password=plainword;Timeout=3;", "plainword"),
        ("curl -u admin:kfp92Lmq https://host/", "kfp92Lmq"),
        (
            "Authorization: Basic " + base64.b64encode(b"admin:letmein").decode(),
            base64.b64encode(b"admin:letmein").decode(),
        ),
        ("Authorization: Bearer " + drawn(ALNUM, 32, 44), drawn(ALNUM, 32, 44)),
        ("ALTER USER app IDENTIFIED BY 'kfp92Lmq'", "kfp92Lmq"),
        ("vendor-access-" + drawn(HEX, 32, 45), drawn(HEX, 32, 45)),
        ('{\\"password\\": \\"kfp92Lmq!\\"}', "kfp92Lmq!"),
    ],
)
def test_a_value_is_judged_by_the_name_in_front_of_it(text: str, secret: str) -> None:
    assert secret not in REDACTOR.redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "password = os.environ['DB_PASSWORD']",
        "password: ${DB_PASSWORD}",
        'password = "<your password>"',
        "api_key = config.get('api_key')",
        "token = next(tokens)",
        "for key, value in mapping.items():",
        "The password must have at least 12 characters.",
        "secret = getpass.getpass()",
        'PASSWORD="changeme"',
        'token: "xxxxxxxxxxxxxxxxxxxxxxxx"',
        "key = super().register(fileobj, events, data)",
        "https://user:${PASSWORD}@example.com",
        "the monkey bypassed the keyboard authority",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "id: 550e8400-e29b-41d4-a716-446655440000",
        "run 01ARZ3NDEKTSV4RRFFQ69G5FAV finished",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "-----BEGIN CERTIFICATE-----\n"
        + base64.encodebytes(bytes(range(144))).decode()
        + "-----END CERTIFICATE-----",
    ],
)
def test_ordinary_text_is_the_same_object(text: str) -> None:
    assert REDACTOR.redact(text) is text


@pytest.mark.parametrize(
    "shape",
    ["{}", '"{}"', "  # {}", "key: {}", "> {}"],
    ids=["plain", "quoted", "commented", "named", "cited"],
)
def test_a_private_key_goes_whole(shape: str) -> None:
    lines = pem().splitlines()
    for text in (
        "\n".join(shape.format(line) for line in lines),
        shape.format("\\n".join(lines)),
        "\n".join(lines[:-1]),
    ):
        out = REDACTOR.redact(f"before\n{text}\nafter")
        assert not any(line in out for line in lines[1:-1] if len(line) > 30), out
        assert out.startswith("before\n")
        assert out.endswith("after")


def test_json_is_redacted_in_keys_values_and_by_name() -> None:
    token = TOKENS["github"]
    value = {
        "user": "ann",
        "password": "hunter2-x9",
        "nested": [{"note": f"see {token}"}, 3, None],
        token: 1,
    }
    out = REDACTOR.redact_json(value)
    assert out["user"] == "ann"
    assert "hunter2-x9" not in json.dumps(out)
    assert token not in json.dumps(out)
    assert PLACEHOLDER.fullmatch(out["password"])
    assert REDACTOR.redact_json(out) is out


def test_json_without_secrets_is_the_same_object() -> None:
    value = {
        "name": "read",
        "token_count": 12,
        "tokens": ["a", "b"],
        "password": "",
        "password_hint": "the usual",
        "path": ("a", "b"),
    }
    assert REDACTOR.redact_json(value) is value


PIECES = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            *TOKENS.values(),
            "password = ",
            "token: ",
            '"secret": "',
            "[redacted:x:00000000]",
            "://a:b12345@h",
            "\n",
            '"',
            pem(1),
        ]
    ),
    st.sampled_from(list(ENCODERS.values())).map(lambda encode: encode(TOKENS["github"])),
    st.text(alphabet=ALNUM + "+/=-_", min_size=10, max_size=80),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = SecretRedactor(b"k", ["known-value-1"]).redact(text)
    assert SecretRedactor(b"k", ["known-value-1"]).redact(once) is once


@settings(max_examples=200, deadline=None)
@given(st.text(), st.sampled_from(sorted(TOKENS.values())), st.text())
def test_a_token_between_any_two_texts_is_gone(left: str, token: str, right: str) -> None:
    assert token not in REDACTOR.redact(f"{left} {token} {right}")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.from_regex(r"[a-z]{1,11}", fullmatch=True), max_size=30).map(" ".join))
def test_small_words_are_left_alone(text: str) -> None:
    assert REDACTOR.redact(text) is text


def test_what_the_budget_does_not_reach_is_not_shown() -> None:
    """A text of nothing but names of secrets is not read to its end, and what was not read is
    gone.
    """
    text = "pw:key:" * 20_000 + TOKENS["github"]
    out = REDACTOR.redact(text)
    assert TOKENS["github"] not in out
    assert "[redacted:unread:" in out
    assert len(out) < len(text) // 4


def test_a_dense_but_ordinary_text_is_read_to_its_end() -> None:
    text = "".join(
        f"SERVICE_{i}_PASSWORD=\nSERVICE_{i}_TOKEN_URL=https://host.example/token/{i}\n"
        for i in range(400)
    )
    assert REDACTOR.redact(text) is text


def test_a_secret_is_found_wherever_a_long_text_is_cut_into_windows() -> None:
    token = TOKENS["github"]
    for at in (*range(14_000, 20_000, 331), 33_000, 50_000):
        text = ("word " * 20_000)[:at] + f" {token} " + "word " * 4_000
        assert token not in REDACTOR.redact(text)
        assert pem() not in REDACTOR.redact(
            ("word " * 20_000)[:at] + "\n" + pem(300) + "\n" + "word " * 4_000
        )


def test_the_head_of_a_text_hides_a_secret_that_its_end_would_cut() -> None:
    assert TOKENS["github"][:20] not in REDACTOR.redact_head("x " * 40 + TOKENS["github"], 100)
    assert REDACTOR.redact_head("pw:" * 1_000_000, 200)[:12] == "pw:pw:pw:pw:"


def in_the_middle(text: str, between: str) -> str:
    return text[: len(text) // 2] + between + text[len(text) // 2 :]


DISGUISES = {
    "zero-width space": lambda text: in_the_middle(text, "\u200b"),
    "soft hyphen": lambda text: in_the_middle(text, "\u00ad"),
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) for c in text),
    "line break": lambda text: in_the_middle(text, "\n"),
    "continued line": lambda text: in_the_middle(text, "\\\n    "),
    "quoted-printable": lambda text: in_the_middle(text, "=\n"),
    "entities": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "a letter in front": lambda text: "x" + text,
    "a look-alike letter": lambda text: (
        text.replace("p", "\u0440", 1).replace("a", "\u0430", 1).replace("s", "\u0455", 1)
    ),
}


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize(
    "rule", ["github", "stripe", "sendgrid", "npm", "notion", "linear", "digitalocean", "gitlab"]
)
def test_a_token_is_found_in_disguise(rule: str, disguise: str) -> None:
    token = DISGUISES[disguise](TOKENS[rule])
    out = REDACTOR.redact(f"before {token} after")
    assert not any(part.rstrip("\\= ") in out for part in token.split("\n")), out
    assert out.startswith("before ")
    assert out.endswith(" after")


@pytest.mark.parametrize(
    "write",
    [
        'setx BILLING_TOKEN "{}"',
        "<key>billingToken</key>\n<string>{}</string>",
        'public string ApiToken {{ get; set; }} = "{}";',
        'client.setApiToken("{}");',
        'let api_token: &str = "{}";',
        "* **api_token**: `{}`",
        "ENV API_TOKEN {}",
        "| api_token | {} |",
        "X-Billing-Token: {}",
        "'api_token' => '{}',",
        "Passwort: {}",
        "密码：{}",
        "machine host.example login ann password {}",
        'shodan = "{}"',
    ],
)
def test_a_value_is_found_in_every_common_syntax(write: str) -> None:
    secret = drawn(ALNUM, 32, 77)
    assert secret not in REDACTOR.redact(write.format(secret))


@pytest.mark.parametrize(
    "encode",
    [lambda text: base64.b64encode(text.encode()).decode(), lambda text: text.encode().hex()],
)
def test_a_drawn_word_is_found_encoded_without_any_name(encode: Callable[[str], str]) -> None:
    encoded = encode(drawn(ALNUM, 24, 78))
    assert encoded not in REDACTOR.redact(f"it says {encoded} there")
    assert (
        REDACTOR.redact(f"it says {encode('plain words that mean no harm')} there")
        == f"it says {encode('plain words that mean no harm')} there"
    )


@pytest.mark.parametrize(
    "text",
    [
        "password=Tr0ub4dor&3 " * 400,
        "some words, a token and more\n" * 400,
        f"x {TOKENS['github']} y\n" * 300,
    ],
)
def test_a_stream_says_what_the_whole_text_says(text: str) -> None:
    stream = REDACTOR.stream()
    shown = (
        "".join(stream.feed(text[at : at + 17]) for at in range(0, len(text), 17)) + stream.finish()
    )
    # What a stream has seen once, it knows: the rule's name may differ, the placeholder's identity
    # not.
    assert re.sub(r"\[redacted:[a-z-]+:", "[redacted:", shown) == re.sub(
        r"\[redacted:[a-z-]+:", "[redacted:", REDACTOR.redact(text)
    )


@pytest.mark.parametrize(
    "text",
    [
        '"NextToken": "9d624e0c-388b-4862-a31e-a85c64fc1d4a"',
        '"ARN": "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyTestSecret-1a2b3c"',
        '"AWS::CloudFront::CloudFrontOriginAccessIdentity": "d2e8d397beac5797"',
        'proxy_url="socks5h://<username>:<password>@proxy-host"',
        "RegOpenKeyEx = win32api.RegOpenKeyEx",
        "self.assertEqual(splitpasswd('user+1:a+b'), x)",
        "#   path = '/home/user/proj/test_app.py'",
        "iv = '303132333435363738393a3b3c3d3e3f'",
        "ObjectKey: ami-1234567890abcdef0.bin",
    ],
)
def test_what_code_and_documents_say_about_secrets_stays(text: str) -> None:
    assert REDACTOR.redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        'password = "tiger\n1999!"',
        "postgresql://app:MmdfWeO\ncj!Fap7@db:5432/app",
        'token = "sOF5mK1Fk2"\n    "DMGH3eNgsk"',
        "- name: API_TOKEN\n  value: 5o9mb841x331hrbz\n6mn4zqtccnlmr5fx\n",
    ],
)
def test_a_secret_that_a_line_break_goes_through_is_gone(text: str) -> None:
    out = REDACTOR.redact(text)
    halves = (
        "tiger",
        "1999!",
        "MmdfWeO",
        "cj!Fap7",
        "sOF5mK1Fk2",
        "DMGH3eNgsk",
        "5o9mb841x331hrbz",
        "6mn4zqtccnlmr5fx",
    )
    assert not any(half in out for half in halves)
