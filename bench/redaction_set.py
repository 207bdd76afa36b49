"""Rows nobody tuned on: drawn secrets under drawn names in every common syntax, disguised, and
look-alikes that must survive.
"""

import base64
import random
import string
import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


class Row(NamedTuple):
    kind: str
    syntax: str
    text: str
    secret: str


def _draw(rng: random.Random, alphabet: str, size: int) -> str:
    return "".join(rng.choices(alphabet, k=size))


# What is drawn: the kinds of values that services give out and people choose.
VALUES: dict[str, Callable[[random.Random], str]] = {
    "hex-32": lambda rng: _draw(rng, _HEX, 32),
    "hex-40": lambda rng: _draw(rng, _HEX, 40),
    "hex-64": lambda rng: _draw(rng, _HEX, 64),
    "alnum-20": lambda rng: _draw(rng, _ALNUM, 20),
    "alnum-24": lambda rng: _draw(rng, _ALNUM, 24),
    "alnum-32": lambda rng: _draw(rng, _ALNUM, 32),
    "alnum-40": lambda rng: _draw(rng, _ALNUM, 40),
    "lower-32": lambda rng: _draw(rng, string.ascii_lowercase + string.digits, 32),
    "upper-32": lambda rng: _draw(rng, string.ascii_uppercase + string.digits, 32),
    "url-safe-43": lambda rng: _draw(rng, _ALNUM + "-_", 43),
    "base64-44": lambda rng: base64.b64encode(rng.randbytes(32)).decode(),
    "base64-88": lambda rng: base64.b64encode(rng.randbytes(64)).decode(),
    "uuid": lambda rng: str(uuid.UUID(bytes=rng.randbytes(16), version=4)),
    "dotted": lambda rng: f"{_draw(rng, _ALNUM, 12)}.{_draw(rng, _ALNUM, 30)}",
    "prefixed": lambda rng: f"{_draw(rng, string.ascii_lowercase, 4)}_{_draw(rng, _ALNUM, 32)}",
    "prefixed-live": lambda rng: (
        f"{_draw(rng, string.ascii_lowercase, 3)}_live_{_draw(rng, _ALNUM, 28)}"
    ),
    "hex-16": lambda rng: _draw(rng, _HEX, 16),
    "letters-32": lambda rng: _draw(rng, string.ascii_letters, 32),
    "parts": lambda rng: "-".join(_draw(rng, _ALNUM, 8) for _ in range(4)),
    "typed": lambda rng: ("abcdef0123456789" * 5)[rng.randrange(6) :][: rng.choice((32, 40, 64))],
    "password-strong": lambda rng: (
        f"{_draw(rng, _ALNUM, 9)}{rng.choice('!#%&*+?')}{_draw(rng, _ALNUM, 4)}"
    ),
    "password-word": (
        lambda rng: (
            rng.choice(("Winter", "dragon", "Sommer", "tiger", "Falcon"))
            + _draw(rng, string.digits, 4)
            + "!"
        )
    ),
    "password-short": lambda rng: _draw(rng, _ALNUM, 7) + rng.choice(string.digits),
}
_PASSWORDS = ("password-strong", "password-word", "password-short")
_SHARED = ("alnum-24", "hex-32", "alnum-32", "base64-44", "url-safe-43")

# The parts that names are made of.
_OWNERS = (
    "acme",
    "billing",
    "reporting",
    "zenworks",
    "payments",
    "mailer",
    "internal",
    "legacy",
    "partner",
    "northwind",
    "s3",
    "kafka",
)
_SECRET_NAMES = (
    "api_key",
    "api_token",
    "access_token",
    "auth_token",
    "client_secret",
    "secret_key",
    "secret",
    "token",
    "private_key",
    "access_key",
    "signing_key",
    "encryption_key",
    "refresh_token",
    "webhook_secret",
    "api_secret",
    "apikey",
    "authtoken",
)
_PASSWORD_NAMES = (
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "pass",
    "db_password",
    "user_password",
    "smtp_pass",
    "admin_pwd",
)

_Syntax = Callable[[str, str], str]


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


SYNTAXES: dict[str, _Syntax] = {
    "env": lambda n, v: f"{n.upper()}={v}",
    "env quoted": lambda n, v: f'{n.upper()}="{v}"',
    "shell export": lambda n, v: f"export {n.upper()}='{v}'",
    "powershell": lambda n, v: f'$env:{n.upper()} = "{v}"',
    "cmd set": lambda n, v: f"set {n.upper()}={v}",
    "setx": lambda n, v: f'setx {n.upper()} "{v}"',
    "docker env": lambda n, v: f"docker run -e {n.upper()}={v} image:latest",
    "dockerfile": lambda n, v: f"ENV {n.upper()} {v}",
    "yaml": lambda n, v: f"service:\n  {n}: {v}\n",
    "yaml quoted": lambda n, v: f'  {n.replace("_", "-")}: "{v}"',
    "yaml list": lambda n, v: f"- name: {n.upper()}\n  value: {v}\n",
    "json": lambda n, v: f'{{"{n}": "{v}", "timeout": 30}}',
    "json tight": lambda n, v: f'{{"id":7,"{_camel(n)}":"{v}","x":1}}',
    "json in json": lambda n, v: f'{{"body": "{{\\"{n}\\": \\"{v}\\"}}"}}',
    "ini": lambda n, v: f"[main]\n{n} = {v}\n",
    "properties": lambda n, v: f"app.{n.replace('_', '.')}={v}",
    "toml": lambda n, v: f'{n} = "{v}"',
    "xml element": lambda n, v: f"<{_camel(n)}>{v}</{_camel(n)}>",
    "xml attribute": lambda n, v: f'<client {_camel(n)}="{v}" retries="3"/>',
    "xml key value": lambda n, v: f'<add key="{_camel(n)}" value="{v}" />',
    "plist": lambda n, v: f"<key>{_camel(n)}</key>\n<string>{v}</string>",
    "python": lambda n, v: f'{n} = "{v}"',
    "python keyword": lambda n, v: f'client = connect(host="db", {n}="{v}")',
    "python dict": lambda n, v: f"config = {{'{n}': '{v}'}}",
    "python environ": lambda n, v: f'os.environ["{n.upper()}"] = "{v}"',
    "js const": lambda n, v: f"const {_camel(n)} = '{v}';",
    "js object": lambda n, v: f"{{ {_camel(n)}: '{v}', retries: 3 }}",
    "go": lambda n, v: f'{_camel(n)} := "{v}"',
    "go var": lambda n, v: f'var {_camel(n)} string = "{v}"',
    "java": lambda n, v: f'private static final String {n.upper()} = "{v}";',
    "csharp": lambda n, v: f'public string {_camel(n).capitalize()} {{ get; set; }} = "{v}";',
    "setter": lambda n, v: f'client.set{_camel("x_" + n)[1:]}("{v}");',
    "call pair": lambda n, v: f'headers.put("{n}", "{v}")',
    "ruby": lambda n, v: f":{n} => '{v}',",
    "php": lambda n, v: f"define('{n.upper()}', '{v}');",
    "php array": lambda n, v: f"'{n}' => '{v}',",
    "rust": lambda n, v: f'let {n}: &str = "{v}";',
    "swift": lambda n, v: f'let {_camel(n)}: String = "{v}"',
    "sql set": lambda n, v: f"UPDATE settings SET {n} = '{v}' WHERE id = 1;",
    "http header": lambda n, v: f"X-{n.replace('_', '-').title()}: {v}\r\nAccept: */*",
    "query": lambda n, v: f"https://api.example.com/v1/items?page=2&{n}={v}&limit=5",
    "form": lambda n, v: f"user=ann&{n}={v}&submit=1",
    "flag": lambda n, v: f"deploy --region eu --{n.replace('_', '-')} {v} --verbose",
    "flag equals": lambda n, v: f"deploy --{n.replace('_', '-')}={v}",
    "connection": lambda n, v: f"Server=db.local;Database=app;Uid=app;{n}={v};Timeout=5",
    "log": lambda n, v: f"2026-11-16 12:00:01 INFO starting with {n}={v} attempt=1",
    "log json": lambda n, v: f'INFO  request headers: {{"{n}":"{v}"}}',
    "sentence": lambda n, v: f"The {n.replace('_', ' ')} is {v}, please keep it safe.",
    "sentence colon": lambda n, v: f"Here is the {n.replace('_', ' ')}: {v}",
    "markdown": lambda n, v: f"* **{n}**: `{v}`",
    "table": lambda n, v: f"| {n} | {v} |",
    "terraform": lambda n, v: f'resource "x" "y" {{\n  {n} = "{v}"\n}}',
    "comment": lambda n, v: f"# {n}: {v}",
    "words": lambda n, v: f"{n.replace('_', ' ')} {v}",
    "capitals": lambda n, v: f"{n.replace('_', ' ').upper()} {v}",
    "glued": lambda n, v: f"{n.replace('_', '')}={v}",
    "arrow": lambda n, v: f"{_camel(n)} -> {v}",
    "terraform default": lambda n, v: (
        f'variable "{n}" {{\n  type    = string\n  default = "{v}"\n}}'
    ),
}
# Grammar around the value instead of a name.
PLACES: dict[str, _Syntax] = {
    "bearer": lambda n, v: f'curl -H "Authorization: Bearer {v}" https://api.example.com',
    "token header": lambda n, v: f"Authorization: token {v}",
    "url user": lambda n, v: f"https://deploy:{v}@git.example.com/a/b.git",
    "dsn": lambda n, v: f"postgresql+asyncpg://app:{v}@db:5432/app?sslmode=require",
    "curl user": lambda n, v: f"curl -u ann:{v} https://host.example/",
    "identified by": lambda n, v: f"CREATE USER app IDENTIFIED BY '{v}';",
    "netrc": lambda n, v: f"machine host.example login ann password {v}",
    "npmrc": lambda n, v: f"//registry.example.com/:_authToken={v}",
    "pgpass": lambda n, v: f"db.example.com:5432:app:ann:{v}",
    "jdbc": lambda n, v: f"jdbc:postgresql://db/app?user=ann&password={v}",
    "odbc": lambda n, v: f"Driver={{ODBC}};Server=db;UID=ann;PWD={v};",
    "mysql": lambda n, v: f"mysql -h db -u ann -p{v} app",
    "sshpass": lambda n, v: f"sshpass -p {v} ssh ann@host",
    "redis": lambda n, v: f"redis-cli -h cache -a {v} ping",
    "docker login": lambda n, v: f"docker login -u ann -p {v} registry.example.com",
}


def _middle(text: str, between: str) -> str:
    return text[: len(text) // 2] + between + text[len(text) // 2 :]


DISGUISES: dict[str, Callable[[str], str]] = {
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "hex": lambda s: s.encode().hex(),
    "line break": lambda s: _middle(s, "\n"),
    "continued line": lambda s: _middle(s, "\\\n"),
    "zero-width": lambda s: _middle(s, "\u200b"),
    "soft hyphen": lambda s: _middle(s, "\u00ad"),
    "full width": lambda s: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in s),
    "percent": lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
    "unicode escapes": lambda s: "".join(f"\\u{ord(c):04x}" for c in s),
    "entities": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "a letter in front": lambda s: "x" + s,
}


def named(seed: int, each: int = 1) -> Iterator[Row]:
    """Every syntax with every kind of value that fits."""
    rng = random.Random(seed)
    for syntax, write in SYNTAXES.items():
        for kind, draw in VALUES.items():
            for _ in range(each):
                names = _PASSWORD_NAMES if kind in _PASSWORDS else _SECRET_NAMES
                name = (
                    f"{rng.choice(_OWNERS)}_{rng.choice(names)}"
                    if rng.random() < 0.7
                    else rng.choice(names)
                )
                secret = draw(rng)
                yield Row(kind, syntax, write(name, secret), secret)


def placed(seed: int, each: int = 2) -> Iterator[Row]:
    rng = random.Random(seed)
    for syntax, write in PLACES.items():
        kinds = (
            ("alnum-24", "hex-32", "alnum-32", "url-safe-43")
            if syntax in ("bearer", "token header", "npmrc")
            else _PASSWORDS[::2]
        )
        for kind in kinds:
            for _ in range(each):
                secret = VALUES[kind](rng)
                yield Row(kind, syntax, write("", secret), secret)


def disguised(rows: list[Row], disguise: str) -> list[Row]:
    wear = DISGUISES[disguise]
    return [
        row._replace(text=row.text.replace(row.secret, wear(row.secret)), secret=wear(row.secret))
        for row in rows
    ]


def look_alikes(seed: int) -> Iterator[tuple[str, str]]:
    """Kind and text of what must survive."""
    rng = random.Random(seed)
    for _ in range(20):
        sha, md5 = rng.randbytes(20).hex(), rng.randbytes(16).hex()
        digest, b64 = rng.randbytes(32).hex(), base64.b64encode(rng.randbytes(64)).decode()
        ident = uuid.UUID(bytes=rng.randbytes(16), version=4)
        ulid = "01" + _draw(rng, "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24)
        yield "git", f"commit {sha}\nMerge: {sha[:7]} {md5[:7]}\n"
        yield (
            "git",
            (
                f"index {sha[:10]}..{md5[:10]} 100644\n--- a/src/token_store.py\n+++"
                " b/src/token_store.py"
            ),
        )
        yield "digest", f"sha256:{digest}  dist/app.tar.gz\n{md5}  token.txt"
        yield "lock", f'"integrity": "sha512-{b64}"'
        yield "lock", f'name = "keyring"\nchecksum = "{digest}"'
        yield "id", f'{{"id": "{ident}", "session_id": "{ulid}", "request_id": "{md5}"}}'
        yield "id", f"trace_id={md5} span_id={md5[:16]} run {ulid} finished"
        yield "id", f"https://host.example/items/{ident}?cursor={md5}&key_id={rng.randrange(10**6)}"
        yield "etag", f'ETag: "{md5}"\nCache-Control: max-age=600'
        yield "image", f"data:image/png;base64,iVBORw0KGgo{b64}"
        yield (
            "template",
            (
                "password = os.environ['DB_PASSWORD']\ntoken: ${API_TOKEN}\nsecret_key ="
                " settings.SECRET_KEY"
            ),
        )
        yield (
            "template",
            'api_key: "<your api key>"\npassword: changeme\ntoken = "xxxxxxxxxxxxxxxxxxxx"',
        )
        yield (
            "code",
            (
                f"def get_token(key: str, max_tokens: int = {rng.randrange(9999)}) -> Token:\n   "
                " return self._keys[key].next_token()"
            ),
        )
        yield (
            "code",
            "const keyHandler = useCallback((event) => onKeyDown(event.key), [onKeyDown]);",
        )
        yield (
            "code",
            (
                "public_key = serialization.load_pem_public_key(data)\nassert private_key.key_size"
                " == 2048"
            ),
        )
        yield (
            "path",
            f"/usr/lib/python3.11/site-packages/keyring-{rng.randrange(30)}.1.0.dist-info/METADATA",
        )
        yield (
            "prose",
            (
                "The password must have at least twelve characters, and the token expires after 30"
                " minutes."
            ),
        )
        yield (
            "prose",
            (
                f"She said the key point is that access was granted on {rng.randrange(1, 28)} May;"
                " see section 4.2 on secret ballots."
            ),
        )
        yield (
            "public",
            (
                "ssh-ed25519"
                f" AAAAC3NzaC1lZDI1NTE5AAAAI{base64.b64encode(rng.randbytes(32)).decode()[:43]}"
                " ann@laptop"
            ),
        )
