"""`palyra schedule`: what the agent does at its time, without anybody asking."""

import os
from typing import Any

import click

from palyra.cli import formatting, json_shapes, short_ids
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.types.schedules import ScheduleVerbsForecast, ShownSchedule
from palyra.core.errors import InvalidInput
from palyra.features.schedules import model
from palyra.features.schedules.model import Quiet

schedule = group(
    "schedule", "Schedules: add, list, show, pause, resume, remove, run, next.", default="list"
)
_SUBJECTS = ("path_prefix", "program", "command", "host", "recipient", "arguments")


@verb(schedule, "list", help="List schedules with their next time.")
def list_(state: CliState) -> None:
    found = state.api.list_schedules().schedules
    if state.out.as_json:
        state.out.json({"schedules": [json_shapes.schedule(each) for each in found]})
        return
    if not found:
        state.out.note(
            'there are no schedules: palyra schedule add "weekdays at 8:30" "say what is new in'
            ' this folder"'
        )
        return
    rows = [
        [
            each.schedule.schedule_id,
            one_line(each.schedule.name, 40),
            each.when,
            each.schedule.state,
            each.upcoming_shown[0] if each.upcoming_shown else "",
            (
                f"{each.firings[0].state} {formatting.ago(each.firings[0].due_ms)}"
                if each.firings
                else "never"
            ),
        ]
        for each in found
    ]
    state.out.table(["schedule", "name", "when", "state", "next", "last"], rows)


@verb(
    schedule, "add", help="Save a schedule: WHEN it fires and TEXT, what is said to the agent then."
)
@click.argument("when")
@click.argument("text")
@click.option("--name", default="", help="What it is called.")
@click.option(
    "--zone",
    default="",
    metavar="ZONE",
    help="Time zone, as Europe/Vienna.  [default: the daemon's]",
)
@click.option(
    "--overlap",
    type=click.Choice(["skip", "queue", "replace"]),
    default="skip",
    show_default=True,
    help="What to do while the run before has not ended.",
)
@click.option(
    "--missed",
    type=click.Choice(["skip", "catch_up"]),
    help="What to do about times when nobody was there.",
)
@click.option(
    "--quiet",
    default="",
    metavar="FROM-TO",
    help="Hours without firing, as 22:00-07:00; they fire once afterwards.",
)
@click.option("--quiet-skip", is_flag=True, help="Do not fire afterwards.")
@click.option(
    "--allow",
    "scopes",
    multiple=True,
    metavar="TOOL:KIND=VALUE",
    help=(
        "May be done without asking: shell.run:program=git, fs.write:path_prefix=/srv/notes, or a"
        " tool alone."
    ),
)
@click.option(
    "--deny", is_flag=True, help="Deny everything else that would ask, instead of waiting for you."
)
@click.option("--model", default="")
@click.option(
    "--workspace", default="", metavar="FOLDER", help="Where its runs work.  [default: this folder]"
)
@click.option("--fresh", is_flag=True, help="A new session for each firing.")
def add(state: CliState, when: str, text: str, **given: Any) -> None:
    body: dict[str, Any] = {
        name: given[name]
        for name in ("name", "zone", "overlap", "missed", "model", "fresh")
        if given[name]
    }
    body["workspace"] = os.path.abspath(given["workspace"] or ".")
    if given["deny"]:
        body["ask"] = "deny"
    if given["quiet"]:
        begin, _, end = given["quiet"].partition("-")
        body["quiet"] = Quiet(begin=begin, end=end, then="skip" if given["quiet_skip"] else "later")
    if given["scopes"]:
        body["scopes"] = [_scope(each) for each in given["scopes"]]
    made = state.api.add_schedule(when=_whole_path(when), text=text, **body)
    if state.out.as_json:
        state.out.json(json_shapes.schedule(made))
        return
    _show(state, made)
    if made.secret:
        state.out.line(f"  call       POST /v1/hooks/{made.schedule.schedule_id}")
        state.out.line(f"  secret     {made.secret}")
        state.out.note("this is the only time the secret is shown; calls are signed with it")


def _whole_path(when: str) -> str:
    return (
        f"file {os.path.abspath(os.path.expanduser(when[5:]))}"
        if when.startswith("file ")
        else when
    )


def _scope(text: str) -> dict[str, str]:
    tool, colon, rest = text.partition(":")
    if not colon:
        return {"tool": tool, "kind": "tool"}
    kind, _, value = rest.partition("=")
    if kind not in _SUBJECTS or not value:
        raise InvalidInput(
            f"{text!r} is no scope: write TOOL:KIND=VALUE with {', '.join(_SUBJECTS)}, or the tool"
            " alone"
        )
    return {
        "tool": tool,
        "kind": kind,
        "value": _value(kind, value),
    }


def _value(kind: str, value: str) -> str:
    if kind == "path_prefix":
        return os.path.abspath(value)
    return value.replace(" & ", "\n") if kind == "arguments" else value


def _show(state: CliState, shown: ShownSchedule) -> None:
    out, found = state.out, shown.schedule
    out.line(f"{out.style(found.schedule_id, 'bold')}  {clean(found.name)}: {found.state}")
    quiet = f"{found.quiet.begin}-{found.quiet.end}, then {found.quiet.then}" if found.quiet else ""
    about = {
        "when": shown.when,
        "says": one_line(found.text, 200),
        "quiet": quiet,
        "overlap": found.overlap,
        "missed": found.missed,
        "may do": ", ".join(
            f"{each.tool} {each.kind} {each.value}".strip() for each in found.scopes
        ),
        "else": "is denied" if found.ask == "deny" else "waits for your answer",
        "forecast": _cost(shown.forecast),
    }
    for name, value in about.items():
        if value:
            out.line(f"  {name:<10} {clean(value)}")
    for each in shown.upcoming_shown:
        out.line(f"  next       {each}")
    for firing in shown.firings[:10]:
        run = f"  {firing.run_id}" if firing.run_id else ""
        out.line(
            f"  fired      {model.shown(firing.due_ms, found.zone)}  {firing.state}{run} "
            f" {one_line(firing.note, 80)}".rstrip()
        )


def _id(state: CliState, given: str) -> str:
    return short_ids.schedule(
        given, lambda: (each.schedule.schedule_id for each in state.api.list_schedules().schedules)
    )


def _cost(forecast: ScheduleVerbsForecast | None) -> str:
    if forecast is None:
        return ""
    times = formatting.counted(forecast.firings_a_month, "time", "times")
    if not forecast.firings_a_month:
        each = f"; {forecast.tokens_a_run} tokens each, {_basis(forecast)}"
        return "not by the clock" + (each if forecast.runs or forecast.like else "")
    if not forecast.runs and not forecast.like:
        return f"{times} in thirty days; its cost is known after the first run"
    return (
        f"{times} in thirty days, {forecast.tokens_a_run} tokens each, "
        f"${forecast.cost_microusd_a_month / 1e6:.2f} together {_basis(forecast)}"
    )


def _basis(forecast: ScheduleVerbsForecast) -> str:
    count, whose = (
        (forecast.runs, "by its") if forecast.runs else (forecast.like, "if it is like your")
    )
    return f"{whose} last {'run' if count == 1 else f'{count} runs'}"


@verb(schedule, "show", help="Show one schedule: next times, forecast, last firings.")
@click.argument("schedule_id")
def show(state: CliState, schedule_id: str) -> None:
    shown = state.api.get_schedule(_id(state, schedule_id))
    if state.out.as_json:
        state.out.json(json_shapes.schedule(shown))
    else:
        _show(state, shown)


@verb(schedule, "next", help="Print the next five times of a schedule, or of WHEN, saving nothing.")
@click.argument("which")
@click.option("--zone", default="", metavar="ZONE")
def next_(state: CliState, which: str, zone: str) -> None:
    if len(which) == 26 and which.isalnum() and which[:1] == "0":
        which = _id(state, which)
        shown = state.api.get_schedule(which)
    else:
        shown = state.api.preview_schedule(when=_whole_path(which), text="look", zone=zone)
    if state.out.as_json:
        state.out.json(
            {"when": shown.when, "upcoming": shown.upcoming, "shown": shown.upcoming_shown}
        )
        return
    for each in shown.upcoming_shown:
        state.out.line(each)
    if not shown.upcoming_shown:
        state.out.note(f"{shown.when}: not by the clock")


def _tell(state: CliState, shown: ShownSchedule) -> None:
    following = f"; next {shown.upcoming_shown[0]}" if shown.upcoming_shown else ""
    state.out.result(
        json_shapes.schedule(shown),
        f"{clean(shown.schedule.name)} is {shown.schedule.state}{following}",
    )


@verb(schedule, "pause", help="Do not fire until it is resumed.")
@click.argument("schedule_id")
def pause(state: CliState, schedule_id: str) -> None:
    _tell(state, state.api.pause_schedule(_id(state, schedule_id)))


@verb(schedule, "resume", help="Fire again from now on.")
@click.argument("schedule_id")
def resume(state: CliState, schedule_id: str) -> None:
    _tell(state, state.api.resume_schedule(_id(state, schedule_id)))


@verb(schedule, "run", help="Fire now.")
@click.argument("schedule_id")
def run(state: CliState, schedule_id: str) -> None:
    firing = state.api.run_schedule(_id(state, schedule_id))
    state.out.result(
        firing, f"it fires; `palyra schedule show {schedule_id}` says what becomes of it"
    )


@verb(
    schedule, "remove", help="Remove a schedule. Runs that are under way go on; its sessions stay."
)
@click.argument("schedule_id")
def remove(state: CliState, schedule_id: str) -> None:
    gone = state.api.remove_schedule(_id(state, schedule_id))
    state.out.result(gone, f"{clean(gone.name)} is removed")
