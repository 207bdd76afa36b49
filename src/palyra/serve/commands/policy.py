"""`palyra policy`: what the agent may do. Checking reads the files only; showing and explaining ask
the daemon what is in force.
"""

from pathlib import Path
from typing import Any

import click
import msgspec

from palyra.cli import exit_codes, json_shapes
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.types.policy import Explanation
from palyra.core.errors import InvalidInput
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
        f"preset {found.preset}, version {clean(found.version)}, your files in"
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
