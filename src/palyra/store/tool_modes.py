"""Which models were found to take no tools as tools, so that nobody has to find it out again."""

from msgspec import Struct

from palyra.store.database import Tx


class FoundMode(Struct, frozen=True):
    """`settings` is a digest of the provider's settings when it was found: it holds for those."""

    provider: str
    model: str
    settings: str
    why: str
    found_ms: int


def known(tx: Tx) -> list[FoundMode]:
    rows = tx.all("SELECT provider, model, settings, why, found_ms FROM tool_modes")
    return [FoundMode(*row) for row in rows]


def remember(tx: Tx, found: FoundMode) -> None:
    tx.run(
        """INSERT INTO tool_modes (provider, model, settings, why, found_ms)
        VALUES (:provider, :model, :settings, :why, :found_ms)
        ON CONFLICT (provider, model) DO UPDATE SET settings = excluded.settings,
        why = excluded.why, found_ms = excluded.found_ms""",
        provider=found.provider,
        model=found.model,
        settings=found.settings,
        why=found.why,
        found_ms=found.found_ms,
    )
