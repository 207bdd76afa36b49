"""Web search by one engine that the owner chose: self-hosted, or a service with a key."""

from palyra.core.services import Services
from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.core.ports import CallContext
    from palyra.features.vault.service import Vault
    from palyra.features.web_search.model import SearchSettings
    from palyra.tools.catalogue import Catalogue

    async def secret(reference: str, host: str, context: CallContext) -> str:
        if not reference.startswith("vault:"):
            return w.secret(reference)
        return await w.get(Vault).resolve(
            reference,
            principal=context.principal,
            session=context.session_id,
            tool="web.search",
            host=host,
        )

    async def offer(settings: Services) -> None:
        given = settings.get(SearchSettings)
        if not given.engine:
            w.get(Catalogue).renew("web_search", ())
            return
        # Late: few have an engine.
        from palyra.features.web_search import engines
        from palyra.features.web_search.service import WebSearch
        from palyra.features.web_search.tools import Search
        from palyra.tools.net.http_request import Http

        resolver = w.resolver
        if given.url:
            # The owner named it, so it may be on this machine or its network.
            place = engines.place(given.engine, given.url)
            resolver = resolver.allowing((f"{place.host}:{place.port}",))
        search = WebSearch(given, Http(resolver), secret)
        w.get(Catalogue).renew("web_search", (Search(search),))

    await offer(w.settings)
    w.on_reload(offer)
