"""Certificates: the daemon's own authority, and what it serves."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    import socket

    from palyra.features.tls.model import CertificateSettings
    from palyra.features.tls.service import Certificates
    from palyra.store.database import Database
    from palyra.system.clock import Clock
    from palyra.system.private_files import write_private

    certificates = Certificates(
        w.get(Database),
        w.get(Clock),
        w.home / "tls",
        write_private,
        own=w.settings.get(CertificateSettings).own,
        label=socket.gethostname() or "localhost",
    )
    await w.add(certificates).open()
    w.on_close(certificates.close, after_runs=True)
