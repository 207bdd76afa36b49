"""Anchors have what was signed, and a witness refuses a journal that changes its story."""

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from palyra.core import signed_notes
from palyra.core.errors import ConfigInvalid
from palyra.core.signed_notes import COSIGNATURE, LogCheckpoint, SigningKey
from palyra.features.proof import anchors
from palyra.features.proof.anchors import Anchors
from palyra.features.proof.service import JournalProof
from palyra.features.proof.witness import AddCheckpoint, Witness
from palyra.features.proof.witness_server import serve
from palyra.store import log_keys
from palyra.store.log_keys import LogKeys
from tests.inprocess import daemon
from tests.journals import new_id, noting, run
from tests.proving import proving, relink, retile, unguarded, verified

ATTIC = SigningKey("attic.test", bytes(range(32)), COSIGNATURE)
TAPE = new_id()


class Attic:
    """A witness that runs, and what it has refused."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.refused: list[str] = []
        key = LogKeys(home / "keys").signer.verifier
        self.witness = Witness(ATTIC, [key], folder, lambda: 1_700_000_000)
        self.witness.on_refused.connect(self.refused.append)
        self.server = serve(self.witness, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def setting(self) -> str:
        return f"witness {ATTIC.verifier.encode()} {self.url}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture
def attic(tmp_path: Path) -> Iterator[Attic]:
    (tmp_path / "home" / "keys").mkdir(parents=True)
    made = Attic(tmp_path / "home", tmp_path / "witness")
    yield made
    made.close()


def _anchored(proof: JournalProof, *settings: str) -> Anchors:
    wanted = [anchors.parse(each) for each in settings]
    return Anchors(wanted, proof.newest, proof.continues, proof.cosigned)


async def _go_on(home: Path, setting: str, *texts: str) -> Anchors:
    """Append, sign, and take the checkpoint to an anchor."""
    async with proving(home) as (db, proof):
        await db.write(noting(TAPE, *texts))
        await proof.checkpoint()
        taken = _anchored(proof, setting)
        log_keys.remember_witnesses(home / "journal.db", taken.witnesses)
        for state in taken.states:
            await taken.push(state)
        return taken


def test_a_witness_cosigns_what_continues_what_it_has_seen(tmp_path: Path, attic: Attic) -> None:
    home = tmp_path / "home"
    for texts in (("a",), ("b", "c"), tuple(str(n) for n in range(300))):
        (state,) = run(_go_on(home, attic.setting, *texts)).states
        assert (state.problem, state.behind) == ("", False)
    report = verified(home)
    assert report.vouched is not None
    assert report.vouched.by == ("own key", "witness attic.test")


def test_a_journal_that_was_rolled_back_with_its_keys_is_refused_and_both_are_told(
    tmp_path: Path, attic: Attic
) -> None:
    home, older = tmp_path / "home", tmp_path / "older"
    run(_go_on(home, attic.setting, "a", "b"))
    shutil.copytree(home, older)
    run(_go_on(home, attic.setting, "c", "d", "e"))
    (state,) = run(_go_on(older, attic.setting, "f")).states
    assert state.forked
    assert state.behind
    assert "rolled back" in state.problem
    assert attic.refused
    # One that has grown beyond what the witness has seen is another history.
    (state,) = run(_go_on(older, attic.setting, *"ghijklm")).states
    assert state.forked
    assert "another history" in state.problem
    assert "forked" in attic.refused[-1]


def test_a_history_that_was_written_anew_with_the_key_is_refused(
    tmp_path: Path, attic: Attic
) -> None:
    home = tmp_path / "home"
    run(_go_on(home, attic.setting, "a", "b", "c"))
    raw = unguarded(home / "journal.db")
    raw.execute("DELETE FROM entries WHERE kind = 'journal.checkpointed'")
    raw.execute("UPDATE entries SET principal = 'user:mallory' WHERE position = 2")
    raw.execute("DELETE FROM checkpoints")
    relink(raw)
    retile(raw)
    raw.close()
    (home / "keys" / "journal.checkpoint").unlink()
    (state,) = run(_go_on(home, attic.setting, "d")).states
    # The owner's own checks pass, the witness does not let it.
    assert state.forked
    assert "another history" in state.problem


def test_a_witness_that_forgot_nothing_goes_on_after_a_restart(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "keys").mkdir(parents=True)
    for texts in ("a", "b"):
        made = Attic(home, tmp_path / "witness")
        (state,) = run(_go_on(home, made.setting, texts)).states
        made.close()
        assert state.problem == ""
    assert len(list((tmp_path / "witness").iterdir())) == 1


def _note(key: SigningKey, size: int, root: bytes = bytes(32)) -> str:
    return signed_notes.sign(LogCheckpoint(key.name, size, root).text(), [key])


def test_what_a_witness_answers_to_requests_that_are_wrong(tmp_path: Path) -> None:
    log, other = SigningKey("a.test/log", bytes(32)), SigningKey("a.test/log", bytes([1] * 32))
    stranger = SigningKey("b.test/log", bytes(32))
    witness = Witness(ATTIC, [log.verifier], tmp_path, lambda: 5)

    def status(request: bytes) -> int:
        return witness.add_checkpoint(request).status

    assert status(b"") == 400
    assert status(b"old 0\nxx\n\n" + _note(log, 1).encode()) == 400
    assert status(AddCheckpoint(0, (), "nothing").encode()) == 400
    assert status(AddCheckpoint(0, (), _note(stranger, 1)).encode()) == 404
    assert status(AddCheckpoint(0, (), _note(other, 1)).encode()) == 403
    assert status(AddCheckpoint(1, (), _note(log, 1)).encode()) == 409
    assert status(AddCheckpoint(0, (), _note(log, 4)).encode()) == 200
    answer = witness.add_checkpoint(AddCheckpoint(0, (), _note(log, 5)).encode())
    assert (answer.status, answer.text, answer.media) == (409, "4\n", "text/x.tlog.size")
    assert status(AddCheckpoint(4, (), _note(log, 3)).encode()) == 400
    assert status(AddCheckpoint(4, (), _note(log, 5)).encode()) == 422
    assert status(AddCheckpoint(4, (), _note(log, 4)).encode()) == 200
    assert status(AddCheckpoint(4, (), _note(log, 4, bytes([1] * 32))).encode()) == 422


def test_a_file_on_another_disk_has_the_newest_checkpoint_and_finds_a_rollback(
    tmp_path: Path,
) -> None:
    home, older, disk = tmp_path / "home", tmp_path / "older", tmp_path / "disk"
    setting = f"file:{disk}/palyra"
    (state,) = run(_go_on(home, setting, "a")).states
    assert "mounted" in state.problem
    disk.mkdir()
    run(_go_on(home, setting, "b"))
    shutil.copytree(home, older)
    run(_go_on(home, setting, "c", "d"))
    kept = LogCheckpoint.parse(signed_notes.parse((disk / "palyra").read_text()).text)
    assert kept.size == 6
    (state,) = run(_go_on(older, setting, "e")).states
    assert state.forked


def test_every_checkpoint_is_a_commit_of_a_git_repository(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "repository"
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    hook = folder / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\nexit 1\n")
    hook.chmod(0o755)
    for text in "ab":
        (state,) = run(_go_on(home, f"git:{folder}", text)).states
        assert state.problem == ""
    told = subprocess.run(
        ["git", "-C", str(folder), "log", "--format=%s"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert told == ["checkpoint over 3 entries", "checkpoint over 1 entries"]
    assert not (folder / "ran").exists()


def test_an_endpoint_gets_the_note_and_one_that_is_away_is_behind(tmp_path: Path) -> None:
    got: list[bytes] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}/anchor"
    run(_go_on(tmp_path / "home", url, "a"))
    assert LogCheckpoint.parse(signed_notes.parse(got[0].decode()).text).size == 1
    server.shutdown()
    server.server_close()
    thread.join()

    async def away() -> bool:
        async with proving(tmp_path / "home") as (db, proof):
            await db.write(noting(TAPE, "b"))
            await proof.checkpoint()
            taken = _anchored(proof, url)
            for _ in range(anchors.PATIENCE):
                await taken.push(taken.states[0])
            return taken.states[0].behind

    assert run(away())


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        "file:relative",
        "http://example.org/x",
        "ftp://x",
        "chat:mail",
        "chat:/anna",
        "witness abc https://x",
        f"witness {ATTIC.verifier.encode()} http://example.org",
        f"witness {SigningKey('x', bytes(32)).verifier.encode()} https://example.org",
    ],
)
def test_what_is_no_anchor_is_said(wanted: str) -> None:
    with pytest.raises(ConfigInvalid):
        anchors.parse(wanted)


def test_a_daemon_takes_its_last_checkpoint_to_its_anchors_before_it_ends(
    tmp_path: Path, attic: Attic
) -> None:
    async def scenario() -> None:
        settings = f'[journal]\nanchors = ["{attic.setting}", "file:{tmp_path}/kept"]\n'
        async with daemon(tmp_path, [], settings) as d:
            await d.db.write(noting(TAPE, "a"))

    asyncio.run(scenario())
    report = verified(tmp_path / "home")
    assert report.ok
    assert report.vouched is not None
    assert "witness attic.test" in report.vouched.by
    assert (tmp_path / "kept").exists()
