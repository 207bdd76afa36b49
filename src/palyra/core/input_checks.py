"""Checks on text from outside that every door shares: JSON that means one thing, and names that are
one readable line.

File names as the most forgiving file system compares them: case, width and invisible characters
make no difference.
"""

import re
import unicodedata
from typing import Any

import msgspec

from palyra.core.errors import InvalidInput


def fold(name: str) -> str:
    """Return one name as NTFS (streams, trailing dots) and HFS+ (invisible characters) would
    compare it, in lower case.
    """
    if not name.isascii():
        visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
        name = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    return name.lower().partition(":")[0].rstrip(". ") or name


# Everything behind a door may walk a value recursively.
DEEPEST = 64
# A string, with the colon that makes it a key; a bracket. One that does not end reaches to the end
# of the text: looking for the next one inside of it would cost as much again, for each quotation
# mark.
_STRING = rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)(?:"(\s*+:)?|\\?\Z)'
_STRINGS = re.compile(_STRING, re.DOTALL)
_TOKENS = re.compile(_STRING + rb"|([{\[])|([}\]])", re.DOTALL)
_KEY, _OPEN, _CLOSE = 2, 3, 4

# Control characters, and the separators that some programs take for the end of a line.
_UNREADABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def check_json(raw: bytes) -> None:
    """Raise InvalidInput if an object has a key twice, or if values are nested too deeply. Other
    mistakes are the decoder's.
    """
    if raw.count(b"{") + raw.count(b"[") <= DEEPEST:
        keys = [key for key, colon in _STRINGS.findall(raw) if colon]
        # Nearly always: no key comes twice, whichever object it is in.
        if len(set(keys)) == len(keys) and not any(b"\\" in key for key in keys):
            return
    _walk(raw)


def _walk(raw: bytes) -> None:
    seen: list[set[bytes]] = []
    for token in _TOKENS.finditer(raw):
        kind = token.lastindex
        if kind == _OPEN:
            if len(seen) == DEEPEST:
                raise InvalidInput(f"the JSON is nested deeper than {DEEPEST} levels")
            seen.append(set())
        elif kind == _CLOSE and seen:
            seen.pop()
        elif kind == _KEY and seen:
            key = _meant(token[1])
            if key in seen[-1]:
                shown = key[:100].decode("utf-8", "replace")
                raise InvalidInput(
                    f'the key "{shown}" is in one object twice: send it once', key=shown
                )
            seen[-1].add(key)


def _meant(key: bytes) -> bytes:
    """A key as it is read: `\\u0061` is an a."""
    if b"\\" not in key:
        return key
    try:
        return msgspec.json.decode(b'"%b"' % key, type=str).encode()
    except (msgspec.DecodeError, UnicodeEncodeError):
        return key


def too_deep(value: Any) -> bool:
    """Return whether a decoded value is nested deeper than anything we take. Without recursion,
    which is what it is asked for.
    """
    level: list[Any] = [value]
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list | tuple):
                inner.extend(each)
        if not inner:
            return False
        level = inner
    return True


def check_line(what: str, text: str) -> None:
    """Raise InvalidInput if a name has characters that nobody can see, or more than one line."""
    found = _UNREADABLE.search(text)
    if found is not None:
        raise InvalidInput(
            f"{what} has a control character (U+{ord(found[0]):04X}) at {found.start()}: leave"
            " it out",
            field=what,
        )


def as_line(text: str) -> str:
    """The same text as one line that passes `check_line`."""
    return _UNREADABLE.sub(" ", text)
