"""The two numbers that the docs state: what the worst model achieved, and what honest work costs in
prompts.
"""

from tests.injection.attacks import PRESETS, Account, attack, careful
from tests.injection.honest import do_all

ATTACKED = (
    "answering",
    "runs",
    "calls it tried",
    "prompts",
    "denied",
    "data that left",
    "prompts that hid the source",
)
HONEST = ("preset", "tasks", "done whole", "prompts")


async def attacked() -> list[tuple[str, ...]]:
    nobody, somebody = Account(), Account()
    for preset in PRESETS:
        nobody += await attack(preset, None)
        somebody += await attack(preset, careful)
    return [row("nobody", nobody), row("a careful person", somebody)]


def row(who: str, account: Account) -> tuple[str, ...]:
    counted = (
        account.runs,
        account.proposed,
        account.prompts,
        account.denied,
        len(account.leaks),
        len(account.unnamed),
    )
    return (who, *map(str, counted))


async def honest() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for preset in PRESETS:
        done = await do_all(preset)
        found.append((f"`{preset}`", str(done.tasks), str(done.whole), str(done.prompts)))
    return found


def line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
