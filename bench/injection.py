"""What the worst possible model achieved, and what honest work costs in prompts. The docs state it,
the tests hold it.
"""

import asyncio

from tests.injection import figures

from bench.common import Table


def tables() -> list[Table]:
    return [
        Table("Injection", figures.ATTACKED, asyncio.run(figures.attacked())),
        Table("Honest tasks", figures.HONEST, asyncio.run(figures.honest())),
    ]
