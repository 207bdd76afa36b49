"""`palyra setup` and `palyra models` against servers that answer as the real ones do: nothing is
edited by hand, and nothing needs a restart.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli_terminal import palyra, terminal
from tests.daemon import DaemonProcess, start
from tests.model_servers import host_of, llamacpp, lmstudio, loading, ollama, serving, vllm

SCRIPT = {"*": [{"text": "from the script"}]}
FREE_PORT = {"PALYRA_SERVER__HTTP_PORT": "0"}


def settings(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "config.toml").read_text())


def test_without_a_daemon_a_server_that_is_found_is_set_up_and_nothing_runs_on(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    with serving(ollama(loaded=16_384)) as server:
        env = {"OLLAMA_HOST": host_of(server)}
        done = palyra(home, "setup", "--yes", "--provider", "ollama", "--json", env=env)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert (said["model"], said["tools"], said["context_tokens"]) == (
            "ollama/qwen3:8b",
            True,
            16_384,
        )
        written = settings(home)
        assert written["models"]["default"] == "ollama/qwen3:8b"
        assert written["providers"]["ollama"] == {
            "kind": "openai-chat",
            "base_url": server.url,
            "models": ["qwen3:8b", "llama3.2:latest"],
            "windows": ["qwen3:8b=16384", "llama3.2:latest=8192"],
            "vision": False,
        }
    assert palyra(home, "status").returncode == 5


@pytest.mark.parametrize(
    ("answering", "model", "window"),
    [
        (lmstudio(), "qwen2.5-7b-instruct", 16_384),
        (llamacpp(), "qwen2.5-3b", 12_288),
        (vllm(), "Qwen/Qwen3-4B", 20_480),
    ],
)
def test_a_running_daemon_uses_at_once_what_was_set_up(
    tmp_path: Path, answering: Any, model: str, window: int
) -> None:
    with start(tmp_path, script=SCRIPT) as daemon, serving(answering) as server:
        done = palyra(
            daemon.home, "setup", "--yes", "--provider", "mine", "--url", server.url, env={}
        )
        assert done.returncode == 0, done.stderr
        assert "called the tool" in done.stdout
        assert f"mine/{model} is used from now on" in done.stdout
        (now, *_) = daemon.get("/v1/models")["models"]
        assert (now["name"], now["context_tokens"]) == (f"mine/{model}", window)
        asked = palyra(daemon.home, "ask", "hello", cwd=daemon.workspace, stdin="")
        assert asked.stdout.strip() == "Hello from the server.", asked.stderr


def test_a_server_that_is_still_loading_its_model_is_waited_for(tmp_path: Path) -> None:
    # Each look asks on four paths.
    with start(tmp_path, script=SCRIPT) as daemon, serving(loading(llamacpp(), 8)) as server:
        done = palyra(daemon.home, "setup", "--yes", "--url", server.url, env={})
        assert done.returncode == 0, done.stderr
        assert f"the model server at {server.url} is loading its model" in done.stderr
        assert "local/qwen2.5-3b is used from now on" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says", "code"),
    [
        (["--url", "http://127.0.0.1:9/v1"], "No model server answers at http://127.0.0.1:9/v1", 3),
        (["--provider", "nobody"], "give its address with --url", 3),
        (["--provider", "openai"], "OPENAI_API_KEY", 2),
        (["--provider", "openai", "--key-env", "NOT_SET"], "NOT_SET is not set here", 2),
    ],
)
def test_what_cannot_be_set_up_says_what_to_do_and_changes_nothing(
    tmp_path: Path, arguments: list[str], says: str, code: int
) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        before = (daemon.home / "config.toml").read_text()
        done = palyra(daemon.home, "setup", "--yes", *arguments, env={})
        assert (done.returncode, says in done.stderr) == (code, True), done.stderr
        assert (daemon.home / "config.toml").read_text() == before


def test_a_server_without_models_and_a_model_that_is_not_there_are_told_apart(
    tmp_path: Path,
) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        with serving(ollama(())) as server:
            done = palyra(daemon.home, "setup", "--yes", "--url", server.url, env={})
            assert (done.returncode, "ollama pull" in done.stderr) == (3, True), done.stderr
        with serving(ollama()) as server:
            done = palyra(
                daemon.home, "setup", "--yes", "--url", server.url, "--model", "no", env={}
            )
            assert (done.returncode, "it has qwen3:8b" in done.stderr) == (3, True), done.stderr


def test_a_model_that_calls_no_tool_is_said_to_and_a_failing_call_writes_nothing(
    tmp_path: Path,
) -> None:
    with start(tmp_path, script=SCRIPT) as daemon:
        with serving(ollama(tools="refuses")) as server:
            done = palyra(daemon.home, "setup", "--yes", "--url", server.url, env={})
            assert (done.returncode, "called no tool" in done.stdout) == (0, True), done.stderr
        before = (daemon.home / "config.toml").read_text()
        broken = ollama()
        with serving(
            lambda request: broken(request) if "chat" not in request.path else _down()
        ) as s:
            again = palyra(daemon.home, "setup", "--yes", "--url", s.url, env={})
            assert (again.returncode, "--no-test" in again.stderr) == (1, True), again.stderr
            assert (daemon.home / "config.toml").read_text() == before


def test_a_local_server_that_passes_over_native_tools_is_given_them_as_text(tmp_path: Path) -> None:
    with start(tmp_path, script=SCRIPT) as daemon, serving(ollama(tools="text")) as server:
        done = palyra(daemon.home, "setup", "--yes", "--url", server.url, env={})
        assert (done.returncode, "called the tool" in done.stdout) == (0, True), done.stderr
        assert "only as text" in done.stdout
        asked = palyra(daemon.home, "ask", "hello", cwd=daemon.workspace)
        assert asked.stdout == "Tools as text.\n"
        assert "as text" in palyra(daemon.home, "models").stdout
        (used,) = [each for each in listed(daemon).values() if each["default"]]
        assert used["tool_mode"] == "text"
        # Remembered, also by the next daemon.
        daemon.stop()
        daemon.restart()
        asked = palyra(daemon.home, "ask", "hello", cwd=daemon.workspace)
        assert asked.stdout == "Tools as text.\n"
        again = palyra(daemon.home, "models", "test")
        assert (again.returncode, "called the tool" in again.stdout) == (0, True), again.stdout


def test_a_small_model_that_calls_only_when_asked_for_an_object_is_given_text(
    tmp_path: Path,
) -> None:
    with start(tmp_path, script=SCRIPT) as daemon, serving(llamacpp(tools="object")) as server:
        done = palyra(daemon.home, "setup", "--yes", "--url", server.url, env={})
        assert (done.returncode, "only as text" in done.stdout) == (0, True), done.stderr
        (used,) = [each for each in listed(daemon).values() if each["default"]]
        assert used["tool_mode"] == "text"


def test_a_model_of_gemini_is_tested_and_changed_as_any_other(tmp_path: Path) -> None:
    config = """[providers.google]
kind = "gemini"
base_url = "http://127.0.0.1:9/v1beta"
api_key = "env:NO_KEY_HERE"
models = ["gemini-2.5-pro"]
"""
    with start(tmp_path, config=config, script=SCRIPT, env={"NO_KEY_HERE": "k"}) as daemon:
        tested = palyra(daemon.home, "models", "test", "gemini-2.5-pro")
        assert tested.returncode == 1
        assert "cannot be reached" in tested.stdout + tested.stderr
        assert palyra(daemon.home, "models", "add", "google/gemini-flash").returncode == 0
        assert "google/gemini-flash" in listed(daemon)


def _down() -> Any:
    from tests.fake_provider import Answer

    return Answer(b'{"error": "out of memory"}', status=500)


def test_a_key_that_only_the_shell_has_goes_into_the_vault_and_never_into_the_file(
    tmp_path: Path,
) -> None:
    key = "sk-from-the-shell-41c0ffee"
    with start(tmp_path, script=SCRIPT) as daemon, serving(vllm()) as server:
        arguments = ("--provider", "gate", "--url", server.url, "--key-env", "GATE_KEY")
        done = palyra(daemon.home, "setup", "--yes", *arguments, env={"GATE_KEY": key})
        assert done.returncode == 0, done.stderr
        assert "the key goes into the vault" in done.stderr
        assert settings(daemon.home)["providers"]["gate"]["api_key"] == "vault:provider-gate"
        assert key not in done.stdout + done.stderr + (daemon.home / "config.toml").read_text()
        palyra(daemon.home, "ask", "hello", cwd=daemon.workspace, stdin="")
        sent = [each for each in server.requests if each.path == "/v1/chat/completions"]
        assert sent[-1].headers["authorization"] == f"Bearer {key}"


def test_a_person_picks_from_lists_and_agrees_to_what_is_written(tmp_path: Path) -> None:
    with start(tmp_path, script=SCRIPT) as daemon, serving(ollama()) as server:
        with terminal(
            daemon.home, "setup", "--url", server.url, "--provider", "den", cwd=daemon.workspace
        ) as person:
            person.expect("1  qwen3:8b · 8,192 tokens · tools")
            person.expect("2  llama3.2:latest")
            person.expect("Model")
            person.line("2")
            person.expect("called the tool")
            person.expect('models.default = "den/llama3.2:latest"')
            person.expect("Write these settings")
            person.line("y")
            person.expect("den/llama3.2:latest is used from now on")
            assert person.ends() == 0
        assert settings(daemon.home)["models"]["default"] == "den/llama3.2:latest"


def test_the_first_start_on_a_terminal_offers_it_once(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    home.mkdir(mode=0o700)
    for offered in (True, False):
        with terminal(home, "up", "--no-open", cwd=work, env=FREE_PORT) as person:
            if offered:
                person.expect("Set a real one up now")
                person.line("n")
            person.expect("/help for commands")
            person.type("\x04")
            assert person.ends() == 0
            assert ("Set a real one up" in person.text) is offered


@pytest.fixture
def two(tmp_path: Path) -> Any:
    with start(tmp_path, script=SCRIPT) as daemon, serving(ollama()) as server:
        done = palyra(
            daemon.home, "setup", "--yes", "--url", server.url, "--provider", "ollama", env={}
        )
        assert done.returncode == 0, done.stderr
        yield daemon


def listed(daemon: DaemonProcess) -> dict[str, Any]:
    done = palyra(daemon.home, "models", "--json")
    assert done.returncode == 0, done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)["models"]}


def test_models_are_listed_tested_added_chosen_and_removed(two: DaemonProcess) -> None:
    found = listed(two)["ollama/qwen3:8b"]
    assert (found["default"], found["tools"], found["vision"], found["context_tokens"]) == (
        True,
        True,
        False,
        8_192,
    )
    assert (found["input_price"], found["healthy"]) == (0, True)
    assert "free" in palyra(two.home, "models").stdout
    tested = palyra(two.home, "models", "test", "llama3.2")
    assert (tested.returncode, "called the tool" in tested.stdout) == (0, True)

    assert palyra(two.home, "models", "add", "ollama/new:1b", "--window", "4096").returncode == 0
    assert listed(two)["ollama/new:1b"]["context_tokens"] == 4_096
    assert palyra(two.home, "models", "default", "new").returncode == 0
    assert listed(two)["ollama/new:1b"]["default"]
    refused = palyra(two.home, "models", "remove", "new", "--yes")
    assert (refused.returncode, "default" in refused.stderr) == (2, True)
    assert palyra(two.home, "models", "default", "qwen3").returncode == 0
    assert palyra(two.home, "models", "remove", "new", "--yes").returncode == 0
    assert "ollama/new:1b" not in listed(two)
    assert palyra(two.home, "models", "remove", "ollama", "--yes").returncode == 0
    assert not [name for name in listed(two) if name.startswith("ollama/")]
    assert "ollama" not in settings(two.home)["providers"]


def test_an_unknown_or_ambiguous_model_is_answered_with_the_candidates(two: DaemonProcess) -> None:
    unknown = palyra(two.home, "models", "test", "nobody")
    assert (unknown.returncode, "ollama/qwen3:8b" in unknown.stderr) == (3, True)
    assert palyra(two.home, "models", "add", "ollama/qwen3:1b").returncode == 0
    ambiguous = palyra(two.home, "models", "default", "qwen3")
    assert ambiguous.returncode == 2
    assert "ollama/qwen3:8b" in ambiguous.stderr
    assert "ollama/qwen3:1b" in ambiguous.stderr
