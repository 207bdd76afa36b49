"""Attempts to get out of shell.run in tier C: none reads, changes or reaches anything, as root and as an ordinary user."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.escapes.attempts import ALL
from tests.escapes.world import SECRET, WHO, World, world


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    path = Path("/dev/shm") / f"palyra-{os.getpid()}"
    path.write_text(SECRET)
    yield path
    path.unlink()


@pytest.fixture
def here() -> Iterator[World]:
    with world() as made:
        yield made


def spelt(name: str, here: World, shared: Path) -> str:
    """An attempt with this world's places put in."""
    command = ALL[name].command
    wanted = shared.name if "shm" in command else here.folder.name
    places = {"outside": here.outside, "home": here.home, "port": here.port, "pid": os.getpid(), "name": wanted}
    for key, value in places.items():
        command = command.replace("{" + key + "}", str(value))
    return command.replace("{{", "{").replace("}}", "}")


def got_through(text: str, here: World) -> bool:
    return SECRET in text or "ESCAPED" in text.replace("ESCAPED-NOT", "") or bool(here.knocks)


def test_there_are_enough_attempts() -> None:
    assert len(ALL) >= 50


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", ALL)
def test_an_attempt_is_contained(here: World, shared: Path, name: str, who: str) -> None:
    here.owned_by(who)
    before = here.kept()
    result = here.run(spelt(name, here, shared), who, timeout_s=20)
    assert result.data["tier"] == "C"
    assert not result.data["killed"]
    assert not got_through(result.text, here), result.text
    assert here.kept() == before
    assert here.processes() == []


@pytest.mark.parametrize("name", [name for name in ALL if ALL[name].works_bare])
def test_the_same_attempt_works_where_there_is_no_sandbox(here: World, shared: Path, name: str) -> None:
    """Otherwise the test above would prove nothing."""
    done = subprocess.run(
        ["bash", "-c", spelt(name, here, shared)],
        cwd=here.work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=30,
        check=False,
    )
    assert got_through(done.stdout.decode(errors="replace"), here), done.stdout.decode(errors="replace")[-2000:]
