"""Rules of who may talk to us at all: Host and Origin, so that no page elsewhere can; then the
token, its scope, and how often.
"""

from collections.abc import Sequence
from typing import Any

from palyra.api.auth import Access, allows
from palyra.api.calls import ANYBODY
from palyra.api.errors import WrongHost
from palyra.api.exposure import Exposure, names_of
from palyra.api.limits import Rates
from palyra.api.routes import Route
from palyra.core.errors import Forbidden, InvalidInput, Unauthenticated
from palyra.store.tokens import Token

COOKIE = "palyra_session"
# A browser's secret has two halves. It sends the cookie to every server on this machine, whatever
# the port; the other half is kept by our pages, which no page of another port can look into.
KEY_HEADER = b"x-palyra-key"
_KEY_QUERY = b"key="
# Headers of which the last would silently win.
_SINGLE = (
    b"authorization",
    b"content-type",
    b"content-length",
    b"cookie",
    b"last-event-id",
    b"origin",
    KEY_HEADER,
)


class HostCheck:
    """Names that this daemon is called by."""

    def __init__(self, exposure: Exposure, ports: Sequence[int]) -> None:
        self.answer_to(exposure, ports)

    def answer_to(self, exposure: Exposure, ports: Sequence[int]) -> None:
        """Accept the hosts of this daemon, from the next request on."""
        secure = exposure.tls
        names = names_of(exposure.host, exposure.names)
        hosts = {f"[{name}]" if ":" in name else name for name in names}
        own = {f"{host}:{port}" for host in hosts for port in ports} | (
            hosts if (443 if secure else 80) in ports else set()
        )
        self._hosts = frozenset(each.lower().encode() for each in (*own, *exposure.allowed_hosts))

    def check_host(self, raw: Sequence[tuple[bytes, bytes]], headers: dict[bytes, bytes]) -> None:
        """A browser that was tricked into taking us for another server (DNS rebinding) says so in
        its Host header.
        """
        host = headers.get(b"host")
        if host is None or (
            len(headers) != len(raw) and sum(name == b"host" for name, _ in raw) > 1
        ):
            raise WrongHost("a request needs exactly one Host header")
        if host.lower() not in self._hosts:
            raise WrongHost(
                f"this daemon is not {host[:100].decode('latin-1')!r}: call it by its address, or"
                " add the name to server.allowed_hosts",
                host=host[:100].decode("latin-1"),
            )


class Guard(HostCheck):
    def __init__(
        self,
        access: Access,
        rates: Rates,
        exposure: Exposure,
        ports: Sequence[int],
    ) -> None:
        self._access = access
        self._rates = rates
        super().__init__(exposure, ports)

    def answer_to(self, exposure: Exposure, ports: Sequence[int]) -> None:
        """Accept the hosts and origins of this daemon, from the next request on."""
        super().answer_to(exposure, ports)
        # With TLS every page of ours has it, too.
        self._schemes = (b"https://",) if exposure.tls else (b"http://", b"https://")
        self._origins = frozenset(
            each.rstrip("/").lower().encode() for each in exposure.allowed_origins
        )

    def check_single(self, raw: Sequence[tuple[bytes, bytes]], headers: dict[bytes, bytes]) -> None:
        """Two programs that read one request must not see two callers: what says who calls is given
        once.
        """
        if len(headers) != len(raw):
            names = [name for name, _ in raw]
            twice = next((name for name in _SINGLE if names.count(name) > 1), None)
            if twice is not None:
                raise InvalidInput(
                    f"the header {twice.decode()} is given twice: send it once",
                    header=twice.decode(),
                )

    def foreign_origin(self, headers: dict[bytes, bytes]) -> bytes | None:
        """The origin of another site that was allowed in, or None if there is no other site
        involved.
        """
        origin = headers.get(b"origin")
        return origin if origin is not None and origin.lower() in self._origins else None

    def check_origin(self, headers: dict[bytes, bytes], *, by_cookie: bool) -> None:
        """Anything with effects, and every WebSocket, comes from our own pages or from no page at
        all.
        """
        origin = headers.get(b"origin")
        if origin is None:
            if by_cookie:
                raise Forbidden(
                    "a browser session needs an Origin header here; programs use a token instead"
                )
            return
        host = headers[b"host"].lower()
        lowered = origin.lower()
        if (
            lowered not in [scheme + host for scheme in self._schemes]
            and lowered not in self._origins
        ):
            raise Forbidden(
                f"pages of {origin[:100].decode('latin-1')!r} may not do this: add the origin to"
                " server.allowed_origins if you trust it",
                origin=origin[:100].decode("latin-1"),
            )

    def admit(
        self, route: Route[Any, Any], headers: dict[bytes, bytes], address: str
    ) -> tuple[Token, bool]:
        """The caller's token and whether a cookie carried it. Open routes know nobody."""
        if route.scope is None:
            if route.counted:
                self.count(address)
            return ANYBODY, False
        token, by_cookie = self.identify(headers, address)
        self._rates.take(token.token_id)
        if not admits(token, route):
            raise Forbidden(
                f"a token with scope {token.scope} may not do this: it needs {route.scope}",
                scope=token.scope,
            )
        if route.has_effects:
            self.check_origin(headers, by_cookie=by_cookie)
        return token, by_cookie

    def identify(self, headers: dict[bytes, bytes], address: str) -> tuple[Token, bool]:
        authorization = headers.get(b"authorization")
        by_cookie = authorization is None
        secret = _bearer(authorization) if authorization is not None else _halves(headers)
        if not secret:
            self._rates.take(address)
            raise Unauthenticated(
                "this needs a token: send Authorization: Bearer TOKEN, or log in with the link of"
                " `palyra up`"
            )
        return self._access.identify(secret, address), by_cookie

    def knows(self, authorization: bytes) -> bool:
        """Return whether it is worth waiting for the rest of a request; who it is and what they may
        is seen when it has come.
        """
        return self._access.knows(_bearer(authorization))

    def count(self, address: str) -> None:
        """Count one request of somebody who needs no token."""
        self._rates.take(address)

    def take(self, token: Token) -> None:
        """Count one message of an open WebSocket like a request."""
        self._rates.take(token.token_id)


def admits(token: Token, route: Route[Any, Any]) -> bool:
    """Return whether a token's scope is enough for a route. A client gets the routes that are
    marked for it.
    """
    return (
        route.scope is None
        or allows(token.scope, route.scope)
        or (token.scope == "client" and route.client)
    )


def _bearer(authorization: bytes) -> str:
    scheme, _, secret = authorization.partition(b" ")
    return secret.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""


def split(secret: str) -> tuple[str, str]:
    """A browser's secret as the half for the cookie and the half for the page."""
    middle = len(secret) // 2
    return secret[:middle], secret[middle:]


def key_from_query(headers: dict[bytes, bytes], query: bytes) -> bytes:
    """The query without the page's half, which joins the headers: streams and downloads of a
    browser cannot send any.
    """
    if _KEY_QUERY not in query:
        return query
    kept = []
    for pair in query.split(b"&"):
        if pair.startswith(_KEY_QUERY):
            headers.setdefault(KEY_HEADER, pair.removeprefix(_KEY_QUERY))
        else:
            kept.append(pair)
    return b"&".join(kept)


def _halves(headers: dict[bytes, bytes]) -> str:
    cookie = _cookie(headers.get(b"cookie", b""))
    key = headers.get(KEY_HEADER, b"").decode("latin-1")
    return cookie + key if cookie and key else ""


def _cookie(header: bytes) -> str:
    for pair in header.decode("latin-1").split(";"):
        name, _, value = pair.partition("=")
        if name.strip() == COOKIE:
            return value.strip()
    return ""
