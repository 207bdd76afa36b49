"""`palyra worker`: this machine runs tools for a daemon elsewhere. `palyra workers` is the daemon's
side.
"""

import os
from pathlib import Path

import click

from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState

worker = group("worker", "Run tools for a daemon on another machine: enrol, run.")
_FOLDER = click.option(
    "--folder",
    metavar="FOLDER",
    default="",
    help="Where it keeps its key and works.  [default: PALYRA_WORKER_HOME or ~/.palyra-worker]",
)


@verb(
    worker,
    "enrol",
    help=(
        "Become a worker: redeem the code that `palyra workers enrol` printed on the daemon's"
        " machine."
    ),
)
@click.argument("address", metavar="HOST:PORT")
@click.argument("code")
@click.option(
    "--authority",
    required=True,
    metavar="FINGERPRINT",
    help="Of the daemon's authority, as it was printed.",
)
@_FOLDER
def enrol(state: CliState, address: str, code: str, authority: str, folder: str) -> None:
    import asyncio

    from palyra.features.workers.node import enrol as node_enrol
    from palyra.features.workers.node.home import Home

    identity = asyncio.run(node_enrol.enrol(Home(_folder(folder)), address, code, authority))
    if state.out.as_json:
        state.out.json({"name": identity.name, "folder": str(_folder(folder))})
    else:
        state.out.line(
            f"this machine is the worker {clean(identity.name)} now: start it with `palyra worker"
            " run`"
        )


@verb(
    worker,
    "run",
    help="Work until SIGTERM or Ctrl-C: what runs is finished first; a second one ends it at once.",
)
@_FOLDER
@click.option(
    "--offer",
    metavar="TOOLS",
    default="",
    help="Tools to offer, with commas.  [default: shell.run,fs.read,fs.write]",
)
@click.option(
    "--slots", type=click.IntRange(1, 256), default=4, show_default=True, help="Calls at once."
)
@click.option(
    "--quic",
    is_flag=True,
    help="Connect by QUIC, which lives on when the network changes; needs workers.quic.",
)
@click.option("--rehearsal", is_flag=True, hidden=True)
def run(state: CliState, folder: str, offer: str, slots: int, quic: bool, rehearsal: bool) -> None:
    import asyncio

    from palyra.features.workers.node import process

    offered = tuple(name.strip() for name in offer.split(",") if name.strip())
    asyncio.run(
        process.run(
            _folder(folder),
            offered,
            slots=slots,
            say=state.out.line,
            quic=quic,
            rehearsal=rehearsal,
        )
    )


def _folder(given: str) -> Path:
    return Path(
        given or os.environ.get("PALYRA_WORKER_HOME", "") or "~/.palyra-worker"
    ).expanduser()
