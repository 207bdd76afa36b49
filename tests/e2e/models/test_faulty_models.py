"""Every fault of the faulty provider, as a user meets it: what `palyra ask` prints and how it ends,
and what the tape says.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from palyra.cli import lookup
from palyra.client import Client
from palyra.features.setup import fault_trial
from palyra.models.faulty.behaviour import ANSWER
from palyra.models.faulty.faults import FAULTS
from tests.cli_terminal import palyra, terminal

Trial = tuple[Client, Path]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    with fault_trial.trial_daemon(tmp_path_factory.mktemp("faults"), os.environ) as made:
        yield made


@pytest.mark.parametrize("name", FAULTS)
def test_no_fault_ends_without_an_answer_or_a_clear_sentence(faulty: Trial, name: str) -> None:
    """What `palyra ask` prints, how it ends, and what the tape says."""
    api, work = faulty
    fault = FAULTS[name]
    session_id = api.resolve_session(workspace=str(work), key=lookup.new_id()).session_id
    asked = ("ask", "--session", session_id, "--model", f"faulty/{name}", fault_trial.QUESTION)
    done = palyra(work.parent / "home", *asked, cwd=work)
    assert done.returncode == (0 if fault.ends == "answered" else 1)
    if fault.ends == "answered":
        # Once, however often it was begun.
        assert done.stdout.count(fault.sees) == 1, done.stdout
        assert "error: " not in done.stderr
    else:
        *_, last = done.stderr.splitlines()
        assert last.startswith("error: ")
        assert fault.sees.lower() in last.lower()
        assert done.stderr.count("error: ") == 1
    (run,) = api.list_runs(session_id).runs
    outcome = fault_trial.judged(api, session_id, name, fault, run.state, 0.0)
    assert outcome.problem == ""


def test_what_acts_on_a_terminal_is_not_printed_on_one(faulty: Trial) -> None:
    _, work = faulty
    asked = ("ask", "--model", "faulty/terminal-codes", fault_trial.QUESTION)
    with terminal(work.parent / "home", *asked, cwd=work) as asking:
        asking.expect("The folder was listed")
        assert asking.ends() == 0
        assert not any(code in asking.raw for code in ("\x1b[2J", "\x1b]0;", "\x07", "\x1b[8m"))


def test_a_program_reads_the_answer_or_the_reason(faulty: Trial) -> None:
    _, work = faulty
    for name in ("cut-in-text", "web-page"):
        asked = ("ask", "--json", "--model", f"faulty/{name}", fault_trial.QUESTION)
        done = palyra(work.parent / "home", *asked, cwd=work)
        said = json.loads(done.stdout)
        if name == "web-page":
            assert (done.returncode, said["state"]) == (1, "failed")
            assert "this is not a model server" in said["message"]
        else:
            assert (done.returncode, said["state"], said["text"]) == (0, "done", ANSWER)


def test_there_are_faults_of_every_kind() -> None:
    assert len(FAULTS) >= 40
    assert {fault.ends for fault in FAULTS.values()} == {"answered", "failed"}
    assert all(fault.says and fault.sees for fault in FAULTS.values())
    # What ends a run is on its tape by a name of its own, and the user reads more than an answer.
    assert [
        name
        for name, fault in FAULTS.items()
        if fault.ends == "failed" and (not fault.tape or fault.sees == ANSWER)
    ] == []


def test_every_fault_is_in_the_reference() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/models.md").read_text()
    assert [name for name in FAULTS if f"| `{name}` |" not in page] == []
