"""A whole daemon in the test's own event loop: real journal, real policy, real tools, a scripted
model.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from palyra.agent.sessions import Resolve
from palyra.agent.submit import Submission, Submitted
from palyra.core.events import Entry
from palyra.core.ids import OWNER
from palyra.core.ports import ModelProvider
from palyra.core.verdicts import Origin
from palyra.features import FEATURES, Feature
from palyra.models.scripted import Script, ScriptedModel, Turn
from palyra.serve import config
from palyra.serve.config import ChosenModels, Loaded
from palyra.serve.wiring import daemon as wiring_daemon
from palyra.serve.wiring.daemon import Daemon
from palyra.store import tape
from palyra.store.sessions import Session
from palyra.system.clock import Clock
from palyra.tools.net.resolve import Resolver
from tests import stores
from tests.daemon import IMPATIENT as IMPATIENT
from tests.daemon_names import Inside

TERMINAL = ("run.completed", "run.failed", "run.cancelled")


@asynccontextmanager
async def daemon(
    folder: Path,
    model: ModelProvider | Sequence[Turn] | dict[str, Sequence[Turn]],
    settings: str = "",
    *,
    window: int = 128_000,
    summary: str = "",
    resolver: Resolver | None = None,
    clock: Clock | None = None,
    features: Sequence[Feature] = FEATURES,
) -> AsyncIterator[Any]:
    """A daemon with its home in `folder/home` and an existing workspace in `folder/work`. Opening
    it again resumes.
    """
    home, work = folder / "home", folder / "work"
    home.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        f"""[models]
default = "scripted/one"
summary = "{summary}"
[providers.scripted]
kind = "scripted"
models = ["one"]
script = "none"
context_tokens = {window}
[workspace]
root = "{work}"
[rehearsal]
tools = true
{settings}"""
    )
    env = stores.environment(home)
    loaded = config.load(home, env)
    models = dict.fromkeys(("scripted", "demo", "blind"), _model(model))
    opened = await wiring_daemon.start(
        loaded,
        _chosen(loaded),
        env,
        providers=models,
        resolver=resolver,
        clock=clock,
        features=features,
    )
    try:
        yield Inside(opened)
    finally:
        await opened.close()


def _chosen(loaded: Loaded) -> ChosenModels:
    return config.choose(loaded.config, [])


def _model(model: ModelProvider | Sequence[Turn] | dict[str, Sequence[Turn]]) -> ModelProvider:
    if isinstance(model, dict):
        return ScriptedModel(Script({trigger: tuple(turns) for trigger, turns in model.items()}))
    if isinstance(model, Sequence):
        return ScriptedModel(Script.of(model))
    return model


async def session(daemon: Daemon, **wanted: Any) -> Session:
    return await daemon.sessions.resolve(OWNER, Resolve(**wanted))


async def say(
    daemon: Daemon, where: Session, text: str, *, origin: Origin = "interactive", **more: Any
) -> Submitted:
    return await daemon.gateway.submit(
        OWNER, where.session_id, Submission(text=text, **more), origin=origin
    )


async def entries(daemon: Daemon, session_id: str) -> list[Entry]:
    stored = await daemon.db.read(lambda tx: tape.after(tx, session_id, 0, 100_000))
    return [msgspec.json.decode(entry.wire, type=Entry) for entry in stored]


async def kinds(daemon: Daemon, session_id: str) -> list[str]:
    return [entry.kind for entry in await entries(daemon, session_id)]


async def until(
    daemon: Daemon,
    session_id: str,
    *wanted: str,
    run_id: str = "",
    after: int = 0,
    seconds: float = 60,
) -> Entry:
    """The first entry of one of these kinds (of this run), waiting for it if need be."""

    async def wait() -> Entry:
        async for batch in daemon.gateway.watch(OWNER, session_id, after):
            for seq, wire in batch:
                if seq:
                    entry = msgspec.json.decode(wire, type=Entry)
                    if entry.kind in wanted and run_id in ("", entry.run_id):
                        return entry
        raise AssertionError("the watch ended")

    return await asyncio.wait_for(wait(), seconds)


async def finished(daemon: Daemon, run: Submitted) -> Entry:
    return await until(daemon, run.session_id, *TERMINAL, run_id=run.run_id)


def body(entry: Entry) -> dict[str, Any]:
    return dict(msgspec.json.decode(entry.event))
