"""Rewinding: the exact bytes and the exact conversation of any entry, forward again, and never over
somebody else's work.
"""

import asyncio
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palyra.agent import session_cache
from palyra.core import labels
from palyra.core.conversation import Conversation
from palyra.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from palyra.core.events import SessionCompacted
from palyra.core.ids import OWNER
from palyra.features.time_travel import file_restore
from palyra.features.time_travel.undo import Undo
from palyra.models.scripted import Script, ScriptedModel, StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import rewinds, sessions, sqlite_files, tape
from palyra.store.database import Tx
from palyra.store.sessions import Session
from palyra.tools.files import checkpoints
from tests.crash.scenarios import call
from tests.faults import FullDisk, eventually, in_daemon, on_full_disk, permit_all, reached
from tests.inprocess import body, daemon, entries, finished, kinds, say, session
from tests.journals import run as run_loop
from tests.time_travelling import Watched, delete, do, obedient, patch, rewind, tree, write


async def head(d: Daemon, where: Session) -> int:
    return await d.db.read(lambda tx: tape.head(tx, where.session_id))


async def folded(d: Daemon, where: Session, seq: int) -> Conversation:
    def query(tx: Tx) -> Conversation:
        return session_cache.conversation_at(tx, sessions.get(tx, where.session_id, OWNER), seq)

    return await d.db.read(query)


async def same_conversation(d: Daemon, where: Session, seq: int) -> None:
    """What the session stands on now, read anew, is what it stood on after that entry."""
    then = await folded(d, where, seq)
    then.cut_off()
    now = await folded(d, where, await head(d, where))
    assert (now.turns, now.label) == (then.turns, then.label)


def test_a_rewind_to_any_of_the_last_positions_restores_every_byte_and_every_turn(
    tmp_path: Path,
) -> None:
    permit_all(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_bytes(b"old\r\n\xff\0")
    (work / "a.txt").chmod(0o640)
    (work / "run.sh").write_text("echo 1\n")
    (work / "run.sh").chmod(0o755)
    calls = (
        write("a.txt", "new\n"),
        patch("run.sh", "echo 1", "echo 2"),
        write("deep/er/b.txt", "b\n"),
        delete("deep/er/b.txt", "b\n"),
        write("deep/er/b.txt", "again\n"),
        ["test.pure", {"text": "look"}],
        patch("a.txt", "new", "newer"),
        write("c.txt", "c\n"),
    )

    async def scenario(d: Daemon) -> None:
        where, seen = await session(d), Watched(d, work)
        await do(d, where, *calls)
        last = await head(d, where)
        end = tree(work)
        assert last >= 50, "too short to show anything"
        for seq in [*range(last - 1, last - 51, -1), 5, last - 20]:
            back = await rewind(d, where, seq)
            assert tree(work) == seen.at(where, seq), f"at entry {seq}"
            await same_conversation(d, where, seq)
            forward = await rewind(d, where, back.seq - 1)
            assert tree(work) == end, f"forward from entry {seq}"
            await same_conversation(d, where, back.seq - 1)
            assert forward.seq == back.seq + 1
        # Each of those positions can be returned to as well.
        for seq in (last + 3, last + 10, last + 11):
            await rewind(d, where, seq)
            assert tree(work) == seen.at(where, seq)
            await same_conversation(d, where, seq)

    in_daemon(tmp_path, obedient(), scenario)


def test_the_model_goes_on_from_there_and_a_restart_changes_nothing_about_it(
    tmp_path: Path,
) -> None:
    permit_all(tmp_path)
    model = obedient()

    async def inside() -> None:
        async with daemon(tmp_path, model) as d:
            where = await session(d)
            await do(d, where, write("a.txt", "one"))
            there = await head(d, where)
            await do(d, where, write("a.txt", "two"))
            await rewind(d, where, there)
            await finished(d, await say(d, where, "go on"))
            lived = model.requests[-1].messages
            assert "two" not in str(lived)
            assert "one" in str(lived)
            there = await head(d, where)
        async with daemon(tmp_path, model) as d:
            await rewind(d, where, there - 1)
            await rewind(d, where, there)
            await finished(d, await say(d, where, "and on"))
            assert model.requests[-1].messages[: len(lived)] == lived

    run_loop(inside())


def test_compactions_resets_and_rules_in_between_are_passed_over(tmp_path: Path) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        kept = await d.rules.add(OWNER, where.session_id, "never write to secret.txt")
        await do(d, where, write("a.txt", "one"))
        before = await head(d, where)
        compacted = SessionCompacted(
            summary="we wrote", upto_seq=before, label=labels.untrusted("https://x.example/")
        )
        await d.db.write(lambda tx: tape.append(tx, where.session_id, OWNER, [compacted]))
        assert await d.gateway.label(where.session_id) != labels.CLEAN
        squeezed = await head(d, where)
        await do(d, where, write("a.txt", "two"))
        await d.sessions.reset(OWNER, where.session_id)
        await d.rules.add(OWNER, where.session_id, "never write to other.txt")
        await do(d, where, write("a.txt", "three"))
        for seq in (before, squeezed, await head(d, where), before - 3):
            await rewind(d, where, seq)
            await same_conversation(d, where, seq)
            in_force = {rule.words for rule in await d.rules.listing(OWNER, where.session_id)}
            assert kept.words in in_force, "a rule that held then holds again"
            assert len(in_force) == 2, "a rule that was laid down since still holds"
        await rewind(d, where, before)
        assert await d.gateway.label(where.session_id) == labels.CLEAN
        assert (tmp_path / "work/a.txt").read_text() == "one"

    in_daemon(tmp_path, obedient(), scenario)


def test_a_branch_sees_what_its_parent_stood_on_also_where_that_was_left_again(
    tmp_path: Path,
) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await do(d, where, write("a.txt", "one"))
        there = await head(d, where)
        await do(d, where, write("a.txt", "two"))
        left = await head(d, where)
        await rewind(d, where, there)
        await do(d, where, write("a.txt", "three"))
        for at in (there, left, await head(d, where)):
            child = await d.sessions.branch(OWNER, where.session_id, at, "")
            mine = await folded(d, child, await head(d, child))
            parents = await folded(d, where, at)
            assert [_texts(turn) for turn in mine.turns] == [_texts(turn) for turn in parents.turns]

    in_daemon(tmp_path, obedient(), scenario)


def _texts(turn: Any) -> str:
    return str(getattr(turn, "inputs", "") or getattr(turn, "reply", ""))


def test_files_alone_or_the_conversation_alone_can_be_taken_back_and_the_model_is_told(
    tmp_path: Path,
) -> None:
    permit_all(tmp_path)
    model = obedient()

    async def scenario(d: Daemon) -> None:
        where, file = await session(d), tmp_path / "work/a.txt"
        await do(d, where, write("a.txt", "one"))
        there = await head(d, where)
        await do(d, where, write("a.txt", "two"))
        await rewind(d, where, there, conversation=False)
        assert file.read_text() == "one"
        await finished(d, await say(d, where, "x"))
        assert "put files back" in str(model.requests[-1].messages)
        assert "two" in str(model.requests[-1].messages)
        await rewind(d, where, there, files=False)
        await finished(d, await say(d, where, "y"))
        assert "took the conversation back" in str(model.requests[-1].messages)
        assert "two" not in str(model.requests[-1].messages)
        with pytest.raises(InvalidInput):
            await rewind(d, where, there, files=False, conversation=False)

    in_daemon(tmp_path, model, scenario)


def test_a_file_that_somebody_changed_stops_it_or_is_left_and_named(tmp_path: Path) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon) -> None:
        where, work = await session(d), tmp_path / "work"
        start = await head(d, where)
        await do(d, where, write("a.txt", "one"), write("b.txt", "one"), write("c.txt", "one"))
        (work / "a.txt").write_text("mine")
        (work / "c.txt").write_text("meddled")
        await do(d, where, write("c.txt", "two"))
        before = tree(work)
        look = await rewind(d, where, start, preview=True)
        assert [(each.path, each.why) for each in look.conflicts] == [
            ("a.txt", "changed by somebody else since"),
            ("c.txt", "changed by somebody else in between"),
        ]
        with pytest.raises(Conflict) as refused:
            await rewind(d, where, start)
        assert refused.value.details["files"] == ("a.txt", "c.txt")
        assert tree(work) == before
        assert "session.restored" not in await kinds(d, where.session_id)
        done = await rewind(d, where, start, conflicts="skip")
        assert [(each.path, each.change) for each in done.changes] == [("b.txt", "deleted")]
        assert {name: content for name, (_, content) in tree(work).items()} == {
            "a.txt": b"mine",
            "c.txt": b"two",
        }
        assert body((await entries(d, where.session_id))[-1])["left"] == ["a.txt", "c.txt"]

    in_daemon(tmp_path, obedient(), scenario)


def test_a_session_of_somebody_else_is_out_of_reach(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "hi"))
        with pytest.raises(Forbidden):
            await d.moments.at("user:other", where.session_id, 1, 10)
        from palyra.features.time_travel.rewind import Rewind

        with pytest.raises(Forbidden):
            await d.rewinding.rewind("user:other", where.session_id, Rewind(to=1, stop=True))

    in_daemon(tmp_path, obedient(), scenario)


def test_a_preview_shows_a_diff_without_secrets_and_what_cannot_be_taken_back(
    tmp_path: Path,
) -> None:
    permit_all(tmp_path)
    (tmp_path / "work").mkdir()
    token = "ghp_" + "a1B2" * 9
    (tmp_path / "work/a.txt").write_text(f"token = {token}\nname = old\n")

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        start = await head(d, where)
        await do(
            d,
            where,
            patch("a.txt", "old", "new"),
            ["test.once", {"path": "once.txt", "line": "sent"}],
        )
        before = tree(tmp_path / "work")
        look = await rewind(d, where, start, preview=True)
        assert "-name = new" in look.diff
        assert "+name = old" in look.diff
        assert token not in look.diff
        assert [(each.tool, each.effect, each.outcome) for each in look.lasting] == [
            ("test.once", "once", "ok")
        ]
        assert (look.turns_then, look.seq) == (0, 0)
        assert tree(tmp_path / "work") == before
        assert (
            await head(d, where)
            == (await d.moments.at(OWNER, where.session_id, start, 10)).head_seq
        )

    in_daemon(tmp_path, obedient(), scenario)


def test_any_entry_can_be_looked_at(tmp_path: Path) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await d.rules.add(OWNER, where.session_id, "never write to secret.txt")
        run_id = await do(d, where, write("a.txt", "one"))
        tape_ = await entries(d, where.session_id)
        at = next(entry.seq for entry in tape_ if entry.kind == "tool.finished")
        moment = await d.moments.at(OWNER, where.session_id, at, 10)
        assert [
            (turn.who, [(each.tool, each.outcome) for each in turn.calls]) for turn in moment.turns
        ] == [
            ("user", []),
            ("model", [("fs.write", "ok")]),
        ]
        assert [rule.words for rule in moment.rules] == [
            (await d.rules.listing(OWNER, where.session_id))[0].words
        ]
        assert [(run.run_id, run.state) for run in moment.runs] == [(run_id, "in_progress")]
        assert (moment.changed, moment.kind) == ((), "tool.finished")
        earlier = await d.moments.at(OWNER, where.session_id, at - 1, 10)
        assert [(each.path, each.change, each.by) for each in earlier.changed] == [
            ("a.txt", "created", "fs.write")
        ]
        for entry in tape_:
            assert (await d.moments.at(OWNER, where.session_id, entry.seq, 10)).kind == entry.kind
        for wrong in (0, len(tape_) + 1):
            with pytest.raises(InvalidInput):
                await d.moments.at(OWNER, where.session_id, wrong, 10)

    in_daemon(tmp_path, obedient(), scenario)


def test_undo_after_a_rewind_takes_back_what_stands_in_the_files_and_nothing_else(
    tmp_path: Path,
) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon) -> None:
        where, file = await session(d), tmp_path / "work/a.txt"
        await do(d, where, write("a.txt", "one"))
        there = await head(d, where)
        await do(d, where, write("a.txt", "two"))
        back = await rewind(d, where, there)
        await d.undoing.undo(OWNER, where.session_id, Undo())
        assert not file.exists()
        with pytest.raises(Conflict):
            await d.undoing.undo(OWNER, where.session_id, Undo())
        await rewind(d, where, back.seq - 1)
        assert file.read_text() == "two"
        await d.undoing.undo(OWNER, where.session_id, Undo())
        assert file.read_text() == "one"

    in_daemon(tmp_path, obedient(), scenario)


def test_a_whole_run_is_undone_at_once_with_a_diff_before(tmp_path: Path) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon) -> None:
        where, work = await session(d), tmp_path / "work"
        await do(d, where, write("a.txt", "zero\n"))
        before = tree(work)
        run_id = await do(
            d, where, write("a.txt", "one\n"), write("n/b.txt", "b\n"), patch("a.txt", "one", "two")
        )
        look = await d.undoing.undo(OWNER, where.session_id, Undo(run_id=run_id, dry_run=True))
        assert "-two" in look.diff
        assert "+zero" in look.diff
        assert len(look.calls) == 3
        done = await d.undoing.undo(OWNER, where.session_id, Undo(run_id=run_id))
        assert done.changes == look.changes
        assert tree(work) == before
        assert (await kinds(d, where.session_id))[-3:] == ["tool.undone"] * 3
        with pytest.raises(Conflict):
            await d.undoing.undo(OWNER, where.session_id, Undo(run_id=run_id))

    in_daemon(tmp_path, obedient(), scenario)


_PATHS = st.sampled_from(["a.txt", "b.txt", "d/c.txt", "d/e/f.txt"])
_WORDS = st.text(st.sampled_from("abc\n"), min_size=1, max_size=6)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), _PATHS, _WORDS),
        st.tuples(st.just("delete"), _PATHS, _WORDS),
        st.tuples(st.just("undo"), _PATHS, _WORDS),
        st.tuples(st.just("rewind"), st.floats(0, 0.99), st.booleans()),
    ),
    min_size=3,
    max_size=12,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=_STEPS)
def test_any_mixture_of_changes_undos_and_rewinds_can_be_taken_back_to_any_entry(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("mixture")
    permit_all(folder)
    work = folder / "work"

    async def scenario(d: Daemon) -> None:
        where, seen = await session(d), Watched(d, work)
        first = await head(d, where)
        for step in steps:
            match step:
                case "write", path, words:
                    await do(d, where, write(path, words))
                case "delete", path, _:
                    if (work / path).exists():
                        await do(d, where, delete(path, (work / path).read_text()))
                case "undo", _, _:
                    try:
                        await d.undoing.undo(OWNER, where.session_id, Undo())
                    except (NotFound, Conflict):
                        continue
                case "rewind", share, conversation:
                    last = await head(d, where)
                    to = first + int(share * (last - first))
                    if first < to < last:
                        await rewind(d, where, to, conversation=conversation)
                        assert tree(work) == seen.at(where, to)
        last = await head(d, where)
        for to in {first + 1, (first + last) // 2, last - 1}:
            if first < to < last:
                await rewind(d, where, to)
                assert tree(work) == seen.at(where, to)
                await same_conversation(d, where, to)

    in_daemon(folder, obedient(), scenario, "[memory]\nembeddings = false\n")


def test_a_run_that_works_or_waits_refuses_it_and_stop_ends_it_first(tmp_path: Path) -> None:
    hold = StreamPause()
    script = Script(
        {
            "go": (Turn(text=("a",), hold="h"),),
            "write": (Turn(calls=(call("fs.write", path="a", content="x"),)),),
        }
    )

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        start = await head(d, where)
        await say(d, where, "go")
        await reached(hold.reached)
        await say(d, where, "write")
        look = await rewind(d, where, start, preview=True)
        assert len(look.running) == 2
        with pytest.raises(Conflict):
            await rewind(d, where, start)
        await rewind(d, where, start, stop=True)
        # Who is asked and what they were told is said beside it, at whatever moment; what was said
        # of a reply stays before its end.
        beside = ("route.planned", "input.assembled", "model.replied")
        told = [kind for kind in await kinds(d, where.session_id) if kind not in beside]
        assert told[-3:] == ["run.cancelled", "run.cancelled", "session.restored"]

    in_daemon(tmp_path, ScriptedModel(script, holds={"h": hold}), scenario)


class SlowFiles:
    """Putting files back stands still after the last of them until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._done, self._gate = threading.Event(), threading.Event()
        real = checkpoints.restore

        def slow(blob: bytes, workspace: str, **how: bool) -> Any:
            changes = real(blob, workspace, **how)
            self._done.set()
            self._gate.wait(20)
            return changes

        monkeypatch.setattr(checkpoints, "restore", slow)

    async def standing(self) -> None:
        await eventually(self._done.is_set, "files are put back")

    def release(self) -> None:
        self._gate.set()


def test_a_run_that_begins_while_files_are_put_back_does_nothing_until_that_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    permit_all(tmp_path)
    model = obedient()

    async def scenario(d: Daemon) -> None:
        where, file = await session(d), tmp_path / "work/a.txt"
        await do(d, where, write("a.txt", "one"))
        asked = len(model.requests)
        slow = SlowFiles(monkeypatch)
        undoing = asyncio.ensure_future(d.undoing.undo(OWNER, where.session_id, Undo()))
        await slow.standing()
        run = asyncio.ensure_future(do(d, where, write("a.txt", "two")))
        await eventually(lambda: d.runs.working, "the run has begun")
        await d.db.write(lambda tx: None)
        assert len(model.requests) == asked, "it was set to work in the middle of an undo"
        slow.release()
        await undoing
        await run
        assert file.read_text() == "two"
        assert "undid your call" in str(model.requests[asked].messages)

    in_daemon(tmp_path, model, scenario)


def test_a_message_that_comes_during_a_rewind_is_answered_and_the_rewind_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon) -> None:
        where, work = await session(d), tmp_path / "work"
        start = await head(d, where)
        await do(d, where, write("a.txt", "one"), write("n/b.txt", "two"))
        before = tree(work)
        slow = SlowFiles(monkeypatch)
        going = asyncio.ensure_future(rewind(d, where, start))
        await slow.standing()
        run = await say(d, where, "hello")
        slow.release()
        with pytest.raises(Conflict):
            await going
        assert (await finished(d, run)).kind == "run.completed"
        assert tree(work) == before
        assert "session.restored" not in await kinds(d, where.session_id)

    in_daemon(tmp_path, obedient(), scenario)


def test_a_caller_that_leaves_does_not_leave_it_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon) -> None:
        where, work = await session(d), tmp_path / "work"
        start = await head(d, where)
        await do(d, where, write("a.txt", "one"))
        slow = SlowFiles(monkeypatch)
        going = asyncio.ensure_future(rewind(d, where, start))
        await slow.standing()
        going.cancel()
        slow.release()
        with pytest.raises(asyncio.CancelledError):
            await going
        with pytest.raises(InvalidInput):
            # Waits for the other one, and then there is nothing behind it.
            await rewind(d, where, start + 1 + len(await entries(d, where.session_id)))
        assert (await kinds(d, where.session_id))[-1] == "session.restored"
        assert tree(work) == {}

    in_daemon(tmp_path, obedient(), scenario)


def test_a_file_that_cannot_be_put_back_leaves_all_of_them_as_they_were(tmp_path: Path) -> None:
    permit_all(tmp_path)

    async def scenario(d: Daemon) -> None:
        where, work = await session(d), tmp_path / "work"
        await do(d, where, write("a.txt", "one"), write("b.txt", "one"))
        there = await head(d, where)
        await do(d, where, write("a.txt", "two"), write("b.txt", "two"))
        os.chmod(work / "b.txt", 0o444)
        before = tree(work)
        with pytest.raises(InvalidInput):
            await rewind(d, where, there)
        assert tree(work) == before
        os.chmod(work / "b.txt", 0o644)
        await rewind(d, where, there)
        assert (work / "b.txt").read_text() == "one"

    in_daemon(tmp_path, obedient(), scenario)


def test_a_full_disk_at_the_end_takes_it_back_and_the_session_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    permit_all(tmp_path)
    monkeypatch.setattr(file_restore, "RETRY_S", 0.02)

    async def scenario(d: Daemon, disk: FullDisk) -> None:
        where, work = await session(d), tmp_path / "work"
        start = await head(d, where)
        await do(d, where, write("a.txt", "one"), write("n/b.txt", "two"))
        before = tree(work)
        slow = SlowFiles(monkeypatch)
        going = asyncio.ensure_future(rewind(d, where, start))
        await slow.standing()
        disk.fill()
        slow.release()
        with pytest.raises(Unavailable):
            await going
        assert tree(work) == before
        assert await d.db.read(rewinds.pending), (
            "the disk was not full when it mattered: this shows nothing"
        )
        disk.full = False
        await do(d, where, write("c.txt", "three"))
        assert await d.db.read(rewinds.pending) == []
        await rewind(d, where, start)
        assert tree(work) == {}

    on_full_disk(tmp_path, obedient(), scenario)


def test_what_somebody_changed_between_a_crash_and_the_next_start_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    permit_all(tmp_path)
    twin = tmp_path / "twin"

    async def inside() -> None:
        async with daemon(tmp_path, obedient()) as d:
            where, work = await session(d), tmp_path / "work"
            await do(d, where, write("a.txt", "one"), write("b.txt", "one"))
            there = await head(d, where)
            await do(d, where, write("a.txt", "two"), write("b.txt", "two"))
            slow = SlowFiles(monkeypatch)
            going = asyncio.ensure_future(rewind(d, where, there))
            await slow.standing()
            assert (work / "a.txt").read_text() == "one"
            # The twin finds what this one would have left behind had it died here.
            (twin / "home").mkdir(parents=True)
            sqlite_files.backup(d.journal_path, twin / "home/journal.db")
            shutil.copytree(tmp_path / "home/keys", twin / "home/keys")
            (work / "a.txt").write_text("mine")
            slow.release()
            async with daemon(twin, obedient()) as after:
                assert (work / "a.txt").read_text() == "mine"
                assert (work / "b.txt").read_text() == "two"
                assert await after.db.read(rewinds.pending) == []
            await going

    run_loop(inside())
