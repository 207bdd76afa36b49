"""`palyra doctor`: look at everything and say what is wrong, with a fix for each. Asks a model only
with --online.

Where a daemon answers it looks itself, because it has its own environment; where none does, the
files are looked at.
"""

import asyncio
from collections.abc import Callable, Iterator

import click
import msgspec

from palyra.cli import exit_codes, formatting
from palyra.cli.commands import command
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.core.errors import PalyraError
from palyra.features.health.doctor import DoctorCheck, Repair, unseen
from palyra.serve import config
from palyra.serve.commands import doctor_checks

_MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red")}
_ONLINE_S = 30
# Every entry of a large journal takes its time.
_PATIENCE_S = 600.0


@command("doctor", help="Look for problems, with a fix for each. Exit code 1 if there is one.")
@click.option(
    "--online",
    is_flag=True,
    help="Also send one tiny request to each model provider; this may cost a little.",
)
@click.option("--repair", is_flag=True, help="Repair what can be repaired without asking.")
@click.option(
    "--crash",
    is_flag=True,
    help="Try instead: kill a daemon with these policies and settings while it works.",
)
@click.option(
    "--kills",
    type=click.IntRange(1, 1_000),
    default=12,
    show_default=True,
    help="How often, for --crash.",
)
@click.option(
    "--attack",
    is_flag=True,
    help="Try instead: let a hostile model run against these policies and settings.",
)
def doctor(
    state: CliState, online: bool, repair: bool, crash: bool, kills: int, attack: bool
) -> int:
    found: list[DoctorCheck] = []
    repairs = _repair(state) if repair else []
    tried = _tried(state, kills=kills if crash else 0, attack=attack)
    for check in tried if crash or attack else _examine(state, online=online):
        found.append(check)
        if not state.out.as_json:
            _tell(state, check)
    bad = sum(each.state == "fail" for each in found)
    if state.out.as_json:
        state.out.json({"ok": not bad, "checks": found, "repairs": repairs})
    else:
        state.out.line(_summary(bad, sum(each.state == "warn" for each in found)))
        if not repair and any(each.repairable and each.state != "ok" for each in found):
            state.out.note("some of this can be repaired: palyra doctor --repair")
    return exit_codes.FAILED if bad else exit_codes.OK


def _summary(problems: int, notes: int) -> str:
    """Return the state in a line: Healthy · 1 note."""
    said = formatting.counted(problems, "problem", "problems") if problems else "Healthy"
    return f"{said} · {formatting.counted(notes, 'note', 'notes')}" if notes else said


def _examine(state: CliState, *, online: bool) -> Iterator[DoctorCheck]:
    outside = list(_looked(state, doctor_checks.daemon))
    yield from outside
    yield from _by_daemon(state) if _answers_us(outside) else _alone(state)
    if online:
        yield from _looked(state, providers_answer)


def _tried(state: CliState, *, kills: int, attack: bool) -> Iterator[DoctorCheck]:
    """Try on a daemon of its own: what is real is left alone."""
    # Here, because nobody else needs it.
    from palyra.serve.trials import attack as attacks
    from palyra.serve.trials import daemon as crash
    from palyra.serve.trials import obeyed, pathological, previews

    if kills:
        yield from crash.trial(
            state.home,
            state.env,
            kills,
            lambda done: state.out.note(f"killed {done} of {kills} times"),
        )
    if attack:
        yield from attacks.trial(state.home, state.env)
        yield from obeyed.trial(state.home, state.env)
        yield from pathological.trial()
        yield from previews.trial(state.home, state.env)


def _answers_us(outside: list[DoctorCheck]) -> bool:
    return outside[0].state == "ok" and outside[0].detail.startswith("runs")


def _by_daemon(state: CliState) -> Iterator[DoctorCheck]:
    try:
        found = state.api.within(_PATIENCE_S).diagnose(deep=True).checks
    except PalyraError as error:
        fix = "ask with the owner's token; what follows was seen from outside"
        yield DoctorCheck(
            id="doctor", title="the daemon's own view", state="warn", detail=error.message, fix=fix
        )
        yield from _alone(state)
        return
    yield from msgspec.convert(found, list[DoctorCheck], from_attributes=True)


def _alone(state: CliState) -> Iterator[DoctorCheck]:
    for look in doctor_checks.ALONE:
        yield from _looked(state, look)


def _looked(
    state: CliState, look: Callable[[CliState], Iterator[DoctorCheck]]
) -> Iterator[DoctorCheck]:
    """Yield what a check finds; that it cannot look is a finding too."""
    try:
        yield from look(state)
    except (OSError, PalyraError) as error:
        yield unseen(look.__name__.replace("_", " "), error)


def _repair(state: CliState) -> list[Repair]:
    outside = list(_looked(state, doctor_checks.daemon))
    if _answers_us(outside):
        done = msgspec.convert(
            state.api.within(_PATIENCE_S).repair().repairs, list[Repair], from_attributes=True
        )
    else:
        done = [
            _mended(state, check)
            for check in list(_alone(state))
            if check.repairable and check.state != "ok"
        ]
    if not state.out.as_json:
        for each in done:
            mark, color = _MARKS["ok" if each.worked else "fail"]
            state.out.line(
                f"{state.out.style(mark, color)} repaired {each.title}: {clean(each.detail)}"
            )
    return done


def _mended(state: CliState, check: DoctorCheck) -> Repair:
    try:
        return Repair(check.id, check.title, True, doctor_checks.mend(state, check))
    except PalyraError as error:
        return Repair(check.id, check.title, False, error.message)
    except OSError as error:
        return Repair(
            check.id, check.title, False, f"{error.filename}: {(error.strerror or '').lower()}"
        )


def _tell(state: CliState, check: DoctorCheck) -> None:
    mark, color = _MARKS[check.state]
    state.out.line(f"{state.out.style(mark, color)} {check.title}: {clean(check.detail)}")
    if check.fix:
        state.out.line(state.out.style(f"    {clean(check.fix)}", "dim"))


def providers_answer(state: CliState) -> Iterator[DoctorCheck]:
    """Ask each provider's first model for one word, as the daemon would."""
    if config.check(state.home, state.env):
        return
    chosen = config.choose(
        config.load(state.home, state.env).config, config.detect(state.env, None)
    )
    for name, settings in chosen.providers.items():
        if settings.kind in config.BUILT_IN:
            continue
        if not settings.models:
            yield DoctorCheck(
                id=f"online:{name}",
                title=f"provider {name}",
                state="warn",
                detail="lists no models, so none was asked",
                fix="name one in its section",
            )
            continue
        yield asyncio.run(_answers(name, settings, state.env))


async def _answers(name: str, settings: config.Provider, env: dict[str, str]) -> DoctorCheck:
    import time

    from palyra.core.errors import ConfigInvalid
    from palyra.core.messages import ModelFailure, ModelRequest, Text, UserMessage
    from palyra.models.dialects import open_provider
    from palyra.models.http import HttpClient, ProviderEndpoint

    known, shown = f"online:{name}", f"provider {name}"
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
        assert settings.kind != "faulty"
        provider = open_provider(
            settings.kind,
            ProviderEndpoint(name=name, base_url=settings.base_url, api_key=key),
            client,
        )
        async with asyncio.timeout(_ONLINE_S):
            await provider.stream(request, lambda channel, text: None)
    except ConfigInvalid as error:
        return DoctorCheck(
            id=known,
            title=shown,
            state="fail",
            detail=error.message,
            fix="set the key, or remove the provider",
        )
    except ModelFailure as failure:
        fix = {
            "auth": "check its key",
            "network": "check base_url and the network",
            "quota": "check the account",
            "model_not_found": "choose one of the models that it has",
            "not_a_model_server": "check base_url: it answers with a web page",
        }
        advice = fix.get(failure.failure, "see the provider's status page")
        return DoctorCheck(id=known, title=shown, state="fail", detail=str(failure), fix=advice)
    except TimeoutError:
        detail = f"no answer in {_ONLINE_S} s"
        return DoctorCheck(
            id=known, title=shown, state="fail", detail=detail, fix="check the network, or base_url"
        )
    finally:
        await client.close()
    took = formatting.duration(int((time.monotonic() - began) * 1000))
    return DoctorCheck(
        id=known, title=shown, state="ok", detail=f"{settings.models[0]} answered in {took}"
    )
