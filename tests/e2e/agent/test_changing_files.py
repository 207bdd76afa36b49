"""Files that change under the daemon: what is written is what was approved, and a restore happens
wholly or not at all.
"""

import shutil
from itertools import count
from pathlib import Path

import pytest

from palyra.agent.approval_steps import Answer
from palyra.agent.submit import Submitted
from palyra.core.errors import Forbidden
from palyra.core.ids import OWNER
from palyra.models.scripted import Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import sqlite_files
from palyra.store.sessions import Session
from tests.crash.scenarios import call
from tests.faults import (
    asked,
    at_commit,
    ends,
    hold_writer_at,
    in_daemon,
    killed_at,
    pending,
    permit_all,
    reached,
)
from tests.inprocess import body, daemon, entries, finished, say, session
from tests.journals import run as run_loop

HELLO = [Turn(text=("ok",))]
INTO_DOCS = [Turn(calls=(call("fs.write", path="docs/a.txt", content="x"),)), Turn(text=("ok",))]


def _precious(folder: Path) -> Path:
    (folder / "work/docs").mkdir(parents=True)
    (folder / "work/src").mkdir()
    (folder / "work/src/a.txt").write_text("precious")
    return folder / "work/src/a.txt"


def _make_a_link(folder: Path) -> None:
    (folder / "work/docs").rmdir()
    (folder / "work/docs").symlink_to("src")


async def _is_refused(d: Daemon, where: Session, run: Submitted) -> None:
    assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"
    (result,) = [
        body(entry) for entry in await entries(d, where.session_id) if entry.kind == "tool.finished"
    ]
    assert result["outcome"] in ("denied", "error")


def test_a_yes_to_a_path_that_has_become_a_link_since_is_refused(tmp_path: Path) -> None:
    precious = _precious(tmp_path)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        approval = await asked(d, where.session_id)
        assert approval.request.subjects[0].value.endswith("work/docs/a.txt")
        _make_a_link(tmp_path)
        with pytest.raises(Forbidden):
            await d.answers.answer(OWNER, approval.approval_id, Answer(decision="allow"), "test")
        assert len(await pending(d)) == 1
        await d.answers.answer(OWNER, approval.approval_id, Answer(decision="deny"), "test")
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"
        assert precious.read_text() == "precious"

    in_daemon(tmp_path, INTO_DOCS, scenario)


def test_a_path_that_becomes_a_link_as_soon_as_it_was_judged_is_not_followed(
    tmp_path: Path,
) -> None:
    permit_all(tmp_path)
    precious = _precious(tmp_path)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        at_commit(d, "tool.decided", lambda: _make_a_link(tmp_path))
        await _is_refused(d, where, await say(d, where, "hi"))
        assert precious.read_text() == "precious"

    in_daemon(tmp_path, INTO_DOCS, scenario)


def test_a_path_that_becomes_a_link_after_its_checkpoint_is_not_followed(tmp_path: Path) -> None:
    permit_all(tmp_path)
    precious = _precious(tmp_path)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        writer = hold_writer_at(d, "tool.decided")
        run = await say(d, where, "hi")
        await reached(writer.held)
        await writer.handed_over(1)
        _make_a_link(tmp_path)
        writer.release()
        await _is_refused(d, where, run)
        assert precious.read_text() == "precious"

    in_daemon(tmp_path, INTO_DOCS, scenario)


def _journals(folder: Path) -> tuple[Path, Path]:
    """A home whose daemon lost its power with two sessions and a log beside its journal, and a
    backup with one session.
    """
    home, backup = folder / "home", folder / "backup.db"

    async def scenario(d: Daemon) -> None:
        await finished(d, await say(d, await session(d), "one"))
        sqlite_files.backup(d.journal_path, backup)
        await finished(d, await say(d, await session(d), "two"))
        shutil.copytree(home, folder / "cut off/home")

    in_daemon(folder, HELLO, scenario)
    assert (folder / "cut off/home/journal.db-wal").stat().st_size
    return folder / "cut off/home", backup


def test_a_restore_that_is_cut_off_has_happened_wholly_or_not_at_all(tmp_path: Path) -> None:
    lost_power, backup = _journals(tmp_path)
    sessions_after: list[int] = []

    async def sessions_in(folder: Path) -> int:
        async with daemon(folder, HELLO) as d:
            return len(await d.sessions.listing(OWNER, archived=False, before="", limit=10))

    for moment in count(1):
        folder = tmp_path / f"life {moment}"
        shutil.copytree(lost_power, folder / "home")
        journal, set_aside = folder / "home/journal.db", folder / "home/old.db"
        with killed_at(moment) as life:
            sqlite_files.restore(backup, journal, set_aside)
        sessions_after.append(run_loop(sessions_in(folder)))
        report = sqlite_files.inspect(journal)
        assert report.ok, report.bad
        if sessions_after[-1] == 1:
            shutil.copytree(lost_power, folder / "aside/home")
            for suffix in ("", "-wal", "-shm"):
                (folder / f"aside/home/journal.db{suffix}").unlink(missing_ok=True)
                if Path(f"{set_aside}{suffix}").exists():
                    shutil.move(f"{set_aside}{suffix}", folder / f"aside/home/journal.db{suffix}")
            assert run_loop(sessions_in(folder / "aside")) == 2, (
                "the journal that was set aside is not whole"
            )
        if not life.over:
            break
    assert sessions_after == sorted(sessions_after, reverse=True), "it happened and then had not"
    assert set(sessions_after) == {1, 2}


SAME = [Turn(calls=(call("fs.write", path="docs/a.txt", content="x"),)), Turn(text=("ok",))]


def test_a_write_that_changes_nothing_does_not_ask(tmp_path: Path) -> None:
    _precious(tmp_path)
    (tmp_path / "work/docs/a.txt").write_text("x")

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        run = await say(d, where, "hi")
        assert (await ends(d, where.session_id, run.run_id)).kind == "run.completed"
        kinds = [entry.kind for entry in await entries(d, where.session_id)]
        assert "approval.requested" not in kinds
        assert "tool.started" not in kinds
        (result,) = [
            body(entry)
            for entry in await entries(d, where.session_id)
            if entry.kind == "tool.finished"
        ]
        assert result["text"] == "unchanged docs/a.txt: it already has this content"
        assert result["label"]["confidentiality"] == "private"

    in_daemon(tmp_path, SAME, scenario)


def test_a_write_that_changes_nothing_asks_where_reading_would(tmp_path: Path) -> None:
    """Whether a guess is right must not be learned without the approval that reading needs."""
    _precious(tmp_path)
    (tmp_path / "work/docs/a.txt").write_text("x")
    folder = tmp_path / "home/policies"
    folder.mkdir(parents=True)
    (folder / "reads.cedar").write_text(
        '@id("reads-ask")\nforbid (principal, action == Action::"run_unattended",'
        ' resource == Tool::"fs.read");\n'
    )

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await say(d, where, "hi")
        assert (await asked(d, where.session_id)).request.tool == "fs.write"

    in_daemon(tmp_path, SAME, scenario)
