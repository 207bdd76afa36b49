"""Usages of secrets by kind, written before anybody looked at the rules, and what is like them.

`redaction_kinds.txt` and `redaction_kinds_alike.txt` hold one usage a line under its kind (`==`).
Values are drawn: ‹w20› is twenty letters and digits, ‹b64(…)› what stands inside in base64, ⏎ a
line break, ⇥ a tab. What stands in ⟦…⟧ is the secret. The rules were tuned on the first half of the
kinds only.
"""

import base64
import random
import re
import string
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent
_LIST = (
    "anchor barley candle dragon ember falcon garden harbor island jungle kettle lantern maple "
    "needle orbit pepper quartz river saddle timber umbra violet walnut yellow zephyr bernstein "
    "sommer katze winter blume monkey purple rocket silver tiger wizard summer soccer berlin paris"
)
_WORDS = _LIST.split()
_ALNUM = string.ascii_letters + string.digits
_CLASSES = {
    "w": _ALNUM,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "u": string.ascii_uppercase + string.digits,
    "a": string.ascii_lowercase,
    "l": string.ascii_lowercase + string.digits,
    "b": _ALNUM + "-_",
    "B": _ALNUM + "+/",
    "A": string.ascii_uppercase + "234567",
    "U": string.ascii_uppercase + string.digits,
    "q": _ALNUM + "-_.!~",
    "p": _ALNUM + "!#%*-_+=.?@^&",
}
_VALUE = re.compile(r"‹(?:(uuid|k)|(words|seed|fpr|b32u|[a-zA-Z])(\d+))›")
_CALL = re.compile(r"‹(\w+)\(([^‹›]*)\)›")
_SECRET = re.compile(r"⟦(.*?)⟧", re.S)
_SHIFT = 0xFEE0  # from ASCII to the full-width shapes


class Usage(NamedTuple):
    kind: str
    text: str
    secrets: list[str]


Rows = Callable[[int], Iterator[Usage]]


def _draw(rng: random.Random, alphabet: str, size: int) -> str:
    return "".join(rng.choices(alphabet, k=size))


def _chosen(rng: random.Random) -> str:
    """A password as somebody chooses it."""
    one, two = rng.choice(_WORDS), rng.choice(_WORDS).title()
    return rng.choice(
        (
            f"{one.title()}{rng.randint(10, 9999)}!",
            f"{one}{two}{rng.randint(1, 99)}",
            f"{one.title()}-{two}-{rng.randint(10, 99)}",
            f"{one[:3]}{rng.randint(100, 999)}{two}#",
            _draw(rng, _ALNUM, 10),
            f"{one.title()}#{rng.randint(1990, 2024)}",
        )
    )


def _value(rng: random.Random, found: re.Match[str]) -> str:
    if found[1]:
        return (
            str(uuid.UUID(bytes=rng.randbytes(16), version=4))
            if found[1] == "uuid"
            else _chosen(rng)
        )
    size = int(found[3])
    match found[2]:
        case "words":
            return "-".join(rng.choices(_WORDS, k=size))
        case "seed":
            return " ".join(rng.choices([word for word in _WORDS if len(word) < 9], k=size))
        case "fpr":
            return ":".join(_draw(rng, _CLASSES["H"], 2) for _ in range(size))
        case "b32u":
            return _draw(rng, _CLASSES["A"], size)
        case "p" | "q" as kind:
            return rng.choice(_ALNUM) + _draw(rng, _CLASSES[kind], size - 2) + rng.choice(_ALNUM)
        case kind:
            return _draw(rng, _CLASSES[kind], size)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _pem(rng: random.Random, label: str, indent: str = "") -> str:
    body = [_draw(rng, _CLASSES["B"], 64) for _ in range(4)]
    return f"\n{indent}".join((f"-----BEGIN {label}-----", *body, f"-----END {label}-----"))


def _token(rng: random.Random, _: str) -> str:
    """A JSON Web Token."""
    parts = ('{"alg":"HS256","typ":"JWT"}', f'{{"sub":"{_draw(rng, string.digits, 10)}"}}')
    head, claims = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return f"{head}.{claims}.{_draw(rng, _CLASSES['b'], 43)}"


def _split(text: str, by: str) -> str:
    return text[: len(text) // 2] + by + text[len(text) // 2 :]


_CALLS: dict[str, Callable[[random.Random, str], str]] = {
    "b64": lambda rng, text: _base64(text),
    "b64nl": lambda rng, text: re.sub("(.{40})", r"\1\n", _base64(text)),
    "hex": lambda rng, text: text.encode().hex(),
    "hexsp": lambda rng, text: text.encode().hex(" "),
    "xesc": lambda rng, text: "".join(f"\\x{ord(c):02x}" for c in text),
    "uesc": lambda rng, text: "".join(f"\\u{ord(c):04x}" for c in text),
    "ent": lambda rng, text: "".join(f"&#{ord(c)};" for c in text),
    "url": lambda rng, text: urllib.parse.quote(text, safe=""),
    "nl": lambda rng, text: _split(text, "\n"),
    "bs": lambda rng, text: _split(text, "\\\n"),
    "plus": lambda rng, text: _split(text, '" + "'),
    "dash": lambda rng, text: _split(text, " "),
    "zw": lambda rng, text: text[:5] + "\u200b" + text[5:],
    "shy": lambda rng, text: text[:12] + "\u00ad" + text[12:],
    "fw": lambda rng, text: "".join(chr(ord(c) + _SHIFT) for c in text),
    "pem": lambda rng, text: _pem(rng, text),
    "pemi": lambda rng, text: _pem(rng, text, "  "),
    "jwt": _token,
}


def _usages(name: str, seed: int) -> Iterator[Usage]:
    kind = ""
    for line in (_FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            kind = line.removeprefix("== ")
            continue
        rng = random.Random(f"{seed}:{line}")
        text = line.replace("⏎", "\n").replace("⇥", "\t")
        text = _VALUE.sub(lambda found, rng=rng: _value(rng, found), text)
        while _CALL.search(text):
            text = _CALL.sub(lambda found, rng=rng: _CALLS[found[1]](rng, found[2]), text)
        secrets = _SECRET.findall(text)
        yield Usage(kind, text.replace("⟦", "").replace("⟧", ""), secrets)


def usages(seed: int) -> Iterator[Usage]:
    return _usages("redaction_kinds.txt", seed)


def look_alikes(seed: int) -> Iterator[Usage]:
    return _usages("redaction_kinds_alike.txt", seed)


def scanned(seed: int) -> Iterator[Usage]:
    """Rows in the manner of scanners' tests, by service and by syntax. The rules were tuned on
    all of them.
    """
    return _usages("redaction_scanners.txt", seed)


def scanned_last(seed: int) -> Iterator[Usage]:
    """Rows that were written after the rules had been tuned on `scanned`."""
    return _usages("redaction_scanners_last.txt", seed)


def scanned_alike(seed: int) -> Iterator[Usage]:
    return _usages("redaction_scanners_alike.txt", seed)


def wild(seed: int) -> Iterator[Usage]:
    """Secrets as people paste them in chats, tickets, logs, shells, settings and tables, written
    without a look at the rules. The second half of the kinds stayed sealed until the rules were
    done.
    """
    return _usages("redaction_wild.txt", seed)


def wild_alike(seed: int) -> Iterator[Usage]:
    return _usages("redaction_wild_alike.txt", seed)


def is_gone(secret: str, out: str) -> bool:
    """Return whether no run of more than half of the secret is left."""
    size = len(secret) // 2 + 1
    return not any(secret[at : at + size] in out for at in range(len(secret) - size + 1))
