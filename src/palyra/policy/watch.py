"""Reloads the policies when their files change. A change that does not load is reported and changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable

from palyra.policy.store import PolicyStore, Reloaded


async def watch(
    store: PolicyStore, on_change: Callable[[Reloaded], Awaitable[None]], stop: asyncio.Event | None = None, debounce_ms: int = 300
) -> None:
    """Watch the store's folder until `stop` is set or the task is cancelled. `on_change` hears of new sets and of problems."""
    if store.folder is None:
        return
    from watchfiles import awatch  # costs start-up time that only a daemon should pay

    last: Reloaded | None = None
    async for _ in awatch(store.folder, watch_filter=_is_ours, stop_event=stop, debounce=debounce_ms, recursive=False):
        before = store.version
        found = await asyncio.to_thread(store.reload)
        # An editor that saves in three steps wakes us three times; tell only what is news.
        if found.version != before or (found.problems and found != last):
            await on_change(found)
        last = found


def _is_ours(_change: object, path: str) -> bool:
    return path.endswith((".cedar", "/groups.toml"))
