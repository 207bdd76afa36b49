"""More verbs of `palyra policy`: what other policies would have decided about the calls that were
recorded.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from palyra.cli import formatting, json_shapes, lookup
from palyra.cli.commands import verb
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.http import ServerSentEvent
from palyra.client.types.policy import Changed, Report
from palyra.core.errors import InvalidInput, Unavailable
from palyra.serve.commands import policy as basic
from palyra.serve.commands.policy import policy

_PRESETS = ("locked", "default", "coding", "research")


class _Progress(Struct):
    calls: int


_since = click.option(
    "--since",
    default="30d",
    show_default=True,
    metavar="SPAN",
    help="How far back: 12h, 30d, 8w; or `all`.",
)


def _since_ms(text: str) -> int:
    return 0 if text == "all" else max(0, int(time.time() * 1000) - formatting.parse_duration(text))


@verb(
    policy,
    "test",
    help=(
        "Decide every recorded call again under NEW: a preset, or a folder of policies. Changes"
        " nothing."
    ),
)
@click.argument("new")
@click.option("--preset", type=click.Choice(_PRESETS), help="With this preset; for a folder.")
@_since
def test(state: CliState, new: str, preset: Any, since: str) -> None:
    if new in _PRESETS:
        folder, preset = "", new
    elif Path(new).is_dir():
        folder = str(Path(new).resolve())
    else:
        raise InvalidInput(f"{new} is neither a folder nor one of {', '.join(_PRESETS)}")
    report = _tested(
        state, state.api.test_policy_events(folder=folder, preset=preset, since_ms=_since_ms(since))
    )
    if state.out.as_json:
        state.out.json(report)
        return
    state.out.line(f"{report.calls:,} recorded calls, {report.same:,} decided as before")
    for name, changed, color in (
        ("newly denied", report.newly_denied, "red"),
        ("newly asked", report.newly_asked, "yellow"),
        ("newly allowed", report.newly_allowed, "green"),
    ):
        _show_changed(state, name, changed, color)
    if report.hits:
        state.out.table(
            ["policy", "calls"],
            [[hit.id, f"{hit.calls:,}"] for hit in report.hits],
            right=["calls"],
        )
    if report.never_hit:
        state.out.line(f"decided nothing: {clean(', '.join(report.never_hit))}")
    for count, why in (
        (report.not_asked, "were refused before policy was asked"),
        (report.unknown, "were recorded without what is needed to ask again"),
        (report.inexact, "had secrets in them and were decided again without"),
    ):
        if count:
            state.out.note(f"{count:,} calls {why}")


def _tested(state: CliState, messages: Iterator[ServerSentEvent]) -> Report:
    for message in messages:
        if message.event == "progress" and state.out.is_terminal and not state.out.as_json:
            state.out.note(f"{msgspec.json.decode(message.data, type=_Progress).calls:,} calls")
        elif message.event == "report":
            return msgspec.json.decode(message.data, type=Report)
    raise Unavailable("the daemon ended before every call was decided: try again")


def _show_changed(state: CliState, name: str, changed: Changed, color: str) -> None:
    state.out.line(
        state.out.style(f"{name}: {changed.calls:,}", "bold", *((color,) if changed.calls else ()))
    )
    for each in changed.examples:
        times = f" ({each.times:,} times)" if each.times > 1 else ""
        state.out.line(
            f"  {clean(each.tool)} {one_line(each.about, 80)}{times}: {each.before} → {each.after}"
        )
        state.out.line(
            state.out.style(
                f"    {one_line(each.reason, 160)}  (call {clean(each.call_id)})", "dim"
            )
        )


@verb(
    policy,
    "suggest",
    help=(
        "Permits that would have spared you the approvals you gave; nothing you denied is covered."
    ),
)
@_since
def suggest(state: CliState, since: str) -> None:
    found = state.api.suggest_policy(since_ms=_since_ms(since))
    if state.out.as_json:
        state.out.json(found)
        return
    for permit in found.permits:
        state.out.line(
            f"// {permit.covers} approvals, like {one_line('; '.join(permit.examples), 100)}"
        )
        if permit.kept_narrow_by:
            state.out.line(
                "// not wider, because you denied"
                f" {one_line('; '.join(permit.kept_narrow_by), 100)}"
            )
        state.out.line("".join(f"{clean(line)}\n" for line in permit.cedar.splitlines()))
    state.out.note(
        f"{found.approved} approved calls, {found.denied} denied; {found.already} run without"
        f" asking by now; with these permits {found.passing} would. To put them in force, save them"
        " as a .cedar file in the policy folder."
    )
    for left in found.left[:20]:
        state.out.note(
            f"still asks: {clean(left.tool)} {one_line(left.about, 60)}: {one_line(left.why, 120)}"
        )


@verb(
    policy,
    "shadow",
    help="What the shadow policies (policy.shadow in the config) would have decided otherwise.",
)
@_since
def shadow(state: CliState, since: str) -> None:
    found = state.api.shadow_policy(since_ms=_since_ms(since))
    if state.out.as_json:
        state.out.json(found)
        return
    if not found.named:
        state.out.note(
            "there is no shadow now: name a preset or a folder with `palyra config set"
            " policy.shadow`, then restart"
        )
    else:
        state.out.line(f"the shadow is {clean(found.named)}, version {clean(found.version)}")
    state.out.line(
        f"{found.calls:,} calls were decided beside a shadow, {found.same:,} of them the same"
    )
    if len(found.versions) > 1:
        state.out.note(
            f"the shadow has changed: {len(found.versions)} versions of it decided; --since leaves"
            " older ones out"
        )
    for name, changed, color in (
        ("the shadow would deny", found.denied, "red"),
        ("the shadow would ask", found.asked, "yellow"),
        ("the shadow would allow", found.allowed, "green"),
    ):
        _show_changed(state, name, changed, color)


@verb(
    policy,
    "explain",
    help=(
        "How a call would be decided and why; with --call, how a recorded one was. ARGUMENTS: JSON"
        " or NAME=TEXT."
    ),
)
@click.argument("tool", required=False)
@click.argument("arguments", nargs=-1)
@click.option("--call", "call_id", default="", metavar="ID", help="A call that was made.")
@click.option("--session", "session_id", default="", metavar="ID", help="As in this session.")
@click.option(
    "--origin",
    type=click.Choice(["interactive", "scheduled", "child", "api"]),
    default="interactive",
    show_default=True,
)
def explain(
    state: CliState,
    tool: str | None,
    arguments: tuple[str, ...],
    call_id: str,
    session_id: str,
    origin: Any,
) -> int:
    if not call_id:
        if not tool:
            raise InvalidInput(
                "which call? name a tool and its arguments, or a recorded one with --call ID"
            )
        found = state.api.explain_policy(
            tool=tool,
            arguments=basic.arguments_of(arguments),
            session_id=lookup.checked(session_id) if session_id else None,
            origin=origin,
        )
        return basic.show_explanation(state, found)
    if tool:
        raise InvalidInput("--call names the call: leave the tool out")
    told = state.api.explain_call(call_id=lookup.checked(call_id))
    if state.out.as_json:
        state.out.json(json_shapes.whole(told, now=json_shapes.explanation(told.now)))
        return 0
    decided = told.decided
    state.out.line(
        f"{clean(told.tool)} {one_line(told.about, 100)}  ({formatting.when(told.time_ms)}, session"
        f" {told.session_id})"
    )
    by = ", ".join(decided.policies) or decided.by
    state.out.line(
        f"then: {decided.verdict} by {clean(by)}: {one_line(decided.reason, 300)} (policies"
        f" {decided.policy_version})"
    )
    state.out.line("now:")
    return basic.show_explanation(state, told.now)
