"""A file that is made to be slow is read unattended, and the daemon answers everybody else meanwhile."""

import threading
from pathlib import Path

import pytest

from tests.daemon import start

SIZE = 210 << 10
READ = {"calls": [{"name": "fs.read", "arguments": {"path": "hostile.txt"}}]}


@pytest.mark.parametrize("piece", ["pw:", "password=", "%70%77%3A"])
def test_health_is_answered_while_a_hostile_file_is_read(tmp_path: Path, piece: str) -> None:
    with start(tmp_path, script={"*": [READ, {"text": "read"}]}) as daemon:
        (daemon.workspace / "hostile.txt").write_text(piece * (SIZE // len(piece)))
        answered: list[int] = []
        ended = threading.Event()

        def ask() -> None:
            while not ended.is_set():
                answered.append(daemon.request("GET", "/healthz", timeout_s=5.0).status)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            _, entries = daemon.run("read it")
        finally:
            ended.set()
            asking.join()
    (result,) = [entry["event"] for entry in entries if entry["event"]["kind"] == "tool.finished"]
    assert result["outcome"] == "ok"
    assert "[redacted:unread:" in result["text"]
    # One that had to wait for the whole text would have been answered once, or not at all.
    assert len(answered) > 10
    assert set(answered) == {200}
