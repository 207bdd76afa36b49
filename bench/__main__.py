"""`python -m bench [NAME ...]` measures and prints; `--write FILE` also writes the figures as a
page, with the machine named.
"""

import argparse
import datetime
import importlib
from pathlib import Path

from bench.common import Table, machine

NAMES = (
    "runs",
    "where",
    "memory",
    "told",
    "history",
    "curves",
    "proof",
    "postgres",
    "stop",
    "wasm",
    "sandbox",
    "queue",
    "learning",
    "compaction",
    "console",
    "channels",
    "transports",
    "floods",
    "workers",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument(
        "names", nargs="*", default=NAMES, help=f"which to measure: {', '.join(NAMES)}"
    )
    parser.add_argument("--write", type=Path, help="a Markdown page to write the figures to")
    parser.add_argument("--rounds", type=int, default=40, help="how often `cluster` harms a leader")
    parser.add_argument("--lease-ms", type=int, default=5_000, help="the lease in `cluster`")
    arguments = parser.parse_args()
    print(f"{machine()}\n", flush=True)
    tables: list[Table] = []
    for name in arguments.names:
        module = importlib.import_module(f"bench.{name}")
        given = (arguments.rounds, arguments.lease_ms) if name == "cluster" else ()
        for table in module.tables(*given):
            print(table.text(), flush=True)
            tables.append(table)
    if arguments.write:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        head = f"Measured by `make bench` on {today}: {machine()}.\n"
        arguments.write.write_text("\n".join([head, *(table.text() for table in tables)]))


if __name__ == "__main__":
    main()
