"""A daemon that is killed between reserving and settling: nothing stays reserved, and what was sent
counts as spent.
"""

from pathlib import Path

from tests.crash.test_process import TERMINAL, entries, reached, submitted, wait_for
from tests.daemon import start

CONFIG = """[models]
default = "scripted/s1"
[budgets.limits.all]
tokens = 20000
[budgets.limits.mine]
tokens = 20000
per = "principal"
every = "month"
"""


def test_a_kill_between_reserving_and_settling_leaves_nothing_reserved(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = {
        "go": [{"text": ["half "], "hold": str(gate), "hold_after": 1}],
        "more": [{"text": "more"}],
    }
    with start(tmp_path, config=CONFIG, script=script) as daemon:
        session, run = submitted(daemon, "go")
        reached(gate)
        # What was sent is told a moment after it has left, so as not to delay the first word.
        asked = wait_for(daemon, session, "input.assembled")["seq"]
        held = daemon.get("/v1/budgets")["budgets"]
        assert [each["name"] for each in held if each["reserved"] > 0 and each["spent"] == 0] == [
            "all",
            "mine",
        ]
        daemon.kill()
        # Killed again while the second life holds a reservation of its own.
        gate.with_name(gate.name + ".reached").unlink()
        daemon.restart()
        reached(gate)
        wait_for(daemon, session, "input.assembled", after=asked)
        daemon.kill()
        gate.touch()
        daemon.restart()
        assert wait_for(daemon, session, *TERMINAL)["kind"] == "run.completed"
        tape = entries(daemon, session)
        replies = [entry["event"] for entry in tape if entry["kind"] == "model.replied"]
        lost = [entry["event"] for entry in tape if entry["kind"] == "model.failed"]
        assert [(each["failure"], each["estimated"], each["will_retry"]) for each in lost] == [
            ("interrupted", True, True)
        ] * 2
        used = sum(
            each["usage"]["input_tokens"] + each["usage"].get("output_tokens", 0)
            for each in [*replies, *lost]
        )
        states = daemon.get("/v1/budgets")["budgets"]
        assert [(each["reserved"], each["spent"]) for each in states] == [(0, used), (0, used)]
        total = daemon.get("/v1/usage?by=run")["total"]
        assert (total["calls"], total["estimated"], len(replies)) == (3, 2, 1)
        assert daemon.get(f"/v1/runs/{run['run_id']}")["state"] == "done"
        # There is room for another call, which a leaked reservation would have taken.
        again, _ = submitted(daemon, "more")
        assert wait_for(daemon, again, *TERMINAL)["kind"] == "run.completed"
