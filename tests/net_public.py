"""Run inside a network namespace whose loopback has public addresses: fetches that need no
allowance, and DNS rebinding.
"""

import asyncio

from palyra.tools.net.resolve import Resolver
from tests.net_world import Names, Site, Web, answer, redirect, run

PUBLIC, PUBLIC_SIX = "93.184.216.34", "2606:4700::1111"
PAGES = {"/": answer("public", 200, content_type="text/plain"), "/again": redirect("/")}


async def main() -> None:
    async with (
        Site(PAGES, port=80, address=PUBLIC) as site,
        Site(PAGES, port=80, address=PUBLIC_SIX) as six,
        Site({"": answer("you reached me")}, port=80) as canary,
    ):
        web = Web(
            Resolver(Names({"four.example": [[PUBLIC]], "six.example": [[PUBLIC_SIX, PUBLIC]]}))
        )
        print(f"a public address is fetched: {(await web.fetch('http://four.example/')).outcome}")
        print(f"an IPv6 address is fetched: {(await web.fetch('http://six.example/')).outcome}")
        assert (site.connections, six.connections) == (1, 1)
        names = Names({"turning.example": [[PUBLIC], ["127.0.0.1"]]})
        web = Web(Resolver(names))
        first = await web.fetch("http://turning.example/")
        print(f"rebinding, first fetch: {first.outcome}, {len(names.lookups)} lookup")
        second = await web.fetch("http://turning.example/")
        print(f"rebinding, second fetch: {second.outcome}, {len(names.lookups)} lookups")
        web = Web(Resolver(Names({"turning.example": [[PUBLIC], ["127.0.0.1"]]})))
        print(
            f"rebinding between hops: {(await web.fetch('http://turning.example/again')).outcome}"
        )
        print(f"canary heard {canary.connections}")


if __name__ == "__main__":
    run(asyncio.wait_for(main(), 30))
