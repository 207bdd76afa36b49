"""Sessions: resolve, reset, branch at any position, archive, titles, search."""

import os
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.sessions import Resolve
from palyra.core.errors import Conflict, Forbidden, InvalidInput, NotFound, PalyraError
from palyra.core.ids import OWNER
from palyra.models.scripted import ScriptedCall, Turn
from palyra.serve.wiring.daemon import Daemon
from tests.inprocess import body, daemon, entries, finished, kinds, say, session
from tests.journals import new_id
from tests.journals import run as run_loop

ECHO = {f"say {n}": [Turn(text=(f"said {n}",))] for n in range(6)}


def with_daemon(
    tmp_path: Path, model: Any, scenario: Callable[[Daemon], Awaitable[None]], **options: Any
) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, model, **options) as opened:
            await scenario(opened)

    run_loop(inside())


def test_a_session_is_found_by_id_key_or_label_and_made_when_missing(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        made = await session(d, key="k", label="l")
        assert await session(d, session_id=made.session_id) == made
        assert await session(d, key="k") == made
        assert await session(d, label="l") == made
        assert (await session(d)).session_id != made.session_id
        with pytest.raises(NotFound):
            await session(d, key="other", must_exist=True)
        chosen = new_id()
        assert (await session(d, session_id=chosen)).session_id == chosen

    with_daemon(tmp_path, ECHO, scenario)


def test_a_session_belongs_to_its_owner_device_and_channel(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        made = await session(d, key="k", device="laptop")
        with pytest.raises(Forbidden):
            await d.sessions.resolve("user:eve", Resolve(key="k"))
        with pytest.raises(Forbidden):
            await d.sessions.get("user:eve", made.session_id)
        with pytest.raises(Forbidden):
            await session(d, key="k", device="phone")

    with_daemon(tmp_path, ECHO, scenario)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"workspace": "/"}, Forbidden),
        ({"workspace": "/no/such/folder"}, InvalidInput),
        ({"workspace": "HOME"}, Forbidden),
        ({"session_id": "short"}, InvalidInput),
        ({"key": "x" * 500}, InvalidInput),
    ],
)
def test_a_bad_wish_is_refused(
    tmp_path: Path, wanted: dict[str, str], error: type[PalyraError]
) -> None:
    async def scenario(d: Daemon) -> None:
        given = {
            name: str(tmp_path / "home") if value == "HOME" else value
            for name, value in wanted.items()
        }
        with pytest.raises(error):
            await session(d, **given)

    with_daemon(tmp_path, ECHO, scenario)


def test_a_workspace_reached_through_a_symlink_is_the_real_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link")

    async def scenario(d: Daemon) -> None:
        assert (await session(d, workspace=str(tmp_path / "link"))).workspace == str(
            tmp_path / "real"
        )

    with_daemon(tmp_path, ECHO, scenario)


def test_the_first_message_gives_the_title_unless_a_person_gave_one(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "say 0\n" + "long " * 50))
        titled = await d.sessions.get(OWNER, where.session_id)
        assert len(titled.title) <= 72
        assert titled.title.startswith("say 0 long")
        renamed = await d.sessions.change(OWNER, where.session_id, title="Mine", archived=None)
        assert renamed.title == "Mine"
        piped = await session(d)
        await finished(d, await say(d, piped, "say 0\n\n```\nline one\n```"))
        assert (await d.sessions.get(OWNER, piped.session_id)).title == "say 0 line one"
        named = await session(d, title="Given")
        await finished(d, await say(d, named, "say 1"))
        assert (await d.sessions.get(OWNER, named.session_id)).title == "Given"

    with_daemon(tmp_path, ECHO, scenario)


def test_an_archived_session_is_hidden_but_searchable_and_refuses_messages(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "say 0\nthe quick zebra"))
        await d.sessions.change(OWNER, where.session_id, title=None, archived=True)
        assert await d.sessions.listing(OWNER, archived=False, before="", limit=10) == []
        assert [
            s.session_id
            for s in await d.sessions.listing(OWNER, archived=True, before="", limit=10)
        ] == [where.session_id]
        found = (await d.transcripts.search(OWNER, "zebras", 10, semantic=False)).found
        assert [f.session_id for f in found] == [where.session_id]
        assert (await d.transcripts.search("user:eve", "zebra", 10, semantic=False)).found == []
        with pytest.raises(Conflict):
            await say(d, where, "say 1")
        await d.sessions.change(OWNER, where.session_id, title=None, archived=False)
        await finished(d, await say(d, where, "say 1"))

    with_daemon(tmp_path, ECHO, scenario)


@pytest.mark.parametrize(
    "words", ["", '"', "a AND OR (", "NEAR(", "*", "\0", "'; DROP TABLE entries --"]
)
def test_searching_for_anything_is_safe(tmp_path: Path, words: str) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "say 0"))
        assert isinstance(
            (await d.transcripts.search(OWNER, words, 10, semantic=False)).found, list
        )

    with_daemon(tmp_path, ECHO, scenario)


def test_listings_are_paged_without_gaps_or_repeats(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        made = {(await session(d)).session_id for _ in range(25)}
        seen: list[str] = []
        before = ""
        while page := await d.sessions.listing(OWNER, archived=False, before=before, limit=10):
            seen += [s.session_id for s in page]
            before = page[-1].session_id
        assert len(seen) == len(set(seen)) == 25
        assert set(seen) == made

    with_daemon(tmp_path, ECHO, scenario)


def shown(d: Daemon) -> list[str]:
    """The texts of the last request, in order."""
    model = d.models.provider(d.models.targets[0])
    messages = model.requests[-1].messages  # type: ignore[attr-defined]
    return [
        message.parts[0].text if type(message).__name__ == "UserMessage" else message.text
        for message in messages
    ]


def test_after_a_reset_the_model_sees_nothing_old_and_the_tape_stays(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "say 0"))
        before = len(await kinds(d, where.session_id))
        await d.sessions.reset(OWNER, where.session_id)
        await finished(d, await say(d, where, "say 1"))
        assert shown(d) == ["say 1"]
        assert len(await kinds(d, where.session_id)) > before

    with_daemon(tmp_path, ECHO, scenario)


def test_a_branch_sees_exactly_the_conversation_up_to_its_position(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        for n in range(3):
            await finished(d, await say(d, where, f"say {n}"))
        ends = [
            entry.seq
            for entry in await entries(d, where.session_id)
            if entry.kind == "run.completed"
        ]
        child = await d.sessions.branch(OWNER, where.session_id, ends[1], "")
        assert (child.parent_id, child.parent_seq) == (where.session_id, ends[1])
        await finished(d, await say(d, child, "say 3"))
        assert shown(d) == ["say 0", "said 0", "say 1", "said 1", "say 3"]
        grandchild = await d.sessions.branch(OWNER, child.session_id, None, "")
        await finished(d, await say(d, grandchild, "say 4"))
        assert shown(d) == ["say 0", "said 0", "say 1", "said 1", "say 3", "said 3", "say 4"]
        await finished(d, await say(d, where, "say 5"))
        assert shown(d) == ["say 0", "said 0", "say 1", "said 1", "say 2", "said 2", "say 5"]
        for each in (where, child):
            lineage = [
                body(e) for e in await entries(d, each.session_id) if e.kind == "session.branched"
            ]
            assert lineage[0] == {
                "kind": "session.branched",
                "parent": where.session_id,
                "parent_seq": ends[1],
                "child": child.session_id,
            }

    with_daemon(tmp_path, ECHO, scenario)


def test_branching_works_at_every_position_also_in_the_middle_of_a_run(tmp_path: Path) -> None:
    turns = {
        "work": [
            Turn(text=("a",), calls=(ScriptedCall(name="test.pure", arguments={"text": "r"}),)),
            Turn(text=("b",)),
        ],
        "go on": [Turn(text=("fine",))],
    }

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "work"))
        last = len(await kinds(d, where.session_id))
        for position in range(1, last + 1):
            child = await d.sessions.branch(OWNER, where.session_id, position, "")
            assert (await finished(d, await say(d, child, "go on"))).kind == "run.completed", (
                position
            )
        for wrong in (0, last + 1000, -3):
            with pytest.raises(InvalidInput):
                await d.sessions.branch(OWNER, where.session_id, wrong, "")

    with_daemon(tmp_path, turns, scenario)


def test_where_the_conversation_of_a_branch_begins_is_a_number_that_counts(tmp_path: Path) -> None:
    async def work() -> None:
        async with daemon(tmp_path, [Turn(text="one"), Turn(text="two")]) as opened:
            where = await session(opened)
            await finished(opened, await say(opened, where, "first"))
            branch = await opened.sessions.branch(OWNER, where.session_id, 5, "")
            assert branch.fold_from == 1 - 5
            await finished(opened, await say(opened, branch, "second"))
            again = await opened.sessions.branch(OWNER, branch.session_id, 4, "")
            assert again.fold_from == 1 - 5 - 4

    run_loop(work())


def test_a_branch_survives_its_parents_reset(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where = await session(d)
        await finished(d, await say(d, where, "say 0"))
        child = await d.sessions.branch(OWNER, where.session_id, None, "")
        await d.sessions.reset(OWNER, where.session_id)
        await finished(d, await say(d, child, "say 1"))
        assert shown(d) == ["say 0", "said 0", "say 1"]

    with_daemon(tmp_path, ECHO, scenario)


def test_a_long_conversation_slides_out_of_a_small_window_by_whole_runs(tmp_path: Path) -> None:
    script = {f"talk {n}": [Turn(text=("word " * 60,))] for n in range(60)}
    windows: list[list[str]] = []

    async def scenario(d: Daemon) -> None:
        where = await session(d)
        for n in range(60):
            await finished(d, await say(d, where, f"talk {n}"))
            windows.append([text for text in shown(d) if text.startswith("talk")])
        assert windows[-1][-1] == "talk 59"
        assert len(windows[-1]) < 40
        for window in windows:
            numbers = [int(text.split()[1]) for text in window]
            assert numbers == list(range(numbers[0], numbers[-1] + 1)), "the window has no holes"
        # It shrinks by half at once, so that the beginning stays the same for many turns.
        changes = sum(one[0] != two[0] for one, two in pairwise(windows))
        assert 1 <= changes <= 15

    with_daemon(tmp_path, script, scenario, window=5_000)


def test_a_session_reopened_after_a_restart_shows_the_same_conversation(tmp_path: Path) -> None:
    async def before(d: Daemon) -> None:
        where = await session(d, key="k")
        for n in range(3):
            await finished(d, await say(d, where, f"say {n}"))

    async def after(d: Daemon) -> None:
        where = await session(d, key="k")
        await finished(d, await say(d, where, "say 3"))
        assert shown(d) == ["say 0", "said 0", "say 1", "said 1", "say 2", "said 2", "say 3"]

    with_daemon(tmp_path, ECHO, before)
    with_daemon(tmp_path, ECHO, after)
