"""MCP servers: tools of other people, offered once their owner has accepted them."""

from palyra.core.services import Services
from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.features.mcp.service import Mcp, Opener
    from palyra.features.mcp.settings import McpServers
    from palyra.features.vault.service import Vault
    from palyra.store.database import Database
    from palyra.system.thread_pool import everyday
    from palyra.tools.catalogue import Catalogue
    from palyra.tools.sandbox.sandbox import Sandbox

    opener = Opener(
        w.home / "mcp",
        w.get(Sandbox),
        w.resolver,
        w.get(Vault),
        w.secret,
        closed=w.forbidden,
        seals=w.get(Database).seals,
    )
    await everyday.run(opener.adopt)
    mcp = w.add(Mcp(w.get(Database), w.get(Catalogue), opener))

    async def apply(settings: Services) -> None:
        await mcp.apply(settings.get(McpServers).servers)

    w.after_runs(lambda: apply(w.settings))
    w.on_reload(apply)
    w.on_close(mcp.close, after_runs=True)
