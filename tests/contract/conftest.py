"""Contracts of the store hold on SQLite and on PostgreSQL: each of these tests runs on both."""

from collections.abc import Iterator

import pytest

from tests import stores

# Folders of which every test runs on both, but for those that are about SQLite's file.
_ON_BOTH = ("store", "tasks", "memory")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = metafunc.module.__name__.split(".")[2]
    if folder not in _ON_BOTH or "store" not in metafunc.fixturenames:
        return
    of_the_file = metafunc.definition.get_closest_marker("sqlite") is not None
    known = [stores.SQLITE] if of_the_file else [stores.SQLITE, stores.POSTGRES]
    metafunc.parametrize("store", known, indirect=True)


@pytest.fixture(autouse=True)
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """The store that the test's journals lie in."""
    before = stores.chosen
    wanted = getattr(request, "param", before)
    stores.choose(wanted)
    yield wanted
    stores.choose(before)
