"""`palyra nodes` and `palyra node drain`: the daemons that share a journal."""

import click

from palyra.cli import formatting
from palyra.cli.commands import command, group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState


@command("nodes", help="List the nodes that share the journal, and which of them leads.")
def nodes(state: CliState) -> None:
    found = state.api.list_nodes().nodes
    if state.out.as_json:
        state.out.json({"nodes": found})
        return
    if not found:
        state.out.line("This daemon is the only one of its journal.")
        return
    rows = [
        [
            clean(each.name),
            each.state + (f" (epoch {each.epoch})" if each.epoch else ""),
            clean(each.version),
            formatting.ago(each.heartbeat_ms),
            clean(each.address),
        ]
        for each in found
    ]
    state.out.table(["node", "state", "version", "last heard", "address"], rows)


node = group("node", "One of the nodes that share the journal.")


@verb(node, "drain", help="Hand over to another node: finish the running steps, then stand by.")
@click.argument("name", default="")
def drain(state: CliState, name: str) -> None:
    found = state.api.drain_node(node=name)
    if state.out.as_json:
        state.out.json(found)
        return
    state.out.line(f"{clean(found.name)} hands over; another node takes over within seconds")
