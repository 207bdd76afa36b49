"""Replay: every recorded run gives the same tape again, without network; what has changed is named
where it first shows.
"""

import asyncio
import json
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palyra.agent.prompt import assembly
from palyra.cli import exit_codes, root
from palyra.core import chain, events
from palyra.core.errors import ChainBroken, Conflict, InvalidInput
from palyra.core.events import AnyEvent, Entry, InputAssembled, ModelReplied, ToolFinished, kind_of
from palyra.core.ids import OWNER
from palyra.features.time_travel.replay import recording as recordings
from palyra.features.time_travel.replay.compare import VOLATILE, Replayed
from palyra.features.time_travel.replay.recording import Recording, Tape
from palyra.features.time_travel.replay.replay import replay
from palyra.models.scripted import StreamPause, Turn
from palyra.store.database import Tx
from palyra.store.sqlite import Sqlite
from palyra.tools import crash_test_tools, standard
from palyra.tools.catalogue import Catalogue
from palyra.tools.paths import PathGuard
from tests import replaying
from tests.clocks import HeldClock
from tests.crash.everywhere import in_memory, program
from tests.e2e.agent.test_images import Camera
from tests.faults import SlowLoading, held_writer, long_and_next, reached
from tests.inprocess import TERMINAL, daemon, finished, say, session
from tests.material import ROOT, material
from tests.replaying import (
    HOLDS,
    SCRIPTS,
    SETTINGS,
    STORIES,
    call,
    furnish,
    model_for,
    scripts_at_random,
    talk_at_random,
)
from tests.watching_over import JumpingClock

SEEDS = range(40)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a replay reached for the network")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def ours() -> Catalogue:
    fence = PathGuard(())
    return Catalogue(
        (*standard.tools(fence, lambda artifact, session_id: None), *crash_test_tools.tools(fence))
    )


def told(replayed: Replayed) -> str:
    return msgspec.json.encode(replayed.difference).decode()[:2000]


def tape(recorded: Recording) -> str:
    """What it takes to understand a difference without the recording."""
    return ", ".join(f"{entry.seq} {entry.kind} {entry.run_id[-4:]}" for entry in recorded.own)


def runs_in(recorded: list[Recording]) -> int:
    return sum(entry.kind == "run.accepted" for each in recorded for entry in each.own)


def at_random(folder: Path) -> list[Recording]:
    furnish(folder / "work")

    async def inside() -> list[Recording]:
        async with daemon(folder, model_for(scripts_at_random(SEEDS), {}), SETTINGS) as d:
            await replaying.accept_notes(d, folder / "work")
            made = [await asyncio.wait_for(talk_at_random(d, seed), 60) for seed in SEEDS]
            return [await replaying.recording(d, each) for each in made]

    return asyncio.run(inside())


def one_of_each(folder: Path) -> list[Recording]:
    furnish(folder / "work")

    async def inside() -> list[Recording]:
        holds = {name: StreamPause() for name in HOLDS}
        made = []
        async with daemon(folder, model_for(SCRIPTS, holds), SETTINGS, clock=JumpingClock()) as d:
            d.catalogue.renew("test", [Camera()])
            await replaying.accept_notes(d, folder / "work")
            for story in STORIES:
                for hold in holds.values():
                    hold.reached.clear()
                    hold.released.clear()
                made.append(await asyncio.wait_for(story(d, holds), 60))
            return [await replaying.recording(d, each) for each in made]

    return asyncio.run(inside())


def from_journal(path: Path) -> Iterator[Recording]:
    connection = Sqlite(path).open_reader()
    try:
        tx = Tx(connection, 0)
        for (session_id,) in tx.all("SELECT session_id FROM sessions"):
            yield recordings.read(tx, session_id)
    finally:
        connection.close()


def killed(folder: Path) -> list[Recording]:
    traces = next(material("traces").glob("*.json"))
    with in_memory(folder) as fast:
        left = program("tests.crash.recorded_crashes", str(fast), str(traces))
        return [
            each for place in left for each in from_journal(Path(place) / "home" / "journal.db")
        ]


@pytest.mark.timeout(900)
def test_two_hundred_recorded_runs_of_all_kinds_are_replayed_identically_and_without_network(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folders = {name: tmp_path / name for name in ("random", "each", "killed")}
    for folder in folders.values():
        folder.mkdir()
    recorded = [
        *at_random(folders["random"]),
        *one_of_each(folders["each"]),
        *killed(folders["killed"]),
    ]
    request.getfixturevalue("no_network")
    catalogue = ours()
    replayed = ((each, replay(each, catalogue)) for each in recorded)
    different = {
        each.session_id: f"{told(again)} in {tape(each)}"
        for each, again in replayed
        if not again.identical
    }
    assert different == {}
    assert runs_in(recorded) >= 200
    kinds = Counter(entry.kind for each in recorded for entry in each.own)
    of_runs = {
        kind
        for kind in events.KINDS
        if kind.split(".")[0] in ("run", "input", "route", "model", "tool", "approval")
    } - {"model.used"}
    assert of_runs <= set(kinds)
    assert {
        "session.ruled",
        "session.reset",
        "session.branched",
        "session.compacted",
        "session.restored",
    } <= set(kinds)


def test_what_came_while_a_started_daemon_took_up_its_work_is_brought_when_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = StreamPause()

    async def inside() -> Recording:
        async with daemon(tmp_path, long_and_next(hold)) as d:
            where = await session(d)
            await say(d, where, "long")
            await reached(hold.reached)
            await say(d, where, "next")
        hold.released.set()
        loading = SlowLoading(monkeypatch)
        async with daemon(tmp_path, long_and_next(hold)) as d:
            await loading.begun()
            with held_writer(d) as writer:
                saying = asyncio.ensure_future(say(d, where, "next"))
                await writer.handed_over(1)
                loading.release()
                await writer.handed_over(2)
            await finished(d, await saying)
            return await replaying.recording(d, where.session_id)

    recorded, catalogue = asyncio.run(inside()), ours()
    assert [
        told(again) for _ in range(10) if not (again := replay(recorded, catalogue)).identical
    ] == []


def test_single_runs_are_replayed_from_where_nothing_was_at_work_and_from_files_of_their_own(
    tmp_path: Path,
) -> None:
    catalogue = ours()
    for whole in one_of_each(tmp_path):
        for path in sorted((tmp_path / "home").glob("journal.db")):
            connection = Sqlite(path).open_reader()
            runs = {entry.run_id for entry in whole.own if entry.kind == "run.accepted"}
            for run_id in sorted(runs):
                one = recordings.decode(
                    recordings.encode(recordings.read(Tx(connection, 0), run_id))
                )
                again = replay(one, catalogue)
                assert again.identical, (run_id, told(again))
                assert again.entries == one.last - one.first + 1
                assert {entry.kind for entry in one.own if entry.run_id == run_id} & set(TERMINAL)
            connection.close()


def test_how_slowly_a_run_is_replayed_does_not_use_up_its_time(tmp_path: Path) -> None:
    hurried, _ = changed(
        simple(tmp_path, HeldClock()), events.RunAccepted, 0, budgets=events.Budgets(active_ms=1)
    )
    assert (again := replay(hurried, ours())).identical, told(again)


def simple(folder: Path, clock: HeldClock | None = None) -> Recording:
    furnish(folder / "work")
    turns = [
        Turn(
            text="looking", calls=(call("fs.read", path="notes.md"), call("test.pure", text="one"))
        ),
        Turn(text="and", calls=(call("test.pure", text="two"),)),
        Turn(text="done"),
    ]

    async def inside() -> Recording:
        async with daemon(folder, turns, SETTINGS, clock=clock) as d:
            where = await session(d)
            await finished(d, await say(d, where, "look at the notes"))
            return await replaying.recording(d, where.session_id)

    return asyncio.run(inside())


def changed(
    recorded: Recording, which: type[AnyEvent], number: int, **fields: Any
) -> tuple[Recording, int]:
    """The recording with one event changed, its chain made anew, as somebody would who wants it to
    look whole; and where.
    """
    made: list[Entry] = []
    prev, at, left = chain.GENESIS, 0, number
    for entry in recorded.own:
        event = events.decode(bytes(entry.event))
        if isinstance(event, which):
            if left == 0:
                event, at = msgspec.structs.replace(event, **fields), entry.seq
            left -= 1
        body = events.encode(event)
        named = {
            name: getattr(entry, name)
            for name in ("tape", "seq", "position", "time_ms", "run_id", "principal")
        }
        prev = chain.link_of(entry.link, prev, **named, kind=kind_of(event), body=body)
        made.append(msgspec.structs.replace(entry, event=msgspec.Raw(body), hash=prev.hex()))
    assert at, "there is nothing to change"
    return msgspec.structs.replace(recorded, tapes=(Tape(recorded.session_id, tuple(made)),)), at


def first_difference(
    recorded: Recording, catalogue: Catalogue | None = None
) -> tuple[int, str, str]:
    again = replay(recordings.decode(recordings.encode(recorded)), catalogue or ours())
    assert again.difference is not None
    assert again.difference.recorded is not None
    assert again.entries == again.difference.seq - recorded.first
    return again.difference.seq, again.difference.recorded.kind, again.difference.where


def test_a_changed_tool_result_is_reported_at_its_entry(tmp_path: Path) -> None:
    other, at = changed(simple(tmp_path), ToolFinished, 1, text="uno")
    assert first_difference(other) == (at, "tool.finished", "size")


def test_a_changed_tool_result_of_the_same_length_is_reported_by_its_digest(tmp_path: Path) -> None:
    recorded = simple(tmp_path)
    other, at = changed(recorded, ToolFinished, 2, text="zwo")
    seq, kind, where = first_difference(other)
    assert (seq, kind, where) == (at, "tool.finished", "attestation.output_sha256")


def test_a_changed_reply_is_reported_where_the_model_is_shown_it_again(tmp_path: Path) -> None:
    other, at = changed(simple(tmp_path), ModelReplied, 0, text="not looking")
    seq, kind, where = first_difference(other)
    assert seq > at
    assert (kind, where) == ("input.assembled", "digest")


def test_a_changed_answer_is_reported_at_the_end_of_the_run(tmp_path: Path) -> None:
    other, at = changed(simple(tmp_path), ModelReplied, 2, text="not done")
    assert first_difference(other) == (at + 1, "run.completed", "text")


def test_changed_instructions_are_reported_at_the_first_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = simple(tmp_path)
    first = next(entry.seq for entry in recorded.own if entry.kind == "input.assembled")
    monkeypatch.setattr(
        assembly, "INSTRUCTIONS", assembly.INSTRUCTIONS.replace("briefly", "at length")
    )
    again = replay(recorded, ours())
    assert again.difference is not None
    assert (again.difference.seq, again.difference.where) == (first, "digest")
    assert "instructions" in again.difference.hint


def test_a_tool_that_describes_itself_otherwise_is_reported_at_the_first_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = simple(tmp_path)
    other = msgspec.structs.replace(
        crash_test_tools.Pure.spec, description="Rehearsal: something else."
    )
    monkeypatch.setattr(crash_test_tools.Pure, "spec", other)
    seq, kind, where = first_difference(recorded)
    assert (kind, where) == ("input.assembled", "digest")
    assert seq == next(entry.seq for entry in recorded.own if entry.kind == "input.assembled")


def test_tools_that_are_new_since_do_not_change_what_was_on_offer_then(tmp_path: Path) -> None:
    recorded = simple(tmp_path)
    more = ours()
    more.renew("test", [Camera()])
    assert replay(recorded, more).identical


def test_a_verdict_that_the_loop_would_not_carry_out_is_reported(tmp_path: Path) -> None:
    other, at = changed(simple(tmp_path), events.ToolDecided, 2, verdict="deny", reason="no")
    seq, kind, _ = first_difference(other)
    assert (seq, kind) == (at + 1, "tool.started")


def test_an_entry_that_the_loop_does_not_write_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palyra.features.time_travel.replay.driver.STILL_S", 1.0)
    recorded = simple(tmp_path)
    *most, last = recorded.own
    body = events.encode(events.RunStarted())
    named = {
        name: getattr(last, name)
        for name in ("tape", "seq", "position", "time_ms", "run_id", "principal")
    }
    prev = bytes.fromhex(most[-1].hash)
    digest = chain.link_of(last.link, prev, **named, kind="run.started", body=body)
    stray = msgspec.structs.replace(
        last, kind="run.started", event=msgspec.Raw(body), hash=digest.hex()
    )
    other = msgspec.structs.replace(recorded, tapes=(Tape(recorded.session_id, (*most, stray)),))
    again = replay(other, ours())
    assert again.difference is not None
    assert (again.difference.seq, again.difference.where) == (last.seq, "kind")


def test_a_kept_run_whose_chain_is_broken_is_not_believed(tmp_path: Path) -> None:
    recorded = simple(tmp_path)
    body = recordings.encode(recorded).replace(b"looking", b"lookinG")
    with pytest.raises(ChainBroken) as refused:
        recordings.decode(body)
    assert refused.value.details["seq"] == next(
        entry.seq for entry in recorded.own if entry.kind == "model.replied"
    )
    for rubbish in (
        b"",
        b"{}",
        b"[1]",
        recordings.encode(msgspec.structs.replace(recorded, last=recorded.last - 1)),
    ):
        with pytest.raises(InvalidInput):
            recordings.decode(rubbish)


def test_the_digest_is_that_of_what_the_provider_was_sent(tmp_path: Path) -> None:
    assembled = [
        event
        for entry in simple(tmp_path).own
        if isinstance(event := events.decode(bytes(entry.event)), InputAssembled)
    ]
    assert len({event.digest for event in assembled}) == 3
    assert len({event.surroundings for event in assembled}) == 1
    assert all(len(event.digest) == 64 for event in assembled)


def palyra(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = root.run(list(arguments))
    return code, capsys.readouterr().out


def test_runs_are_replayed_kept_and_tried_as_a_suite_without_a_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = simple(tmp_path)
    run_id = next(entry.run_id for entry in recorded.own if entry.run_id)
    home, kept = str(tmp_path / "home"), tmp_path / "kept"
    before = (tmp_path / "home" / "journal.db").read_bytes()

    code, said = palyra(capsys, "--home", home, "replay", run_id)
    assert (code, said) == (0, f"✓ identical: {recorded.last - 1} entries are the same\n")
    code, said = palyra(capsys, "--home", home, "--json", "replay", recorded.session_id.lower())
    assert (code, json.loads(said)["entries"]) == (0, recorded.last)
    assert palyra(capsys, "--home", home, "replay", "--keep", run_id, str(kept))[0] == 0
    assert (
        palyra(capsys, "--home", home, "replay", "--keep", recorded.session_id, str(kept))[0] == 0
    )
    assert root.run(["--home", home, "replay", "--keep", run_id, str(kept)]) == exit_codes.code_of(
        Conflict("")
    )
    assert (tmp_path / "home" / "journal.db").read_bytes() == before

    # The suite needs nothing of the home in which the runs were recorded.
    elsewhere = str(tmp_path / "elsewhere")
    code, said = palyra(capsys, "--home", elsewhere, "replay", "--suite", str(kept))
    assert code == 0
    assert "2 identical, 0 different, 0 not readable" in said
    monkeypatch.setattr(assembly, "INSTRUCTIONS", assembly.INSTRUCTIONS + " Sing.")
    (kept / "broken.run.json").write_text("{}")
    code, said = palyra(capsys, "--home", elsewhere, "--json", "replay", "--suite", str(kept))
    summary = json.loads(said)
    assert (code, summary["identical"], summary["different"], summary["broken"]) == (1, 0, 2, 1)
    code, said = palyra(capsys, "--home", elsewhere, "replay", str(kept / f"{run_id}.run.json"))
    assert code == 1
    assert "different at entry 6" in said
    assert "digest" in said


def test_what_is_not_there_cannot_be_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = str(tmp_path)
    assert root.run(["--home", home, "replay", "01JD0000000000000000000001"]) != 0
    assert root.run(["--home", home, "replay", "nonsense"]) != 0
    assert root.run(["--home", home, "replay", "--suite", str(tmp_path / "none")]) != 0
    assert root.run(["--home", home, "replay", "--suite", str(tmp_path)]) != 0
    assert root.run(["--home", home, "replay"]) != 0
    assert root.run(["--home", home, "replay", "--suite", "--keep", "x"]) != 0


def test_the_daemon_replays_a_run_beside_its_work_and_only_for_its_owner(tmp_path: Path) -> None:
    async def inside() -> None:
        async with daemon(tmp_path, [Turn(text="hello")], SETTINGS) as d:
            run = await say(d, await session(d), "hi")
            await finished(d, run)
            begun = await d.replays.start(OWNER, run.run_id)
            assert begun.state == "running"
            await finished(d, await say(d, await session(d), "still here"))
            found = await d.replays.get(OWNER, run.run_id, 30_000)
            assert found.replayed is not None
            assert found.replayed.identical
            with pytest.raises(Exception, match="someone else"):
                await d.replays.start("user:other", run.run_id)

    asyncio.run(inside())


def test_the_page_names_everything_that_is_not_compared() -> None:
    page = (ROOT / "docs" / "reference" / "replay.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for kind, fields in VOLATILE.items():
        for name in fields:
            assert any(
                f"`{kind}`" in row and f"`{name.removeprefix('parts.')}`" in row for row in rows
            ), (kind, name)
