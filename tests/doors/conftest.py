"""A world with all doors open, for each file of tests that asks for one."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from tests.doors.doors import Door
from tests.doors.world import World, opened

Body = Callable[[World, Door], Coroutine[Any, Any, None]]


class Served:
    """The world, and its loop, which lives as long as it does."""

    def __init__(self, runner: asyncio.Runner, world: World) -> None:
        self.world = world
        self._runner = runner

    def run(self, body: Body, name: str) -> None:
        self._runner.run(asyncio.wait_for(body(self.world, self.world.doors[name]), 60))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with asyncio.Runner() as runner:
        context = opened(tmp_path_factory.mktemp("doors"))
        world = runner.run(context.__aenter__())
        try:
            yield Served(runner, world)
        finally:
            runner.run(context.__aexit__(None, None, None))
