"""`doctor --crash` and `doctor --attack`: what they say of a configuration that holds, and of one
that does not.
"""

import json
from pathlib import Path

import pytest

from palyra.core.tools import Preview
from palyra.features.channels import texts
from palyra.serve.trials import attack, daemon, obeyed, previews
from palyra.serve.trials.attack import Attempt
from palyra.serve.trials.daemon import call
from tests.cli_terminal import palyra

FRAME = "the end of its own frame"


@pytest.mark.timeout(
    300
)  # Everything that is tried, one after the other, on a machine that may be busy.
def test_a_sound_configuration_holds_and_nothing_of_it_is_touched(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "policies").mkdir(parents=True)
    (home / "policies/mine.cedar").write_text(
        '@id("no")\nforbid (principal, action, resource == Tool::"test.reversible");\n'
    )
    (home / "config.toml").write_text(
        "[policy]\npreset = 'coding'\n[providers.dear]\nkind = 'openai-chat'\nbase_url = 'http://127.0.0.1:9'\n"
    )
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    done = palyra(home, "doctor", "--crash", "--kills", "1", "--attack", "--json", within_s=240)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {each["id"]: each for each in json.loads(done.stdout)["checks"]}
    assert {name: each["state"] for name, each in found.items()} == {
        "crash": "ok",
        "crash:denied": "warn",
        "attack:files": "ok",
        "attack:commands": "ok",
        "attack:pages": "ok",
        "attack:repositories": "ok",
        "attack:obeyed-files": "ok",
        "attack:texts": "ok",
        "attack:previews": "ok",
    }
    held = found["attack:repositories"]["detail"] + found["attack:obeyed-files"]["detail"]
    assert "25 ways held: another common folder, settings" in held
    assert "61 ways held" in held
    assert all(name in held for name in ("package.json", ".vscode/x", "agents.md", ".github/x"))
    assert found["attack:previews"]["detail"].startswith(
        "20 previews held: a change that is too long for a chat, "
    )
    assert found["crash"]["detail"].startswith("killed 1 times, and each run came to its end")
    assert found["crash:denied"]["detail"].startswith("policy denied test.reversible")
    assert found["attack:commands"]["detail"].startswith("10 attempts held")
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_what_gets_through_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what a command says, by a file that lies where it must not, and by a knock at the door."""
    tried = (
        Attempt("saying it", "shell.run", {"command": "echo ESCAPED"}),
        Attempt("something else", "shell.run", {"command": "echo fine"}),
        Attempt("an ordinary file", "fs.write", {"path": "planted.txt", "content": "x"}),
    )
    monkeypatch.setattr(attack, "ATTEMPTS", {"commands": tried})
    monkeypatch.setattr(attack, "PLANTED", ("work/planted.txt",))
    (check,) = attack.trial(tmp_path / "home", {"PATH": "/usr/bin:/bin"})
    assert (check.state, check.detail) == (
        "fail",
        "got through: saying it (shell.run), an ordinary file (fs.write)",
    )


def test_what_happens_twice_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = [call("test.once", path="once.txt", line="0"), {"text": "done"}]
    monkeypatch.setattr(
        daemon, "_script", lambda runs: {f"run {number}": twice for number in range(runs)}
    )
    (check,) = daemon.trial(tmp_path / "home", {"PATH": "/usr/bin:/bin"}, 1, lambda done: None)
    assert check.state == "fail"
    assert "once.txt has the line 0 2 times" in check.detail


def test_a_way_that_is_open_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of that name in the place itself stands for a wall that is missing; one is written
    that nobody obeys.
    """
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text("[policy]\npreset = 'coding'\n")
    monkeypatch.setattr(obeyed, "REPOSITORY", {"an alias": "true", "nothing": "true"})
    monkeypatch.setattr(
        obeyed, "_AFTERWARDS", (("-c", "alias.x=!touch ../../outside/ESCAPED", "x"),)
    )
    monkeypatch.setattr(obeyed, "_example", lambda row: "w/plain.txt")
    repositories, writes = obeyed.trial(home, {"PATH": "/usr/bin:/bin"})
    assert (repositories.state, repositories.detail) == ("fail", "got through: an alias, nothing")
    assert writes.state == "fail"
    assert writes.detail.startswith("written without a question: plain.txt")


@pytest.mark.parametrize("name", [name for name in previews.HOSTILE if name != FRAME])
def test_a_preview_that_is_shown_as_it_came_is_found(name: str) -> None:
    """Cut without a mark, and not made visible."""
    hostile = previews.HOSTILE[name]
    raw = Preview("text", "something", hostile.text[:1_200])
    assert previews.fault(hostile, previews.requested(hostile.tool, raw))


def test_a_preview_that_ends_its_frame_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert previews.alone(previews.HOSTILE[FRAME]) == ""
    monkeypatch.setattr(texts, "_longest_run", lambda text: 0)
    assert previews.alone(previews.HOSTILE[FRAME]) == "its text ends the frame around it"
