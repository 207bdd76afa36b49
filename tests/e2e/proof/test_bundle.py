"""A bundle convinces somebody who has Python and nothing else, and nothing in it can be changed."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import palyra.features.proof.verify_bundle as verifier
from palyra.core import signed_notes
from palyra.core.errors import Conflict, InvalidInput, NotFound
from palyra.core.signed_notes import LogCheckpoint
from palyra.features.proof.bundle import Disclosure
from palyra.features.proof.service import JournalProof
from palyra.models.scripted import Script, ScriptedCall, ScriptedModel, StreamPause, Turn
from palyra.policy import store as policy_store
from palyra.policy.store import PolicyStore
from tests.e2e.retention.test_segments import put_away
from tests.faults import reached
from tests.inprocess import daemon, finished, say, session

PROGRAM = Path(verifier.__file__)
Bundle = dict[str, Any]


async def _two_runs(d: Any) -> tuple[str, str, str]:
    """A session with two runs, the second of which uses a tool."""
    where = await session(d)
    first = await say(d, where, "hello")
    await finished(d, first)
    second = await say(d, where, "look")
    await finished(d, second)
    return where.session_id, first.run_id, second.run_id


TURNS = [
    Turn(text="good day"),
    Turn(calls=(ScriptedCall(name="fs.list"),)),
    Turn(text="nothing here"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("bundles")

    async def scenario() -> dict[str, Any]:
        async with daemon(folder, TURNS) as d:
            where, first, second = await _two_runs(d)
            proof = d.get(JournalProof)
            wanted = {
                "session": Disclosure(session_id=where),
                "run": Disclosure(run_id=second),
                "sealed": Disclosure(session_id=where, bodies=False),
                "positions": Disclosure(first=2, last=6, without=(3,)),
            }
            found = {name: await proof.bundle(each) for name, each in wanted.items()}
            key = proof.keys.signer.verifier.encode()
        return {"key": key, "runs": (first, second)} | {
            name: msgspec.json.decode(msgspec.json.encode(each)) for name, each in found.items()
        }

    return asyncio.run(scenario())


def checked(bundle: Bundle, tmp_path: Path, *arguments: str) -> tuple[int, str]:
    path = tmp_path / "bundle.json"
    path.write_text(json.dumps(bundle))
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(PROGRAM), str(path), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", ["session", "run", "sealed", "positions"])
def test_a_bundle_is_proven_without_the_product(
    made: dict[str, Any], name: str, tmp_path: Path
) -> None:
    code, told = checked(made[name], tmp_path, "--key", made["key"])
    assert (code, "PROVEN:" in told, "WARNING" in told) == (0, True, False), told


def test_without_a_key_the_verifier_says_whose_word_it_takes(
    made: dict[str, Any], tmp_path: Path
) -> None:
    code, told = checked(made["run"], tmp_path)
    assert code == 0
    assert "WARNING" in told


def test_a_key_of_somebody_else_proves_nothing(made: dict[str, Any], tmp_path: Path) -> None:
    other = "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx"
    code, told = checked(made["run"], tmp_path, "--key", other)
    assert (code, "NOT PROVEN" in told) == (1, True)


def test_a_run_is_shown_whole_and_other_runs_only_by_their_hashes(made: dict[str, Any]) -> None:
    first, second = made["runs"]
    entries = made["run"]["entries"]
    assert entries[0]["kind"] == "run.accepted"
    assert entries[-1]["kind"] == "run.completed"
    assert {each.get("run_id") for each in entries if "body" in each} == {second}
    assert all("body" in each or each.get("run_id") != second for each in entries)
    assert made["run"]["policies"]
    assert first not in {each.get("run_id") for each in entries if "body" in each}


def test_bodies_that_are_left_out_are_nowhere_in_the_bundle(made: dict[str, Any]) -> None:
    assert "good day" in json.dumps(made["session"])
    assert "good day" not in json.dumps(made["sealed"])


def _flip(text: str) -> str:
    return text[:-1] + ("0" if text[-1] != "0" else "1")


def _change(name: str, how: Callable[[Any], Any]) -> Callable[[Bundle], None]:
    def change(bundle: Bundle) -> None:
        entry = bundle["entries"][3]
        entry[name] = how(entry[name])

    return change


def _body(bundle: Bundle) -> None:
    entry = next(each for each in bundle["entries"] if "good day" in each.get("body", ""))
    entry["body"] = entry["body"].replace("good day", "bad day")


def _policy(field: str) -> Callable[[Bundle], None]:
    def change(bundle: Bundle) -> None:
        file = bundle["policies"][0]["files"][-1]
        file[field] = file[field].replace("e", "E")

    return change


CHANGES: dict[str, Callable[[Bundle], None]] = {
    "body": _body,
    "principal": _change("principal", lambda was: "user:mallory"),
    "kind": _change("kind", lambda was: "run.failed"),
    "time": _change("time_ms", lambda was: was + 1),
    "run": _change("run_id", lambda was: "01" * 13),
    "seq": _change("seq", lambda was: was + 1),
    "position": _change("position", lambda was: was + 1),
    "hash": _change("hash", _flip),
    "prev": _change("prev", _flip),
    "link": _change("link", lambda was: 1),
    "path": _change("proof", lambda was: [_flip(was[0]), *was[1:]]),
    "shorter path": _change("proof", lambda was: was[:-1]),
    "dropped": lambda bundle: bundle["entries"].pop(3),
    "dropped first": lambda bundle: bundle["entries"].pop(0),
    "swapped": lambda bundle: bundle["entries"].reverse(),
    "root": lambda bundle: bundle.update(checkpoint=bundle["checkpoint"].replace("=\n\n", "A\n\n")),
    "size": lambda bundle: bundle.update(checkpoint=bundle["checkpoint"].replace("\n", "\n1", 1)),
    "signature": lambda bundle: bundle.update(checkpoint=bundle["checkpoint"][:-20] + "\n"),
    "session": lambda bundle: bundle["about"].update(session_id="01" * 13),
    "format": lambda bundle: bundle.update(format="palyra-proof-2"),
    "a policy's text": _policy("text"),
    "a policy's name": _policy("name"),
    "a policy left out": lambda bundle: bundle["policies"][0]["files"].pop(),
    "policies of another version": lambda bundle: bundle["policies"][0].update(version="0" * 64),
}


@pytest.mark.parametrize("name", CHANGES)
def test_nothing_in_a_bundle_can_be_changed(
    made: dict[str, Any], name: str, tmp_path: Path
) -> None:
    bundle = json.loads(json.dumps(made["session"]))
    CHANGES[name](bundle)
    code, told = checked(bundle, tmp_path, "--key", made["key"])
    assert (code, "NOT PROVEN" in told) == (1, True), told


def test_a_body_cannot_be_swapped_for_another_hash(made: dict[str, Any], tmp_path: Path) -> None:
    bundle = json.loads(json.dumps(made["sealed"]))
    bundle["entries"][2]["body_sha256"] = bundle["entries"][3]["body_sha256"]
    assert checked(bundle, tmp_path, "--key", made["key"])[0] == 1


def test_the_end_of_another_run_is_not_the_end_of_this_one(tmp_path: Path) -> None:
    """A run was accepted while another one worked, and its bundle is cut behind the other's end."""
    hold = StreamPause()
    turns = {"hello": (Turn(text=("one",), hold="h"),), "and then": (Turn(text=("two",)),)}
    model = ScriptedModel(Script(turns), holds={"h": hold})

    async def scenario() -> Bundle:
        async with daemon(tmp_path, model) as d:
            where = await session(d)
            first = await say(d, where, "hello")
            await reached(hold.reached)
            second = await say(d, where, "and then", mode="queue")
            hold.released.set()
            await finished(d, first)
            await finished(d, second)
            found = await d.get(JournalProof).bundle(Disclosure(run_id=second.run_id))
            return msgspec.json.decode(msgspec.json.encode(found))

    bundle = asyncio.run(scenario())
    assert "the run is complete" in checked(bundle, tmp_path)[1]
    ends = [at for at, each in enumerate(bundle["entries"]) if each["kind"] == "run.completed"]
    assert len(ends) == 2
    bundle["entries"] = bundle["entries"][: ends[0] + 1]
    code, told = checked(bundle, tmp_path)
    assert (code, "the run had not ended" in told) == (0, True), told


def test_a_bundle_has_the_policies_that_decided_also_after_they_changed(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[str], Bundle, Bundle]:
        async with daemon(tmp_path, TURNS) as d:
            _, _, run_id = await _two_runs(d)
            decided = d.get(PolicyStore).version
            (tmp_path / "home/policies/late.cedar").write_text(
                '@id("late")\nforbid (principal, action, resource == Tool::"fs.write");\n'
            )
            change = await asyncio.to_thread(d.get(PolicyStore).reload)
            await policy_store.record(d.db, "user:owner", change, d.get(PolicyStore).current.texts)
            proof = d.get(JournalProof)
            found = [
                msgspec.json.decode(msgspec.json.encode(await proof.bundle(wanted)))
                for wanted in (Disclosure(run_id=run_id), Disclosure(run_id=run_id, bodies=False))
            ]
            return [decided, d.get(PolicyStore).version], found[0], found[1]

    (decided, now), shown, sealed = asyncio.run(scenario())
    assert decided != now
    assert [each["version"] for each in shown["policies"]] == [now, decided]
    # Who leaves the decision out does not tell which policies made it.
    assert [each["version"] for each in sealed["policies"]] == [now]
    code, told = checked(shown, tmp_path)
    assert (code, f"decided by policies {decided[:16]}, whose texts are here" in told) == (0, True)
    shown["policies"].pop()
    code, told = checked(shown, tmp_path)
    assert (code, "WARNING: whose texts are not here" in told) == (0, True)


def test_a_rotated_key_is_believed_by_who_knows_the_old_one(tmp_path: Path) -> None:
    async def scenario() -> tuple[str, Bundle]:
        async with daemon(tmp_path, TURNS) as d:
            where, _, _ = await _two_runs(d)
            proof = d.get(JournalProof)
            old = proof.keys.signer.verifier.encode()
            await proof.rotate("user:owner")
            found = await proof.bundle(Disclosure(session_id=where))
            return old, msgspec.json.decode(msgspec.json.encode(found))

    old, bundle = asyncio.run(scenario())
    assert checked(bundle, tmp_path, "--key", old)[0] == 0
    bundle["rotations"] = []
    assert checked(bundle, tmp_path, "--key", old)[0] == 1


def test_an_entry_of_the_first_link_version_is_proven_with_its_body_only(
    made: dict[str, Any],
) -> None:
    from palyra.features.proof import bundle
    from palyra.features.proof.rows import BundleRow

    row = BundleRow(1, "t", 1, 0, "", "p", "k", b"{}", bytes(32), 1, bytes(32))
    with pytest.raises(InvalidInput):
        bundle._shown(Disclosure(bodies=False))(row)


def test_a_stretch_with_a_sealed_session_in_it_is_refused_and_not_written_with_a_gap(
    tmp_path: Path,
) -> None:
    async def scenario() -> int:
        async with daemon(tmp_path, TURNS) as d:
            where = await session(d)
            await finished(d, await say(d, where, "hello"))
            assert len((await put_away(d, where)).sessions) == 1
            proof = d.get(JournalProof)
            with pytest.raises(Conflict) as refused:
                await proof.bundle(Disclosure(first=1, last=3))
            with pytest.raises(NotFound):
                await proof.bundle(Disclosure(session_id=where.session_id))
            return int(refused.value.details["position"])

    assert asyncio.run(scenario()) > 0


def test_the_verifier_is_short_enough_to_be_read() -> None:
    assert len(PROGRAM.read_text().splitlines()) <= 300


def test_a_journal_that_cannot_be_signed_for_is_no_error_for_who_asked(tmp_path: Path) -> None:
    async def scenario() -> bool:
        async with daemon(tmp_path, TURNS) as d:
            await _two_runs(d)
            proof = d.get(JournalProof)
            await proof.checkpoint()
            mark = tmp_path / "home" / "keys" / "journal.checkpoint"
            forged = signed_notes.sign(
                LogCheckpoint(proof.keys.signer.name, 1, bytes(32)).text(), [proof.keys.signer]
            )
            mark.write_text(forged)
            await _two_runs(d)
            signed = await proof.try_checkpoint()
            return signed or not proof.forged

    assert asyncio.run(scenario()) is False
