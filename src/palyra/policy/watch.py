"""Reloads the policies when their files change. A change that does not load is reported and changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from palyra.policy.store import PolicyStore, Reloaded

OnChange = Callable[[PolicyStore, Reloaded], Awaitable[None]]


async def watch(
    stores: Iterable[PolicyStore | None], on_change: OnChange, stop: asyncio.Event | None = None, debounce_ms: int = 300
) -> None:
    """Watch the stores' folders until `stop` is set or the task is cancelled. `on_change` hears of new sets and of problems."""
    async with asyncio.TaskGroup() as group:
        for store in stores:
            if store is not None and store.folder is not None:
                group.create_task(_watch(store, on_change, stop, debounce_ms))


async def _watch(store: PolicyStore, on_change: OnChange, stop: asyncio.Event | None, debounce_ms: int) -> None:
    assert store.folder is not None
    from watchfiles import awatch  # costs start-up time that only a daemon should pay

    last: Reloaded | None = None
    # Its thread looks at every step whether something came: a quarter of a second is soon enough, and an idle machine stays idle.
    async for _ in awatch(store.folder, watch_filter=_is_ours, stop_event=stop, debounce=debounce_ms, step=250, recursive=False):
        before = store.version
        found = await asyncio.to_thread(store.reload)
        # An editor that saves in three steps wakes us three times; tell only what is news.
        if found.version != before or (found.problems and found != last):
            await on_change(store, found)
        last = found


def _is_ours(_change: object, path: str) -> bool:
    return path.endswith((".cedar", "/groups.toml"))
