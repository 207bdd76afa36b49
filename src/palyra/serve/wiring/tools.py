"""What can be done: our own tools, and the openers of those that come from elsewhere."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from palyra.core.labels import Label
from palyra.core.ports import CallContext
from palyra.features.mcp.service import Opener
from palyra.features.memory import session_search
from palyra.features.memory import tools as memory_tools
from palyra.features.memory.embedding import Embedding
from palyra.features.memory.service import Memory
from palyra.features.memory.tool_port import SessionKeeper
from palyra.features.memory.transcripts import Transcripts
from palyra.features.skills import network as skill_network
from palyra.features.skills.host import SecretRequest, World
from palyra.features.subagents import tools as subagents_tools
from palyra.features.vault.keys import KeyFile
from palyra.features.vault.service import Vault
from palyra.serve import config
from palyra.serve.config import Loaded
from palyra.serve.wiring import schedules
from palyra.serve.wiring.foundation import Foundation
from palyra.store import artifacts
from palyra.store.database import Database, Tx
from palyra.store.sqlite import Sqlite
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools import standard
from palyra.tools.browser import discovery as browser_finding
from palyra.tools.catalogue import Catalogue, TypedTool
from palyra.tools.net.egress import Egress
from palyra.tools.net.resolve import Resolver
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell import tools as shell
from palyra.tools.shell.jobs import Jobs
from palyra.tools.shell.runner import Runner
from palyra.tools.web import fetch

if TYPE_CHECKING:
    from palyra.tools.browser.pool import Browsers

log = logging.getLogger("palyra")


def own(ground: Foundation, runner: Runner, jobs: Jobs, *, rehearsal: bool) -> Catalogue:
    fence = ground.fence

    def load(artifact_id: str, session_id: str) -> tuple[bytes, Label] | None:
        def query(tx: Tx) -> tuple[bytes, Label] | None:
            found = artifacts.artifact(tx, session_id, artifact_id)
            return (
                (found.body, artifacts.artifact_label(tx, session_id, artifact_id))
                if found
                else None
            )

        return ground.db.read_from_thread(query)

    async def secret(reference: str, host: str, context: CallContext) -> str:
        return await ground.vault.resolve(
            reference,
            principal=context.principal,
            session=context.session_id,
            tool="http.fetch",
            host=host.partition(":")[0],
        )

    offered: tuple[TypedTool, ...] = (
        *standard.tools(fence, load),
        *shell.tools(runner, jobs, fence),
        *fetch.tools(ground.resolver, secret=secret),
        *subagents_tools.tools(),
    )
    if rehearsal:
        from palyra.tools import crash_test_tools as pretended

        offered += pretended.tools(fence)
    return Catalogue(offered)


def offer_memory(
    catalogue: Catalogue, db: Database, memory: Memory, transcripts: Transcripts
) -> None:
    catalogue.renew(
        "memory",
        (*memory_tools.tools(SessionKeeper(db, memory)), *session_search.tools(transcripts)),
    )


def to_look_at(loaded: Loaded) -> Catalogue:
    """Our own tools without a daemon behind them: what they say of themselves and how they read
    arguments, nothing else.
    """
    home, clock = loaded.home, Clock()
    db = Database(Sqlite(home / "journal.db"), clock.now_ms)
    redactor, resolver = Redactor(bytes(32)), Resolver()
    vault = Vault(db, redactor, clock, KeyFile(home / "keys" / "vault.key"))
    runner = Runner(Sandbox(), Egress(resolver))
    jobs = Jobs(runner, home / "jobs", redactor, clock.now_ms)
    ground = Foundation(loaded.config, home, clock, db, redactor, vault, resolver, ())
    catalogue = own(ground, runner, jobs, rehearsal=True)
    embedding = Embedding(db, None)
    offer_memory(catalogue, db, Memory(db, redactor, clock, embedding), Transcripts(db, embedding))
    schedules.to_look_at(ground, catalogue)
    return catalogue


def browsers(
    ground: Foundation, env: Mapping[str, str], sandbox: Sandbox, catalogue: Catalogue
) -> "Browsers | None":
    """Where Playwright and Chromium are installed, the browser tools are on offer; a browser starts
    with the first page.
    """
    given = ground.config
    installed = browser_finding.find(env, given.browser.chromium) if given.browser.enabled else None
    if not isinstance(installed, browser_finding.Installed):
        if given.browser.chromium and installed is not None:
            log.warning("there is no browser: %s; %s", installed.what, installed.fix)
        return None
    from palyra.tools.browser import tools as browser
    from palyra.tools.browser.pool import Browsers

    browsers = Browsers(sandbox, ground.resolver, installed)
    catalogue.renew("browser", browser.tools(browsers))
    return browsers


def mcp_opener(ground: Foundation, env: Mapping[str, str], sandbox: Sandbox) -> Opener:
    def look_up(reference: str) -> str:
        return config.secret(reference, env)

    return Opener(
        ground.home / "mcp",
        sandbox,
        ground.resolver,
        ground.vault,
        look_up,
        closed=ground.forbidden,
    )


def lent_to_skills(ground: Foundation) -> World:
    async def secret(asked: SecretRequest, context: CallContext) -> str:
        host = asked.host.partition(":")[0] if asked.host else None
        reference = f"vault:{asked.name}"
        return await ground.vault.resolve(
            reference,
            principal=context.principal,
            session=context.session_id,
            tool=asked.tool,
            host=host,
            skill=asked.skill,
        )

    return World(ground.fence, skill_network.http(ground.resolver), secret)
