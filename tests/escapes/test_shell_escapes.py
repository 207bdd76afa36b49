"""Attempts to get out of shell.run in tier C: none reads, changes or reaches anything, as root and
as an ordinary user.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.escapes.attempts import ALL, CALLS
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
    places = {
        "outside": here.outside,
        "home": here.home,
        "port": here.port,
        "udp": here.udp,
        "pid": here.pid,
        "name": wanted,
    }
    for key, value in places.items():
        command = command.replace("{" + key + "}", str(value))
    return command.replace("{{", "{").replace("}}", "}")


def got_through(text: str, here: World) -> bool:
    return SECRET in text or "ESCAPED" in text.replace("ESCAPED-NOT", "") or bool(here.knocks)


def test_there_are_enough_attempts() -> None:
    assert len(ALL) >= 60


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


# What tier B does not stop, as docs/security.md says. Two attempts are about root and are tried in
# another way below.
OPEN_IN_TIER_B = {
    "a hard link to a hidden file",
    "reading hidden files",
    "moving what is above a hidden file",
    "moving a hidden file",
    "packing the whole workspace",
    "searching it all",
    "interfaces of the host",
}
# Where there is a repository, tier B runs nothing that may write.
REFUSED_IN_TIER_B = {"git's hooks and settings", "another .git in its place"}
ABOUT_ROOT = {"root by a setuid program", "capabilities"}


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize(
    "name", [name for name in ALL if name not in OPEN_IN_TIER_B | REFUSED_IN_TIER_B | ABOUT_ROOT]
)
def test_an_attempt_is_contained_in_tier_b_too(
    here: World, shared: Path, name: str, who: str
) -> None:
    here.owned_by(who)
    here.forget_git()
    before = here.kept()
    result = here.run(spelt(name, here, shared), who, most="B", timeout_s=20)
    assert result.data["tier"] == "B"
    assert not got_through(result.text, here), result.text
    assert here.kept() == before
    assert here.processes() == []


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", sorted(OPEN_IN_TIER_B))
def test_what_tier_b_is_said_not_to_stop_it_does_not_stop(
    here: World, shared: Path, name: str, who: str
) -> None:
    """So that the page about security neither promises too much nor warns of what is no longer
    true.
    """
    here.owned_by(who)
    here.forget_git()
    assert got_through(here.run(spelt(name, here, shared), who, most="B", timeout_s=20).text, here)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", sorted(REFUSED_IN_TIER_B))
def test_tier_b_runs_nothing_that_may_write_in_a_repository(
    here: World, shared: Path, name: str, who: str
) -> None:
    here.owned_by(who)
    before = here.kept()
    with pytest.raises(AssertionError, match="install bubblewrap"):
        here.run(spelt(name, here, shared), who, most="B", timeout_s=20)
    assert here.kept() == before


@pytest.mark.parametrize("who", WHO)
def test_in_tier_b_even_root_has_no_privileges_left(here: World, who: str) -> None:
    here.owned_by(who)
    here.forget_git()
    said = here.run(
        "grep -E 'Cap(Inh|Prm|Eff|Amb)|NoNewPrivs' /proc/self/status; chown 1 plain.txt || echo refused",
        who,
        most="B",
    ).text
    assert said.count("0000000000000000") == 4
    assert "NoNewPrivs:\t1" in said
    assert "refused" in said


def bare(here: World, shared: Path, name: str) -> str:
    """What the attempt shows where there is no sandbox. A careless daemon's secret and open file
    are there to be found.
    """
    journal = os.open(here.home / "journal.db", os.O_RDONLY)
    done = subprocess.run(
        ["bash", "-c", spelt(name, here, shared)],
        cwd=here.work,
        env={**os.environ, "DAEMON_TOKEN": SECRET, "LD_CARELESS": "x"},
        pass_fds=[journal],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=30,
        check=False,
    )
    os.close(journal)
    return done.stdout.decode(errors="replace")


def _mighty() -> bool:
    """Whether this is a root that lacks no capability, as few containers give."""
    status = Path("/proc/self/status").read_text()
    return os.geteuid() == 0 and all(
        int(status.split("CapEff:")[1].split()[0], 16) >> bit & 1
        for bit in (1, 16, 18, 19, 21, 24, 27)
    )


@pytest.mark.parametrize(
    "name",
    [name for name in ALL if ALL[name].works_bare is True or (ALL[name].works_bare and _mighty())],
)
def test_the_same_attempt_works_where_there_is_no_sandbox(
    here: World, shared: Path, name: str
) -> None:
    """Otherwise the test above would prove nothing."""
    said = bare(here, shared, name)
    assert got_through(said, here), said[-2000:]


def test_most_of_the_system_calls_are_let_through_where_there_is_no_sandbox(
    here: World, shared: Path
) -> None:
    """Not each on each machine: some need root, some are left out of some kernels."""
    let_through = [name for name in CALLS if got_through(bare(here, shared, name), here)]
    assert len(let_through) >= len(CALLS) // 2, let_through
