"""Backups of the home: made, kept and tried on a schedule; and the way back."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.ports import JournalCheckpoints
    from palyra.core.services import Services
    from palyra.features.backups.model import BackupSettings, interval_ms
    from palyra.features.backups.service import Backups, HomeBackups
    from palyra.features.tasks.worker import Tasks
    from palyra.policy.store import PolicyStore
    from palyra.store.database import Database
    from palyra.store.upkeep import Upkeep
    from palyra.system.clock import Clock

    def checked(settings: BackupSettings) -> BackupSettings:
        interval_ms(settings.every)
        interval_ms(settings.drill)
        return settings

    settings = checked(w.settings.get(BackupSettings))
    of_home = HomeBackups(w.home, settings, w.secret, w.get(PolicyStore).folder, w.get(Upkeep))
    backups = w.add(Backups(w.get(Database), w.get(Clock), of_home, w.find(JournalCheckpoints)))
    backups.register(w.get(Tasks))
    w.after_runs(backups.start)

    async def reload(wanted: Services) -> None:
        of_home.settings = checked(wanted.get(BackupSettings))
        await backups.start()

    w.on_reload(reload)
