"""The kernel's own tools, and the browsers."""

import logging
from collections.abc import Mapping

from palyra.core.labels import Label
from palyra.core.ports import CallContext
from palyra.core.services import Services
from palyra.features.memory.embedding import Embedding
from palyra.features.memory.recall import Transcripts
from palyra.features.memory.service import Memory
from palyra.features.memory.tools import offer
from palyra.features.schedules import tools as schedule_tools
from palyra.features.schedules.service import Schedules
from palyra.features.schedules.tools import SchedulePlanner
from palyra.features.subagents import tools as subagent_tools
from palyra.features.vault.keys import KeyFile
from palyra.features.vault.service import Vault
from palyra.serve.config import Config, Loaded
from palyra.serve.wiring.foundation import Foundation
from palyra.store import artifacts
from palyra.store.database import Database, Tx
from palyra.store.sqlite import Sqlite
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools import standard
from palyra.tools.browser import discovery
from palyra.tools.browser.port import BrowserPool
from palyra.tools.catalogue import Catalogue, TypedTool
from palyra.tools.net.egress import Egress
from palyra.tools.net.resolve import Resolver
from palyra.tools.plan import DeclarePlan
from palyra.tools.sandbox.sandbox import Sandbox
from palyra.tools.shell import tools as shell
from palyra.tools.shell.jobs import Jobs
from palyra.tools.shell.runner import Runner
from palyra.tools.web import fetch

log = logging.getLogger("palyra")


def own(
    ground: Foundation, services: Services, runner: Runner, jobs: Jobs, *, rehearsal: bool
) -> Catalogue:
    """The kernel's tools. Secrets come from the vault, if there is one."""
    fence = ground.fence

    def load(artifact_id: str, session_id: str) -> tuple[bytes, Label] | None:
        def query(tx: Tx) -> tuple[bytes, Label] | None:
            found = artifacts.artifact(tx, session_id, artifact_id)
            if found is None:
                return None
            return found.body, artifacts.artifact_label(tx, session_id, artifact_id)

        return ground.db.read_from_thread(query)

    async def secret(reference: str, host: str, context: CallContext) -> str:
        return await services.get(Vault).resolve(
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
    )
    if rehearsal:
        from palyra.tools import crash_test_tools

        offered += crash_test_tools.tools(fence)
    return Catalogue(offered, beside=(DeclarePlan(),))


def to_look_at(loaded: Loaded) -> Catalogue:
    """The tools as they describe themselves and read arguments, with nobody behind them."""
    home, clock = loaded.home, Clock()
    db = Database(Sqlite(home / "journal.db"), clock.now_ms)
    redactor, resolver = Redactor(bytes(32)), Resolver()
    runner = Runner(Sandbox(), Egress(resolver))
    jobs = Jobs(runner, home / "jobs", redactor, clock.now_ms)
    ground = Foundation(loaded.config, home, clock, db, redactor, resolver, ())
    catalogue = own(ground, Services(), runner, jobs, rehearsal=True)
    catalogue.renew("agents", subagent_tools.tools())
    embedding = Embedding(db, None)
    offer(catalogue, db, Memory(db, redactor, clock, embedding), Transcripts(db, embedding))
    vault = Vault(db, redactor, clock, KeyFile(home / "keys" / "vault.key"))
    schedules = Schedules(
        db, catalogue, lambda name: None, vault, redactor, clock, zone="UTC", forbidden=()
    )
    catalogue.renew("schedules", schedule_tools.tools(SchedulePlanner(db, schedules)))
    return catalogue


def browsers(
    given: Config, env: Mapping[str, str], resolver: Resolver, sandbox: Sandbox, offer: Catalogue
) -> BrowserPool | None:
    """Offer the browser tools where Playwright and Chromium are installed; a browser starts with
    the first page.
    """
    installed = discovery.find(env, given.browser.chromium) if given.browser.enabled else None
    if not isinstance(installed, discovery.Installed):
        if given.browser.chromium and installed is not None:
            log.warning("there is no browser: %s; %s", installed.what, installed.fix)
        return None
    from palyra.tools.browser import tools as browser
    from palyra.tools.browser.pool import Browsers

    opened = Browsers(sandbox, resolver, installed)
    offer.renew("browser", browser.tools(opened))
    return BrowserPool(opened)
