"""Deleting a session: it leaves the journal, the lists and search, and what it proved stays
proved.
"""

from pathlib import Path

import pytest

from palyra.core.errors import Conflict, Forbidden
from palyra.core.ids import OWNER
from palyra.serve.wiring.daemon import Daemon
from tests.e2e.retention.test_segments import TALKING, count, talked, verified
from tests.faults import in_daemon, permit_all
from tests.inprocess import entries, finished, say


def test_a_deleted_session_leaves_lists_and_search_and_is_still_proved(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        where, other = await talked(d), await talked(d)
        before = await entries(d, where.session_id)
        found = (await d.transcripts.search(OWNER, "lighthouse", 5, semantic=False)).found
        assert {each.session_id for each in found} == {where.session_id, other.session_id}
        gone = await d.retention.delete(OWNER, where.session_id)
        assert (gone.session_id, gone.entries) == (where.session_id, len(before))
        assert await count(d, "entries", "tape", where.session_id) == 0
        listed = await d.sessions.listing(OWNER, archived=False, before="", limit=10)
        assert [each.session_id for each in listed] == [other.session_id]
        found = (await d.transcripts.search(OWNER, "lighthouse", 5, semantic=False)).found
        assert {each.session_id for each in found} == {other.session_id}
        assert verified(tmp_path).ok
        with pytest.raises(Conflict, match="sessions restore"):
            await say(d, where, "again")
        with pytest.raises(Conflict):
            await d.retention.delete(OWNER, where.session_id)

        await d.retention.restore(OWNER, where.session_id)
        assert await entries(d, where.session_id) == before
        found = (await d.transcripts.search(OWNER, "lighthouse", 5, semantic=False)).found
        assert {each.session_id for each in found} == {where.session_id, other.session_id}
        await finished(d, await say(d, where, "again"))
        assert verified(tmp_path).ok

    permit_all(tmp_path)
    in_daemon(tmp_path, TALKING, scenario, "[memory]\nembeddings = false\n")


def test_what_is_pinned_branched_from_or_somebody_elses_is_not_deleted(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        kept, parent = await talked(d), await talked(d)
        await d.sessions.change(OWNER, kept.session_id, title=None, archived=None, kept=True)
        child = await d.sessions.branch(OWNER, parent.session_id, None, "")
        with pytest.raises(Conflict, match="pinned"):
            await d.retention.delete(OWNER, kept.session_id)
        with pytest.raises(Conflict, match="branch"):
            await d.retention.delete(OWNER, parent.session_id)
        with pytest.raises(Forbidden):
            await d.retention.delete("user:somebody", child.session_id)
        await d.retention.delete(OWNER, child.session_id)
        await d.retention.delete(OWNER, parent.session_id)
        assert verified(tmp_path).ok

    permit_all(tmp_path)
    in_daemon(tmp_path, TALKING, scenario)
