"""The configuration: strict, complete in its complaints, honest about where every value comes
from.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from palyra.core.errors import ConfigInvalid
from palyra.serve import config
from palyra.serve.config import Config, Provider, schema
from palyra.serve.config.sections import ApprovalsSection, ModelsSection, ServerSection, Timeouts

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "config.md"


def write(home: Path, text: str) -> Path:
    home.chmod(0o700)
    path = home / "config.toml"
    path.write_text(text)
    return path


def problems(
    home: Path, text: str, env: dict[str, str] | None = None
) -> list[tuple[str, int | None, str]]:
    write(home, text)
    return [
        (each.key or each.where, each.line, each.suggestion)
        for each in config.check(home, env or {})
    ]


def test_without_a_file_everything_has_its_default_and_nothing_is_created(tmp_path: Path) -> None:
    home = tmp_path / "none"
    loaded = config.load(home, {})
    assert (loaded.config, loaded.notes, loaded.sources) == (Config(), (), {})
    assert not home.exists()


def test_a_full_file_loads(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        [server]
        http_port = 8000
        allowed_origins = ["https://example.org"]

        [models]
        default = "local/qwen3"
        fallbacks = ["demo"]

        [providers.local]
        kind = "openai-chat"
        base_url = "http://127.0.0.1:8080/v1"
        models = ["qwen3"]

        [approvals.timeout_ms]
        interactive = 60000
        api = "never"
        """,
    )
    assert config.load(tmp_path, {}).config == Config(
        server=ServerSection(http_port=8000, allowed_origins=("https://example.org",)),
        models=ModelsSection(default="local/qwen3", fallbacks=("demo",)),
        providers={
            "local": Provider(
                kind="openai-chat", base_url="http://127.0.0.1:8080/v1", models=("qwen3",)
            )
        },
        approvals=ApprovalsSection(timeout_ms=Timeouts(interactive=60_000, api="never")),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[servr]\nhost = 'x'", [("servr", 1, "server")]),
        ("[server]\nhttp_prot = 1", [("server.http_prot", 2, "server.http_port")]),
        ("http_port = 1", [("http_port", 1, "server.http_port")]),
        ("[server]\nhttp_port = 'x'", [("server.http_port", 2, "")]),
        ("[server]\nhttp_port = 65536", [("server.http_port", 2, "")]),
        ("[server]\nhttp_port = true", [("server.http_port", 2, "")]),
        ("[server]\nhttp_port = {a = 1}", [("server.http_port", 2, "")]),
        ("server = 1", [("server", 1, "")]),
        ("[[server]]\nhttp_port = 1", [("server", 1, "")]),
        ("[server]\nallowed_hosts = ['https://x']", [("server.allowed_hosts", 2, "")]),
        ("[server]\nallowed_origins = ['x']", [("server.allowed_origins", 2, "")]),
        ("[policy]\npreset = 'codign'", [("policy.preset", 2, '"coding"')]),
        (
            "[approvals.timeout_ms]\ninteractiv = 1",
            [("approvals.timeout_ms.interactiv", 2, "approvals.timeout_ms.interactive")],
        ),
        ("[approvals.timeout_ms]\napi = 'nevr'", [("approvals.timeout_ms.api", 2, "")]),
        ("[budgets]\nturns = 0", [("budgets.turns", 2, "")]),
        ("[providers.x]", [("providers.x.kind", 1, "")]),
        ("[providers.x]\nbase_url = 'https://x'", [("providers.x.kind", 1, "")]),
        ("[providers.x]\nkind = 'openai'", [("providers.x.kind", 2, '"openai-chat"')]),
        ("[providers]\nx = 1", [("providers.x", 2, "")]),
        ("[providers.Big]\nkind = 'demo'", [("providers.Big", 1, "")]),
        ("[providers.x]\nkind = 'scripted'", [("providers.x.script", 1, "")]),
        ("[providers.x]\nkind = 'demo'\nscript = 'y'", [("providers.x.script", 3, "")]),
        (
            "[providers.x]\nkind = 'anthropic'\nbase_url = 'ftp://x'",
            [("providers.x.base_url", 3, "")],
        ),
        (
            "[providers.x]\nkind = 'anthropic'\nbase_url = 'https://me:pw@x'",
            [("providers.x.base_url", 3, "")],
        ),
        ("[models]\ndefault = 'opnai/x'", [("models.default", 2, "openai")]),
        ("[models]\nfallbacks = ['nowhere']", [("models.fallbacks", 2, "")]),
        ("[log]\n# why\nlevel = 'inof' # here", [("log.level", 3, '"info"')]),
    ],
)
def test_a_wrong_key_or_value_is_named_with_its_line_and_the_nearest_right_name(
    tmp_path: Path, text: str, expected: list[tuple[str, int, str]]
) -> None:
    assert problems(tmp_path, text) == expected


def test_text_that_is_not_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "[server]\nhttp_port = \n")
    (problem,) = config.check(tmp_path, {})
    assert (problem.where, problem.line) == (str(path), 2)


def test_all_problems_are_reported_at_once_with_file_and_key(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "[server]\nhttp_prot = 1\n[log]\nlevel = 3\n[providers.x]\nkind = 'scripted'\n[server.port]\n",
    )
    with pytest.raises(ConfigInvalid) as caught:
        config.load(tmp_path, {"PALYRA_SERVER__HTTP_PROT": "1"})
    message = caught.value.message
    for part in (
        f"{path}, line 2: server.http_prot: there is no such setting; did you mean server.http_port?",
        f"{path}, line 4: log.level: must be",
        f"{path}, line 7: server.port: there is no such setting; did you mean server.http_port?",
        f"{path}, line 5: providers.x.script: is missing",
        "PALYRA_SERVER__HTTP_PROT: there is no such setting; did you mean PALYRA_SERVER__HTTP_PORT?",
    ):
        assert part in message
    assert len(caught.value.details["problems"]) == 5


@pytest.mark.parametrize(
    "key", ["sk-abcdefghijklmnop", "env:", "env:NOT A NAME", "file:relative", "vault:a b", "env"]
)
def test_a_key_in_the_file_is_refused_and_never_repeated(tmp_path: Path, key: str) -> None:
    write(tmp_path, f"[providers.x]\nkind = 'anthropic'\napi_key = '{key}'\n")
    with pytest.raises(ConfigInvalid, match="env:NAME") as caught:
        config.load(tmp_path, {})
    if key.startswith("sk-"):
        assert key not in caught.value.message
        assert key not in str(caught.value.details)


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("PALYRA_SERVER__HTTP_PORT", "8000", "server.http_port", 8000),
        ("PALYRA_REHEARSAL__TOOLS", "true", "rehearsal.tools", True),
        (
            "PALYRA_MODELS__FALLBACKS",
            "demo, openai/gpt",
            "models.fallbacks",
            ("demo", "openai/gpt"),
        ),
        ("PALYRA_MODELS__FALLBACKS", '["demo"]', "models.fallbacks", ("demo",)),
        ("PALYRA_MODELS__FALLBACKS", "", "models.fallbacks", ()),
        (
            "PALYRA_APPROVALS__TIMEOUT_MS__INTERACTIVE",
            "never",
            "approvals.timeout_ms.interactive",
            "never",
        ),
        ("PALYRA_APPROVALS__TIMEOUT_MS__SCHEDULED", "5000", "approvals.timeout_ms.scheduled", 5000),
        ("PALYRA_PROVIDERS__MY_LOCAL__TIMEOUT_MS", "5000", "providers.my-local.timeout_ms", 5000),
        ("PALYRA_PROVIDERS__NEW__KIND", "demo", "providers.new.kind", "demo"),
    ],
)
def test_a_variable_overrides_the_file(
    tmp_path: Path, variable: str, text: str, key: str, value: Any
) -> None:
    write(
        tmp_path,
        "[server]\nhttp_port = 1\n[providers.my-local]\nkind = 'demo'\ntimeout_ms = 9000\n",
    )
    shown = {
        each.key: (each.value, each.source)
        for each in config.show(config.load(tmp_path, {variable: text}))
    }
    assert shown[key] == (value, variable)


@pytest.mark.parametrize(
    ("variable", "text", "suggestion"),
    [
        ("PALYRA_SERVER__HTTP_PROT", "1", "PALYRA_SERVER__HTTP_PORT"),
        ("PALYRA_HOEM", "/x", "PALYRA_HOME"),
        ("PALYRA_SERVER_HTTP_PORT", "1", "PALYRA_SERVER__HTTP_PORT"),
        ("PALYRA_XYZZY", "1", ""),
        ("PALYRA_", "1", ""),
        ("PALYRA_SERVER__HTTP_PORT", "x", ""),
        ("PALYRA_SERVER__HTTP_PORT", "70000", ""),
        ("PALYRA_LOG__LEVEL", "inof", '"info"'),
        ("PALYRA_MODELS__FALLBACKS", "[1]", ""),
        ("PALYRA_MODELS__FALLBACKS", "[", ""),
        ("PALYRA_MODELS__DEFAULT", "opnai/x", "openai"),
        ("PALYRA_PROVIDERS__X__API_KEY", "sk-secret", ""),
    ],
)
def test_a_wrong_variable_is_an_error_that_names_it(
    tmp_path: Path, variable: str, text: str, suggestion: str
) -> None:
    found = config.check(tmp_path, {variable: text})
    assert [(each.where, each.suggestion) for each in found if each.where == variable] == [
        (variable, suggestion)
    ]
    assert all("sk-secret" not in str(each) for each in found)


def test_the_special_variables_are_not_settings(tmp_path: Path) -> None:
    names = (
        "PALYRA_HOME",
        "PALYRA_MATERIAL",
        "PALYRA_TOKEN",
        "PALYRA_URL",
        "PATH",
        "_PALYRA_COMPLETE",
    )
    special = dict.fromkeys(names, "x")
    assert config.load(tmp_path, special).config == Config()


def test_every_value_knows_its_source(tmp_path: Path) -> None:
    path = write(
        tmp_path, "[server]\n\nhttp_port = 1\n[providers.x]\nkind='anthropic'\napi_key = 'env:KEY'"
    )
    loaded = config.load(tmp_path, {"PALYRA_LOG__LEVEL": "debug", "KEY": "sk-secret"})
    shown = {each.key: (each.value, each.source) for each in config.show(loaded)}
    assert shown["server.http_port"] == (1, f"{path}, line 3")
    assert shown["log.level"] == ("debug", "PALYRA_LOG__LEVEL")
    assert shown["server.host"] == ("127.0.0.1", "default")
    assert shown["providers.x.api_key"] == ("env:KEY", f"{path}, line 6")
    assert "sk-secret" not in str(shown)
    # Every setting is shown, once.
    of_a_provider = sum(each.path[:2] == ("providers", "NAME") for each in schema.settings())
    others = sum("NAME" not in each.path for each in schema.settings())
    assert len(shown) == others + of_a_provider


@pytest.mark.parametrize(
    ("argument", "env", "expected"),
    [
        ("/a/b", {"PALYRA_HOME": "/c", "HOME": "/h"}, "/a/b"),
        (None, {"PALYRA_HOME": "/c", "HOME": "/h"}, "/c"),
        (None, {"PALYRA_HOME": "~/c", "HOME": "/h"}, "/h/c"),
        (None, {"PALYRA_HOME": "", "HOME": "/h"}, "/h/.palyra"),
        ("", {"HOME": "/h"}, "/h/.palyra"),
    ],
)
def test_home_is_the_argument_then_the_variable_then_the_default(
    argument: str | None, env: dict[str, str], expected: str
) -> None:
    assert config.home_folder(argument, env) == Path(expected)


def test_a_relative_home_is_made_absolute() -> None:
    assert config.home_folder("state", {}) == Path.cwd() / "state"


def test_a_reference_leads_to_its_secret(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("from-file\n")
    assert config.secret("env:KEY", {"KEY": "from-env"}) == "from-env"
    assert config.secret(f"file:{key}", {}) == "from-file"


@pytest.mark.parametrize("reference", ["env:MISSING", "file:/nowhere/at/all"])
def test_a_reference_that_leads_nowhere_is_refused_by_name(reference: str) -> None:
    with pytest.raises(ConfigInvalid, match=reference.partition(":")[2]):
        config.secret(reference, {})


def test_notes_warn_of_what_will_not_work_or_is_not_safe(tmp_path: Path) -> None:
    write(
        tmp_path,
        "[providers.a]\nkind='anthropic'\napi_key='env:NOT_SET'\nbase_url='http://example.org'\n"
        "[providers.b]\nkind='anthropic'\napi_key='file:/nowhere/key'\nbase_url='http://127.0.0.1:1'",
    )
    tmp_path.chmod(0o755)
    notes = config.load(tmp_path, {}).notes
    assert [
        next(
            word for word in ("NOT_SET", "plain http", "/nowhere/key", "chmod 700") if word in note
        )
        for note in notes
    ] == [
        "NOT_SET",
        "plain http",
        "/nowhere/key",
        "chmod 700",
    ]


def test_the_reference_page_describes_every_setting_as_it_is() -> None:
    text = DOCUMENT.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    expected = [
        f"| `{'.'.join(each.path)}` | {each.accepts} | {_default(each.default)} | {each.description} |"
        for each in schema.settings()
    ]
    assert [row for row in rows if row in expected] == expected
    for name in ("PALYRA_HOME", "PALYRA_MATERIAL", "PALYRA_TOKEN", "PALYRA_URL"):
        assert name in text


def _default(value: Any) -> str:
    from palyra.serve.config import edit

    return "required" if value is None else f"`{edit.literal(value)}`"


def _loaded_by(code: str) -> list[str]:
    names = ("tomllib", "tomlkit", "difflib", "asyncio", "json", "aiohttp")
    env = {**os.environ, "PYTHONPATH": str(Path(config.__file__).parents[2])}
    script = f"import sys\n{code}\nprint(*[m for m in {names!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=30,
        env=env,
        check=True,
    )
    return done.stdout.split()


def test_importing_the_configuration_loads_no_parser_and_no_web_stack() -> None:
    # What is not loaded costs nothing, on every command of the command line.
    assert _loaded_by("import palyra.serve.config") == []


def test_reading_a_good_file_loads_no_editor(tmp_path: Path) -> None:
    write(tmp_path, "[server]\nhttp_port = 1\n")
    shown = f"config.show(config.load(Path({str(tmp_path)!r}), {{}}), with_lines=False)"
    code = f"from pathlib import Path; from palyra.serve import config; {shown}"
    assert _loaded_by(code) == ["tomllib"]
