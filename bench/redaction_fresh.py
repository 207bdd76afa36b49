"""Generate rows in the manner of the test suites of secret scanners, and look-alikes.

Nothing is copied from such a suite: names of services and the alphabet and length of their tokens
are facts (`redaction_services.txt`), the lines around them are written here, and values are drawn.
A row's kind (the service, the pair of labels, the kind of place) decides its half by a hash. The
first half is for tuning; the second is only measured.
"""

import base64
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import redaction_vendors
from bench.redaction_set import Row

_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_SERVICES = Path(__file__).with_name("redaction_services.txt")

# Sequences that people type when a test needs a value of some length.
_TYPED = {
    "h": ("abcdef1234567890", "1234567890abcdef", "0123456789abcdef", "a1b2c3d4e5f6", "deadbeef01"),
    "l": ("abcdefghijklmnopqrstuvwxyz0123456789", "a1b2c3d4e5f6g7h8i9j0", "abc123def456ghi789"),
    "u": ("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "A1B2C3D4E5F6G7H8I9J0", "ABC123DEF456GHI789"),
    "w": (
        "aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789",
        "abcdefghij1234567890ABCDEFGHIJ",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "abc123DEF456ghi789JKL012mno345PQR678",
        "qwertyuiop1234567890ASDFGHJKL",
    ),
}
_NOUNS = (
    *("SECRET", "PRIVATE", "ACCESS", "KEY", "TOKEN", "api key", "access token", "secret key"),
    *("auth token", "api token", "private key", "apikey", "api secret", "client secret", "PAT"),
    *("personal access token", "secret token", "license key", "auth key", "integration token"),
)


def half(kind: str) -> int:
    """Return the half of a kind: 0 is for tuning, 1 is held out."""
    return int.from_bytes(random.Random(f"held out {kind}").randbytes(1)) & 1


def services() -> list[tuple[str, str]]:
    """Return every service with the form of its token."""
    lines = _SERVICES.read_text().splitlines()
    return [(name, form) for name, _, form in (line.partition(" ") for line in lines)]


def _typed(rng: random.Random, form: str) -> str:
    """Return a value of this form as somebody types it."""

    def write(alphabet: str, size: int) -> str:
        known = {"b": "w", "B": "w"}.get(alphabet, alphabet)
        if known not in _TYPED:
            return (string.digits * 40)[1 : size + 1]
        body = rng.choice(_TYPED[known])
        return (body * (size // len(body) + 1))[:size]

    return redaction_vendors.filled(form, lambda part: write(part[2], int(part[3])), rng)


def _camel(*words: str) -> str:
    head, *rest = "_".join(words).replace(" ", "_").replace("-", "_").lower().split("_")
    return head + "".join(word.capitalize() for word in rest)


def _snake(*words: str) -> str:
    return "_".join(words).replace(" ", "_").replace("-", "_").lower()


_Line = Callable[[str, str, str], str]
# How a suite writes the sample of a detector: the service s, the noun n, the value v.
SAMPLES: dict[str, _Line] = {
    "spaced": lambda s, n, v: f"{s} {n} {v}",
    "spaced capitals": lambda s, n, v: f"{s.upper()} {n.upper()} {v}",
    "glued": lambda s, n, v: f"{s}{n.replace(' ', '').upper()}={v}",
    "glued spaced": lambda s, n, v: f"{s}{n.replace(' ', '').upper()} {v}",
    "glued camel": lambda s, n, v: f"{_camel(s, n)} = {v}",
    "snake": lambda s, n, v: f"{_snake(s, n)}={v}",
    "snake spaced": lambda s, n, v: f"{_snake(s, n)} = {v}",
    "snake mixed": lambda s, n, v: f"{s}_{n.replace(' ', '_').upper()} {v}",
    "snake colon": lambda s, n, v: f"{_snake(s, n)}: {v}",
    "snake quoted": lambda s, n, v: f'{_snake(s, n)} = "{v}"',
    "single quoted": lambda s, n, v: f"{_snake(s, n)}: '{v}'",
    "capitals": lambda s, n, v: f"{_snake(s, n).upper()}={v}",
    "capitals quoted": lambda s, n, v: f'{_snake(s, n).upper()} = "{v}"',
    "kebab": lambda s, n, v: f"{_snake(s, n).replace('_', '-')}: {v}",
    "kebab tail": lambda s, n, v: f"{_snake(s, n).replace('_', '-')}-{v}",
    "dotted": lambda s, n, v: f"{s}.{_snake(n).replace('_', '.')}={v}",
    "dotted quoted": lambda s, n, v: f"{s}.{_camel(n)} = '{v}'",
    "said twice": lambda s, n, v: f"{_snake(s, n)} = {s} {v}",
    "service alone": lambda s, n, v: f"{s}={v}",
    "service colon": lambda s, n, v: f"{s}: {v}",
    "service quoted": lambda s, n, v: f'{s} = "{v}"',
    "service camel": lambda s, n, v: f"const {s} = '{v}';",
    "sentence": lambda s, n, v: f"The {s} {n} is {v}",
    "sentence for": lambda s, n, v: f"{n} for {s}: {v}",
    "sentence using": lambda s, n, v: f"# connect to {s} using {n} {v}",
    "log": lambda s, n, v: f"2026-03-04 10:11:12 DEBUG [{s}] using {n}: {v}",
    "log key": lambda s, n, v: f"[INFO] request to {s}\n[DEBUG] Using Key={v}\n[INFO] 200 OK",
    "exported": lambda s, n, v: f"export {_snake(s, n).upper()}={v}",
    "set": lambda s, n, v: f'setx {_snake(s, n).upper()} "{v}"',
    "json": lambda s, n, v: f'{{"{_snake(s, n)}": "{v}"}}',
    "json camel": lambda s, n, v: f'{{"name":"{s}","{_camel(n)}":"{v}"}}',
    "json nested": lambda s, n, v: f'"{s}": {{\n  "{_camel(n)}": "{v}",\n  "retries": 3\n}}',
    "json escaped": lambda s, n, v: f'"{{\\"{_snake(s, n)}\\":\\"{v}\\"}}"',
    "yaml": lambda s, n, v: f"{s}:\n  url: https://api.{s}.com\n  {_snake(n)}: {v}\n",
    "yaml block": lambda s, n, v: f"credentials:\n  - service: {s}\n    {_snake(n)}: '{v}'\n",
    "xml": lambda s, n, v: f"<{_camel(s, n)}>{v}</{_camel(s, n)}>",
    "xml attribute": lambda s, n, v: f'<{s} {_camel(n)}="{v}"/>',
    "code go": lambda s, n, v: f'{_camel(s, n)} := "{v}"',
    "code go raw": lambda s, n, v: f"var {_camel(s, n)} string = `{v}`",
    "code java": lambda s, n, v: f'String {_camel(s, n)} = "{v}";',
    "code php": lambda s, n, v: f"${_snake(s, n)} = '{v}';",
    "code ruby": lambda s, n, v: f"{_camel(s).capitalize()}.{_snake(n)} = '{v}'",
    "code swift": lambda s, n, v: f'static let {_camel(s, n)}: String = "{v}"',
    "code call": lambda s, n, v: f"client = {_camel(s).capitalize()}Client({_snake(n)}='{v}')",
    "code first": lambda s, n, v: f"client = {_camel(s).capitalize()}('{v}')",
    "code config": lambda s, n, v: f'{s}.configure({{ {_camel(n)}: "{v}" }})',
    "make": lambda s, n, v: f"{_snake(s, n).upper()} ?= {v}",
    "make twice": lambda s, n, v: f"{_snake(s, n).upper()} ::= {v}",
    "header": lambda s, n, v: f"X-{s.title()}-{n.replace(' ', '-').title()}: {v}",
    "curl header": lambda s, n, v: f'curl -H "X-Api-Key: {v}" https://api.{s}.com/v1/items',
    "curl token": lambda s, n, v: f'curl https://api.{s}.com/v1 -H "Authorization: Token {v}"',
    "curl bearer": lambda s, n, v: f"curl -H 'Authorization: Bearer {v}' https://{s}.io/v2/me",
    "query": lambda s, n, v: f"https://api.{s}.com/v2/search?q=a&{_snake(n)}={v}",
    "flag": lambda s, n, v: f"{s} deploy --{_snake(n).replace('_', '-')} {v}",
    "flag equals": lambda s, n, v: f"{s}-cli --{_snake(n).replace('_', '-')}={v} run",
    "environ": lambda s, n, v: f"os.environ['{_snake(s, n).upper()}'] = '{v}'",
    "default": lambda s, n, v: f"os.getenv('{_snake(s, n).upper()}', '{v}')",
    "table": lambda s, n, v: f"| {s} | {n} | {v} |",
    "comment": lambda s, n, v: f"// {s} {n}: {v}",
    "docker": lambda s, n, v: f"ENV {_snake(s, n).upper()} {v}",
    "arrow": lambda s, n, v: f"'{_snake(s, n)}' => '{v}',",
    "form": lambda s, n, v: f"user=ann&{_snake(s, n)}={v}&go=1",
    "properties": lambda s, n, v: f"{s}.{_snake(n).replace('_', '-')}: {v}",
}

_USERS = ("master", "gildong", "ann.lee", "svc_build", "root", "admin01", "ann@host.example")
_USER_LABELS = (
    *("id", "ID", "user", "User", "username", "User name", "login", "Login", "account", "USERID"),
    *(
        "user account",
        "userid",
        "Login as",
        "Id",
        "email",
        "e-mail",
        "usr",
        "UID",
        "계정",
        "아이디",
    ),
    *("用户名", "Benutzer", "usuario", "utilisateur"),
)
_PASS_LABELS = (
    *("pw", "PW", "Pw", "pwd", "PWD", "password", "Password", "PASSWORD", "passwd", "pass", "Pass"),
    *(
        "passphrase",
        "passcode",
        "psw",
        "pword",
        "P/W",
        "비밀번호",
        "비번",
        "패스워드",
        "密码",
        "口令",
    ),
    *("Passwort", "Kennwort", "contraseña", "mot de passe", "パスワード", "пароль"),
)
_Pair = Callable[[str, str, str, str], str]
# How people note down an account: labels u and p, the user a, the password v.
PAIRS: dict[str, _Pair] = {
    "colons": lambda u, p, a, v: f"{u}:{a} {p}:{v}",
    "colons comma": lambda u, p, a, v: f"{u}: {a}, {p}: {v}",
    "tight comma": lambda u, p, a, v: f"{u}:{a},{p}:{v}",
    "equals": lambda u, p, a, v: f"{u}={a} {p}={v}",
    "equals spaced": lambda u, p, a, v: f"{u} = {a} / {p} = {v}",
    "slashes": lambda u, p, a, v: f"{u}/{p}: {a}/{v}",
    "slashes spaced": lambda u, p, a, v: f"{u} / {p} : {a} / {v}",
    "slashes equals": lambda u, p, a, v: f"{u}/{p}={a}/{v}",
    "brackets": lambda u, p, a, v: f"({u}: {a}, {p}: {v})",
    "square": lambda u, p, a, v: f"[{u}: {a} | {p}: {v}]",
    "behind host": lambda u, p, a, v: f"10.20.30.40 {u}:{a} {p}:{v}",
    "ssh": lambda u, p, a, v: f"ssh {a}@10.20.30.40 ({p}:{v})",
    "ssh plain": lambda u, p, a, v: f"ssh {a}@10.20.30.40 {p}: {v}",
    "dashes": lambda u, p, a, v: f"- {u} - {a} - {p} - {v}",
    "arrow": lambda u, p, a, v: f"{u} -> {a}, {p} -> {v}",
    "lines": lambda u, p, a, v: f"{u}: {a}\n{p}: {v}\n",
    "is": lambda u, p, a, v: f"the {u} is {a} and the {p} is {v}",
    "alone colon": lambda u, p, a, v: f"{p}:{v}",
    "alone blank": lambda u, p, a, v: f"{p} {v}",
    "alone equals": lambda u, p, a, v: f"{p} = {v}",
    "alone dash": lambda u, p, a, v: f"{p}-{v}",
    "alone bracket": lambda u, p, a, v: f"{p}({v})",
    "alone quoted": lambda u, p, a, v: f"{p} '{v}'",
    "table": lambda u, p, a, v: f"| {a} | {p} | {v} |",
    "blanks": lambda u, p, a, v: f"{u} {a} {p} {v}",
    "any prefix": lambda u, p, a, v: f"DEV {u}:{a} DEV {p}:{v}",
    "with what": lambda u, p, a, v: f"{p}(staging):{v}",
    "korean": lambda u, p, a, v: f"{u} : {a}   {p} : {v}",
    "html": lambda u, p, a, v: f"<td>{p}</td><td>{v}</td>",
}


def _password(rng: random.Random) -> str:
    body = "".join(rng.choices(_ALNUM, k=rng.choice((6, 7, 8, 9))))
    return f"{body}{rng.randrange(10)}{rng.choice(('', '!', '#', '@', '$', '!@'))}"


def _word(rng: random.Random) -> str:
    return rng.choice(("Falcon", "winter", "Sommer", "dragon", "hello", "qwerty")) + str(
        rng.randrange(10, 9999)
    )


_Place = Callable[[str, str], str]
# Grammar that takes a password: the user u, the password v.
PLACES: dict[str, _Place] = {
    "url https": lambda u, v: f"https://{u}:{v}@git.host.example/a.git",
    "url ftp": lambda u, v: f"ftp://{u}:{v}@files.host.example",
    "url smtp": lambda u, v: f"smtps://{u}:{v}@mail.host.example:465",
    "url amqp": lambda u, v: f"amqp://{u}:{v}@queue:5672/vhost",
    "url redis": lambda u, v: f"redis://:{v}@cache:6379/0",
    "url mongo": lambda u, v: f"mongodb+srv://{u}:{v}@cluster0.host.example/db?w=majority",
    "url mysql": lambda u, v: f"mysql://{u}:{v}@db:3306/app",
    "url mssql": lambda u, v: f"mssql+pyodbc://{u}:{v}@db/app?driver=ODBC",
    "url snowflake": lambda u, v: f"snowflake://{u}:{v}@ab12345/db/schema",
    "url ldap": lambda u, v: f"ldap://{u}:{v}@ldap.host.example:389",
    "url proxy": lambda u, v: f"http_proxy=http://{u}:{v}@proxy.host.example:3128",
    "jdbc query": lambda u, v: f"jdbc:mysql://db:3306/app?user={u}&password={v}&useSSL=false",
    "jdbc semicolon": lambda u, v: f"jdbc:sqlserver://db:1433;databaseName=a;user={u};password={v}",
    "jdbc oracle": lambda u, v: f"jdbc:oracle:thin:{u}/{v}@//db:1521/XE",
    "ado": lambda u, v: f"Data Source=db;Initial Catalog=a;User ID={u};Password={v}",
    "ado short": lambda u, v: f"Server=db;Uid={u};Pwd={v};",
    "libpq": lambda u, v: f"host=db port=5432 user={u} password={v} dbname=a",
    "curl -u": lambda u, v: f"curl -u {u}:{v} https://host.example/api",
    "curl -u quoted": lambda u, v: f"curl -X POST -u '{u}:{v}' https://host.example/api",
    "curl option": lambda u, v: f'curl_setopt($ch, CURLOPT_USERPWD, "{u}:{v}");',
    "curl proxy option": lambda u, v: f'curl_easy_setopt(h, CURLOPT_PROXYUSERPWD, "{u}:{v}");',
    "curl password option": lambda u, v: f'curl_easy_setopt(h, CURLOPT_PASSWORD, "{v}");',
    "curl proxy-user": lambda u, v: f"curl --proxy-user {u}:{v} https://host.example",
    "wget": lambda u, v: f"wget --http-user={u} --http-password={v} https://host.example/f",
    "sshpass": lambda u, v: f"sshpass -p '{v}' ssh {u}@host.example",
    "mysql -p": lambda u, v: f"mysqldump -u{u} -p{v} app > app.sql",
    "psql env": lambda u, v: f"PGPASSWORD={v} psql -h db -U {u} app",
    "sqlcmd": lambda u, v: f"sqlcmd -S db -U {u} -P {v} -Q 'select 1'",
    "mongo flags": lambda u, v: f"mongosh --host db -u {u} -p {v} --authenticationDatabase admin",
    "redis-cli": lambda u, v: f"redis-cli -h cache -a {v} ping",
    "docker login": lambda u, v: f"docker login -u {u} -p {v} registry.host.example",
    "helm": lambda u, v: f"helm repo add x https://host.example --username {u} --password {v}",
    "az login": lambda u, v: f"az login --service-principal -u {u} -p {v} --tenant t1",
    "net use": lambda u, v: f"net use Z: \\\\host\\share {v} /user:{u}",
    "psexec": lambda u, v: f"psexec.exe \\\\host -u {u} -p {v} cmd",
    "smbclient": lambda u, v: f"smbclient //host/share -U {u}%{v}",
    "mount cifs": lambda u, v: f"mount -t cifs //host/s /mnt -o username={u},password={v}",
    "lftp": lambda u, v: f"lftp -u {u},{v} sftp://host.example",
    "kinit": lambda u, v: f"echo {v} | kinit {u}@HOST.EXAMPLE",
    "sudo": lambda u, v: f"echo '{v}' | sudo -S apt update",
    "chpasswd": lambda u, v: f"echo '{u}:{v}' | chpasswd",
    "openssl": lambda u, v: f"openssl enc -aes-256-cbc -pass pass:{v} -in a -out b",
    "keytool": lambda u, v: f"keytool -list -keystore a.jks -storepass {v}",
    "gpg": lambda u, v: f"gpg --batch --passphrase {v} -d a.gpg",
    "zip": lambda u, v: f"zip -P {v} a.zip b.txt",
    "ansible": lambda u, v: f"host1 ansible_user={u} ansible_ssh_pass={v}",
    "netrc": lambda u, v: f"machine host.example\n  login {u}\n  password {v}\n",
    "pgpass": lambda u, v: f"db.host.example:5432:app:{u}:{v}",
    "htpasswd": lambda u, v: f"htpasswd -b .htpasswd {u} {v}",
    "npmrc": lambda u, v: f"//registry.host.example/:_password={v}",
    "pip": lambda u, v: f"index-url = https://{u}:{v}@pypi.host.example/simple",
    "maven": lambda u, v: f"<username>{u}</username>\n<password>{v}</password>",
    "gradle": lambda u, v: f"credentials {{\n  username '{u}'\n  password '{v}'\n}}",
    "spring": lambda u, v: f"spring.datasource.username={u}\nspring.datasource.password={v}",
    "django": lambda u, v: f"'USER': '{u}',\n'PASSWORD': '{v}',",
    "wordpress": lambda u, v: f"define('DB_PASSWORD', '{v}');",
    "php connect": lambda u, v: f'$db = mysqli_connect("localhost", "{u}", "{v}", "app");',
    "php pdo": lambda u, v: f"new PDO('mysql:host=db;dbname=a', '{u}', '{v}');",
    "java connect": lambda u, v: f'DriverManager.getConnection(url, "{u}", "{v}");',
    "python connect": lambda u, v: f"pymysql.connect(host='db', user='{u}', passwd='{v}')",
    "python smtp": lambda u, v: f"server.login('{u}', '{v}')",
    "python auth": lambda u, v: f"requests.get(url, auth=('{u}', '{v}'))",
    "python paramiko": lambda u, v: f"ssh.connect('host', 22, '{u}', '{v}')",
    "node mailer": lambda u, v: f"auth: {{ user: '{u}', pass: '{v}' }}",
    "csharp": lambda u, v: f'new NetworkCredential("{u}", "{v}");',
    "powershell": lambda u, v: f'ConvertTo-SecureString "{v}" -AsPlainText -Force',
    "powershell plain": lambda u, v: f"$password = '{v}'",
    "vbscript": lambda u, v: f'strPassword = "{v}"',
    "sql create": lambda u, v: f"CREATE USER {u} WITH PASSWORD '{v}';",
    "sql identified": lambda u, v: f"GRANT ALL ON a.* TO '{u}'@'%' IDENTIFIED BY '{v}';",
    "sql set": lambda u, v: f"SET PASSWORD FOR '{u}'@'localhost' = PASSWORD('{v}');",
    "sql login": lambda u, v: f"CREATE LOGIN {u} WITH PASSWORD = N'{v}';",
    "sql alter": lambda u, v: f"ALTER ROLE {u} ENCRYPTED PASSWORD '{v}';",
    "wifi": lambda u, v: f'network={{\n  ssid="home"\n  psk="{v}"\n}}',
    "cisco": lambda u, v: f"username {u} privilege 15 password 0 {v}",
    "cisco enable": lambda u, v: f"enable secret 0 {v}",
    "snmp": lambda u, v: f"snmp-server community {v} RO",
    "ppp": lambda u, v: f'"{u}" * "{v}" *',
    "kubernetes": lambda u, v: f"kubectl create secret generic db --from-literal=password={v}",
    "compose": lambda u, v: f"environment:\n  - POSTGRES_USER={u}\n  - POSTGRES_PASSWORD={v}",
    "terraform": lambda u, v: f'master_username = "{u}"\nmaster_password = "{v}"',
    "comparison": lambda u, v: f"if user == '{u}' and password == '{v}':",
    "getpass": lambda u, v: f'String getPassword() {{ return "{v}"; }}',
    "sendkeys": lambda u, v: f"driver.find_element(By.ID, 'password').send_keys('{v}')",
    "fill": lambda u, v: f"await page.fill('#password', '{v}');",
    "html input": lambda u, v: f'<input type="password" name="pw" value="{v}">',
    "basic header": lambda u, v: (
        f"Authorization: Basic {base64.b64encode(f'{u}:{v}'.encode()).decode()}"
    ),
}


def named(seed: int) -> Iterator[Row]:
    """Yield each service in a few of the sample lines, drawn and typed."""
    rng = random.Random(seed)
    for service, form in services():
        for syntax in rng.sample(sorted(SAMPLES), 6):
            typed = rng.random() < 0.4
            value = _typed(rng, form) if typed else redaction_vendors.drawn(form, rng)
            text = SAMPLES[syntax](service, rng.choice(_NOUNS), value)
            yield Row(service, f"{syntax}{' typed' if typed else ''}", text, value)


def paired(seed: int) -> Iterator[Row]:
    """Yield accounts as people note them down."""
    rng = random.Random(seed)
    for arrangement, write in PAIRS.items():
        for label in _PASS_LABELS:
            user_label, user = rng.choice(_USER_LABELS), rng.choice(_USERS)
            value = _password(rng)
            yield Row(label, f"pair {arrangement}", write(user_label, label, user, value), value)


def placed(seed: int) -> Iterator[Row]:
    """Yield passwords where a program or a grammar takes one."""
    rng = random.Random(seed)
    for place, write in PLACES.items():
        for draw in (_password, _word, _password):
            user, value = rng.choice(_USERS), draw(rng)
            text = write(user, value)
            secret = value if value in text else text.rpartition(" ")[2]
            yield Row(place, "place", text, secret)


_WRAPS: dict[str, Callable[[str], str]] = {
    "alone": lambda line: line,
    "indented": lambda line: f"        {line}",
    "quoted": lambda line: f'    "{line}\\n" +',
    "single quoted": lambda line: f"'{line}'",
    "comment": lambda line: f" * {line}",
    "slashes": lambda line: f"//  {line}",
    "hash": lambda line: f"# {line}",
    "dated": lambda line: f"2026-01-02 03:04:05 {line}",
    "step": lambda line: f"#12 1.234 {line}",
    "diff": lambda line: f"+{line}",
    "yaml": lambda line: f"    {line}\n",
    "stream": lambda line: f"[stdout] {line}",
}


def key_lines(seed: int) -> Iterator[Row]:
    """Yield single lines of the bodies of private keys."""
    rng = random.Random(seed)
    for wrap, write in _WRAPS.items():
        for width in (64, 64, 64, 70, 76):
            line = base64.b64encode(rng.randbytes(width)).decode()[:width]
            yield Row(wrap, f"key line {width}", write(line), line)
