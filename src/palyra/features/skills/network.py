"""`host.http` over the daemon's own fetching: the same judged addresses, and no redirect out of the
granted hosts.
"""

import ssl
from time import monotonic

from palyra.core.errors import InvalidInput
from palyra.core.ports import CallContext
from palyra.features.skills.host import Http, Incoming, SkillRequest
from palyra.tools.net import http_request, urls
from palyra.tools.net.resolve import Resolver
from palyra.tools.web.cache import Cache
from palyra.tools.web.redirects import Follower

_OURS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "cookie",
    }
)


def http(resolver: Resolver, *, tls: ssl.SSLContext | None = None) -> Http:
    follower = Follower(http_request.Http(resolver, tls=tls), Cache(monotonic))

    async def send(request: SkillRequest, hosts: frozenset[str], context: CallContext) -> Incoming:
        url = urls.parse(request.url)
        resolver.check(url.host, url.port)
        for name, value in request.headers.items():
            if (
                name.lower() in _OURS
                or not name.isascii()
                or not value.isascii()
                or not (name + value).isprintable()
            ):
                raise InvalidInput(f"the header {name[:64]!r} cannot be set like that")
        headers = tuple((name.lower(), value) for name, value in request.headers.items())
        body = request.body.encode() if request.method == "POST" else None
        # A header may hold a credential: with headers of its own a request is not sent on to
        # another place.
        permitted = frozenset({url.authority}) if headers else hosts
        made = http_request.HttpRequest(method=request.method, url=url, headers=headers, body=body)
        answer = (await follower.fetch(made, permitted)).response
        return Incoming(answer.status, dict(answer.headers), answer.body.decode("utf-8", "replace"))

    return send
