"""The vault: secrets for tools, sealed at rest."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.features.vault.keys import KeyFile
    from palyra.features.vault.service import Vault
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.system.redactor import Redactor

    keys = KeyFile(w.home / "keys" / "vault.key")
    vault = w.add(Vault(w.get(Database), w.get(Redactor), w.get(Clock), keys))
    await vault.open()
    w.notes.append(lambda: vault.notes)
    w.on_close(vault.close, after_runs=True)
