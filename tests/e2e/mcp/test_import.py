"""`palyra mcp import`: what other programs' settings say becomes ours, secrets go into the vault, and
nothing is lost in silence.
"""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import InvalidInput
from palyra.features.mcp import client_files
from palyra.features.mcp.client_files import Filling
from tests.daemon import start
from tests.e2e.mcp.test_packages import palyra

CANARY = "ghp_Zq8vR2mN5tX1wK7yB4cD9fG3hJ6lP0sA2eU4"


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def rows(answer: Any) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in answer["servers"]}


CLAUDE = {
    "globalShortcut": "Ctrl+Space",
    "mcpServers": {
        "My Files": {
            "command": sys.executable,
            "args": ["-m", "http.server"],
            "autoApprove": ["x"],
        },
        "github": {"command": sys.executable, "env": {"GITHUB_TOKEN": CANARY, "TZ": "UTC"}},
        "far": {
            "type": "http",
            "url": "https://example.org/mcp",
            "headers": {"Authorization": f"Bearer {CANARY}", "X-Plain": "yes"},
        },
        "old": {"type": "sse", "url": "https://example.org/sse"},
        "boxed": {"command": "docker", "args": ["run", "x"]},
        "telling": {"command": sys.executable, "args": [f"--token={CANARY}"]},
        "off": {"command": sys.executable, "args": ["x"], "disabled": True},
        "both": {"command": "a", "url": "https://example.org"},
        "absent": {"command": "no-such-program-here"},
        "wrong": 7,
    },
}


def test_servers_are_shown_then_added_once_with_their_secrets_in_the_vault(tmp_path: Path) -> None:
    file = written(tmp_path / "claude_desktop_config.json", CLAUDE)
    with start(tmp_path) as daemon:
        home = daemon.home
        shown = palyra(home, {}, "mcp", "import", str(file))
        assert CANARY not in json.dumps(shown)
        fates = {name: each["fate"] for name, each in rows(shown).items()}
        assert fates == {
            "my-files": "new",
            "github": "new",
            "far": "new",
            "old": "refused",
            "boxed": "refused",
            "telling": "refused",
            "off": "new",
            "both": "refused",
            "absent": "new",
            "wrong": "refused",
        }
        assert rows(shown)["github"]["secrets"] == ["MCP_GITHUB_GITHUB_TOKEN"]
        assert rows(shown)["my-files"]["unknown"] == ["autoApprove"]
        assert shown["unknown"] == [f"{file}: globalShortcut"]
        assert "mcp" not in tomllib.loads((home / "config.toml").read_text())

        done = rows(palyra(home, {}, "mcp", "import", str(file), "--yes"))
        assert {name for name, each in done.items() if each["fate"] == "added"} == {
            "my-files",
            "github",
            "far",
            "off",
        }
        # One that cannot be added keeps none of the others from it.
        assert "no-such-program-here" in done["absent"]["why"]
        config = (home / "config.toml").read_text()
        assert CANARY not in config
        tables = tomllib.loads(config)["mcp"]
        assert tables["github"]["env"] == ["GITHUB_TOKEN=vault:MCP_GITHUB_GITHUB_TOKEN", "TZ=UTC"]
        assert tables["far"]["headers"] == [
            "Authorization: Bearer vault:MCP_FAR_AUTHORIZATION",
            "X-Plain: yes",
        ]
        assert tables["off"]["enabled"] is False
        secrets = {each["name"]: each for each in daemon.get("/v1/vault")["secrets"]}
        assert secrets["MCP_FAR_AUTHORIZATION"]["tools"] == ["mcp:far"]

        # A second time changes nothing; what was changed meanwhile stays as it is.
        palyra(home, {}, "config", "set", "mcp.far.url", "https://example.org/other")
        before = (home / "config.toml").read_text()
        again = rows(palyra(home, {}, "mcp", "import", str(file), "--yes"))
        assert (again["github"]["fate"], again["far"]["fate"]) == ("same", "different")
        assert (home / "config.toml").read_text() == before


VSCODE = """{
  // What the editor asks for.
  "inputs": [
    {"type": "promptString", "id": "key", "description": "The key", "password": true},
    {"type": "promptString", "id": "zone", "description": "A zone", "default": "UTC"},
  ],
  "servers": {
    "one": {
      "type": "stdio", "command": "PYTHON",
      "args": ["${workspaceFolder}/server.py", "--zone", "${input:zone}"],
      "env": {"API_KEY": "${input:key}", "HOME_OF": "${userHome}", "TOKEN": "${env:OUTER}"},
      "envFile": "${workspaceFolder}/.env" /* not read */
    },
    "two": {"command": "PYTHON", "args": ["${command:pick}"]},
  },
}"""


def test_inputs_and_variables_are_filled_in(tmp_path: Path) -> None:
    project = tmp_path / "project"
    file = written(project / ".vscode" / "mcp.json", VSCODE.replace("PYTHON", sys.executable))
    with start(tmp_path) as daemon:
        home = daemon.home
        shown = rows(palyra(home, {}, "mcp", "import", str(file)))
        assert shown["one"]["asks"] == ["zone", "key"]
        assert shown["one"]["unknown"] == ["envFile"]
        assert "command:pick" in shown["two"]["why"]
        failed = rows(palyra(home, {}, "mcp", "import", str(file), "--yes"))
        assert "--input key=VALUE" in failed["one"]["why"]
        palyra(home, {}, "mcp", "import", str(file), "--yes", "--input", f"key={CANARY}")
        config = (home / "config.toml").read_text()
        assert CANARY not in config
        table = tomllib.loads(config)["mcp"]["one"]
        assert table["args"] == [f"{project}/server.py", "--zone", "UTC"]
        assert table["env"] == [
            "API_KEY=vault:MCP_ONE_API_KEY",
            f"HOME_OF={Path.home()}",
            "TOKEN=env:OUTER",
        ]


def test_the_usual_places_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, person = tmp_path / "project", tmp_path / "person"
    person.mkdir()
    one = {"command": sys.executable, "args": ["x"]}
    written(project / ".mcp.json", {"mcpServers": {"one": one}})
    written(project / ".cursor" / "mcp.json", {"mcpServers": {"one": one, "two": one}})
    written(
        person / ".cursor" / "mcp.json", {"mcpServers": {"two": {"url": "https://example.org"}}}
    )
    written(person / ".claude.json", {"much": "else"})
    monkeypatch.chdir(project)
    env = {"HOME": str(person)}
    shown = palyra(tmp_path / "home", env, "mcp", "import")
    assert [(each["name"], each["fate"]) for each in shown["servers"]] == [
        ("one", "new"),
        ("two", "new"),
        ("two", "refused"),
    ]
    assert palyra(tmp_path / "home", env, "mcp", "import", "absent.json", code=2)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"mcpServers": []}', "[" * 100_000, "\xff{"])
def test_a_file_that_is_none_of_these_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput):
        client_files.read(written(tmp_path / "x.json", text))


def test_a_comment_in_a_string_is_none(tmp_path: Path) -> None:
    text = '{"mcpServers": {"a": {"url": "https://example.org//x,]"}}} // the end'
    (server,) = client_files.read(written(tmp_path / "x.json", text)).servers
    assert server.url == "https://example.org//x,]"


def test_a_variable_with_a_default_or_without_a_value() -> None:
    filling = Filling({}, {"SET": "1"}, "/work", "/home/me")
    assert (
        filling.fill("${SET} ${NOT:-two} ${env:SET} ${workspaceFolder}${/}x") == "1 two 1 /work/x"
    )
    with pytest.raises(InvalidInput, match="NOT"):
        filling.fill("${NOT}")
    assert filling.reference("Bearer ${TOKEN}") == "Bearer env:TOKEN"
    assert filling.reference("${TOKEN}x") == ""
