"""Deep verification finds no fault with what the daemon wrote, and names every row that it did not."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from palyra.agent.approval_steps import Answer
from palyra.agent.session_rules import SessionRules
from palyra.api.auth import Access
from palyra.core.budgets import Limit, Terms
from palyra.core.events import FileDigest
from palyra.core.ids import OWNER
from palyra.core.labels import CLEAN, Label
from palyra.core.tools import Subject
from palyra.features.budgets import rows as budget_rows
from palyra.features.learning import rows as learning_rows
from palyra.features.learning.model import Candidate
from palyra.features.memory.model import NewMemory
from palyra.features.memory.service import MemoryChange
from palyra.features.time_travel.rewind import Rewind
from palyra.models.scripted import StreamPause, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import file_labels, sqlite_files
from palyra.store.database import Tx
from palyra.system.clock import Clock
from tests import replaying
from tests.crash.harness import live, prepare
from tests.crash.scenarios import SCENARIOS, call
from tests.faults import asked
from tests.inprocess import body, daemon, entries, finished, say, session
from tests.scheduling import add, settle
from tests.watching_over import JumpingClock


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_the_daemon_wrote_follows_from_its_tape(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]()
    folder = prepare(tmp_path / name, scenario)
    asyncio.run(live(folder, scenario))
    assert sqlite_files.inspect_rows(folder / "home" / "journal.db") == []


def test_what_conversations_of_every_kind_leave_follows_from_their_tapes(tmp_path: Path) -> None:
    """Branches, forks, rewinds, subagents, attachments, compactions, and some at random."""
    replaying.furnish(tmp_path / "work")

    async def talk() -> None:
        holds = {name: StreamPause() for name in replaying.HOLDS}
        scripts = {**replaying.SCRIPTS, **replaying.scripts_at_random(tuple(range(8)))}
        model = replaying.model_for(scripts, holds)
        async with daemon(tmp_path, model, replaying.SETTINGS, clock=JumpingClock()) as d:
            for story in replaying.STORIES:
                if story.__name__ == "images":
                    continue  # It needs a tool of another test.
                for hold in holds.values():
                    hold.reached.clear()
                    hold.released.clear()
                await asyncio.wait_for(story(d, holds), 60)
            for seed in range(8):
                await asyncio.wait_for(replaying.talk_at_random(d, seed), 60)

    asyncio.run(talk())
    journal = tmp_path / "home" / "journal.db"
    assert sqlite_files.inspect(journal).ok
    assert sqlite_files.inspect_rows(journal) == []


def test_a_grant_that_a_rewind_took_back_is_not_given_again(tmp_path: Path) -> None:
    """Its seal holds: it was true once."""
    journal = tmp_path / "home" / "journal.db"

    async def talk() -> tuple[Any, ...]:
        write = Turn(calls=(call("fs.write", path="a.txt", content="x"),))
        async with daemon(tmp_path, {"go": [write, Turn(text=("done",))]}) as d:
            where = await session(d)
            told = await say(d, where, "go")
            request = await asked(d, where.session_id)
            yes = Answer(decision="allow", scope="session")
            await d.answers.answer(OWNER, request.approval_id, yes, "cli")
            await finished(d, told)
            (row,) = await d.db.read(lambda tx: tx.all("SELECT * FROM grants"))
            await d.rewinding.rewind(OWNER, where.session_id, Rewind(to=1))
            assert await d.db.read(lambda tx: tx.all("SELECT * FROM grants")) == []
        return tuple(row)

    row = asyncio.run(talk())
    assert sqlite_files.inspect_rows(journal) == []
    raw = apsw.Connection(str(journal))
    raw.execute(f"INSERT INTO grants VALUES ({', '.join('?' * len(row))})", row)
    raw.close()
    assert [each.table for each in sqlite_files.inspect_rows(journal)] == ["grants"]


async def _keep(d: Daemon) -> None:
    """Memory in every state, schedules and budgets, as somebody leaves them behind."""
    here = await d.memory.where(OWNER, "")
    made = {
        name: (
            await d.memory.add(here, NewMemory(text=f"The {name} is blue", pinned=name == "sea"))
        )
        for name in ("sky", "sea", "car", "door", "hat")
    }
    ids_of = {name: each.memory_id for name, each in made.items()}
    await d.memory.change(here, ids_of["car"], MemoryChange(text="The car is red"))
    await d.memory.forget(here, ids_of["door"])
    await d.memory.purge(OWNER, (ids_of["hat"],))
    scope = Subject("fs.write", "path_prefix", "/nowhere")
    kept = await add(d, "daily at 9", scopes=(scope,))
    paused = await add(d, "daily at 10", text="sleep")
    gone = await add(d, "daily at 11", text="be gone")
    verbs = d.timekeeping.schedules
    await verbs.pause(OWNER, paused.schedule.schedule_id)
    await verbs.remove(OWNER, gone.schedule.schedule_id)
    await verbs.run(OWNER, kept.schedule.schedule_id)
    await settle(d)
    for name, tokens in (("kept", 1_000), ("gone", 2_000)):
        limit = Limit(name=name, terms=Terms(tokens=tokens))
        await d.db.write(lambda tx, limit=limit: budget_rows.put(tx, limit, OWNER))  # type: ignore[misc]
    await d.db.write(lambda tx: budget_rows.remove(tx, "gone", OWNER))
    await _keep_what_hangs_on_sessions(d)
    grants = await d.db.read(lambda tx: tx.all("SELECT 1 FROM grants"))
    assert grants, "what a schedule may do is a grant that no approval gave"


async def _keep_what_hangs_on_sessions(d: Daemon) -> None:
    """Rules, subagents, labels of files and candidates, some of each taken back."""
    where = await session(d)
    await finished(d, await say(d, where, "delegate"))
    rules = d.get(SessionRules)
    await rules.add(OWNER, where.session_id, "never touch ./kept")
    gone = await rules.add(OWNER, where.session_id, "never touch ./gone")
    await rules.remove(OWNER, where.session_id, gone.rule_id)
    made = [
        Candidate(
            candidate_id=d.get(Clock).new_id(),
            owner=OWNER,
            kind="fact",
            content=f"The {name} is wide",
            confidence_bps=5_000,
            state="pending_review",
        )
        for name in ("sea", "road", "lane")
    ]

    def step(tx: Tx) -> None:
        read = Label(integrity="untrusted")
        files = [FileDigest(f"/nowhere/{name}", "") for name in ("a", "b", "c")]
        file_labels.put(tx, OWNER, files, read)
        file_labels.put(tx, OWNER, files[1:2], CLEAN)
        file_labels.put(tx, OWNER, files[2:], CLEAN, anew=True)
        for each in made:
            learning_rows.propose(tx, each)
        learning_rows.settle(tx, made[1], "reject", OWNER)
        learning_rows.settle(tx, made[2], "accept", OWNER, reworded="The lane is narrow")

    await d.db.write(step)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = SCENARIOS["approvals"]()
    folder = prepare(tmp_path_factory.mktemp("deep") / "whole", scenario)

    async def scene() -> None:
        await live(folder, scenario)
        large = Turn(calls=(call("test.pure", text="z" * 200_000),))
        turns = {
            **scenario.turns,
            "large": [large, Turn(text=("read",))],
            "delegate": [
                Turn(calls=(call("agent.spawn", task="part"),)),
                Turn(text=("done",)),
            ],
            "part": [Turn(text=("done",))],
        }
        async with daemon(folder, turns) as d:
            where = await session(d)
            await finished(d, await say(d, where, "large"))
            (told,) = [
                each for each in await entries(d, where.session_id) if "finished" in each.kind
            ]
            assert body(told)["artifact"]
            access = Access(d.db, d.get(Clock), lambda text: text)
            await access.mint("user:owner", "kept", "viewer", principal="user:owner")
            _, token = await access.mint("user:owner", "revoked", "owner", principal="user:owner")
            await access.revoke("user:owner", token.token_id)
            await _keep(d)

    asyncio.run(scene())
    raw = apsw.Connection(str(folder / "home" / "journal.db"))
    raw.execute("PRAGMA journal_mode=DELETE")
    raw.close()
    assert sqlite_files.inspect_rows(folder / "home" / "journal.db") == []
    return folder / "home" / "journal.db"


CHANGES = {
    "an approval that was answered otherwise": (
        "UPDATE approvals SET decision = 'deny' WHERE decision = 'allow'",
        "approvals",
    ),
    "an approval for another tool": ("UPDATE approvals SET tool = 'shell.run'", "approvals"),
    "an approval that nobody asked for": (
        "INSERT INTO approvals SELECT 'X', session_id, run_id, call_id, owner, tool, about, origin,"
        " requested_position, requested_ms, expires_ms, 'allow', 1, 1, mac, 0, x'' FROM approvals"
        " LIMIT 1",
        "approvals",
    ),
    **{
        f"a row of {table} that another entry is said to have made": (
            f"UPDATE {table} SET entry = (SELECT min(position) FROM entries)",
            table,
        )
        for table in ("sessions", "approvals", "grants", "tokens", "schedules")
    },
    "an entry of a token with another hash": (
        "UPDATE tokens SET entry_hash = zeroblob(32) WHERE entry > 0",
        "tokens",
    ),
    "an approval that is gone": ("DELETE FROM approvals", "approvals"),
    "a grant that nobody gave": (
        "INSERT INTO grants (approval_id, principal, tool, subject_kind, subject_value, seen,"
        " created_ms) VALUES ('X', 'user:owner', 'shell.run', 'tool', '', '{}', 1)",
        "grants",
    ),
    "a run that ended otherwise": ("UPDATE runs SET state = 'cancelled'", "runs"),
    "a run that is gone": ("DELETE FROM runs", "runs"),
    "a run that nobody asked for": (
        "INSERT INTO runs SELECT 'X', session_id, principal, origin, state, reason,"
        " accepted_position, created_ms, started_ms, ended_ms, heartbeat_ms, schedule_id"
        " FROM runs LIMIT 1",
        "runs",
    ),
    "a call that cost less": ("UPDATE usage SET output_tokens = 0", "usage"),
    "a call that is not counted": ("DELETE FROM usage", "usage"),
    "a call that nobody made": (
        "UPDATE usage SET position = 100000 WHERE position = (SELECT max(position) FROM usage)",
        "usage",
    ),
    "a token that nobody made": (
        "INSERT INTO tokens (token_id, digest, name, principal, scope, created_ms)"
        " VALUES ('X', x'01', 'x', 'user:owner', 'owner', 1)",
        "tokens",
    ),
    "a token of a wider scope": (
        "UPDATE tokens SET scope = 'owner' WHERE name = 'kept'",
        "tokens",
    ),
    "a token that is good again": ("UPDATE tokens SET revoked_ms = 0", "tokens"),
    "a memory with another text": (
        "UPDATE memory_items SET text = 'The sky is red' WHERE text = 'The sky is blue'",
        "memory_items",
    ),
    "a memory that nobody wrote": (
        "INSERT INTO memory_items (memory_id, owner, scope, scope_value, kind, text, same_key,"
        " salt, label, provenance, source, place, confidence_bps, valid_from_ms, valid_until_ms,"
        " expires_ms, pinned, state, why, origin, supersedes, superseded_by, created_ms,"
        " updated_ms) SELECT 'X', owner, scope, scope_value, kind, text, same_key, salt, label,"
        " provenance, source, place, confidence_bps, valid_from_ms, valid_until_ms, expires_ms,"
        " pinned, state, why, origin, supersedes, superseded_by, created_ms, updated_ms"
        " FROM memory_items LIMIT 1",
        "memory_items",
    ),
    "a memory that is gone": (
        "DELETE FROM memory_items WHERE text = 'The sky is blue'",
        "memory_items",
    ),
    "a forgotten memory that holds again": (
        "UPDATE memory_items SET state = 'active' WHERE state = 'forgotten'",
        "memory_items",
    ),
    "a corrected memory that holds again": (
        "UPDATE memory_items SET state = 'active' WHERE state = 'superseded'",
        "memory_items",
    ),
    "a memory that is pinned": (
        "UPDATE memory_items SET pinned = 1 WHERE text = 'The sky is blue'",
        "memory_items",
    ),
    "a memory that is trusted": (
        """UPDATE memory_items SET label = '{"integrity":"untrusted"}' WHERE pinned = 1""",
        "memory_items",
    ),
    "a memory of somebody else": ("UPDATE memory_items SET owner = 'user:mallory'", "memory_items"),
    "a schedule that does something else": (
        "UPDATE schedules SET body = CAST(replace(CAST(body AS TEXT), 'look around', 'look away')"
        " AS BLOB)",
        "schedules",
    ),
    "a schedule that may do more": (
        "UPDATE schedules SET body = CAST(replace(CAST(body AS TEXT), '/nowhere', '/') AS BLOB)",
        "schedules",
    ),
    "a schedule that runs again": (
        """UPDATE schedules SET state = 'active', body = CAST(replace(CAST(body AS TEXT),
        '"state":"paused"', '"state":"active"') AS BLOB) WHERE state = 'paused'""",
        "schedules",
    ),
    "a schedule that nobody made": (
        "INSERT INTO schedules SELECT 'X', owner, state, next_ms, body, mac, 0, x''"
        " FROM schedules LIMIT 1",
        "schedules",
    ),
    "a schedule that is gone": ("DELETE FROM schedules", "schedules"),
    "a schedule of somebody else": ("UPDATE schedules SET owner = 'user:mallory'", "schedules"),
    "a schedule's grant that is wider": (
        "UPDATE grants SET subject_value = '/' WHERE subject_value = '/nowhere'",
        "grants",
    ),
    "a schedule's grant in another session": (
        "UPDATE grants SET session_id = 'X' WHERE subject_value = '/nowhere'",
        "grants",
    ),
    "a budget that is higher": (
        "UPDATE budgets SET body = CAST(replace(CAST(body AS TEXT), '1000', '9000') AS BLOB)",
        "budgets",
    ),
    "a budget that nobody set": (
        "INSERT INTO budgets VALUES ('gone', CAST('{\"tokens\":2000}' AS BLOB), 1)",
        "budgets",
    ),
    "a budget that is gone": ("DELETE FROM budgets", "budgets"),
    "a run of somebody else": ("UPDATE runs SET principal = 'user:mallory'", "runs"),
    "a run of a schedule": ("UPDATE runs SET schedule_id = 'X', origin = 'schedule'", "runs"),
    "an approval that somebody else answers": (
        "UPDATE approvals SET owner = 'user:mallory'",
        "approvals",
    ),
    "an approval that never expires": ("UPDATE approvals SET expires_ms = 1 << 50", "approvals"),
    "an approval by another entry": (
        "UPDATE approvals SET resolved_position = 1 WHERE decision = 'allow'",
        "approvals",
    ),
    "a grant of somebody else": ("UPDATE grants SET principal = 'user:mallory'", "grants"),
    "a token of somebody else": (
        "UPDATE tokens SET principal = 'user:mallory' WHERE name = 'kept'",
        "tokens",
    ),
    "a token that is good for longer": (
        "UPDATE tokens SET expires_ms = 1 << 50 WHERE name = 'kept'",
        "tokens",
    ),
    "a token for another workspace": (
        "UPDATE tokens SET workspace = '/' WHERE name = 'kept'",
        "tokens",
    ),
    "an undo of a call that never was": (
        "INSERT INTO effects SELECT 'X', session_id, run_id, tool, position, checkpoint, 0"
        " FROM effects WHERE run_id <> '' LIMIT 1",
        "effects",
    ),
    "an undo of another session": ("UPDATE effects SET session_id = 'X'", "effects"),
    "an artifact that is gone": ("DELETE FROM artifacts", "artifacts"),
    "policies that were put in place of others": (
        "UPDATE policy_sets SET files = CAST(replace(CAST(files AS TEXT), 'forbid', 'permit') AS"
        " BLOB)",
        "policy_sets",
    ),
    "a session of somebody else": ("UPDATE sessions SET owner = 'user:mallory'", "sessions"),
    "a session that works elsewhere": ("UPDATE sessions SET workspace = '/'", "sessions"),
    "a session with another model": ("UPDATE sessions SET model = 'cheap/one'", "sessions"),
    "a session that is gone": ("DELETE FROM sessions", "sessions"),
    "a rule that is gone": ("DELETE FROM session_rules", "session_rules"),
    "a rule that says something else": (
        "UPDATE session_rules SET words = 'never touch /x'",
        "session_rules",
    ),
    "a rule that nobody laid down": (
        "INSERT INTO session_rules SELECT session_id, 'X', words, 1 FROM session_rules LIMIT 1",
        "session_rules",
    ),
    "a message that would be taken once more": ("DELETE FROM submissions", "submissions"),
    "a message of another run": ("UPDATE submissions SET run_id = 'X'", "submissions"),
    "a subagent of somebody else": ("UPDATE children SET principal = 'user:mallory'", "children"),
    "a subagent that may go deeper": ("UPDATE children SET depth = depth - 1", "children"),
    "a subagent that is gone": ("DELETE FROM children", "children"),
    "a file without its label": ("DELETE FROM file_labels", "file_labels"),
    "a file with a lesser label": ("UPDATE file_labels SET label = '{}'", "file_labels"),
    "a label that cannot be read": ("UPDATE file_labels SET label = '{'", "file_labels"),
    "a file that stood elsewhere": (
        "UPDATE file_labels SET path = 'was:/x' WHERE substr(path, 1, 4) = 'was:'",
        "file_labels",
    ),
    "a finding that says something else": (
        "UPDATE candidates SET body = CAST(replace(CAST(body AS TEXT), 'sea', 'sky') AS BLOB)",
        "candidates",
    ),
    "a finding that was accepted in other words": (
        "UPDATE candidates SET body = CAST(replace(CAST(body AS TEXT), 'narrow', 'wide') AS BLOB)",
        "candidates",
    ),
    "a finding that waits again": (
        "UPDATE candidates SET state = 'pending_review' WHERE state = 'rejected'",
        "candidates",
    ),
    "a finding of somebody else": ("UPDATE candidates SET owner = 'user:mallory'", "candidates"),
    "a memory that others are told": ("UPDATE memory_items SET scope_value = 'x'", "memory_items"),
    "a memory from elsewhere": ("UPDATE memory_items SET origin = 'rules'", "memory_items"),
    "a memory that holds for longer": (
        "UPDATE memory_items SET valid_until_ms = 1 << 50",
        "memory_items",
    ),
    "a memory in another's place": (
        "UPDATE memory_items SET superseded_by = 'X' WHERE state = 'superseded'",
        "memory_items",
    ),
    "a memory whose label cannot be read": (
        "UPDATE memory_items SET label = '{'",
        "memory_items",
    ),
    "a schedule that cannot be read": ("UPDATE schedules SET body = x'7b'", "schedules"),
    "a budget that cannot be read": ("UPDATE budgets SET body = x'7b'", "budgets"),
    "a call that somebody else paid for": (
        "UPDATE usage SET principal = 'user:mallory'",
        "usage",
    ),
    "a call from another month": ("UPDATE usage SET time_ms = 1", "usage"),
    "a run that failed for another reason": (
        "UPDATE runs SET reason = 'loop' WHERE state IN ('done', 'failed', 'cancelled')",
        "runs",
    ),
    "a token that is gone": ("DELETE FROM tokens", "tokens"),
    "a token that nobody revoked": ("UPDATE tokens SET revoked_ms = 5", "tokens"),
    "a token by another secret": ("UPDATE tokens SET digest = token_id", "tokens"),
    "a question that says something else": ("UPDATE approvals SET about = 'money'", "approvals"),
    "a grant that shows other arguments": ("UPDATE grants SET seen = x'7b7d20'", "grants"),
    "an undo that another run may do": ("UPDATE effects SET run_id = 'X'", "effects"),
    "an undo that is over already": ("UPDATE effects SET undone_ms = 5", "effects"),
    "an artifact with another content": (
        "INSERT INTO artifacts VALUES ('s', 'x', 'text/plain', x'01', 1)",
        "artifacts",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_that_the_tape_does_not_imply_is_named(
    whole: Path, name: str, tmp_path: Path
) -> None:
    statement, table = CHANGES[name]
    journal = tmp_path / "journal.db"
    shutil.copy(whole, journal)
    shutil.copytree(whole.with_name("keys"), tmp_path / "keys")
    raw = apsw.Connection(str(journal))
    raw.execute(statement)
    assert raw.total_changes()
    raw.close()
    assert table in {row.table for row in sqlite_files.inspect_rows(journal)}
    assert sqlite_files.inspect(journal).ok
