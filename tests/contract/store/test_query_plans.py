"""The journal's hot queries use their indexes: what they cost must not grow with history."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from palyra.core.errors import NotFound
from palyra.features.channels.rows import messages, outbox, people
from palyra.features.health import rows as health_rows
from palyra.features.learning import rows as learning_rows
from palyra.features.memory.rows import items, transcript_index
from palyra.features.notices import rows as notices_rows
from palyra.features.schedules import rows as schedules_rows
from palyra.store import approvals, artifacts, runs, sessions, tape, tasks, usage
from palyra.store.database import Tx
from palyra.store.dialect import Connection
from palyra.store.sqlite import Sqlite
from tests.journals import new_id

pytestmark = pytest.mark.sqlite

QUERIES: dict[str, Callable[[Tx], Any]] = {
    "the entries behind a cursor": lambda tx: tape.after(tx, "t", 5),
    "a stretch of tape": lambda tx: tape.events_between(tx, "t", 1, 5),
    "a call's proposal": lambda tx: tape.proposal(tx, "r", "c"),
    "inputs that joined a run": lambda tx: runs.inputs_after(tx, "r", 5),
    "unread inputs": lambda tx: runs.unread_inputs(tx, "r"),
    "unfinished runs of a session": lambda tx: runs.unfinished_of_session(tx, "s"),
    "unfinished runs of a principal": lambda tx: runs.unfinished_of_principal(tx, "p"),
    "inputs in a mailbox": lambda tx: runs.waiting_inputs(tx, "s"),
    "the run that collects": lambda tx: runs.collecting(tx, "s"),
    "a submission": lambda tx: runs.find_submission(tx, "x"),
    "a session": lambda tx: sessions.find(tx, session_id=new_id()),
    "a session by label": lambda tx: sessions.find(tx, label="l", owner="p"),
    "pending approvals of a run": lambda tx: approvals.pending_of_run(tx, "r"),
    "the next expiry": approvals.next_expiry,
    "grants": lambda tx: approvals.grants_for(tx, "p", "s"),
    "effects of a run": lambda tx: artifacts.effects_of_run(tx, "s", "r"),
    "what waits to be indexed": transcript_index.behind,
    "indexing what was said": lambda tx: transcript_index.index(tx, 5),
    "passages without a vector": lambda tx: transcript_index.unembedded(tx, 5),
    "items without a vector": lambda tx: items.unembedded(tx, 5),
    "runs that nobody says to be alive": lambda tx: runs.silent(tx, 5, 9),
    "messages that nobody begins": lambda tx: runs.unbegun(tx, 5, 9),
    "approvals that wait": lambda tx: approvals.pending_since(tx, 5, 9),
    "silent tasks": lambda tx: tasks.silent(tx, 5, 9),
    "open incidents": health_rows.opened,
    "an open incident": lambda tx: health_rows.find_open(tx, "k"),
    "notices": lambda tx: notices_rows.listing(tx, "p"),
    "unread notices": lambda tx: notices_rows.unread(tx, "p"),
    "notices behind a position": lambda tx: notices_rows.told_after(tx, 5),
    "open incidents by domain": health_rows.open_by_domain,
    "effects of a session": lambda tx: artifacts.effects_of_session(tx, "s"),
    "open messages of chats": lambda tx: messages.open_messages(tx, "held"),
    "a message by the platform's id": lambda tx: messages.by_native_id(tx, "c", "n"),
    "messages of a run": lambda tx: messages.of_run(tx, "r"),
    "messages of a sender": lambda tx: messages.counts(tx, "c", "s"),
    "what happened to a message": lambda tx: messages.steps(tx, "m"),
    "a message": lambda tx: messages.find(tx, "m"),
    "replies to be sent": lambda tx: outbox.waiting(tx, "c", 5),
    "replies to a message": lambda tx: outbox.of_message(tx, "m"),
    "dead letters": outbox.dead,
    "a person in a chat": lambda tx: people.find(tx, "c", "s"),
    "what a pairing code stands for": lambda tx: people.by_code(tx, b"x"),
    "what schedules used": lambda tx: usage.of_schedules(tx, "p"),
    "the newest firings": lambda tx: schedules_rows.newest_firings(tx, "p"),
    "approvals by the end of their id": lambda tx: approvals.ending_with(tx, "ABCDEF"),
}


class Explaining:
    """A connection that notes how SQLite means to run every query."""

    def __init__(self, real: Connection) -> None:
        self._real = real
        self.plans: list[str] = []

    def all(self, sql: str, params: dict[str, Any] | None = None) -> list[Any]:
        self.plans += [str(row[3]) for row in self._real.all(f"EXPLAIN QUERY PLAN {sql}", params)]
        return self._real.all(sql, params)


def plans_of(folder: Path, query: Callable[[Tx], Any]) -> list[str]:
    connection = Sqlite(folder / "j.db").open_writer()
    explaining = Explaining(connection)
    # An empty journal has nothing to find; the plan is what counts.
    with suppress(NotFound):
        query(Tx(explaining, 0))  # type: ignore[arg-type]
    connection.close()
    assert explaining.plans
    return explaining.plans


@pytest.mark.parametrize("name", QUERIES)
def test_a_hot_query_never_scans_a_table(tmp_path: Path, name: str) -> None:
    plans = plans_of(tmp_path, QUERIES[name])
    scans = [plan for plan in plans if plan.startswith("SCAN") and "USING" not in plan]
    # What a query has gathered itself, by way of indexes, it goes through whole.
    scans = [plan for plan in scans if plan != "SCAN tree"]
    assert scans == [], f"{name}: {plans}"


def test_a_plan_is_made_once_and_not_for_every_value_that_is_bound(tmp_path: Path) -> None:
    dialect = Sqlite(tmp_path / "j.db")
    writer, reader = dialect.open_writer(), dialect.open_reader()
    for connection in (writer, reader):
        raw: apsw.Connection = connection.raw  # type: ignore[attr-defined]
        assert raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
        connection.close()


def test_whether_somebody_has_answered_is_asked_without_going_through_what_others_decided(
    tmp_path: Path,
) -> None:
    plans = plans_of(tmp_path, lambda tx: learning_rows.answers_since(tx, "p", 0))
    assert [plan for plan in plans if "entries_answers (principal=? AND position>?)" in plan], plans
