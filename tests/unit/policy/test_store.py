"""Loading and reloading: a set is whole or it is not loaded, and a broken file leaves the last good
one in force.
"""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import ConfigInvalid
from palyra.core.verdicts import Allow, Deny
from palyra.policy import folder as policy_watch
from palyra.policy import policy_set
from palyra.policy.folder import watch
from palyra.policy.policy_set import PRESETS
from palyra.policy.sources import PolicyProblem
from palyra.policy.store import PolicyStore, Reloaded, check, load
from tests.policy_calls import MCP, READ, SHELL, call, scope

MCP_PERMIT = '@id("git") @reason("git is fine")\npermit (principal, action, resource == Tool::"mcp:git/log");\n'
NO_READING = '@id("no-reading") forbid (principal, action, resource == Tool::"fs.read");\n'


def test_the_operators_permit_lifts_what_the_preset_leaves_denied(tmp_path: Path) -> None:
    before = PolicyStore(tmp_path, "default").judge(call(MCP, scope()))
    (tmp_path / "mine.cedar").write_text(MCP_PERMIT)
    assert isinstance(before, Deny)
    assert PolicyStore(tmp_path, "default").judge(call(MCP, scope())) == Allow(
        "git is fine", ("git",)
    )


def test_the_operators_forbid_wins_over_the_preset(tmp_path: Path) -> None:
    (tmp_path / "mine.cedar").write_text(NO_READING)
    assert PolicyStore(tmp_path, "default").judge(call(READ)) == Deny(
        "decided by policy no-reading", ("no-reading",)
    )


def test_loading_names_every_problem_of_every_file_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_text("permit (principal, action, resorce);")
    (tmp_path / "b.cedar").write_text(
        "\npermit (principal, action, resource) when { context.colour };"
    )
    (tmp_path / "c.cedar").write_bytes(b"// \xff\xfe")
    (tmp_path / "d.cedar").mkdir()
    (tmp_path / "groups.toml").write_text("[people]\nx = []")
    with pytest.raises(ConfigInvalid) as caught:
        load(tmp_path, "default")
    problems: list[PolicyProblem] = caught.value.details["problems"]
    assert sorted((Path(problem.file).name, problem.line) for problem in problems) == [
        ("a.cedar", 1),
        ("b.cedar", 2),
        ("c.cedar", 0),
        ("d.cedar", 0),
        ("groups.toml", 0),
    ]
    assert all(str(problem) in caught.value.message for problem in problems)
    assert check(tmp_path, "default") == problems


def test_two_policies_of_one_id_are_an_error_that_names_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_text(MCP_PERMIT)
    (tmp_path / "b.cedar").write_text("// first line\n" + MCP_PERMIT)
    (problem,) = check(tmp_path, "default")
    assert (problem.file, problem.line) == (str(tmp_path / "b.cedar"), 2)
    assert f"{tmp_path / 'a.cedar'}:1" in problem.message


def test_an_id_of_the_shipped_policies_cannot_be_taken(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_text(
        '@id("labels-untrusted-asks") permit (principal, action, resource);'
    )
    (problem,) = check(tmp_path, "default")
    assert "shipped/labels.cedar" in problem.message


def test_a_folder_that_is_not_there_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    (problem,) = check(tmp_path / "polices", "default")
    assert "no such policy folder" in problem.message


def test_an_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigInvalid, match="locked, default, coding, research"):
        load(None, "open")


def test_the_version_is_of_the_content_and_of_nothing_else(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "mine.cedar").write_text(MCP_PERMIT)
    same = {load(here, "default").version, load(there, "default").version}
    assert len(same) == 1
    (there / "mine.cedar").write_text(MCP_PERMIT + "// a word more\n")
    (here / "groups.toml").write_text('[principals]\nfamily = ["user:anna"]\n')
    versions = (
        {load(None, preset).version for preset in PRESETS}
        | same
        | {load(there, "default").version, load(here, "default").version}
    )
    assert len(versions) == 4 + 1 + 2


def test_a_reload_says_what_came_went_and_changed(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_text(MCP_PERMIT + NO_READING)
    store = PolicyStore(tmp_path, "default")
    first = store.version
    (tmp_path / "a.cedar").write_text(MCP_PERMIT.replace("fine", "good"))
    (tmp_path / "b.cedar").write_text('permit (principal, action, resource == Tool::"fs.list");')
    found = store.reload()
    assert found == Reloaded(
        version=store.version, added=("b-1",), removed=("no-reading",), changed=("git",)
    )
    assert store.version != first
    assert isinstance(store.judge(call(READ)), Allow)


@pytest.mark.parametrize(
    "breakage",
    [
        "permit (",
        'permit (principal, action, resource == Tool::"shell.run");\npermit (principal, action, resorce);',
    ],
    ids=["nothing parses", "the first policy alone would load"],
)
def test_a_broken_file_leaves_the_last_good_set_in_force(tmp_path: Path, breakage: str) -> None:
    (tmp_path / "a.cedar").write_text(NO_READING)
    (tmp_path / "b.cedar").write_text("// nothing yet")
    store = PolicyStore(tmp_path, "default")
    before, good = store.version, store.current
    shell = store.judge(call(SHELL))
    (tmp_path / "a.cedar").unlink()
    (tmp_path / "b.cedar").write_text(breakage)
    found = store.reload()
    assert (found.version, found.added, found.removed) == (before, (), ())
    assert {Path(problem.file).name for problem in found.problems} == {"b.cedar"}
    assert store.current is good
    assert isinstance(store.judge(call(READ)), Deny)
    assert store.judge(call(SHELL)) == shell
    (tmp_path / "b.cedar").unlink()
    assert store.reload().problems == ()
    assert isinstance(store.judge(call(READ)), Allow)


def test_a_folder_that_vanishes_leaves_the_last_good_set_in_force(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "a.cedar").write_text(NO_READING)
    store = PolicyStore(folder, "default")
    (folder / "a.cedar").unlink()
    folder.rmdir()
    assert len(store.reload().problems) == 1
    assert isinstance(store.judge(call(READ)), Deny)


def test_a_slow_reload_does_not_put_back_what_a_quicker_one_has_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PolicyStore(tmp_path, "default")
    real, read, replaced = policy_set.build, threading.Event(), threading.Event()

    def slow(*given: Any) -> Any:
        found = real(*given)
        if not read.is_set():
            read.set()
            # It goes on when the other one is done, or soon because that one waits for it.
            replaced.wait(0.5)
        return found

    monkeypatch.setattr(policy_set, "build", slow)
    with ThreadPoolExecutor() as threads:
        slowly = threads.submit(store.reload)
        assert read.wait(20)
        threads.submit(store.reload, "locked").add_done_callback(lambda _: replaced.set())
    assert slowly.result().problems == ()
    assert (store.preset, store.version) == ("locked", load(tmp_path, "locked").version)


def test_who_changes_a_file_is_told_what_that_changed_whoever_else_reads_it(tmp_path: Path) -> None:
    store = PolicyStore(tmp_path, "default")

    def write() -> None:
        (tmp_path / "mine.cedar").write_text(NO_READING)
        wait([threads.submit(store.reload)], timeout=0.5)

    with ThreadPoolExecutor() as threads:
        _, told = store.change(write)
    assert told.added == ("no-reading",)


def test_groups_are_read_from_the_folder(tmp_path: Path) -> None:
    (tmp_path / "groups.toml").write_text(
        '[principals]\nfamily = ["user:anna"]\n[tools]\ngit = ["mcp:git/log"]\n'
    )
    (tmp_path / "a.cedar").write_text(
        'permit (principal in Group::"family", action, resource in Group::"git");'
    )
    store = PolicyStore(tmp_path, "default")
    verdicts = [
        type(store.judge(call(MCP, scope(), principal=who))).__name__
        for who in ("user:anna", "user:owner")
    ]
    assert verdicts == ["Allow", "Deny"]


def test_a_defect_in_who_hears_of_a_change_does_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_watch, "_AGAIN_S", 0.01)
    store = PolicyStore(tmp_path, "default")

    async def scenario() -> None:
        told: asyncio.Queue[Reloaded] = asyncio.Queue()

        async def hear(_: PolicyStore, change: Reloaded) -> None:
            told.put_nowait(change)
            if told.qsize() == 1:
                raise RuntimeError("a defect")

        watching = asyncio.create_task(watch([store], hear, quiet_ms=10))
        for number in range(100):
            # Written until it is heard twice: the watch may not have begun, or not begun again.
            (tmp_path / "mine.cedar").write_text(
                f'forbid (principal, action, resource == Tool::"none.{number}");'
            )
            await asyncio.wait([watching], timeout=0.1)
            if told.qsize() > 1:
                break
        assert told.qsize() > 1
        watching.cancel()
        await asyncio.wait([watching])

    asyncio.run(scenario())


def test_a_change_in_the_folder_is_watched_and_told_with_its_problems(tmp_path: Path) -> None:
    store = PolicyStore(tmp_path, "default")

    async def scenario() -> None:
        told: asyncio.Queue[Reloaded] = asyncio.Queue()

        async def hear(changed: PolicyStore, change: Reloaded) -> None:
            assert changed is store
            told.put_nowait(change)

        watching = asyncio.create_task(watch([store, None], hear, quiet_ms=50))
        for number, (text, wanted) in enumerate(
            ((NO_READING, (1, 0)), ("permit (", (0, 1)), (MCP_PERMIT, (1, 0)))
        ):
            heard: list[tuple[int, int]] = []
            # The watcher may not be listening yet when the first file is written, so write until it
            # answers. What was written more often than it had to be may be told of later, between
            # the next.
            for attempt in range(100):
                (tmp_path / "mine.cedar").write_text(f"{text}// {number} {attempt}\n")
                with suppress(TimeoutError):
                    news = await asyncio.wait_for(told.get(), 0.3)
                    heard.append((len(news.added), len(news.problems)))
                if wanted in heard:
                    break
            assert wanted in heard, heard
        watching.cancel()
        await asyncio.wait([watching])

    asyncio.run(scenario())
    assert isinstance(store.judge(call(MCP, scope())), Allow)


def test_what_does_not_judge_does_not_pay_for_the_engine() -> None:
    code = (
        "import sys, palyra.policy, palyra.policy.grants, palyra.policy.risk, palyra.policy.grants;"
        "assert 'cedarpy' not in sys.modules;"
        "import palyra.policy.store, palyra.policy.folder;"
        "assert 'cedarpy' in sys.modules and 'watchfiles' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_file_that_is_empty_for_a_moment_does_not_lift_what_it_forbade(tmp_path: Path) -> None:
    (tmp_path / "mine.cedar").write_text(NO_READING)
    store = PolicyStore(tmp_path, "default")
    before = store.version
    (tmp_path / "mine.cedar").write_text("")
    assert [problem.message for problem in store.reload().problems] == [
        "is empty; write into it or remove it"
    ]
    assert store.version == before
    (tmp_path / "mine.cedar").write_text("// nothing any more\n")
    assert store.reload().problems == ()
    assert store.version != before
