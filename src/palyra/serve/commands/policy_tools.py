"""More verbs of `palyra policy`: what other policies would have decided about the calls that were
recorded.

`palyra policy`: what the agent may do. Checking reads the files only; showing and explaining ask
the daemon what is in force.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from palyra.cli import exit_codes, formatting, json_shapes, lookup
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.http import ServerSentEvent
from palyra.client.types.policy import Changed, Explanation, Report
from palyra.core.errors import InvalidInput, Unavailable
from palyra.core.verdicts import Ask

policy = group("policy", "What the agent may do: show, check, explain.", default="show")
_COLORS = {"allow": "green", "ask": "yellow", "deny": "red"}


@verb(policy, "show", help="Show the policies in force.")
def show(state: CliState) -> None:
    found = state.api.get_policy()
    if state.out.as_json:
        state.out.json(found)
        return
    state.out.line(
        f"preset {found.preset}, version {clean(found.version[:16])}, your files in"
        f" {clean(found.folder) or 'no folder'}"
    )
    rows = [
        [rule.id, rule.effect, f"{Path(rule.file).name}:{rule.line}", one_line(rule.reason, 80)]
        for rule in found.policies
    ]
    state.out.table(["policy", "effect", "file", "reason"], rows)
    for problem in found.problems:
        state.out.line(
            state.out.style(
                f"not in force: {clean(problem.file)}:{problem.line}: {clean(problem.message)}",
                "red",
            )
        )


@verb(policy, "check", help="Check policy files without putting them in force.")
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--preset",
    type=click.Choice(["locked", "default", "coding", "research"]),
    help="With this preset instead.",
)
def check(state: CliState, folder: Path | None, preset: str | None) -> int:
    from palyra.policy import store
    from palyra.serve import config

    settings = config.load(state.home, state.env).config.policy
    where = folder or (Path(settings.folder) if settings.folder else state.home / "policies")
    problems = store.check(where if where.exists() else None, preset or settings.preset)
    if state.out.as_json:
        state.out.json({"ok": not problems, "folder": str(where), "problems": problems})
    elif not problems:
        state.out.line(state.out.style("✓ ", "green") + f"the policies in {where} load")
    for problem in problems if not state.out.as_json else ():
        state.out.line(state.out.style("✗ ", "red") + clean(str(problem)))
    return exit_codes.CONFIG if problems else exit_codes.OK


def show_explanation(state: CliState, found: Explanation) -> int:
    if state.out.as_json:
        state.out.json(json_shapes.explanation(found))
        return exit_codes.OK
    verdict, kind = found.verdict, json_shapes.verdict_kind(found)
    risk = f" (risk {verdict.risk})" if isinstance(verdict, Ask) else ""
    state.out.line(
        state.out.style(kind, "bold", _COLORS.get(kind, "red"))
        + f"{risk}: {one_line(verdict.reason)}"
    )
    for action in found.asked:
        deciding = [rule for rule in found.rules if rule.action == action]
        state.out.line(f"{action}:" + ("" if deciding else " no policy permits it"))
        for rule in deciding:
            state.out.line(
                f"  {rule.effect} {clean(rule.id)} ({Path(rule.file).name}:{rule.line})"
                f" {one_line(rule.reason)}".rstrip()
            )
    for error in found.errors:
        state.out.line(state.out.style(f"error: {clean(error)}", "red"))
    for name, value in found.facts.items():
        state.out.line(
            state.out.style(
                f"  {clean(name)} = {one_line(msgspec.json.encode(value).decode(), 200)}", "dim"
            )
        )
    return exit_codes.OK


@verb(policy, "reload", help="Read the policy folder again now.")
def reload(state: CliState) -> int:
    found = state.api.reload_policy()
    if state.out.as_json:
        state.out.json(found)
    else:
        for problem in found.problems:
            state.out.line(
                state.out.style("✗ ", "red")
                + f"{clean(problem.file)}:{problem.line}: {clean(problem.message)}"
            )
        moved = [("added", found.added), ("removed", found.removed), ("changed", found.changed)]
        said = "; ".join(f"{name} {clean(', '.join(each))}" for name, each in moved if each)
        state.out.line(
            "the last good set stays in force"
            if found.problems
            else f"in force: {said or 'nothing changed'}"
        )
    return exit_codes.CONFIG if found.problems else exit_codes.OK


@verb(policy, "schema", help="Print the Cedar schema: what a policy can talk about.")
def schema(state: CliState) -> None:
    from importlib.resources import files

    state.out.line(
        (files("palyra.policy") / "shipped" / "palyra.cedarschema")
        .read_text(encoding="utf-8")
        .rstrip()
    )


def arguments_of(given: tuple[str, ...]) -> dict[str, Any]:
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        try:
            return msgspec.json.decode(given[0], type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise InvalidInput(f"the arguments are not a JSON object: {error}") from error
    pairs = [each.partition("=") for each in given]
    if any(not separator for _, separator, _ in pairs):
        raise InvalidInput("write the arguments as NAME=TEXT, or as one JSON object")
    return {name: value for name, _, value in pairs}


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
            " policy.shadow`, or in the console"
        )
    else:
        state.out.line(f"the shadow is {clean(found.named)}, version {clean(found.version[:16])}")
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
            arguments=arguments_of(arguments),
            session_id=lookup.checked(session_id) if session_id else None,
            origin=origin,
        )
        return show_explanation(state, found)
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
    return show_explanation(state, told.now)
