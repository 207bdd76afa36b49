"""Generate look-alikes in the manner of the test suites of secret scanners: texts in which nothing
is secret and much resembles it. Kinds are split in two like those of `redaction_fresh`.
"""

import base64
import random
import string
import uuid
from collections.abc import Callable, Iterator

_ALNUM = string.ascii_letters + string.digits


def _hex(rng: random.Random, size: int) -> str:
    return rng.randbytes((size + 1) // 2).hex()[:size]


def _b64(rng: random.Random, size: int) -> str:
    return base64.b64encode(rng.randbytes(size)).decode()


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(bytes=rng.randbytes(16), version=4))


_NAMES = ("password", "token", "secret", "api_key", "db_password", "auth_token", "client_secret")
_STAND_INS = (
    *("<password>", "<YOUR_API_KEY>", "your-api-key", "your_token_here", "YOUR_SECRET", "changeme"),
    *("xxxxxxxxxxxxxxxx", "XXXX-XXXX-XXXX", "********", "${PASSWORD}", "$PASSWORD", "{{ token }}"),
    *("%PASSWORD%", "#{password}", "REPLACE_ME", "placeholder", "[REDACTED]", "TODO", "null"),
    *("<insert key here>", "$(cat /run/secrets/key)", "{password}", "@token@", "...", "None"),
    *("your-256-bit-secret", "my-secret", "insert_token", "example", "foo", "dummy", "test"),
)
_FETCHES = (
    *("os.environ['{u}']", "os.getenv('{u}')", "process.env.{u}", "getpass.getpass('{n}: ')"),
    *("config.get('{n}')", "settings.{u}", "vault.read('secret/{n}')", "request.form['{n}']"),
    *("self._{n}", "user.{n}", "options.{n}", "args.{n}", "get_{n}()", "decrypt({n})", "{n}_value"),
    *('System.getenv("{u}")', "ENV['{u}']", "secrets.{u}", "var.{n}", "data.{n}.value"),
    *("generate_{n}(32)", "input('{n}: ')", "credentials.{n}", 'props.getProperty("{n}")'),
)
_Make = Callable[[random.Random], str]


def _name(rng: random.Random) -> str:
    return rng.choice(_NAMES)


def _fetch(rng: random.Random) -> str:
    name = _name(rng)
    return f"{name} = {rng.choice(_FETCHES).replace('{u}', name.upper()).replace('{n}', name)}"


ALIKE: dict[str, _Make] = {
    "stand-in env": lambda r: f"{_name(r).upper()}={r.choice(_STAND_INS)}",
    "stand-in quoted": lambda r: f'{_name(r)} = "{r.choice(_STAND_INS)}"',
    "stand-in yaml": lambda r: f"{_name(r)}: {r.choice(_STAND_INS)}",
    "stand-in json": lambda r: f'"{_name(r)}": "{r.choice(_STAND_INS)}",',
    "fetched": _fetch,
    "fetched const": lambda r: f"const {_fetch(r)};",
    "parameter": lambda r: f"def connect(host, {_name(r)}, port={r.randrange(9999)}):",
    "parameter empty": lambda r: f"def login(user='', {_name(r)}='', retries=3):",
    "annotation": lambda r: f"{_name(r)}: str | None = None",
    "type": lambda r: f"private final String {_name(r)};",
    "comparison": lambda r: f"if {_name(r)} != other.{_name(r)}: return False",
    "label": lambda r: f'<label for="{_name(r)}">Enter your {_name(r)}</label>',
    "input": lambda r: f'<input type="password" name="{_name(r)}" placeholder="Password">',
    "translation": lambda r: f'"{_name(r)}.label": "Choose a strong password",',
    "column": lambda r: f"{_name(r)} VARCHAR(255) NOT NULL,",
    "select": lambda r: f"SELECT id, {_name(r)} FROM users WHERE id = {r.randrange(9999)}",
    "error": lambda r: f'raise ValueError("{_name(r)} must be at least 12 characters")',
    "prose": lambda r: f"The {_name(r)} expires after {r.randrange(90)} days and must be rotated.",
    "question": lambda r: f"How do I reset my {_name(r)}? I tried {r.randrange(9)} times.",
    "log": lambda r: f"INFO {_name(r)} updated for user {r.randrange(99999)} (id {_uuid(r)})",
    "path": lambda r: f"{_name(r)}_file: /run/secrets/{_name(r)}",
    "url path": lambda r: f"POST https://host.example/v1/{_name(r)}/rotate?id={r.randrange(9999)}",
    "doc link": lambda r: (
        f"See https://docs.host.example/auth/{_name(r)}s#section-{r.randrange(99)}"
    ),
    "key ref": lambda r: f"secretKeyRef:\n  name: db-credentials\n  key: {_name(r)}",
    "actions": lambda r: f"{_name(r)}: ${{{{ secrets.{_name(r).upper()} }}}}",
    "terraform ref": lambda r: f"{_name(r)} = random_password.db.result",
    "arn": lambda r: (
        f"arn:aws:secretsmanager:eu-west-1:{r.randrange(10**11, 10**12)}:secret:db/{_name(r)}"
    ),
    "length": lambda r: f"{_name(r)}_length = {r.randrange(8, 64)}",
    "id": lambda r: f'"{_name(r)}_id": "{_uuid(r)}"',
    "expiry": lambda r: f"{_name(r)}_expires_at: 2026-0{r.randrange(1, 9)}-11T10:00:00Z",
    "regex": lambda r: f"{_name(r)}_pattern = r'^[A-Za-z0-9_-]{{{r.randrange(20, 64)}}}$'",
    "constant": lambda r: f'{_name(r).upper()}_HEADER = "X-Auth-Token"',
    "event": lambda r: f'track("{_name(r)}_changed", {{ userId: user.id }})',
    "class": lambda r: f"class {_name(r).title().replace('_', '')}Validator(BaseValidator):",
    "import": lambda r: f"from app.security import hash_{_name(r)}, verify_{_name(r)}",
    "test name": lambda r: f"def test_{_name(r)}_is_required_{r.randrange(99)}(client):",
    "max tokens": lambda r: (
        f'{{"max_tokens": {r.randrange(4096)}, "token_count": {r.randrange(999)}}}'
    ),
    "next token": lambda r: f'"nextToken": "{_b64(r, 24)}"',
    "cache key": lambda r: f"cache_key = 'user:{r.randrange(9999)}:profile'",
    "primary key": lambda r: (
        f"PRIMARY KEY (id), FOREIGN KEY (user_id) REFERENCES users({_name(r)})"
    ),
    "key code": lambda r: (
        f"if (event.key === 'Enter' && event.keyCode === {r.randrange(99)}) submit();"
    ),
    "public key": lambda r: (
        f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQAB{_b64(r, 120).rstrip('=')} ann@laptop"
    ),
    "public pem": lambda r: (
        "-----BEGIN PUBLIC KEY-----\n"
        + "\n".join(_b64(r, 48) for _ in range(3))
        + "\n-----END PUBLIC KEY-----"
    ),
    "fingerprint": lambda r: f"SHA256:{_b64(r, 32).rstrip('=')} ann@laptop (ED25519)",
    "commit": lambda r: f"commit {_hex(r, 40)}\nAuthor: Ann <ann@host.example>",
    "commit link": lambda r: f"https://github.com/a/b/commit/{_hex(r, 40)}",
    "uses": lambda r: f"uses: actions/checkout@{_hex(r, 40)} # v4.1.{r.randrange(9)}",
    "image digest": lambda r: f"FROM python:3.12-slim@sha256:{_hex(r, 64)}",
    "checksum": lambda r: f"{_hex(r, 64)}  app-1.{r.randrange(9)}.tar.gz",
    "md5": lambda r: f"MD5 (a.iso) = {_hex(r, 32)}",
    "integrity": lambda r: f'"integrity": "sha512-{_b64(r, 64)}",',
    "script integrity": lambda r: f'<script src="a.js" integrity="sha384-{_b64(r, 48)}"></script>',
    "go sum": lambda r: f"github.com/a/auth v1.{r.randrange(9)}.0 h1:{_b64(r, 32)}",
    "cargo": lambda r: f'name = "secrecy"\nversion = "0.8.0"\nchecksum = "{_hex(r, 64)}"',
    "yarn": lambda r: (
        f'resolved "https://registry.example/jsonwebtoken-9.0.{r.randrange(9)}.tgz#{_hex(r, 40)}"'
    ),
    "pip hash": lambda r: f"keyring==24.{r.randrange(9)} --hash=sha256:{_hex(r, 64)}",
    "etag": lambda r: f'ETag: W/"{_hex(r, 32)}"',
    "request id": lambda r: f"x-request-id: {_uuid(r)}",
    "trace": lambda r: f"traceparent: 00-{_hex(r, 32)}-{_hex(r, 16)}-01",
    "object id": lambda r: f'{{"_id": {{"$oid": "{_hex(r, 24)}"}}, "name": "Ann"}}',
    "uuid list": lambda r: "\n".join(_uuid(r) for _ in range(3)),
    "guid project": lambda r: f"<ProjectGuid>{{{_uuid(r).upper()}}}</ProjectGuid>",
    "image data": lambda r: (
        f'<img src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUg{_b64(r, 90)}">'
    ),
    "font": lambda r: (
        f"src: url(data:font/woff2;base64,d09GMgABAAAAA{_b64(r, 90)}) format('woff2');"
    ),
    "svg": lambda r: (
        f'<path d="M{r.randrange(99)}.2 {r.randrange(99)}c0-1.1.9-2 2-2h4l2 2h6c1.1 0 2 .9z"/>'
    ),
    "css": lambda r: f".btn-{_hex(r, 6)} {{ color: #{_hex(r, 6)}; width: {r.randrange(99)}px }}",
    "source map": lambda r: f"//# sourceMappingURL=main.{_hex(r, 20)}.js.map",
    "asset": lambda r: f'<link href="/static/css/main.{_hex(r, 8)}.chunk.css" rel="stylesheet">',
    "minified": lambda r: (
        f'!function(e,t){{e.key=t.key||"k{r.randrange(99)}",n(e.token).then(r)}}(this,a);'
    ),
    "version": lambda r: f"openssl 3.0.{r.randrange(20)}-1~deb12u1 (Library: OpenSSL 3.0.15)",
    "file name": lambda r: f"backup_2026-11-{r.randrange(10, 28)}_{_hex(r, 8)}.tar.gz",
    "container": lambda r: f"{_hex(r, 12)}   nginx:1.27   Up 3 hours   0.0.0.0:80->80/tcp",
    "pod": lambda r: (
        f"auth-service-{_hex(r, 9)}-{''.join(r.choices(string.ascii_lowercase, k=5))} 1/1 Running"
    ),
    "mac": lambda r: ":".join(_hex(r, 2) for _ in range(6)),
    "ipv6": lambda r: ":".join(_hex(r, 4) for _ in range(8)),
    "coordinates": lambda r: f"lat={r.random() * 90:.7f}&lon={r.random() * 90:.7f}",
    "timestamp": lambda r: f"token issued at {r.randrange(10**9, 2 * 10**9)}",
    "phone": lambda r: f"Call +49 30 {r.randrange(10**6, 10**7)} to reset the password.",
    "plain url": lambda r: f"https://user@host.example:8443/path?x={r.randrange(999)}",
    "template url": lambda r: "postgres://${DB_USER}:${DB_PASS}@${DB_HOST}:5432/app",
    "form url": lambda r: "mongodb://<user>:<password>@cluster0.host.example/db",
    "masked": lambda r: f"Using key sk-****{''.join(r.choices(_ALNUM, k=4))}",
    "math": lambda r: f"E = mc^2 + {r.random():.9f}e-{r.randrange(9)}",
    "lorem": lambda r: "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod.",
    "hash call": lambda r: f"assert sha256(b'abc').hexdigest() == '{_hex(r, 64)}'",
    "lookup": lambda r: f"keys = sorted(d.keys()); tokens = text.split(); n = {r.randrange(99)}",
    "secret santa": lambda r: f"Secret Santa: draw names on {r.randrange(1, 24)} December.",
    "key point": lambda r: f"The key point of section {r.randrange(9)} is access for everyone.",
    "kind": lambda r: "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db-credentials",
    "help": lambda r: "  --password PASSWORD   password of the account (prompted if not given)",
    "usage": lambda r: "usage: tool [-u USER] [-p PASSWORD] [--token TOKEN] host",
}


def look_alikes(seed: int, each: int = 4) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of what must survive."""
    rng = random.Random(seed)
    for kind, make in ALIKE.items():
        for _ in range(each):
            yield kind, make(rng)
