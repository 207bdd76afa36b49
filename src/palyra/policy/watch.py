"""Reloads the policies when their files change. A change that does not load is reported and changes
nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from palyra.policy import folder
from palyra.policy.store import PolicyStore, Reloaded

log = logging.getLogger("palyra.policy")
_AGAIN_S = 5.0

OnChange = Callable[[PolicyStore, Reloaded], Awaitable[None]]


async def watch(
    stores: Iterable[PolicyStore | None], on_change: OnChange, quiet_ms: int = 300
) -> None:
    """Watch the stores' folders until the task is cancelled. `on_change` hears of new sets and of
    problems.
    """
    async with asyncio.TaskGroup() as group:
        for store in stores:
            if store is not None and store.folder is not None:
                group.create_task(_watch(store, on_change, quiet_ms))


async def _watch(store: PolicyStore, on_change: OnChange, quiet_ms: int) -> None:
    assert store.folder is not None
    last: Reloaded | None = None
    missed = False
    while True:
        try:
            if missed:
                last = await _reload(store, on_change, last)
            async for _ in folder.changes(store.folder, _is_ours, quiet_ms):
                last = await _reload(store, on_change, last)
        except Exception:
            # Who changes a policy relies on it: the watch must not end in silence.
            log.exception(
                "the policies in %s cannot be watched; it is tried again in a moment", store.folder
            )
            missed = True
            await asyncio.sleep(_AGAIN_S)


async def _reload(store: PolicyStore, on_change: OnChange, last: Reloaded | None) -> Reloaded:
    before = store.version
    found = await asyncio.to_thread(store.reload)
    # An editor that saves in three steps wakes us three times; tell only what is news.
    if found.version != before or (found.problems and found != last):
        await on_change(store, found)
    return found


def _is_ours(name: str) -> bool:
    return name.endswith(".cedar") or name == "groups.toml"
