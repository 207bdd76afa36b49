"""`palyra doctor`: look at everything and say what is wrong, with a fix for each. Asks a model only with --online."""

import asyncio
from collections.abc import Callable, Iterator

import click

from palyra import config
from palyra.cli import exits, words
from palyra.cli.checks import CHECKS, Finding
from palyra.cli.commands import command
from palyra.cli.safe_text import clean
from palyra.cli.state import State
from palyra.domain.errors import PalyraError

_MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "problem": ("✗", "red")}
_ONLINE_S = 30


@command("doctor", help="Look for problems, with a fix for each. Exit code 1 if there is one.")
@click.option("--online", is_flag=True, help="Also send one tiny request to each model provider; this may cost a little.")
def doctor(state: State, online: bool) -> int:
    findings: list[Finding] = []
    for look in (*CHECKS, *((providers_answer,) if online else ())):
        for finding in _looked(state, look):
            findings.append(finding)
            if not state.out.as_json:
                _tell(state, finding)
    bad = sum(each.state == "problem" for each in findings)
    if state.out.as_json:
        state.out.json({"ok": not bad, "findings": findings})
    else:
        state.out.line(f"{bad} problem{'' if bad == 1 else 's'}" if bad else "no problems")
    return exits.FAILED if bad else exits.OK


def _looked(state: State, look: Callable[[State], Iterator[Finding]]) -> Iterator[Finding]:
    """What a check finds; that it cannot look is a finding too."""
    name = look.__name__.replace("_", " ")
    fix = "check who may read it, or name another home folder with --home or PALYRA_HOME"
    try:
        yield from look(state)
    except OSError as error:
        detail = f"{error.filename or 'a file'}: {(error.strerror or str(error)).lower()}"
        yield Finding(name=name, state="problem", detail=detail, fix=fix)
    except PalyraError as error:
        yield Finding(name=name, state="problem", detail=error.message, fix=fix)


def _tell(state: State, finding: Finding) -> None:
    mark, color = _MARKS[finding.state]
    state.out.line(f"{state.out.style(mark, color)} {finding.name}: {clean(finding.detail)}")
    if finding.fix:
        state.out.line(state.out.style(f"    {clean(finding.fix)}", "dim"))


def providers_answer(state: State) -> Iterator[Finding]:
    """Ask each provider's first model for one word, as the daemon would."""
    if config.check(state.home, state.env):
        return
    chosen = config.choose(config.load(state.home, state.env).config, config.detect(state.env, None))
    for name, settings in chosen.providers.items():
        if settings.kind in ("demo", "scripted"):
            continue
        if not settings.models:
            yield Finding(
                name=f"provider {name}", state="warning", detail="lists no models, so none was asked", fix="name one in its section"
            )
            continue
        yield asyncio.run(_answers(name, settings, state.env))


async def _answers(name: str, settings: config.Provider, env: dict[str, str]) -> Finding:
    import time

    from palyra.domain.errors import ConfigInvalid
    from palyra.domain.messages import ModelFailure, ModelRequest, Text, UserMessage
    from palyra.models.dialects import open_provider
    from palyra.models.http import Endpoint, HttpClient

    shown = f"provider {name}"
    request = ModelRequest(
        model=settings.models[0],
        instructions="Answer with one word.",
        messages=(UserMessage((Text("Say: ready"),)),),
        max_output_tokens=64,
    )
    client = HttpClient()
    began = time.monotonic()
    try:
        key = config.secret(settings.api_key, env) if settings.api_key else ""
        assert settings.kind != "demo"
        assert settings.kind != "scripted"
        provider = open_provider(settings.kind, Endpoint(name=name, base_url=settings.base_url, api_key=key), client)
        async with asyncio.timeout(_ONLINE_S):
            await provider.stream(request, lambda channel, text: None)
    except ConfigInvalid as error:
        return Finding(name=shown, state="problem", detail=error.message, fix="set the key, or remove the provider")
    except ModelFailure as failure:
        fix = {"auth": "check its key", "network": "check base_url and the network", "quota": "check the account"}
        return Finding(
            name=shown, state="problem", detail=str(failure), fix=fix.get(failure.failure, "see the provider's status page")
        )
    except TimeoutError:
        return Finding(name=shown, state="problem", detail=f"no answer in {_ONLINE_S} s", fix="check the network, or base_url")
    finally:
        await client.close()
    return Finding(
        name=shown, state="ok", detail=f"{settings.models[0]} answered in {words.duration(int((time.monotonic() - began) * 1000))}"
    )
