"""Several nodes of one journal: one of them leads, and what the others and a former leader cannot
do.
"""

import threading
import time
from pathlib import Path

import psycopg
import pytest

from palyra.core.errors import ConfigInvalid, Unavailable
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.store.lease import Fenced, LeaderLease, now_s
from palyra.store.nodes import LeaseView, NodeIdentity, NodeStore, SharedFile, may_lead
from palyra.store.postgres import Postgres
from palyra.store.verify import verify
from tests.journals import FakeClock, noting, run
from tests.postgres_server import server

pytestmark = pytest.mark.postgres
_PROOF = b"proof"


@pytest.fixture
def address(tmp_path: Path) -> str:
    return server().database(tmp_path)


def _node(name: str, place: str = "") -> NodeIdentity:
    return NodeIdentity(f"id-{name}", name, "1", place or f"place-{name}", 1_000)


def _joined(address: str, name: str, place: str = "") -> tuple[NodeStore, NodeIdentity]:
    store, me = NodeStore(address), _node(name, place)
    store.join(me, _PROOF)
    return store, me


def _lead(store: NodeStore, me: NodeIdentity, lease_ms: int = 60_000) -> int:
    epoch = store.take(me, store.look(me), lease_ms)
    assert epoch is not None
    return epoch


def _opened(address: str, epoch: int) -> tuple[Database, LeaderLease, list[str]]:
    lost: list[str] = []
    lease = LeaderLease(epoch, lost.append)
    lease.extend(now_s(), 600_000)
    db = Database(Postgres(address, lease=lease), FakeClock())
    db.open()
    return db, lease, lost


def test_a_commit_of_a_former_leader_is_refused_and_writes_nothing(address: str) -> None:
    async def scenario() -> None:
        first, one = _joined(address, "one")
        db, _, lost = _opened(address, _lead(first, one))
        await db.write(noting("t", "mine"))
        second, two = _joined(address, "two")
        epoch = second.take(two, second.look(two), 60_000)
        assert epoch == 2
        with pytest.raises(Unavailable, match=r"lead|does not answer"):
            await db.write(noting("t", "late"))
        with pytest.raises(Fenced, match="another node leads"):
            await db.write(noting("t", "later"))
        assert lost == ["another node leads: it has taken the lease of this one"]
        with pytest.raises(Fenced):
            db.check_lease()
        await db.close()
        successor, _, _ = _opened(address, 2)
        await successor.write(noting("t", "theirs"))
        assert await successor.read(_texts) == ["mine", "theirs"]
        assert (await successor.read(verify)).ok
        await successor.close()

    run(scenario())


def _texts(tx: Tx) -> list[str]:
    return [str(each[3].title) for each in tape.events_between(tx, "t", 1, 1_000)]  # type: ignore[union-attr]


def test_a_transaction_that_compared_the_epoch_is_ended_before_another_node_leads(
    address: str,
) -> None:
    """The leader is stopped between its first statement and its commit."""

    async def scenario() -> None:
        first, one = _joined(address, "one")
        db, _, lost = _opened(address, _lead(first, one))
        await db.write(noting("t", "mine"))
        taken: list[int | None] = []

        def step(tx: Tx) -> None:
            tape.append(tx, "t", "user:owner", [])
            tx.run("INSERT INTO task_kinds (kind, paused) VALUES ('x', 0)")
            second, two = _joined(address, "two")
            taking = threading.Thread(
                target=lambda: taken.append(second.take(two, second.look(two), 60_000))
            )
            taking.start()
            taking.join(20)

        with pytest.raises(Unavailable):
            await db.write(step)
        assert taken == [2]
        with pytest.raises(Fenced):
            await db.write(noting("t", "late"))
        assert len(lost) == 1
        await db.close()
        successor, _, _ = _opened(address, 2)
        assert await successor.read(lambda tx: tx.all("SELECT kind FROM task_kinds")) == []
        await successor.close()

    run(scenario())


def test_renewing_the_lease_waits_for_no_commit(address: str) -> None:
    async def scenario() -> None:
        first, one = _joined(address, "one")
        epoch = _lead(first, one)
        db, _, _ = _opened(address, epoch)
        renewed: list[int | None] = []

        def step(tx: Tx) -> None:
            tx.run("INSERT INTO task_kinds (kind, paused) VALUES ('x', 0)")
            renewed.append(first.renew(one, epoch, "", "leading", 5_000).granted_ms)

        await db.write(step)
        await db.write(noting("t", "after"))
        assert renewed == [60_000]  # alone
        await db.close()

    run(scenario())


def test_a_lease_that_runs_is_not_taken(address: str) -> None:
    first, one = _joined(address, "one")
    second, two = _joined(address, "two")
    before = second.look(two)
    assert _lead(first, one) == 1
    assert second.take(two, before, 5_000) is None
    view = second.look(two)
    assert (view.epoch, view.holder, view.name) == (1, "id-one", "one")
    assert not may_lead(view, two, 1_000.0, 5_000)
    # It is renewed between the look and the attempt.
    assert first.renew(one, 1, "here:1", "leading", 5_000).granted_ms == 5_000
    assert second.take(two, view, 5_000) is None
    assert first.renew(one, 1, "here:1", "leading", 5_000).wish == ""
    first.release(one, 1, gone=False)
    free = second.look(two)
    assert free.holder == ""
    assert first.look(one).abstains
    assert second.take(two, free, 5_000) == 2
    assert first.renew(one, 1, "", "leading", 5_000).granted_ms is None


@pytest.mark.parametrize(
    ("change", "unchanged_s", "may"),
    [
        ({}, 10.0, False),  # it runs
        ({"now_ms": 2_000}, 10.0, True),
        # The server's clock has jumped: here, too little time has passed.
        ({"now_ms": 2_000}, 4.0, False),
        ({"holder": ""}, 0.0, True),
        ({"place": "place-two"}, 0.0, True),  # our own process that is gone
        ({"now_ms": 2_000, "shared": False}, 10.0, False),
        ({"place": "place-two", "shared": False}, 0.0, True),
        ({"holder": "", "epoch": 0, "shared": False}, 0.0, True),
        ({"now_ms": 2_000, "schema": 1_001}, 10.0, False),
        ({"now_ms": 2_000, "abstains": True}, 10.0, False),
    ],
)
def test_who_may_lead(change: dict[str, object], unchanged_s: float, may: bool) -> None:
    view = LeaseView(
        epoch=1,
        holder="id-one",
        address="",
        name="one",
        expires_ms=1_000,
        now_ms=500,
        place="place-one",
        shared=True,
        schema=30,
        abstains=False,
    )
    assert may_lead(view._replace(**change), _node("two"), unchanged_s, 5_000) is may  # type: ignore[arg-type]


def test_another_secret_is_refused(address: str) -> None:
    _joined(address, "one")
    with pytest.raises(ConfigInvalid, match=r"cluster\.secret is not the secret of the nodes"):
        NodeStore(address).join(_node("two"), b"other")


def test_a_daemon_without_the_secret_is_refused_beside_nodes(address: str) -> None:
    async def scenario() -> None:
        first, one = _joined(address, "one")
        _lead(first, one)
        with pytest.raises(Unavailable, match=r"give this daemon their\n? ?cluster\.secret"):
            Database(Postgres(address), FakeClock()).open()
        first.release(one, 1, gone=True)
        alone = Database(Postgres(address), FakeClock())
        alone.open()
        await alone.write(noting("t", "alone"))
        # A node that joins does not take it for a leader that is gone, and cannot write.
        epoch = _lead(first, one)
        assert epoch == 3
        await alone.write(noting("t", "still"))
        await alone.close()

    run(scenario())


def test_files_are_kept_by_the_leader_alone(address: str) -> None:
    first, one = _joined(address, "one")
    epoch = _lead(first, one)
    kept = SharedFile("keys/x", b"d", 0o600, b"body")
    assert first.put_files(epoch, [kept], [], whole=True)
    second, two = _joined(address, "two")
    assert second.look(two).shared
    assert second.digests() == {"keys/x": b"d"}
    assert second.file("keys/x") == kept
    assert second.take(two, second.look(two), 5_000) == 2
    assert not first.put_files(epoch, [kept._replace(digest=b"e")], ["keys/x"], whole=True)
    assert second.digests() == {"keys/x": b"d"}


def test_a_lease_that_ran_out_by_this_clock_is_lost_once() -> None:
    lost: list[str] = []
    lease = LeaderLease(1, lost.append)
    lease.extend(now_s(), 60_000)
    lease.check()
    late = LeaderLease(1, lost.append)
    late.extend(now_s() - 10, 5_000)
    for _ in range(2):
        with pytest.raises(Fenced, match="ran out before it could be renewed"):
            late.check()
    assert len(lost) == 1
    ended = LeaderLease(1, lost.append)
    ended.end()
    ended.check()
    assert len(lost) == 1


def test_a_server_that_is_away_is_told_and_found_again(address: str) -> None:
    store, me = _joined(address, "one")
    with psycopg.connect(address, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with pytest.raises(Unavailable, match="does not answer"):
        store.look(me)
    assert store.look(me).epoch == 0
    began = time.monotonic()
    with pytest.raises(Unavailable, match="does not answer"):
        NodeStore("postgresql://u@127.0.0.1:9/x").join(me, _PROOF)
    assert time.monotonic() - began < 10
