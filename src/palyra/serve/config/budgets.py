"""Settings of budgets and of who is asked: what contradicts itself, and the same as the runtime's
own types.
"""

from collections.abc import Iterator

from palyra.core.budgets import Limit, Terms, check
from palyra.core.errors import InvalidInput
from palyra.serve.config.schema import Config, SpendingLimit

TASKS = ("interactive", "background", "summary", "extraction", "vision")


def limits(config: Config) -> tuple[Limit, ...]:
    made = [(name, terms(given)) for name, given in config.budgets.limits.items()]
    return tuple(Limit(name=name, terms=each, source="config") for name, each in made)


def terms(given: SpendingLimit) -> Terms:
    return Terms(
        per=given.per,
        every=given.every,
        tokens=given.tokens,
        microusd=round(given.usd * 1_000_000),
        warn_bps=round(given.warn_at * 10_000),
        then=given.then,
        who=given.who,
    )


def contradictions(config: Config) -> Iterator[tuple[tuple[str, ...], str, str]]:
    for name, given in config.budgets.limits.items():
        try:
            check(name, terms(given))
        except InvalidInput as error:
            yield ("budgets", "limits", name), error.message.replace("microusd", "usd"), ""
    for name, rule in config.routing.items():
        if not rule.use:
            yield (
                ("routing", name, "use"),
                "is missing; name at least one provider or model to ask",
                "",
            )
        for task in rule.tasks:
            if task not in TASKS:
                yield (
                    ("routing", name, "tasks"),
                    f"names something that is no task class; there are {', '.join(TASKS)}",
                    "",
                )
