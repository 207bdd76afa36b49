"""Which model is used when the file says so, when something is found, and when there is nothing."""

import pytest

from palyra.core.errors import ConfigInvalid
from palyra.serve.config import Config, Detected, Provider, choose, detect
from palyra.serve.config.sections import ModelsSection

OPENAI = {"OPENAI_API_KEY": "sk-1"}
ANTHROPIC = {"ANTHROPIC_API_KEY": "sk-2"}
LOCAL = Provider(kind="openai-chat", base_url="http://127.0.0.1:8080/v1", models=("qwen3", "llama"))


@pytest.mark.parametrize(
    ("env", "ollama", "expected"),
    [
        ({}, None, []),
        ({"OPENAI_API_KEY": ""}, None, []),
        (OPENAI, None, ["openai/gpt-5-mini"]),
        (
            OPENAI | ANTHROPIC,
            ["llama3.2", "qwen3"],
            ["openai/gpt-5-mini", "anthropic/claude-sonnet-4-5", "ollama/llama3.2"],
        ),
        ({}, [], [""]),
        (OPENAI | {"OPENAI_BASE_URL": "https://example.org/v1"}, None, [""]),
    ],
)
def test_providers_are_found_by_what_is_on_the_machine(
    env: dict[str, str], ollama: list[str] | None, expected: list[str]
) -> None:
    assert [each.choice for each in detect(env, ollama)] == expected


def test_a_finding_refers_to_its_key_and_does_not_hold_it() -> None:
    assert [each.provider.api_key for each in detect(OPENAI | ANTHROPIC, None)] == [
        "env:OPENAI_API_KEY",
        "env:ANTHROPIC_API_KEY",
    ]


def test_a_key_for_another_endpoint_goes_to_that_endpoint() -> None:
    (found,) = detect(OPENAI | {"OPENAI_BASE_URL": "https://example.org/v1"}, None)
    assert found.provider == Provider(
        kind="openai-chat", base_url="https://example.org/v1", api_key="env:OPENAI_API_KEY"
    )


@pytest.mark.parametrize(
    ("config", "detected", "default", "notes"),
    [
        (
            Config(),
            detect(OPENAI, None),
            "openai/gpt-5-mini",
            ["found OPENAI_API_KEY: using openai/gpt-5-mini"],
        ),
        (
            Config(),
            detect(OPENAI | ANTHROPIC, None),
            "openai/gpt-5-mini",
            [
                "found OPENAI_API_KEY: using openai/gpt-5-mini",
                "found ANTHROPIC_API_KEY: anthropic/claude-sonnet-4-5 can be used too",
            ],
        ),
        (
            Config(),
            detect({}, ["llama3.2"]),
            "ollama/llama3.2",
            ["found a local Ollama: using ollama/llama3.2"],
        ),
        (
            Config(models=ModelsSection(default="anthropic")),
            detect(OPENAI | ANTHROPIC, None),
            "anthropic/claude-sonnet-4-5",
            [],
        ),
        (
            Config(models=ModelsSection(default="openai/o3/x")),
            detect(OPENAI, None),
            "openai/o3/x",
            [],
        ),
        (Config(models=ModelsSection(default="demo")), detect(OPENAI, None), "demo/demo-1", []),
        (Config(providers={"openai": LOCAL}), detect(OPENAI, None), "openai/qwen3", []),
        (
            Config(providers={"local": LOCAL}),
            detect(OPENAI, None),
            "local/qwen3",
            ["found OPENAI_API_KEY: openai/gpt-5-mini can be used too"],
        ),
    ],
)
def test_the_file_decides_then_what_is_found_and_the_user_is_told(
    config: Config, detected: list[Detected], default: str, notes: list[str]
) -> None:
    chosen = choose(config, detected)
    assert (chosen.default, list(chosen.notes)) == (default, notes)


@pytest.mark.parametrize(
    "detected",
    [[], detect({}, []), detect(OPENAI | {"OPENAI_BASE_URL": "https://example.org"}, None)],
)
def test_with_nothing_that_can_be_chosen_the_demo_model_is_used_and_says_how_to_change_that(
    detected: list[Detected],
) -> None:
    chosen = choose(Config(), detected)
    assert chosen.default == "demo/demo-1"
    assert "OPENAI_API_KEY" in chosen.notes[-1]
    assert len(chosen.notes) == len(detected) + 1


def test_a_section_wins_over_a_finding_of_the_same_name() -> None:
    chosen = choose(Config(providers={"openai": LOCAL}), detect(OPENAI | ANTHROPIC, None))
    assert chosen.providers["openai"] == LOCAL
    assert list(chosen.providers) == ["demo", "anthropic", "openai"]


@pytest.mark.parametrize(
    ("default", "hint"),
    [("openai/gpt-5", "OPENAI_API_KEY"), ("ollama", "start Ollama"), ("bare", "bare/MODEL")],
)
def test_a_default_that_cannot_be_used_is_refused_with_what_to_do(default: str, hint: str) -> None:
    config = Config(
        models=ModelsSection(default=default), providers={"bare": Provider(kind="openai-chat")}
    )
    with pytest.raises(ConfigInvalid, match=hint):
        choose(config, [])


def test_a_fallback_that_is_not_there_is_left_out_and_said() -> None:
    chosen = choose(
        Config(models=ModelsSection(default="demo", fallbacks=("anthropic", "local"))), []
    )
    assert chosen.fallbacks == ()
    assert len(chosen.notes) == 2
    chosen = choose(
        Config(models=ModelsSection(fallbacks=("local/llama", "demo")), providers={"local": LOCAL}),
        [],
    )
    assert chosen.fallbacks == ("local/llama", "demo/demo-1")
