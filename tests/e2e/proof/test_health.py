"""Whoever watches over the daemon is told of a journal that cannot be signed for, of anchors that
are behind, and of rights that nobody gave.
"""

import asyncio
from pathlib import Path

from palyra.core import signed_notes
from palyra.core.signed_notes import LogCheckpoint
from palyra.features.health.watchdog import HealthFinding, LookTime
from palyra.features.proof.anchors import PATIENCE, Anchors
from palyra.features.proof.health import ProofWatched
from palyra.features.proof.service import JournalProof
from palyra.store import tokens
from tests.inprocess import daemon
from tests.journals import new_id, noting
from tests.proving import raw_file

TAPE = new_id()


async def _looked(watched: ProofWatched) -> dict[str, HealthFinding]:
    return {each.key: each for each in await watched.look(LookTime(1, 1))}


def test_nothing_is_told_while_nothing_is_wrong_and_each_fault_has_its_own_finding(
    tmp_path: Path,
) -> None:
    missing = tmp_path / "not" / "mounted"

    async def scenario() -> tuple[dict[str, HealthFinding], dict[str, HealthFinding]]:
        settings = f'[journal]\nanchors = ["file:{missing}"]\n'
        async with daemon(tmp_path, [], settings) as d:
            proof, anchors = d.get(JournalProof), d.get(Anchors)
            watched = ProofWatched(proof, anchors, d.db)
            before = await _looked(watched)
            await d.db.write(noting(TAPE, "a"))
            await proof.checkpoint()
            for _ in range(PATIENCE):
                await anchors.push(anchors.states[0])
            raw = raw_file(tmp_path / "home" / "journal.db")
            raw.execute(
                "INSERT INTO tokens (token_id, digest, name, principal, scope, created_ms)"
                " VALUES ('forged', x'01', 'x', 'user:owner', 'owner', 1)"
            )
            raw.close()
            await d.db.read(tokens.valid)
            text = LogCheckpoint(proof.keys.signer.name, 1, bytes(32)).text()
            mark = tmp_path / "home" / "keys" / "journal.checkpoint"
            mark.write_text(signed_notes.sign(text, [proof.keys.signer]))
            await d.db.write(noting(TAPE, "b"))
            await proof.try_checkpoint()
            return before, await _looked(watched)

    before, after = asyncio.run(scenario())
    assert before == {}
    assert {key: each.severity for key, each in after.items()} == {
        "proof:checkpoint": "critical",
        f"proof:anchor:file {missing}": "warning",
        "proof:right:tokens:forged": "critical",
    }
    assert "mounted" in after[f"proof:anchor:file {missing}"].summary
