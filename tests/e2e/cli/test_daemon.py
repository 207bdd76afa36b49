"""The daemon's life as a person sees it: homes that cannot be, folders that cannot be worked in,
what doctor and status know.
"""

import json
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from palyra.cli import daemon_process
from palyra.cli.daemon_process import has_screen
from tests import daemon as daemons
from tests.cli_terminal import palyra, terminal

FREE_PORT = {"PALYRA_SERVER__HTTP_PORT": "0"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["up", "--detach"],
        ["config", "set", "log.level", "info"],
        ["stop", "--daemon"],
        ["doctor"],
        ["status"],
    ],
)
@pytest.mark.parametrize("place", ["file", "file/below", "/proc/palyra"])
def test_a_home_that_cannot_be_is_named_and_nobodys_defect(
    tmp_path: Path, arguments: list[str], place: str
) -> None:
    (tmp_path / "file").write_text("")
    done = palyra(tmp_path, *arguments, "--home", str(tmp_path / place))
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert "defect" not in said
    assert str(tmp_path / place) in said
    if arguments[0] in ("up", "config", "doctor"):
        assert "--home" in said
    if arguments == ["doctor"]:
        assert "✗ home folder" in said


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720])
def test_a_home_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    done = palyra(tmp_path, "up", "--detach", "--home", str(home))
    assert done.returncode != 0
    assert f"chmod 700 {home}" in done.stdout + done.stderr
    assert not (home / "journal.db").exists()


def test_a_home_of_another_user_is_refused(tmp_path: Path) -> None:
    home, number = Path("/usr/share"), 0
    if os.geteuid() == 0:
        home, number = tmp_path / "home", 12_345
        home.mkdir(mode=0o700)
        os.chown(home, number, number)
    done = palyra(tmp_path, "serve", "--home", str(home))
    assert done.returncode != 0
    assert f"belongs to another user (number {number})" in done.stdout + done.stderr
    assert not (home / "journal.db").exists()


def test_every_problem_of_the_settings_is_told_when_a_daemon_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[server]\nhttp_prot = 1\nhost = 2\n")
    done = palyra(tmp_path, "up", "--detach")
    assert done.returncode == 7
    assert "http_port" in done.stderr
    assert "server.host" in done.stderr


def test_up_in_a_folder_that_holds_the_home_says_where_to_go_and_leaves_no_daemon(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    home = tmp_path / ".palyra"
    with terminal(home, "up", "--no-setup", "--port", "0", cwd=tmp_path) as shown:
        shown.expect("cd into the folder of a project, or name one with --workspace")
        assert shown.ends() == 4
    assert not (home / "daemon.json").exists()
    with terminal(
        home, "up", "--no-setup", "--port", "0", "--workspace", "project", cwd=tmp_path
    ) as chat:
        chat.expect(f"in {project}")
        chat.expect("› ")
        refused = palyra(home, "ask", "hello", cwd=tmp_path)
        assert (refused.returncode, "--workspace" in refused.stderr) == (4, True)
        chat.line("/quit")
        assert chat.ends() == 0


def test_doctor_asks_the_daemon_which_model_answers(tmp_path: Path) -> None:
    with daemons.start(tmp_path, env={"OPENAI_API_KEY": "sk-of-the-daemon"}) as daemon:
        findings = json.loads(palyra(daemon.home, "doctor", "--json").stdout)["checks"]
    model = next(each for each in findings if each["title"] == "model")
    assert model["state"] == "ok"
    assert "openai" in model["detail"]


def test_status_shows_the_process_and_what_is_wrong_with_the_policy(tmp_path: Path) -> None:
    with daemons.start(tmp_path) as daemon:
        assert f"(pid {daemon.pid})" in palyra(daemon.home, "status").stdout
        (daemon.home / "policies").mkdir(exist_ok=True)
        (daemon.home / "policies" / "typo.cedar").write_text("permit (principal")
        palyra(daemon.home, "policy", "reload")
        assert "typo.cedar" in palyra(daemon.home, "status").stdout


def test_a_setting_is_taken_out_of_the_file_again(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("# mine\n[server]\nhttp_port = 8000 # why not\n")
    done = palyra(tmp_path, "config", "unset", "server.http_port")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "config.toml").read_text() == "# mine\n[server]\n"
    assert palyra(tmp_path, "config", "get", "server.http_port").stdout == "7142\n"
    assert palyra(tmp_path, "config", "unset", "server.http_port").returncode == 3
    assert palyra(tmp_path, "config", "unset", "server.http_prot").returncode in (2, 3)


def test_a_backup_needs_no_daemon_and_its_name_is_explained(tmp_path: Path) -> None:
    with daemons.start(tmp_path, script={"*": [{"text": "x"}]}) as daemon:
        daemon.run("hello")
        named = json.loads(palyra(daemon.home, "journal", "backup", "spring", "--json").stdout)
        assert named["path"].endswith("/backups/spring.db")
        daemon.stop()
        alone = json.loads(palyra(daemon.home, "journal", "backup", "autumn", "--json").stdout)
        assert palyra(daemon.home, "journal", "verify", alone["path"]).returncode == 0
        again = palyra(daemon.home, "journal", "backup", "autumn.db")
        assert again.returncode == 6
    for wrong in ("../out.db", "a/b", ".hidden", "ümlaut"):
        done = palyra(daemon.home, "journal", "backup", wrong)
        assert (done.returncode, "letters, digits" in done.stderr) == (2, True)
    assert palyra(tmp_path / "other", "journal", "backup").returncode == 3


def test_a_chat_whose_daemon_left_with_another_chat_can_start_one(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    with terminal(home, "up", "--no-setup", "--port", "0", cwd=work) as first:
        first.expect(r"› \s*\S+ · [^\n]*$")
        with terminal(home, "up", "--no-setup", cwd=work, env=FREE_PORT) as second:
            second.expect(r"› \s*\S+ · [^\n]*$")
            first.line("/quit")
            assert first.ends() == 0
            second.expect("Palyra has stopped: /up restarts it")
            second.line("/up")
            second.expect("Reconnected")
            pid = json.loads((home / "daemon.json").read_text())["pid"]
            second.line("hello")
            second.expect("(?i)hello|hi")
            second.expect("› ")
            second.line("/quit")
            assert second.ends() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIG_DFL)


def test_a_daemon_that_is_just_ending_is_waited_for_by_the_next(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    daemons.configure(home)
    with ThreadPoolExecutor(1) as pool:
        # Its address is gone, and it still holds the home.
        with daemon_process.exclusive(home):
            starting = pool.submit(daemons.launch, home, work)
            end = time.monotonic() + 20
            while "just ending" not in (
                (home / "output.txt").read_text() if (home / "output.txt").exists() else ""
            ):
                assert time.monotonic() < end, "it does not say what it waits for"
                time.sleep(
                    0.005
                )  # Another process's file: there is nothing to wait on but the clock.
        assert starting.result(30).stop() == 0


@pytest.mark.parametrize(
    ("arguments", "more", "opened"),
    [([], {}, True), (["--no-open"], {}, False), ([], {"CI": "true"}, False)],
)
def test_up_prints_a_link_that_logs_in_and_opens_it_where_there_is_a_screen(
    tmp_path: Path, arguments: list[str], more: dict[str, str], opened: bool
) -> None:
    home, work, seen = tmp_path / "home", tmp_path / "work", tmp_path / "seen"
    work.mkdir()
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}.new && mv {seen}.new {seen}\n')
    browser.chmod(0o755)
    env = {"BROWSER": str(browser), "DISPLAY": ":99", "CI": "", "SSH_CONNECTION": "", **more}
    with terminal(home, "up", "--no-setup", "--port", "0", *arguments, cwd=work, env=env) as person:
        link = person.expect(r"Console .*?(http://127\.0\.0\.1:\d+/login\?code=\S+)")[1]
        person.expect(r"› \s*\S+ · [^\n]*$")
        person.line("hello")
        person.expect("(?i)hello|hi")
        if opened:
            end = time.monotonic() + 20
            while not seen.exists():
                assert time.monotonic() < end, "no browser was opened"
                time.sleep(
                    0.005
                )  # Another process's file: there is nothing to wait on but the clock.
            assert seen.read_text().strip() == link
        person.line("/quit")
        assert person.ends() == 0
    assert seen.exists() == opened


@pytest.mark.parametrize(
    ("env", "platform", "screen"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "a b"}, "linux", False),
        ({"DISPLAY": ":0", "CI": "1"}, "linux", False),
        ({}, "darwin", True),
    ],
)
def test_a_browser_is_opened_only_where_somebody_could_see_it(
    env: dict[str, str], platform: str, screen: bool
) -> None:
    assert has_screen(env, platform) is screen


@pytest.mark.parametrize(
    "arguments", [[], ["journal"], ["help"], ["help", "journal"], ["help", "journal", "verify"]]
)
def test_help_is_an_answer_and_no_error(tmp_path: Path, arguments: list[str]) -> None:
    done = palyra(tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(
        rf"Usage: palyra {' '.join(arguments[1:] if arguments[:1] == ['help'] else arguments)}",
        done.stdout,
    )


def test_an_unknown_command_is_answered_with_what_was_meant(tmp_path: Path) -> None:
    for arguments, meant in (
        (["statsu"], "status"),
        (["journal", "verfy"], "verify"),
        (["help", "statsu"], "status"),
    ):
        done = palyra(tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert meant in done.stderr
        assert "Usage:" not in done.stderr


def test_the_version_is_a_command_too(tmp_path: Path) -> None:
    assert palyra(tmp_path, "version").stdout == palyra(tmp_path, "--version").stdout
