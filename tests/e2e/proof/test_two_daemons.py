"""One daemon is the witness of another. The other is rolled back, with its keys: its checkpoint is
refused, and both owners are told.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from palyra.core.signed_notes import SigningKey
from tests.cli_terminal import palyra
from tests.daemon import DaemonProcess, configure, start

HEALING = "[healing]\nevery_ms = 1000\n"
SCRIPT = {"*": [{"text": "good day"}]}
PATIENCE_S = 60


def _until(what: str, asked: Callable[[], Any]) -> Any:
    """What is asked of another process, once it is there: nothing can be waited on but the clock."""
    end = time.monotonic() + PATIENCE_S
    while not (found := asked()):
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.05)
    return found


def _told(daemon: DaemonProcess, words: str) -> list[str]:
    """The open critical incidents with such words, once there is a notice of each, too."""
    opened = [
        each["summary"]
        for each in daemon.get("/v1/incidents")["incidents"]
        if words in each["summary"] and each["severity"] == "critical"
    ]
    notices = [each["text"] for each in daemon.get("/v1/notices")["notices"]]
    return opened if any(words in each for each in notices) else []


def _sign(log: DaemonProcess, text: str) -> int:
    """Append, sign, and wait until the anchor has it, or cannot."""
    log.run(text)
    size = int(log.post("/v1/journal/checkpoint")["size"])

    def arrived() -> bool:
        (anchor,) = log.get("/v1/journal/checkpoint")["anchors"]
        return anchor["size"] >= size or bool(anchor.get("problem"))

    _until("the anchor", arrived)
    return size


class Pair:
    """A journal and its witness, each a daemon of its own."""

    def __init__(self, folder: Path, log: DaemonProcess, witness: DaemonProcess) -> None:
        key = SigningKey.decode((witness.home / "keys/witness.key").read_text()).verifier.encode()
        self.anchor = f"witness {key} {witness.url}/v1/witness"
        self.folder, self.log, self.witness = folder, log, witness
        self.configure()

    def configure(self) -> None:
        self.log.stop()
        settings = f'[journal]\nanchors = ["{self.anchor}"]\n{HEALING}'
        configure(self.log.home, config=settings, script=SCRIPT)
        self.log.restart()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with start(tmp_path / "log", script=SCRIPT) as log:
        key = log.get("/v1/journal/checkpoint")["keys"][0]
        settings = f'[journal]\nwitness_for = ["{key}"]\n{HEALING}'
        with start(tmp_path / "witness", config=settings) as witness:
            yield Pair(tmp_path, log, witness)


def test_a_journal_that_was_rolled_back_is_refused_and_both_owners_are_told(pair: Pair) -> None:
    log, older = pair.log, pair.folder / "older"
    _sign(log, "hello")
    shown = palyra(log.home, "journal", "verify")
    assert "witness palyra.local/witness-" in shown.stdout, shown.stdout + shown.stderr
    log.stop()
    shutil.copytree(log.home, older)
    log.restart()
    _sign(log, "more")
    _sign(log, "and more")
    assert _told(log, "anchor") == _told(pair.witness, "witness") == []
    log.stop()
    # The whole home of yesterday, keys and all: nothing in it knows better.
    shutil.rmtree(log.home)
    shutil.copytree(older, log.home)
    log.restart()
    log.run("forked")
    log.post("/v1/journal/checkpoint")
    (refused,) = _until("the witness's incident", lambda: _told(pair.witness, "witness"))
    assert "entries, and has" in refused or "forked" in refused
    (behind,) = _until("the journal's incident", lambda: _told(log, "anchor"))
    assert "rolled back" in behind or "another history" in behind
    assert palyra(log.home, "journal", "verify").returncode == 0, "only the witness knows"


def test_a_daemon_that_is_no_witness_says_so(tmp_path: Path) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        answer = daemon.request("POST", "/v1/witness/add-checkpoint", b"old 0\n\n", token="")
        assert (answer.status, answer.code) == (404, "not_found")
