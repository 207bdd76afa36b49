"""Reloads the policies when their files change. A change that does not load is reported and changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from palyra.policy import folder
from palyra.policy.store import PolicyStore, Reloaded

OnChange = Callable[[PolicyStore, Reloaded], Awaitable[None]]


async def watch(stores: Iterable[PolicyStore | None], on_change: OnChange, quiet_ms: int = 300) -> None:
    """Watch the stores' folders until the task is cancelled. `on_change` hears of new sets and of problems."""
    async with asyncio.TaskGroup() as group:
        for store in stores:
            if store is not None and store.folder is not None:
                group.create_task(_watch(store, on_change, quiet_ms))


async def _watch(store: PolicyStore, on_change: OnChange, quiet_ms: int) -> None:
    assert store.folder is not None
    last: Reloaded | None = None
    async for _ in folder.changes(store.folder, _is_ours, quiet_ms):
        before = store.version
        found = await asyncio.to_thread(store.reload)
        # An editor that saves in three steps wakes us three times; tell only what is news.
        if found.version != before or (found.problems and found != last):
            await on_change(store, found)
        last = found


def _is_ours(name: str) -> bool:
    return name.endswith(".cedar") or name == "groups.toml"
