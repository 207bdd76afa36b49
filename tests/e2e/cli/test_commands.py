"""The commands as a script uses them: no terminal, a real daemon, output that parses, exit codes
that tell.
"""

import http.client
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from palyra.cli import daemon_process
from palyra.core.redaction import PLACEHOLDER
from tests import daemon as daemons
from tests.cli_terminal import palyra, terminal
from tests.daemon import DaemonProcess

MISSING = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
WRITE = {"name": "fs.write", "arguments": {"path": "a.txt", "content": "x\n"}}
SCRIPT = {
    "*": [{"text": "the answer"}],
    "write": [{"text": "I will write", "calls": [WRITE]}, {"text": "written"}],
    "broken": [{"fail": {"failure": "auth", "message": "the key is wrong"}}],
    "think": [{"reasoning": "hmm", "text": "thought about it"}],
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemons.start(
        tmp_path_factory.mktemp("daemon"), config=daemons.IMPATIENT, script=SCRIPT
    ) as started:
        yield started


def _ok(daemon: DaemonProcess, *arguments: str, stdin: str | None = None) -> Any:
    """What a command prints with --json."""
    done = palyra(daemon.home, *arguments, "--json", cwd=daemon.workspace, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _pending(daemon: DaemonProcess) -> str:
    """A run that waits for an approval, by the approval's id."""
    session_id = daemon.post("/v1/sessions", {"workspace": str(daemon.workspace)})["session_id"]
    daemon.post(f"/v1/sessions/{session_id}/messages", {"text": "write"})
    for _, event, data in daemon.events(f"/v1/sessions/{session_id}/events"):
        if event == "entry" and data["kind"] == "approval.requested":
            return str(data["event"]["approval_id"])
    raise AssertionError("no approval was asked for")


def test_json_can_be_asked_for_before_the_verb_too(daemon: DaemonProcess) -> None:
    done = palyra(daemon.home, "--json", "sessions")
    assert "sessions" in json.loads(done.stdout)


def test_errors_are_json_on_stderr_with_json(daemon: DaemonProcess) -> None:
    done = palyra(daemon.home, "sessions", "show", MISSING, "--json")
    assert (done.returncode, done.stdout) == (3, "")
    assert json.loads(done.stderr)["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense", "--json"),
        ("--json", "sessions", "show"),
        ("sessions", "list", "--bad", "--json"),
    ],
)
def test_wrong_usage_is_json_with_json_too(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = palyra(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert json.loads(done.stderr)["error"]["code"] == "invalid_input"


def test_nothing_that_is_piped_has_colours(daemon: DaemonProcess) -> None:
    for arguments in (["sessions"], ["usage"], ["policy"], ["status"], ["--help"], ["doctor"]):
        assert "\x1b" not in palyra(daemon.home, *arguments).stdout


def test_no_color_holds_on_a_terminal(daemon: DaemonProcess) -> None:
    for more, env in (["--no-color"], {}), ([], {"NO_COLOR": "1"}):
        with terminal(daemon.home, "status", *more, cwd=daemon.workspace, env=env) as shown:
            shown.expect("policy")
            shown.ends()
            assert "\x1b[" not in shown.raw
    with terminal(daemon.home, "status", cwd=daemon.workspace) as shown:
        shown.ends()
        assert "\x1b[1m" in shown.raw


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nonsense"], 2),
        (["ask"], 2),
        (["sessions", "show", "not-an-id"], 2),
        (["sessions", "show", MISSING], 3),
        (["approvals", "allow", MISSING], 3),
        (["config", "get", "no.such"], 3),
        (["undo", "--run", MISSING], 3),
        (["journal", "restore", "nothing.db"], 6),
    ],
)
def test_exit_codes_tell_what_happened(
    daemon: DaemonProcess, arguments: list[str], code: int, tmp_path: Path
) -> None:
    done = palyra(daemon.home, *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_no_daemon_is_exit_code_5_and_says_how_to_start_one(tmp_path: Path) -> None:
    done = palyra(tmp_path / "home", "status")
    assert done.returncode == 5
    assert "palyra up" in done.stderr


def test_a_daemon_that_died_is_exit_code_5(tmp_path: Path) -> None:
    with daemons.start(tmp_path) as daemon:
        daemon.kill()
        done = palyra(daemon.home, "status")
        assert done.returncode == 5
        assert "palyra up" in done.stderr


def test_a_wrong_token_is_exit_code_4(daemon: DaemonProcess) -> None:
    assert palyra(daemon.home, "status", env={"PALYRA_TOKEN": "plr_wrong"}).returncode == 4


def test_a_broken_config_is_exit_code_7_with_every_problem(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[server]\nhttp_prot = 1\nhost = 2\n")
    done = palyra(tmp_path, "config", "check")
    assert done.returncode == 7
    assert "http_port" in done.stdout
    assert "server.host" in done.stdout
    assert palyra(tmp_path, "serve").returncode == 7


def test_the_environment_can_name_another_daemon(daemon: DaemonProcess, tmp_path: Path) -> None:
    env = {"PALYRA_URL": daemon.url, "PALYRA_TOKEN": daemon.token}
    assert palyra(tmp_path / "nowhere", "status", env=env).returncode == 0
    assert palyra(tmp_path, "status", env={"PALYRA_URL": "http://127.0.0.1:1"}).returncode == 5
    assert palyra(tmp_path, "status", env={"PALYRA_URL": "ftp://x"}).returncode == 7


def test_an_approval_is_answered_from_the_command_line_and_the_change_undone(
    daemon: DaemonProcess,
) -> None:
    approval_id = _pending(daemon)
    assert approval_id in palyra(daemon.home, "approvals").stdout
    shown = palyra(daemon.home, "approvals", "show", approval_id).stdout
    assert "+x" in shown
    assert "pending" in shown
    allowed = _ok(daemon, "approvals", "allow", approval_id, "--session")
    assert (allowed["decision"], allowed["resolution"]["scope"]) == ("allow", "session")
    for _, event, data in daemon.events(
        f"/v1/sessions/{allowed['session_id']}/events?until={allowed['run_id']}"
    ):
        assert event != "entry" or data["kind"] != "run.failed"
    assert (daemon.workspace / "a.txt").read_text() == "x\n"
    again = palyra(daemon.home, "approvals", "deny", approval_id)
    assert again.returncode == 6
    would = _ok(daemon, "undo", "--session", allowed["session_id"], "--dry-run")
    assert (would["dry_run"], (daemon.workspace / "a.txt").exists()) == (True, True)
    assert _ok(daemon, "undo", "--session", allowed["session_id"])["changes"] == would["changes"]
    assert not (daemon.workspace / "a.txt").exists()


def test_stop_cancels_what_runs_and_waits(daemon: DaemonProcess) -> None:
    _pending(daemon)
    assert len(_ok(daemon, "stop")["cancelled"]) == 1
    assert "nothing was running" in palyra(daemon.home, "stop").stdout


def test_sessions_are_renamed_archived_brought_back_branched_and_reset(
    daemon: DaemonProcess,
) -> None:
    session_id = _ok(daemon, "ask", "think")["session_id"]
    assert _ok(daemon, "sessions", "title", session_id, "A new name")["title"] == "A new name"
    assert _ok(daemon, "sessions", "archive", session_id)["archived"] is True
    assert session_id not in palyra(daemon.home, "sessions", "list").stdout
    assert session_id in palyra(daemon.home, "sessions", "list", "--archived").stdout
    assert "archived" not in _ok(daemon, "sessions", "unarchive", session_id)
    assert _ok(daemon, "sessions", "branch", session_id, "--at", "3")["parent_seq"] == 3
    assert _ok(daemon, "sessions", "reset", session_id)["session_id"] == session_id
    assert "› think" in palyra(daemon.home, "sessions", "show", session_id.lower()).stdout


def test_a_token_is_shown_once_works_and_is_revoked(daemon: DaemonProcess) -> None:
    made = _ok(daemon, "token", "create", "reader", "--scope", "viewer", "--for", "1h")
    env = {"PALYRA_URL": daemon.url, "PALYRA_TOKEN": made["token"]}
    assert palyra(daemon.home, "sessions", env=env).returncode == 0
    assert palyra(daemon.home, "token", "list", env=env).returncode == 4
    assert made["token"] not in palyra(daemon.home, "token", "list").stdout
    assert _ok(daemon, "token", "revoke", made["info"]["token_id"])["revoked_ms"]
    assert palyra(daemon.home, "sessions", env=env).returncode == 4


def test_the_journal_is_exported_line_by_line_and_backed_up(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    session_id = _ok(daemon, "ask", "think")["session_id"]
    done = palyra(daemon.home, "journal", "export", "--session", session_id)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [entry["seq"] for entry in lines] == list(range(1, len(lines) + 1))
    written = palyra(daemon.home, "journal", "export", "-o", str(tmp_path / "all.ndjson"))
    assert written.returncode == 0
    assert (
        palyra(daemon.home, "journal", "export", "-o", str(tmp_path / "all.ndjson")).returncode == 6
    )
    backed = _ok(daemon, "journal", "backup", "one.db")
    assert Path(backed["path"]).exists()
    assert palyra(daemon.home, "journal", "verify", backed["path"]).returncode == 0
    shown = palyra(daemon.home, "journal", "show", session_id).stdout
    assert "run.completed" in shown
    assert "thought about it" in shown


def test_the_journal_is_verified_and_restored_without_a_daemon(tmp_path: Path) -> None:
    with daemons.start(tmp_path, script=SCRIPT) as daemon:
        _ok(daemon, "ask", "think")
        backup = _ok(daemon, "journal", "backup")["path"]
        assert palyra(daemon.home, "journal", "restore", backup).returncode == 6
        assert palyra(daemon.home, "stop", "--daemon").returncode == 0
        daemon.stop()
        good = json.loads(palyra(daemon.home, "journal", "verify", "--json").stdout)
        assert good["ok"] is True
        _damage(daemon.home / "journal.db")
        bad = palyra(daemon.home, "journal", "verify")
        assert bad.returncode == 1
        assert "first bad entry" in bad.stdout
        restored = palyra(daemon.home, "journal", "restore", backup)
        assert restored.returncode == 0, restored.stderr
        assert palyra(daemon.home, "journal", "verify").returncode == 0


def _damage(journal: Path) -> None:
    import apsw

    connection = apsw.Connection(str(journal))
    connection.execute(
        "DROP TRIGGER entries_are_never_changed; UPDATE entries SET principal = 'user:mallory' WHERE position = 3"
    )
    connection.close()


def test_settings_are_set_in_place_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("# mine\n[server]\nhttp_port = 8000 # why not\n")
    assert palyra(tmp_path, "config", "set", "server.http_port", "9000").returncode == 0
    assert palyra(tmp_path, "config", "get", "server.http_port").stdout == "9000\n"
    assert "# why not" in (tmp_path / "config.toml").read_text()
    assert palyra(tmp_path, "config", "set", "server.http_port", "many").returncode == 2
    assert palyra(tmp_path, "config", "path").stdout == f"{tmp_path / 'config.toml'}\n"


def test_up_detached_starts_one_daemon_and_stop_ends_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = json.loads(palyra(home, "up", "--detach", "--port", "0", "--json").stdout)
    try:
        assert json.loads(palyra(home, "up", "--detach", "--json").stdout)["pid"] == first["pid"]
        assert palyra(home, "status").returncode == 0
        again = palyra(home, "up", "--detach").stdout
        assert f"Palyra is running at {first['url']} (pid {first['pid']})." in again
        # The link logs a browser in, once.
        link = re.search(rf"Open the console: {re.escape(first['url'])}(/\S+)", again)
        assert link
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(first["url"]).port or 0)
        connection.request("GET", link[1])
        assert connection.getresponse().status in (200, 302, 303)
        connection.close()
    finally:
        stopped = palyra(home, "stop", "--daemon")
    assert stopped.returncode == 0, stopped.stderr
    assert palyra(home, "status").returncode == 5
    assert palyra(home, "stop", "--daemon").returncode == 5


def test_stop_never_ends_a_process_that_only_a_dead_daemon_names(tmp_path: Path) -> None:
    with daemons.start(tmp_path) as daemon, subprocess.Popen(["sleep", "60"]) as bystander:
        daemon.kill()
        stale = json.loads((daemon.home / "daemon.json").read_text()) | {"pid": bystander.pid}
        (daemon.home / "daemon.json").write_text(json.dumps(stale))
        done = palyra(daemon.home, "stop", "--daemon")
        assert (done.returncode, bystander.poll()) == (5, None)
        with daemon_process.exclusive(daemon.home):
            done = palyra(daemon.home, "stop", "--daemon")
        assert (done.returncode, bystander.poll()) == (1, None)
        bystander.kill()


def test_a_daemon_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[server]\nhttp_prot = 1\n")
    done = palyra(tmp_path, "up", "--detach")
    assert done.returncode == 7
    assert "http_port" in done.stderr


def test_doctor_finds_a_home_that_others_can_read_and_says_how_to_mend_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    done = palyra(home, "doctor", "--json")
    findings = {each["title"]: each for each in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert findings["home folder"]["state"] == "fail"
    assert "chmod 700" in findings["home folder"]["fix"]
    home.chmod(0o700)
    # Port 0: whoever else runs on this machine is not what this is about.
    assert palyra(home, "doctor", env={"PALYRA_SERVER__HTTP_PORT": "0"}).returncode == 0


def test_doctor_says_which_tier_commands_get(tmp_path: Path) -> None:
    findings = json.loads(palyra(tmp_path / "home", "doctor", "--json").stdout)["checks"]
    (found,) = [finding for finding in findings if finding["title"] == "sandbox"]
    assert (found["state"], found["detail"].split(":")[0]) == ("ok", "tier C")


def test_doctor_names_the_first_bad_entry_of_a_damaged_journal(tmp_path: Path) -> None:
    with daemons.start(tmp_path, script=SCRIPT) as daemon:
        _ok(daemon, "ask", "think")
        daemon.stop()
    _damage(daemon.home / "journal.db")
    done = palyra(daemon.home, "doctor")
    assert done.returncode == 1
    assert "position 3" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid_for_their_shell(tmp_path: Path, shell: str) -> None:
    done = palyra(tmp_path, "completion", shell)
    assert done.returncode == 0
    assert "_PALYRA_COMPLETE" in done.stdout
    if shutil.which(shell):
        checked = subprocess.run(
            [shell, "-n"],
            input=done.stdout,
            text=True,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert (checked.returncode, checked.stderr) == (0, "")


def test_completion_offers_commands_and_verbs(tmp_path: Path) -> None:
    def offered(line: str) -> list[str]:
        env = {
            "_PALYRA_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split()) - (not line.endswith(" "))),
        }
        return [each.partition(",")[2] for each in palyra(tmp_path, env=env).stdout.splitlines()]

    assert "sessions" in offered("palyra se")
    assert offered("palyra sessions ar") == ["archive", "archive-old"]


def test_what_is_kept_of_a_chat_holds_no_secret(daemon: DaemonProcess) -> None:
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    with terminal(daemon.home, "chat", "--new", cwd=daemon.workspace) as chat:
        chat.expect("› ")
        chat.line(f"my token is {secret}")
        chat.expect("the answer")
        chat.expect("› ")
        chat.line("/quit")
        assert chat.ends() == 0
    kept = (daemon.home / "chat_history").read_text()
    assert "my token is" in kept
    assert secret not in kept
    assert PLACEHOLDER.search(kept)


def test_a_defect_is_named_and_recorded_not_shown_as_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "daemon.json").write_text('{"pid": 1, "url": "http://127.0.0.1:99999999"}')
    done = palyra(tmp_path, "status")
    assert "Traceback" not in done.stderr
    assert done.returncode in (1, 5, 7)
