"""Conversations in memory, one beside the other."""

from pathlib import Path

from palyra.agent.session_cache import SessionCache
from palyra.core.events import AnyEvent, SessionCreated, SessionRuled
from palyra.store.database import Appended
from tests.journals import opened, run


def entry(tape: str, seq: int, event: AnyEvent) -> Appended:
    return Appended(
        tape=tape, seq=seq, position=seq, time_ms=1, run_id="", kind="", event=event, wire=b"{}"
    )


def test_a_session_that_cannot_be_kept_in_step_is_read_anew_and_the_others_of_its_batch_go_on(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with opened(tmp_path / "journal.db") as db:
            lives = SessionCache(db)
            lives.on_commit(
                [entry(tape, 1, SessionCreated(owner="user:owner")) for tape in ("one", "two")]
            )
            defect = entry("one", 2, None)  # type: ignore[arg-type]  # whatever it is that its conversation cannot take
            defect.wire = None  # type: ignore[assignment]
            lives.on_commit([defect, entry("two", 2, SessionRuled(rule_id="r", words="be brief"))])
            assert lives.peek("one") is None
            two = lives.peek("two")
            assert two is not None
            assert [rule.words for rule in two.rules] == ["be brief"]

    run(scene())
