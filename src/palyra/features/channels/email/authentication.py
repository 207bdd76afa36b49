"""Whether the server that took a mail in vouches for its sender: what Authentication-Results say,
by RFC 8601.

Anybody can write such a header. Each server puts its own lines on top, Received included, so what
stands below the topmost Received came with the mail: it counts for nothing. Above it only the
configured server's results count, and only if what passed is the domain in From. What a sender can
write into a value (in quotes or comments) is never read as a result.
"""

import re
from collections.abc import Sequence

_SPACED = re.compile(r"\s*=\s*")
_RESULT = re.compile(r"([a-z0-9-]+)(?:/\d+)?=([a-z]+)")


def vouched(headers: Sequence[tuple[str, str]], authserv: str, domain: str) -> bool:
    """`headers` in the order of the mail, topmost first. `domain` is that of the one address in
    From.
    """
    if not authserv or not domain:
        return False
    passed = False
    for value in _own(headers, authserv.casefold()):
        for method, result, properties in _results(value):
            if method == "dmarc" and properties.get("header.from", domain) == domain:
                if result != "pass":
                    return False
                passed = True
            passed = passed or (result == "pass" and _about(method, properties, domain))
    return passed


def _own(headers: Sequence[tuple[str, str]], authserv: str) -> list[str]:
    """Return the results that this server put on top: one header, or several that stand next to
    each other.
    """
    found: list[str] = []
    for name, value in headers:
        if name.casefold() == "received":
            break
        if name.casefold() == "authentication-results" and _server(value) == authserv:
            found.append(value)
        elif found:
            break
    return found


def _server(value: str) -> str:
    parts = _parts(value)
    words = parts[0].split() if parts else []
    return words[0].casefold() if words else ""


def _results(value: str) -> list[tuple[str, str, dict[str, str]]]:
    found = []
    for part in _parts(value)[1:]:
        first, *more = _SPACED.sub("=", part.strip()).casefold().split() or [""]
        result = _RESULT.fullmatch(first)
        if result is not None:
            properties: dict[str, str] = {}
            for each in more:
                name, _, said = each.partition("=")
                properties.setdefault(name, said)
            found.append((result[1], result[2], properties))
    return found


def _about(method: str, properties: dict[str, str], domain: str) -> bool:
    if method == "dkim":
        signer = properties.get("header.d") or properties.get("header.i", "").rpartition("@")[2]
        return signer == domain or ("." in signer and domain.endswith(f".{signer}"))
    if method == "spf":
        return properties.get("smtp.mailfrom", "").rpartition("@")[2] == domain
    return False


def _parts(value: str) -> list[str]:
    """What stands between semicolons, without comments; inside quotes nothing has a meaning.
    Nothing if it is not closed.
    """
    parts: list[str] = [""]
    depth, quoted, escaped = 0, False, False
    for char in value:
        if escaped:
            escaped = False
            continue
        if char == "\\" and (quoted or depth):
            escaped = True
        elif quoted:
            quoted = char != '"'
            parts[-1] += char if char.isalnum() or char in "@._-" else "?" if quoted else ""
        elif char == "(":
            depth += 1
            parts[-1] += " "
        elif depth:
            depth -= char == ")"
        elif char == '"':
            quoted = True
        elif char == ";":
            parts.append("")
        else:
            parts[-1] += char
    return [] if quoted or depth or escaped else parts
