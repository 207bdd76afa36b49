"""`palyra rules` and more verbs of `palyra policy`: what a session may do, and what other policies would have done."""

import click
from msgspec import Struct

from palyra.cli import client
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import State
from palyra.domain.errors import InvalidInput, NotFound

rules = group("rules", "What you laid down for a session: list, add, remove.", default="list")


class Rule(Struct, frozen=True):
    rule_id: str
    words: str
    means: str
    cedar: str
    created_ms: int


class _Rules(Struct):
    rules: list[Rule]


_session = click.option("--session", "session_id", default="", metavar="ID", help="The session.")
_last = click.option("--last", is_flag=True, help="The session that was used last.")


def _chosen(state: State, session_id: str, last: bool) -> str:
    if session_id:
        return client.checked(session_id)
    if not last:
        raise InvalidInput("which session? give --session ID, or --last for the one used last")
    found = client.sessions(state.api, limit=1)
    if not found:
        raise NotFound("there are no sessions yet: begin one with `palyra chat`")
    return found[0].session_id


@verb(rules, "list", help="List the rules of a session.")
@_session
@_last
@click.option("--cedar", is_flag=True, help="Show the policies they mean, too.")
def list_(state: State, session_id: str, last: bool, cedar: bool) -> None:
    # Looking is harmless, so the last session is meant if none is named.
    found = state.api.get(f"/v1/sessions/{_chosen(state, session_id, last or not session_id)}/rules", _Rules).rules
    if state.out.as_json:
        state.out.json({"rules": found})
        return
    if not found:
        state.out.line("no rules: the policies alone decide")
    for rule in found:
        _show(state, rule, cedar=cedar)


@verb(rules, "add", help="Lay a rule down, like “never touch ./secrets”. What cannot be kept exactly is refused.")
@click.argument("words", nargs=-1, required=True)
@_session
@_last
def add(state: State, words: tuple[str, ...], session_id: str, last: bool) -> None:
    path = f"/v1/sessions/{_chosen(state, session_id, last)}/rules"
    made = state.api.post(path, Rule, {"words": " ".join(words)})
    if state.out.as_json:
        state.out.json(made)
    else:
        _show(state, made)


@verb(rules, "remove", help="Remove a rule of a session.")
@click.argument("rule_id")
@_session
@_last
def remove(state: State, rule_id: str, session_id: str, last: bool) -> None:
    path = f"/v1/sessions/{_chosen(state, session_id, last)}/rules?rule_id={client.checked(rule_id)}"
    state.api.delete(path)
    if state.out.as_json:
        state.out.json({"removed": rule_id})
    else:
        state.out.line("removed")


def _show(state: State, rule: Rule, *, cedar: bool = False) -> None:
    state.out.line(f"{clean(rule.rule_id)}  {state.out.style(clean(rule.words), 'bold')}")
    state.out.line(state.out.style(f"  {clean(rule.means)}", "dim"))
    for line in rule.cedar.splitlines() if cedar else ():
        state.out.line(f"  {clean(line)}")
