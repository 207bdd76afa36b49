"""`palyra workers`: machines that run tools for the daemon. Here, on the daemon's side; `palyra
worker` is the other side.
"""

import socket

import click

from palyra.cli import formatting
from palyra.cli.commands import group, verb
from palyra.cli.confirm import confirm
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.types.workers import WorkerShown

workers = group(
    "workers", "Machines that run tools: list, enrol, show, drain, revoke.", default="list"
)
_COLORS = {"connected": "green", "away": "yellow", "draining": "yellow", "revoked": "dim"}


@verb(workers, "list", help="List the workers, with what runs there now.")
def list_(state: CliState) -> None:
    found = state.api.list_workers()
    if state.out.as_json:
        state.out.json({"workers": found.workers, "port": found.port})
        return
    if not found.workers:
        state.out.line("No workers yet. Enrol one with: palyra workers enrol NAME")
    else:
        rows = [
            [
                each.name,
                _state(each),
                each.tier,
                f"{len(each.running)}/{each.slots}",
                _seen(each),
                _good_until(each),
                one_line(each.platform, 40),
            ]
            for each in found.workers
        ]
        state.out.table(
            ["name", "state", "tier", "busy", "seen", "good until", "machine"], rows, right=["busy"]
        )
    if not found.port:
        state.out.note(
            "nothing listens for workers: `palyra config set workers.listen 0.0.0.0:7445`, then"
            " restart the daemon"
        )


@verb(
    workers,
    "enrol",
    help=(
        "Make a one-time code, good for a quarter of an hour, by which a machine becomes a worker."
    ),
)
@click.argument("name")
def enrol(state: CliState, name: str) -> None:
    made = state.api.enrol_worker(name=name)
    if state.out.as_json:
        state.out.json(made)
        return
    state.out.line("on the other machine, with this machine's name as it is known there:")
    state.out.line(
        f"  palyra worker enrol {socket.gethostname()}:{made.port} {made.code} --authority"
        f" {made.authority}"
    )
    state.out.line("  palyra worker run")
    state.out.note(
        f"the code is good once, until {formatting.when(made.expires_ms)}; nobody sees it again"
    )


@verb(
    workers,
    "show",
    help="Show one worker: what it offers, what runs there, what it was given last.",
)
@click.argument("name")
def show(state: CliState, name: str) -> None:
    found = state.api.get_worker(name)
    if state.out.as_json:
        state.out.json(found)
        return
    out, each = state.out, found.worker
    out.line(f"{out.style(each.name, 'bold')}: {out.style(_state(each), _COLORS[_state(each)])}")
    about = {
        "machine": each.platform,
        "address": each.address,
        "version": each.version,
        "sandbox": f"tier {each.tier}",
        "offers": ", ".join(each.tools),
        "places": str(each.slots),
        "enrolled": formatting.when(each.enrolled_ms),
        "seen": _seen(each),
        "good until": _good_until(each),
        "certificate": each.fingerprint,
    }
    for key, value in about.items():
        if value:
            out.line(f"  {key:<12} {clean(value)}")
    for call in each.running:
        out.line(
            f"  runs         {clean(call.tool)} since {formatting.when(call.since_ms)} (call"
            f" {call.call_id}, session {call.session_id})"
        )
    rows = [
        [
            lease.call_id,
            lease.tool,
            lease.state,
            str(lease.attempt),
            formatting.when(lease.since_ms),
        ]
        for lease in found.recent
    ]
    if rows:
        out.table(["call", "tool", "state", "attempt", "given"], rows, right=["attempt"])


@verb(workers, "drain", help="Give a worker nothing new; what runs there ends by itself.")
@click.argument("name")
@click.option("--undo", is_flag=True, help="Use it again.")
def drain(state: CliState, name: str, undo: bool) -> None:
    found = state.api.drain_worker(name, on=not undo)
    if state.out.as_json:
        state.out.json(found)
    elif undo:
        state.out.line(f"{clean(name)} is used again")
    else:
        state.out.line(
            f"{clean(name)} gets nothing new; {len(found.running)} calls still run there"
        )


@verb(
    workers,
    "revoke",
    help="Make a worker's certificate worthless, at once. What runs there is in doubt.",
)
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def revoke(state: CliState, name: str, yes: bool) -> None:
    found = state.api.get_worker(name).worker
    if not yes and found.running and not state.out.as_json:
        confirm(
            f"{len(found.running)} calls run on {clean(name)}; nobody will know what came of them."
            " Revoke it?"
        )
    revoked = state.api.revoke_worker(name)
    if state.out.as_json:
        state.out.json(revoked)
    else:
        state.out.line(f"{clean(name)} is no worker of this daemon any more")


def _state(each: WorkerShown) -> str:
    return each.state if each.state != "enrolled" else "connected" if each.connected else "away"


def _seen(each: WorkerShown) -> str:
    return "now" if each.connected else formatting.ago(each.seen_ms) if each.seen_ms else "never"


def _good_until(each: WorkerShown) -> str:
    """Return the end of its certificate; it is renewed before."""
    return formatting.when(each.certificate_expires_ms)[:10] if each.state != "revoked" else ""
