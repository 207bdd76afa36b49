"""The commands about proof, against a daemon that runs: what they print can be checked elsewhere."""

import json
import subprocess
import sys
from pathlib import Path

from palyra.core import merkle, signed_notes
from palyra.core.signed_notes import LogCheckpoint, NoteKey
from palyra.features.proof import verify_bundle
from palyra.store import tree
from tests import daemon as daemons
from tests.cli_terminal import palyra


def test_what_the_commands_print_proves_itself(tmp_path: Path) -> None:
    with daemons.start(tmp_path, script={"*": [{"text": "hi"}]}) as daemon:
        daemon.run("hello")

        def said(*arguments: str) -> str:
            done = palyra(daemon.home, *arguments)
            assert done.returncode == 0, done.stderr
            return done.stdout

        made = json.loads(said("journal", "checkpoint", "--json"))
        key = NoteKey.decode(json.loads(said("journal", "key", "--json"))["keys"][0])
        note = signed_notes.parse(made["note"])
        assert note.signed_by(key)
        root = LogCheckpoint.parse(note.text).root

        proof = json.loads(said("journal", "proof", "2", "--size", str(made["size"])))
        leaf = tree.leaf(proof["link"], bytes.fromhex(proof["hash"]))
        path = [bytes.fromhex(each) for each in proof["proof"]]
        assert merkle.proves_inclusion(1, made["size"], leaf, path, root)

        grown = json.loads(said("journal", "consistency", "2", "--size", str(made["size"])))
        path = [bytes.fromhex(each) for each in grown["proof"]]
        old = bytes.fromhex(grown["old_root"])
        assert merkle.proves_consistency(2, made["size"], path, old, root)

        told = said("journal", "verify", "--deep")
        assert "proven by checkpoint of" in told
        assert "own key" in told

        bundle = tmp_path / "bundle.json"
        said("journal", "export", "--proof", "--positions", f"1-{made['size']}", "-o", str(bundle))
        checked = subprocess.run(
            [sys.executable, "-I", verify_bundle.__file__, str(bundle), "--key", key.encode()],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert checked.stdout.startswith("PROVEN"), checked.stdout + checked.stderr

        refused = palyra(daemon.home, "journal", "export", "--run", "X")
        assert refused.returncode == 2
        assert "--proof" in refused.stderr
