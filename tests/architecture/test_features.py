"""Every feature is registered by one line, and a daemon runs and answers without it."""

import asyncio
from pathlib import Path

import pytest

import palyra.features
from palyra.features import FEATURES
from palyra.models.scripted import Turn
from palyra.serve.routes import routes_of
from tests.inprocess import daemon, entries, finished, say, session

FOLDER = Path(palyra.features.__file__).parent
NAMES = [each.name for each in FEATURES]


def test_every_folder_is_registered_once() -> None:
    folders = [each.name for each in FOLDER.iterdir() if (each / "__init__.py").exists()]
    assert sorted(NAMES) == sorted(folders)


def test_what_a_feature_needs_is_registered_before_it() -> None:
    for at, each in enumerate(FEATURES):
        assert set(each.needs) <= set(NAMES[:at]), each.name


@pytest.mark.parametrize("missing", NAMES)
def test_a_daemon_answers_without(missing: str, tmp_path: Path) -> None:
    left = tuple(each for each in FEATURES if each.name != missing)

    async def answer() -> str:
        async with daemon(tmp_path, [Turn(text="here I am")], features=left) as running:
            assert missing not in {each.name for each in running.features}
            where = await session(running)
            await finished(running, await say(running, where, "hello"))
            return (await entries(running, where.session_id))[-1].kind

    assert asyncio.run(answer()) == "run.completed"
    assert len(routes_of(left)) <= len(routes_of(FEATURES))
    assert "/v1/sessions" in {route.path for route in routes_of(left)}
