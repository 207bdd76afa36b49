"""Usages of credentials as services have them written down: in headers, settings, commands and
code, as their manuals show it.

`redaction_usages.txt` has one line per usage: the service, and a text in which «…» is the secret.
`{w32}` stands for what is drawn: w letters and digits, b the same with - and _, B base64, h hex, l
small letters and digits, u capitals and digits, d digits, a small letters; {U} is a UUID. The rows
were written before the rules that find them, some were then looked at, so what they show is nearer
to the truth than the given rows and still too good.
"""

import base64
import random
import re
import string
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.redaction_set import Row

_ALNUM = string.ascii_letters + string.digits
_ALPHABETS = {
    "w": _ALNUM,
    "b": _ALNUM + "-_",
    "h": "0123456789abcdef",
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "d": string.digits,
    "a": string.ascii_lowercase,
}
_DRAWN = re.compile(r"\{(?:(U)|([wbBhluda])(\d+))\}")
_SECRET = re.compile("«([^»]*)»")
_USAGES = Path(__file__).with_name("redaction_usages.txt")


def _draw(rng: random.Random, part: re.Match[str]) -> str:
    if part[1]:
        return str(uuid.UUID(bytes=rng.randbytes(16), version=4))
    size = int(part[3])
    if part[2] == "B":
        return base64.b64encode(rng.randbytes(size)).decode()[:size]
    return "".join(rng.choices(_ALPHABETS[part[2]], k=size))


def filled(form: str, write: Callable[[re.Match[str]], str], rng: random.Random) -> str:
    """Return `form` with each part written by `write`; a UUID is always drawn."""
    return _DRAWN.sub(lambda part: _draw(rng, part) if part[1] else write(part), form)


def drawn(form: str, rng: random.Random) -> str:
    """Return `form` with each part drawn."""
    return _DRAWN.sub(lambda part: _draw(rng, part), form)


def rows(seed: int) -> Iterator[Row]:
    """Every usage with what it needs drawn."""
    rng = random.Random(seed)
    for line in _USAGES.read_text().splitlines():
        service, _, usage = line.partition(": ")
        text = drawn(usage, rng)
        found = _SECRET.search(text)
        assert found is not None, line
        yield Row(service, "usage", text.replace("«", "").replace("»", ""), found[1])
