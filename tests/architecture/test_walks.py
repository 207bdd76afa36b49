"""scripts/walks.py follows a message through a real daemon."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_message_is_followed_through_all_threads_of_a_daemon() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "walks.py"), "--only", "message", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    found = json.loads(done.stdout)
    files = found["message"]
    assert all((ROOT / "src" / "palyra" / file).is_file() for file in files)
    # The door, the loop's thread, the writer's thread and the model; and nothing that only an
    # import enters.
    for name in ("gateway", "runs", "tape", "scripted"):
        assert any(Path(file).stem == name for file in files), name
    assert len(found["door"]) < len(files)
