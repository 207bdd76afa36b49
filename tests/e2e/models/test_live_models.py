"""Providers, keys and models that change while the daemon runs: no restart, and no run that notices
in the middle.
"""

import asyncio
from pathlib import Path

import pytest

from palyra.core.errors import ConfigInvalid, InvalidInput
from palyra.core.ids import OWNER
from palyra.features.vault.rules import NewSecret
from palyra.serve.wiring import daemon as wiring_daemon
from palyra.serve.wiring.daemon import Daemon
from tests.fake_provider import Answer, FakeProvider, Script, openai_chat
from tests.faults import eventually, in_daemon
from tests.inprocess import body, entries, finished, say, session


def says(text: str) -> Answer:
    return Answer(openai_chat(Script(text=(text,))))


def local(url: str, *, name: str = "local", models: str = '"m1"', more: str = "") -> str:
    return (
        f'[providers.{name}]\nkind = "openai-chat"\nbase_url = "{url}"\nmodels = [{models}]\n{more}'
    )


async def rewrite(d: Daemon, text: str, env: dict[str, str] | None = None) -> tuple[str, ...]:
    file = d.home / "config.toml"
    kept = file.read_text().partition("[providers.local]")[0]
    file.write_text(kept + text)
    reloaded = await wiring_daemon.reload_config(d, env or {})
    assert reloaded.after_restart == ()
    return reloaded.live


async def answer(d: Daemon, model: str) -> str:
    run = await say(d, await session(d), "go", model=model)
    return str(body(await finished(d, run)).get("text", ""))


def test_a_run_in_flight_ends_with_the_old_provider_and_the_next_asks_the_new(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        go = asyncio.Event()
        held = openai_chat(Script(text=("from the old",)))
        async with (
            FakeProvider(Answer(held, late=(10, go))) as old,
            FakeProvider(says("from the new")) as new,
        ):
            assert "providers.local.kind" in await rewrite(d, local(old.url))
            where = await session(d)
            first = await say(d, where, "go", model="local/m1")
            await eventually(lambda: old.requests, "the old one is asked")
            assert await rewrite(d, local(new.url)) == ("providers.local.base_url",)
            go.set()
            assert body(await finished(d, first))["text"] == "from the old"
            second = await say(d, where, "go", model="local/m1")
            assert body(await finished(d, second))["text"] == "from the new"
            assert (len(old.requests), len(new.requests)) == (1, 1)

    in_daemon(tmp_path, [], scenario)


def test_a_run_outlives_the_removal_of_its_provider_and_nobody_else_can_ask_it(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        call = openai_chat(Script(calls=(("c1", "fs_list", ('{"path": "."}',)),)))
        go = asyncio.Event()
        answers = [Answer(call, late=(10, go)), says("done")]
        async with FakeProvider(answers) as provider:
            await rewrite(d, local(provider.url))
            run = await say(d, await session(d), "go", model="local/m1")
            await eventually(lambda: provider.requests, "it is asked")
            await rewrite(d, "")
            go.set()
            assert body(await finished(d, run))["text"] == "done"
            with pytest.raises(InvalidInput):
                await say(d, await session(d), "go", model="local/m1")

    in_daemon(tmp_path, [], scenario)


def test_a_new_key_is_sent_with_the_next_request(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        key = tmp_path / "key"
        key.write_text("first-key-1234")
        async with FakeProvider(says("hi")) as provider:
            settings = local(provider.url, more=f'api_key = "file:{key}"\n')
            await rewrite(d, settings)
            await answer(d, "m1")
            key.write_text("second-key-5678")
            assert await rewrite(d, settings) == ()
            await answer(d, "m1")
            sent = [each.headers["authorization"] for each in provider.requests]
            assert sent == ["Bearer first-key-1234", "Bearer second-key-5678"]

    in_daemon(tmp_path, [], scenario)


@pytest.mark.parametrize(
    "wrong",
    [
        'api_key = "env:NOT_SET_ANYWHERE"\n',
        '[models]\nsummary = "nobody/m"\n',
        '[routing.r]\nuse = ["nobody/m"]\n',
    ],
)
def test_what_would_not_open_changes_nothing(tmp_path: Path, wrong: str) -> None:
    async def scenario(d: Daemon) -> None:
        file = d.home / "config.toml"
        async with FakeProvider(says("still here")) as provider:
            await rewrite(d, local(provider.url))
            good = file.read_text()
            if wrong.startswith("[models]"):
                text = good.replace('summary = ""', 'summary = "nobody/m"')
            else:
                text = good.replace('"m1"', '"m2"') + wrong
            file.write_text(text)
            with pytest.raises(ConfigInvalid):
                await wiring_daemon.reload_config(d, {})
            assert await answer(d, "local/m1") == "still here"
            assert "local/m1" in [each.name for each in d.models.targets]

    in_daemon(tmp_path, [], scenario)


def test_a_bare_name_is_enough_where_one_model_has_it_and_an_ambiguous_one_lists_them(
    tmp_path: Path,
) -> None:
    async def scenario(d: Daemon) -> None:
        async with FakeProvider(says("hi")) as provider:
            both = local(provider.url, models='"qwen3:8b", "same"')
            both += local(provider.url, name="other", models='"maker/large", "same"')
            await rewrite(d, both)
            for bare, full in (
                ("qwen3:8b", "local/qwen3:8b"),
                ("qwen3", "local/qwen3:8b"),
                ("large", "other/maker/large"),
                ("local", "local/qwen3:8b"),
            ):
                assert d.models.find(bare).name == full
            with pytest.raises(InvalidInput) as refused:
                d.models.find("same")
            assert refused.value.details["candidates"] == ["local/same", "other/same"]
            where = await session(d)
            await finished(d, await say(d, where, "go", model="large"))
            planned = [e for e in await entries(d, where.session_id) if e.kind == "route.planned"]
            assert body(planned[0])["model"] == "maker/large"

    in_daemon(tmp_path, [], scenario)


def test_a_key_that_is_rotated_in_the_vault_is_sent_with_the_next_request(tmp_path: Path) -> None:
    async def scenario(d: Daemon) -> None:
        async with FakeProvider(says("hi")) as provider:
            await d.vault.put(
                OWNER, NewSecret(name="k", value="first-key-1234", tools=("model:local",))
            )
            await rewrite(d, local(provider.url, more='api_key = "vault:k"\n'))
            await answer(d, "m1")
            await d.vault.rotate(OWNER, "global", "k", "second-key-5678")
            await answer(d, "m1")
            sent = [each.headers["authorization"] for each in provider.requests]
            assert sent == ["Bearer first-key-1234", "Bearer second-key-5678"]

    in_daemon(tmp_path, [], scenario)
