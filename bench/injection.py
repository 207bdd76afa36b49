"""Measure of what the worst possible model achieved, and what honest work costs in prompts. The
docs state it, the tests hold it.
"""

import asyncio
import random
import time

from tests.injection import figures, office_runs

from bench.common import Table
from palyra.core import origins
from palyra.core.argument_roles import uses
from palyra.core.origins import ShownContent

_ENTRIES, _SHOWN = 10_000, 2 << 20
_CALLS = 300


def tables() -> list[Table]:
    return [
        Table("Office", office_runs.FIGURES, asyncio.run(office_runs.figures())),
        Table("Origins of a call", ("entries", "shown", "median", "p99", "indexing"), [cost()]),
        Table("Injection", figures.ATTACKED, asyncio.run(figures.attacked())),
        Table("Honest tasks", figures.HONEST, asyncio.run(figures.honest())),
    ]


def cost() -> tuple[str, ...]:
    """The processor time it takes to say where the values of one call come from, late in a long
    session.
    """
    chosen = random.Random(1)
    words = [f"word{number}" for number in range(5_000)]
    shown = ShownContent()
    each = _SHOWN // _ENTRIES
    shown.user(1, "Send the report to bob@x.example and pay 40 EUR to DE89370400440532013000")
    for seq in range(2, _ENTRIES):
        text = " ".join(chosen.choices(words, k=each // 10))
        text += f" user{seq}@mail.example 2026-05-{seq % 28 + 1:02} {seq} EUR /files/{seq}.txt"
        shown.source(seq, "untrusted", ("mcp:mail",), text, "")
    began = time.process_time()
    shown.index.add(shown.take())
    indexing = time.process_time() - began
    use = uses(to="recipient", file="path", amount="amount", when="when", body="content")
    taken = []
    for number in range(_CALLS):
        arguments = {
            "to": [f"user{chosen.randrange(_ENTRIES)}@mail.example", "bob@x.example"],
            "file": f"/files/{chosen.randrange(_ENTRIES)}.txt",
            "amount": number,
            "when": "2026-05-14",
            "body": " ".join(chosen.choices(words, k=60)) + " see user7@mail.example",
        }
        began = time.process_time()
        origins.call_values(shown, "mcp:mail/send_mail", "mcp:mail", use, arguments)
        taken.append((time.process_time() - began) * 1000)
    taken.sort()
    return (
        f"{_ENTRIES:,}",
        "2 MB",
        f"{taken[len(taken) // 2]:.2f} ms",
        f"{taken[len(taken) * 99 // 100]:.2f} ms",
        f"{indexing * 1000 / _ENTRIES:.3f} ms an entry",
    )
