"""A daemon that is killed between reserving and settling: nothing stays reserved, and what was spent is what the tape says."""

from pathlib import Path

from tests.crash.test_process import TERMINAL, entries, reached, submitted, wait_for
from tests.daemon import start

CONFIG = """[models]
default = "scripted/s1"
[budgets.limits.all]
tokens = 6000
[budgets.limits.mine]
tokens = 6000
per = "principal"
every = "month"
"""


def test_a_kill_between_reserving_and_settling_leaves_nothing_reserved(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = {"go": [{"text": ["half "], "hold": str(gate), "hold_after": 1}], "more": [{"text": "more"}]}
    with start(tmp_path, config=CONFIG, script=script) as daemon:
        session, run = submitted(daemon, "go")
        reached(gate)
        held = daemon.get("/v1/budgets")["budgets"]
        assert [each["name"] for each in held if each["reserved"] > 0 and each["spent"] == 0] == ["all", "mine"]
        daemon.kill()
        # Killed again while the second life holds a reservation of its own.
        gate.with_name(gate.name + ".reached").unlink()
        daemon.restart()
        reached(gate)
        daemon.kill()
        gate.touch()
        daemon.restart()
        assert wait_for(daemon, session, *TERMINAL)["kind"] == "run.completed"
        replies = [entry["event"] for entry in entries(daemon, session) if entry["kind"] == "model.replied"]
        used = sum(each["usage"]["input_tokens"] + each["usage"]["output_tokens"] for each in replies)
        states = daemon.get("/v1/budgets")["budgets"]
        assert [(each["reserved"], each["spent"]) for each in states] == [(0, used), (0, used)]
        assert daemon.get("/v1/usage?by=run")["total"]["calls"] == len(replies) == 1
        assert daemon.get(f"/v1/runs/{run['run_id']}")["state"] == "done"
        # There is room for another call, which a leaked reservation would have taken.
        again, _ = submitted(daemon, "more")
        assert wait_for(daemon, again, *TERMINAL)["kind"] == "run.completed"
