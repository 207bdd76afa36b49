"""The daemon's log: written behind everybody's back, in order, redacted, and by nobody who would
have to wait for it.
"""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from palyra.serve import logs

LONGEST_S = 30.0


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, which is as it was afterwards."""
    found = logging.getLogger()
    kept, level = found.handlers[:], found.level
    found.handlers[:] = []
    yield found
    for handler in found.handlers[:]:
        found.removeHandler(handler)
        handler.close()
    found.handlers[:] = kept
    found.setLevel(level)


class Stuck(logging.Handler):
    """A log on a disk that does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.gate = threading.Event(), threading.Event()
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.begun.set()
        self.gate.wait(LONGEST_S)
        self.written.append(record.getMessage())


def test_a_disk_that_does_not_answer_holds_up_nobody_who_logs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "MOST_WAITING", 3)
    stuck = Stuck()
    behind = logs.Behind(stuck)
    log = logging.Logger("test")
    log.addHandler(behind)
    log.warning("%s", "first")
    assert stuck.begun.wait(LONGEST_S)
    # If this waited for the disk it would never end: only this thread opens the gate.
    for number in range(5):
        log.warning("line %d", number)
    stuck.gate.set()
    behind.close()
    assert stuck.written == [
        "first",
        "line 0 (2 lines before this were left out: the log could not be written)",
        "line 1",
        "line 2",
    ]


def test_what_is_logged_is_in_the_file_redacted_when_the_log_is_closed(
    tmp_path: Path, root: logging.Logger
) -> None:
    logs.start(tmp_path, "info", lambda text: text.replace("secret", "[redacted]"))
    try:
        raise ValueError("a secret in a traceback")
    except ValueError:
        root.exception("the %s failed", "secret")
    for handler in root.handlers[:]:
        handler.close()
    (line,) = (tmp_path / "logs/daemon.log").read_bytes().splitlines()
    told = msgspec.json.decode(line)
    assert (told["level"], told["message"]) == ("error", "the [redacted] failed")
    assert "[redacted] in a traceback" in told["error"]
