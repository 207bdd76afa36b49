"""Who writes rights into the database file gets none of them, and the owner is told."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palyra.core.errors import Forbidden
from palyra.core.events import (
    AdminChanged,
    ApprovalRequested,
    RunAccepted,
    RunStarted,
    SessionCreated,
)
from palyra.core.ids import SYSTEM_TAPE, ApprovalId, CallId, RunId, SessionId
from palyra.core.labels import Label
from palyra.core.tools import Preview, Subject
from palyra.core.verdicts import Grant
from palyra.features.channels.rows import messages, people
from palyra.features.channels.rows.people import Pairing
from palyra.features.mcp.acceptances import AcceptedTool, KnownFiles
from palyra.features.project_notes import rows as notes
from palyra.features.schedules import rows as schedules
from palyra.features.schedules.model import HookTrigger, Schedule
from palyra.features.workers import rows as workers
from palyra.features.workers.rows import Renewal
from palyra.models.scripted import Script, ScriptedModel, Turn
from palyra.store import approvals, rights, sessions, tape, tokens
from palyra.store.database import Database, Tx
from palyra.store.row_seals import RowSeals
from palyra.store.tokens import Token
from palyra.store.write_buffer import BY_TABLE
from tests.clocks import HeldClock
from tests.crash.scenarios import call
from tests.inprocess import daemon
from tests.journals import new_id, opened, run
from tests.proving import raw_file, relink, unguarded
from tests.scheduling import add, firings, moment, pass_time, timed

FAR = 1 << 50
GRANT = Grant(
    approval_id=new_id(),
    principal="user:owner",
    session_id=None,
    subject=Subject("shell.run", "tool", ""),
    until_ms=None,
    seen=Label(),
)
TOKEN = Token(new_id(), "one", "user:owner", "owner", 1)
PAIRING = Pairing(
    pairing_id=new_id(),
    connector="c",
    kind="code",
    state="pending",
    created_ms=1,
    expires_ms=FAR,
)
SESSION, RUN, ASKED_FOR = SessionId(new_id()), RunId(new_id()), ApprovalId(new_id())
SCHEDULE = Schedule(
    schedule_id=new_id(), owner="user:owner", name="n", text="t", trigger=HookTrigger()
)


def _give_everything(tx: Tx) -> None:
    approvals.add_grant(tx, GRANT)
    tokens.add(tx, TOKEN, b"digest")
    workers.admit(tx, "attic", "fingerprint")
    workers.keep_renewal(tx, Renewal("attic", "next", "request", "certificate", 1))
    workers.add_code(tx, b"code", "cellar", FAR)
    people.link(tx, "c", "friend", "user:owner")
    people.grant(tx, "c", "guest", FAR, "user:owner")
    people.add(tx, PAIRING, b"pairing")
    notes.accept(tx, "/w", "AGENTS.md", "d", "text", "user:owner")
    schedules.save(tx, SCHEDULE)
    made = sessions.create(tx, SESSION, SessionCreated(owner="user:owner", workspace="/w"))
    accepted = RunAccepted(origin="interactive")
    request = ApprovalRequested(
        approval_id=ASKED_FOR,
        call_id=CallId("c"),
        tool="fs.write",
        about="tool",
        preview=Preview("text", "write"),
        risk="low",
        why="writing asks first",
    )
    tape.append(tx, made.session_id, "user:owner", [accepted, RunStarted()], RUN)
    (entry,) = tape.append(tx, made.session_id, "user:owner", [request], RUN)
    approvals.add(
        tx,
        session_id=SESSION,
        run_id=RUN,
        owner="user:owner",
        origin="interactive",
        request=request,
        position=entry.position,
    )
    approvals.hand_on(tx, ASKED_FOR, "user:friend", entry.position)
    messages.set_rules(tx, "c", {"who": "paired"}, entry.position)


def _answers(tx: Tx, principal: str) -> bool:
    try:
        return approvals.get(tx, ASKED_FOR, principal) is not None
    except Forbidden:
        return False


# What each right lets somebody do, asked as the daemon asks it.
ASKED: dict[str, Callable[[Tx], object]] = {
    "grants": lambda tx: [each.approval_id for each in approvals.grants_for(tx, "user:owner", "s")],
    "tokens": lambda tx: [token.name for _, token in tokens.valid(tx)],
    "workers": lambda tx: workers.by_fingerprint(tx, "fingerprint") is not None,
    "worker_renewals": lambda tx: workers.by_fingerprint(tx, "next") is not None,
    "worker_codes": lambda tx: workers.use_code(tx, b"code"),
    "channel_people": lambda tx: [
        person.standing(tx.now_ms)
        for name in ("friend", "guest")
        if (person := people.find(tx, "c", name))
    ],
    "channel_pairings": lambda tx: people.by_code(tx, b"pairing") is not None,
    "accepted_notes": lambda tx: sorted(notes.digests(tx, "/w")),
    "schedules": lambda tx: [each.name for each in schedules.listing(tx)],
    "sessions": lambda tx: [
        sessions.find(tx, session_id=SESSION) is not None,
        *(
            each.owner
            for each in sessions.listing(tx, "user:owner", archived=False, before=None, limit=9)
        ),
    ],
    "approvals": lambda tx: [_answers(tx, who) for who in ("user:owner", "user:eve")],
    "approval_routes": lambda tx: [_answers(tx, who) for who in ("user:friend", "user:eve")],
    "channel_settings": lambda tx: msgspec.to_builtins(messages.changed(tx)["c"]),
}
GIVEN = {
    "grants": [GRANT.approval_id],
    "tokens": ["one"],
    "workers": True,
    "worker_renewals": True,
    "worker_codes": "cellar",
    "channel_people": ["person", "paired"],
    "channel_pairings": True,
    "accepted_notes": [("AGENTS.md", "d")],
    "schedules": ["n"],
    "sessions": [True, "user:owner"],
    "approvals": [True, False],
    "approval_routes": [True, False],
    "channel_settings": {"paused": False, "rules": {"who": "paired"}},
}
NOTHING = {
    "grants": [],
    "tokens": [],
    "workers": False,
    "worker_renewals": False,
    "worker_codes": "",
    "channel_people": ["stranger", "stranger"],
    "channel_pairings": False,
    "accepted_notes": [],
    "schedules": [],
    "sessions": [False],
    "approvals": [False, False],
    "approval_routes": [False, False],
    # Nobody gets in before its owner says anew who may.
    "channel_settings": {"paused": True, "rules": {}},
}
# What somebody changes who wants more than was given.
CHANGED = {
    "grants": "UPDATE grants SET subject_value = 'rm'",
    "tokens": "UPDATE tokens SET principal = 'user:other'",
    "workers": "UPDATE workers SET name = 'other'",
    "worker_renewals": "UPDATE worker_renewals SET certificate = 'other'",
    "worker_codes": "UPDATE worker_codes SET expires_ms = expires_ms + 1",
    "channel_people": "UPDATE channel_people SET principal = 'user:other'",
    "channel_pairings": "UPDATE channel_pairings SET grant_ms = 5",
    "accepted_notes": "UPDATE accepted_notes SET accepted_by = 'user:other'",
    "schedules": "UPDATE schedules SET body = CAST(replace(CAST(body AS TEXT), '\"t\"', '\"u\"')"
    " AS BLOB)",
    "sessions": "UPDATE sessions SET workspace = '/'",
    "approvals": "UPDATE approvals SET owner = 'user:eve'",
    "approval_routes": "UPDATE approval_routes SET principal = 'user:eve'",
    "channel_settings": 'UPDATE channel_settings SET rules = \'{"who": "everyone"}\'',
}


def _asked(folder: Path, table: str, statement: str = "") -> tuple[object, list[str]]:
    """What the daemon finds, after somebody has run a statement on the file."""

    async def scenario() -> tuple[object, list[str]]:
        async with opened(folder / "j.db") as db:
            db.seals = RowSeals(bytes(32))
            await db.write(_give_everything)
        if statement:
            raw = raw_file(folder / "j.db")
            raw.execute(statement)
            raw.close()
        async with opened(folder / "j.db") as db:
            db.seals = RowSeals(bytes(32))
            found = await db.write(ASKED[table])
            return found, [refused for refused, _ in db.seals.refused]

    return run(scenario())


@pytest.mark.parametrize("table", ASKED)
def test_a_right_that_was_given_holds(table: str, tmp_path: Path) -> None:
    assert _asked(tmp_path, table) == (GIVEN[table], [])


@pytest.mark.parametrize("table", ASKED)
def test_a_right_that_was_changed_in_the_file_is_none(table: str, tmp_path: Path) -> None:
    found, refused = _asked(tmp_path, table, CHANGED[table])
    assert found == NOTHING[table]
    assert table in refused


@pytest.mark.parametrize("table", ASKED)
def test_a_right_with_the_seal_of_another_or_with_none_is_none(table: str, tmp_path: Path) -> None:
    for mac in ("zeroblob(32)", "x''", "(SELECT mac FROM tokens)", "'text'"):
        if mac.startswith("(") and table == "tokens":
            continue
        folder = tmp_path / str(len(mac))
        folder.mkdir()
        assert _asked(folder, table, f"UPDATE {table} SET mac = {mac}")[0] == NOTHING[table]


def test_every_sealed_table_is_asked_here() -> None:
    assert sorted(ASKED) == sorted(right.table for right in rights.ALL)
    assert BY_TABLE


def test_what_a_forged_row_pretends_is_not_sealed_along_with_a_true_change(tmp_path: Path) -> None:
    async def scenario() -> list[object]:
        async with opened(tmp_path / "j.db") as db:
            db.seals = RowSeals(bytes(32))
            await db.write(lambda tx: people.seen(tx, "c", "eve", "Eve", ""))
            await db.write(lambda tx: workers.admit(tx, "attic", "f"))
        raw = raw_file(tmp_path / "j.db")
        raw.execute("UPDATE channel_people SET principal = 'user:owner'")
        raw.execute("UPDATE workers SET fingerprint = 'forged'")
        raw.close()
        async with opened(tmp_path / "j.db") as db:
            db.seals = RowSeals(bytes(32))
            paired = await db.write(lambda tx: people.grant(tx, "c", "eve", FAR, "user:owner"))
            await db.write(lambda tx: workers.set_state(tx, "attic", "draining"))
            worker = await db.read(lambda tx: workers.by_fingerprint(tx, "forged"))
            return [paired.principal, paired.standing(1), worker]

    assert run(scenario()) == ["", "paired", None]


def test_a_pairing_code_is_used_once_whatever_becomes_of_its_row(tmp_path: Path) -> None:
    async def scenario() -> list[bool]:
        async with opened(tmp_path / "j.db") as db:
            db.seals = RowSeals(bytes(32))
            await db.write(lambda tx: people.add(tx, PAIRING, b"c"))
            before = await db.read(lambda tx: people.by_code(tx, b"c"))
            await db.write(lambda tx: people.settle(tx, PAIRING.pairing_id, "approved", "x"))
            await db.write(lambda tx: tx.run("UPDATE channel_pairings SET state = 'pending'"))
            after = await db.read(lambda tx: people.by_code(tx, b"c"))
            return [before is not None, after is not None]

    assert run(scenario()) == [True, False]


def test_rows_from_before_there_were_seals_are_sealed_once(tmp_path: Path) -> None:
    """An older home opens with its tokens; a row that comes without a seal later has no right."""

    async def scenario() -> list[Any]:
        found = []
        (tmp_path / "home").mkdir()
        async with opened(tmp_path / "home" / "journal.db") as db:
            await db.write(lambda tx: tokens.add(tx, TOKEN, b"old"))
        async with daemon(tmp_path, []) as d:
            found.append([each.name for _, each in await d.db.read(tokens.valid)])
        raw = raw_file(tmp_path / "home" / "journal.db")
        raw.execute(
            "INSERT INTO tokens (token_id, digest, name, principal, scope, created_ms) SELECT"
            " 'forged', x'01', 'forged', principal, scope, created_ms FROM tokens LIMIT 1"
        )
        raw.close()
        async with daemon(tmp_path, []) as d:
            found.append([each.name for _, each in await d.db.read(tokens.valid)])
            found.append(list(d.get(Database).seals.refused))
        return found

    before, after, refused = asyncio.run(scenario())
    assert "one" in before
    assert after == before
    assert refused == [("tokens", "forged")]


def test_a_daemon_that_died_before_its_key_had_its_name_seals_files_again(tmp_path: Path) -> None:
    keys, known = tmp_path / "home/keys", tmp_path / "home/mcp/known"
    accepted = AcceptedTool("0" * 64, {"name": "read"})

    async def start_and_stop() -> None:
        async with daemon(tmp_path, []):
            pass

    run(start_and_stop())
    (keys / "rights.key").rename(keys / "rights.key.new")
    KnownFiles(known).put("s", "read", accepted)
    run(start_and_stop())
    seals = RowSeals((keys / "rights.key").read_bytes())
    assert KnownFiles(known, seals).get("s", "read") == accepted
    # From now on nothing without a seal is taken over.
    KnownFiles(known).put("t", "read", accepted)
    run(start_and_stop())
    assert KnownFiles(known, seals).get("t", "read") is None


def test_a_schedule_that_was_widened_in_the_file_gives_its_runs_nothing(tmp_path: Path) -> None:
    """Else the daemon itself would seal the grants that somebody wrote into a schedule's body."""

    async def scenario() -> tuple[list[object], list[tuple[str, str]], list[object]]:
        clock = HeldClock(moment("2026-11-16T08:30"))
        write = Turn(calls=(call("fs.write", path="a.txt", content="x"),))
        model = ScriptedModel(Script({"look around": (write, Turn(text=("done",)))}))
        async with timed(tmp_path, clock, model) as d:
            made = await add(d, "daily at 9", scopes=(Subject("fs.write", "path_prefix", "/no"),))
            kept = await add(d, "daily at 9", text="rest")
            raw = raw_file(tmp_path / "home" / "journal.db")
            raw.execute(
                "UPDATE schedules SET body = CAST(replace(CAST(body AS TEXT), '/no', '/') AS BLOB)"
                " WHERE schedule_id = ?",
                (made.schedule.schedule_id,),
            )
            raw.close()
            await pass_time(d, clock, 3_600_000)
            grants = await d.db.read(lambda tx: tx.all("SELECT subject_value FROM grants"))
            assert d.db.seals is not None
            fired = await firings(d, kept.schedule.schedule_id)
            return grants, list(d.db.seals.refused), [each.state for each in fired]

    grants, refused, kept = run(scenario())
    assert grants == []
    assert not (tmp_path / "work" / "a.txt").exists()
    assert {table for table, _ in refused} == {"schedules"}
    # The others go on.
    assert len(kept) == 1


def test_schedules_from_before_they_were_sealed_are_sealed_once(tmp_path: Path) -> None:
    """A home that has the key already, from a version that did not seal them."""
    marks = tmp_path / "home" / "keys" / "rights.tables"

    async def names() -> list[str]:
        async with daemon(tmp_path, []) as d:
            return [each.name for each in await d.db.read(schedules.listing)]

    async def make() -> None:
        async with daemon(tmp_path, []) as d:
            await d.db.write(lambda tx: schedules.save(tx, SCHEDULE))

    def forge() -> None:
        raw = raw_file(tmp_path / "home" / "journal.db")
        raw.execute("UPDATE schedules SET mac = x''")
        raw.close()

    asyncio.run(make())
    forge()
    marks.unlink()
    assert asyncio.run(names()) == ["n"]
    forge()
    assert asyncio.run(names()) == []


def _made(folder: Path) -> Path:
    async def scenario() -> None:
        async with opened(folder / "j.db") as db:
            db.seals = RowSeals(bytes(32))
            await db.write(_give_everything)

    run(scenario())
    return folder / "j.db"


def _answer(journal: Path, table: str) -> tuple[object, list[str]]:
    async def scenario() -> tuple[object, list[str]]:
        async with opened(journal) as db:
            db.seals = RowSeals(bytes(32))
            found = await db.write(ASKED[table])
            return found, [refused for refused, _ in db.seals.refused]

    return run(scenario())


@pytest.mark.parametrize("table", ["sessions", "approvals", "approval_routes", "accepted_notes"])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE {table} SET entry = entry + 1",
        "UPDATE {table} SET entry = 0, entry_hash = x''",
        "UPDATE {table} SET entry_hash = zeroblob(32)",
    ],
)
def test_a_right_is_bound_to_the_entry_that_made_it(
    table: str, change: str, tmp_path: Path
) -> None:
    journal = _made(tmp_path)
    assert _answer(journal, table) == (GIVEN[table], [])
    raw = raw_file(journal)
    raw.execute(change.format(table=table))
    raw.close()
    found, refused = _answer(journal, table)
    assert (found, set(refused)) == (NOTHING[table], {table})


@pytest.mark.parametrize("table", ["sessions", "approvals", "accepted_notes"])
def test_a_right_whose_entry_was_changed_is_none(table: str, tmp_path: Path) -> None:
    """The row is as it was; the entry says something else, with every link made anew."""
    journal = _made(tmp_path)
    raw = unguarded(journal)
    raw.execute(f"UPDATE entries SET time_ms = 7 WHERE position IN (SELECT entry FROM {table})")
    relink(raw)
    raw.close()
    found, refused = _answer(journal, table)
    assert (found, table in refused) == (NOTHING[table], True)


def _mint(tx: Tx) -> None:
    event = AdminChanged(what="token", action="created", subject=TOKEN.token_id)
    (entry,) = tape.append(tx, SYSTEM_TAPE, "user:owner", [event])
    tokens.add(tx, TOKEN, b"digest", entry.position)


def test_a_home_from_before_rows_carried_their_entry_is_bound_once(tmp_path: Path) -> None:
    """By what the tape tells of each. A row that was forged before gets none."""
    marks = tmp_path / "home" / "keys" / "rights.tables"

    async def make() -> None:
        async with daemon(tmp_path, []) as d:
            await d.db.write(_mint)

    asyncio.run(make())
    journal = tmp_path / "home" / "journal.db"
    seals = RowSeals((tmp_path / "home" / "keys" / "rights.key").read_bytes())
    raw = raw_file(journal)
    raw.execute("UPDATE tokens SET entry = 0, entry_hash = x''")
    for row in raw.execute(f"SELECT {rights.TOKENS.columns} FROM tokens").fetchall():
        mac = seals.mac(rights.TOKENS, row[: len(rights.TOKENS.fields)])
        raw.execute("UPDATE tokens SET mac = ? WHERE token_id = ?", (mac, row[0]))
    raw.execute("UPDATE tokens SET mac = x'' WHERE name <> 'one'")
    raw.close()
    marks.write_text(marks.read_text().replace(rights.BOUND, ""))

    async def bound() -> dict[str, int]:
        async with daemon(tmp_path, []) as d:
            asked = "SELECT token_id, entry FROM tokens"
            return dict(await d.db.read(lambda tx: tx.all(asked)))

    found = asyncio.run(bound())
    assert found.pop(TOKEN.token_id) > 0
    assert set(found.values()) <= {0}
