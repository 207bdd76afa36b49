"""Contracts of the store hold on SQLite and on PostgreSQL: each of these tests runs on both."""

from collections.abc import Iterator

import pytest

from tests import stores

# Folders of which every test runs on both, but for those about one of them.
_ON_BOTH = ("store", "tasks", "memory")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    folder = metafunc.module.__name__.split(".")[2]
    if folder not in _ON_BOTH or "store" not in metafunc.fixturenames:
        return
    known = [
        each
        for each, other in ((stores.SQLITE, stores.POSTGRES), (stores.POSTGRES, stores.SQLITE))
        if metafunc.definition.get_closest_marker(other) is None
    ]
    metafunc.parametrize("store", known, indirect=True)


@pytest.fixture(autouse=True)
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """The store that the test's journals lie in."""
    before = stores.chosen
    wanted = getattr(request, "param", before)
    stores.choose(wanted)
    yield wanted
    stores.choose(before)
