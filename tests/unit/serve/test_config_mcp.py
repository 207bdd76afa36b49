"""The tables `[mcp.NAME]`: as strict as the rest, no secret in them, and removable without a
trace.
"""

import tomllib
from pathlib import Path

import pytest

from palyra.core.errors import NotFound
from palyra.features.mcp.settings import ServerConfig
from palyra.serve import config
from palyra.serve.config import edit, mcp


def problems(
    home: Path, text: str, env: dict[str, str] | None = None
) -> list[tuple[str, int | None]]:
    home.chmod(0o700)
    (home / "config.toml").write_text(text)
    return [(each.key or each.where, each.line) for each in config.check(home, env or {})]


def test_a_table_becomes_what_the_client_is_told(tmp_path: Path) -> None:
    text = """[mcp.my-git]
command = "/usr/bin/git-server"
args = ["--fast"]
env = ["TZ=UTC", "TOKEN=vault:GH", "EQUALS=a=b"]
folder = "/srv/code"
writable = false
readable = ["/srv/lib"]
hosts = ["api.example.org"]
[mcp.far]
url = "https://example.org/mcp"
headers = ["Authorization: Bearer vault:FAR", "X-Plain: yes"]
trusted = true
"""
    assert problems(tmp_path, text) == []
    given = mcp.servers(config.load(tmp_path, {}).config)
    assert given["my-git"] == ServerConfig(
        name="my-git",
        command="/usr/bin/git-server",
        args=("--fast",),
        env={"TZ": "UTC", "TOKEN": "vault:GH", "EQUALS": "a=b"},
        folder="/srv/code",
        writable=False,
        readable=("/srv/lib",),
        hosts=("api.example.org",),
        tier="C",
    )
    headers = {"Authorization": "Bearer vault:FAR", "X-Plain": "yes"}
    assert given["far"] == ServerConfig(
        name="far", url="https://example.org/mcp", headers=headers, trusted=True, tier="C"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[mcp.x]", [("mcp.x", 1)]),
        ("[mcp.x]\nenabled = true", [("mcp.x", 1)]),
        ("[mcp.x]\ncommand = 'a'\nurl = 'https://x'", [("mcp.x", 1)]),
        ("[mcp.x]\nurl = 'ftp://x'", [("mcp.x.url", 2), ("mcp.x", 1)]),
        ("[mcp.x]\nurl = 'https://me:pw@x'", [("mcp.x.url", 2), ("mcp.x", 1)]),
        ("[mcp.x]\nurl = 'https://x'\nhosts = ['y']", [("mcp.x.hosts", 3)]),
        ("[mcp.x]\ncommand = 'a'\nheaders = ['A: b']", [("mcp.x.headers", 3)]),
        ("[mcp.x]\ncommand = 'a'\nfolder = 'here'", [("mcp.x.folder", 3)]),
        ("[mcp.x]\ncommand = 'a'\nreadable = ['here']", [("mcp.x.readable", 3)]),
        ("[mcp.x]\ncommand = 'a'\nenv = ['NOTHING']", [("mcp.x.env", 3)]),
        ("[mcp.x]\ncommand = 'a'\ntier = 'A'", [("mcp.x.tier", 3)]),
        ("[mcp.x]\ncommand = 'a'\ntimeout_ms = 1", [("mcp.x.timeout_ms", 3)]),
        ("[mcp.x]\ncomand = 'a'", [("mcp.x.comand", 2), ("mcp.x", 1)]),
        ("[mcp.Big]\ncommand = 'a'", [("mcp.Big", 1)]),
        (f"[mcp.{'n' * 33}]\ncommand = 'a'", [(f"mcp.{'n' * 33}", 1)]),
        ("[mcp]\nx = 1", [("mcp.x", 2)]),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, text: str, expected: list[tuple[str, int]]
) -> None:
    assert sorted(problems(tmp_path, text)) == sorted(expected)


@pytest.mark.parametrize(
    "line",
    [
        'env = ["GITHUB_TOKEN=swordfish"]',
        'env = ["API_KEY=swordfish"]',
        'env = ["DB_PASSWORD=swordfish"]',
        'env = ["X_AUTH=swordfish"]',
    ],
)
def test_a_secret_in_the_table_is_refused_and_never_repeated(tmp_path: Path, line: str) -> None:
    assert problems(tmp_path, f'[mcp.x]\ncommand = "a"\n{line}\n') == [("mcp.x.env", 3)]
    (problem,) = config.check(tmp_path, {})
    assert "swordfish" not in str(problem)
    assert "vault:NAME" in str(problem)


def test_names_that_only_sound_secret_are_left_alone(tmp_path: Path) -> None:
    assert (
        problems(tmp_path, '[mcp.x]\ncommand = "a"\nenv = ["GIT_AUTHOR_NAME=Ann", "KEYBOARD=de"]\n')
        == []
    )


def test_variables_override_a_table_also_one_with_a_dash(tmp_path: Path) -> None:
    env = {
        "PALYRA_MCP__MY_GIT__TIMEOUT_MS": "5000",
        "PALYRA_MCP__OTHER__URL": "https://example.org/mcp",
    }
    assert problems(tmp_path, '[mcp.my-git]\ncommand = "a"\n', env) == []
    found = config.load(tmp_path, env).config.mcp
    assert (found["my-git"].timeout_ms, found["other"].url) == (5000, "https://example.org/mcp")


def test_references_that_lead_nowhere_are_worth_a_word(tmp_path: Path) -> None:
    text = '[mcp.x]\ncommand = "a"\nenv = ["TOKEN=env:NOT_SET"]\n[mcp.y]\nurl = "http://example.org"\nheaders = ["X-Key: vault:Y"]\n'
    assert problems(tmp_path, text) == []
    said = " ".join(config.load(tmp_path, {}).notes)
    assert "NOT_SET" in said
    assert "mcp.y sends its secrets over plain http" in said


@pytest.mark.parametrize(
    "text",
    [
        '# mine\n[mcp.x]\ncommand = "a"\nargs = [\n  "b",\n]\n# yours\n[log]\nlevel = "info"\n',
        '[log]\nlevel = "info"\n[mcp]\nx = {command = "a", args = ["b"]}\n',
        'mcp.x.command = "a"\nmcp.x.args = ["b"]\n[log]\nlevel = "info"\n',
        '[log]\nlevel = "info"\n[mcp.x]\ncommand = "a"\n[mcp.y]\ncommand = "c"',
    ],
)
def test_a_table_is_removed_and_nothing_else(text: str) -> None:
    after = edit.remove(text, ("mcp", "x"))
    assert after is not None
    left = tomllib.loads(after)
    assert "x" not in left.get("mcp", {}) or left["mcp"]["x"] == {}
    assert left["log"] == {"level": "info"}
    assert ("y" in left.get("mcp", {})) == ("mcp.y" in text)
    assert ("# yours" in after) == ("# yours" in text)


def test_removing_what_is_not_in_the_file_says_so(tmp_path: Path) -> None:
    problems(tmp_path, '[log]\nlevel = "info"\n')
    with pytest.raises(NotFound):
        config.remove_table(tmp_path, ("mcp", "x"))
