"""`palyra rules`, and `/rule` in a chat: what a person lays down for a session. Both speak to the
same endpoint.
"""

import click

from palyra.cli import lookup
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client.types.sessions import ShownRule
from palyra.core.errors import InvalidInput, NotFound

rules = group("rules", "Rules for a session: list, add, remove.", default="list")


def forms_of(error: InvalidInput) -> list[str]:
    """Return what a rule can be, if the daemon said so when it refused one."""
    forms = error.details.get("forms", [])
    return [str(form) for form in forms] if isinstance(forms, list) else []


_session = click.option("--session", "session_id", default="", metavar="ID", help="The session.")
_last = click.option("--last", is_flag=True, help="The session that was used last.")


def _chosen(state: CliState, session_id: str, last: bool) -> str:
    if session_id:
        return lookup.checked(session_id)
    if not last:
        raise InvalidInput("which session? give --session ID, or --last for the one used last")
    found = lookup.sessions(state.api, limit=1)
    if not found:
        raise NotFound("there are no sessions yet: begin one with `palyra chat`")
    return found[0].session_id


@verb(rules, "list", help="List the rules of a session.")
@_session
@_last
@click.option("--cedar", is_flag=True, help="Show the policies they mean, too.")
def list_(state: CliState, session_id: str, last: bool, cedar: bool) -> None:
    # Looking is harmless, so the last session is meant if none is named.
    found = state.api.list_rules(_chosen(state, session_id, last or not session_id)).rules
    if state.out.as_json:
        state.out.json({"rules": found})
        return
    if not found:
        state.out.line("no rules: the policies alone decide")
    for rule in found:
        _show(state, rule, cedar=cedar)


@verb(
    rules,
    "add",
    help="Add a rule, like “never touch ./secrets”. What cannot be kept exactly is refused.",
)
@click.argument("words", nargs=-1, required=True)
@_session
@_last
def add(state: CliState, words: tuple[str, ...], session_id: str, last: bool) -> None:
    made = state.api.add_rule(_chosen(state, session_id, last), words=" ".join(words))
    if state.out.as_json:
        state.out.json(made)
    else:
        _show(state, made)


@verb(rules, "remove", help="Remove a rule of a session.")
@click.argument("rule_id")
@_session
@_last
def remove(state: CliState, rule_id: str, session_id: str, last: bool) -> None:
    state.api.remove_rule(_chosen(state, session_id, last), rule_id=lookup.checked(rule_id))
    if state.out.as_json:
        state.out.json({"removed": rule_id})
    else:
        state.out.line("removed")


def _show(state: CliState, rule: ShownRule, *, cedar: bool = False) -> None:
    state.out.line(f"{clean(rule.rule_id)}  {state.out.style(clean(rule.words), 'bold')}")
    state.out.line(state.out.style(f"  {clean(rule.means)}", "dim"))
    for line in rule.cedar.splitlines() if cedar else ():
        state.out.line(f"  {clean(line)}")
