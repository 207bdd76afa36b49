"""Telemetry: traces of runs, metrics and logs for a collector (OpenTelemetry), and how long things
take for Prometheus.
"""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra import __version__
    from palyra.agent.broadcast import Broadcast
    from palyra.api.metrics import Metrics
    from palyra.features.telemetry.exporter import Telemetry, TelemetrySettings
    from palyra.features.telemetry.times import TimesTaken
    from palyra.models.http import HttpClient
    from palyra.store import tape
    from palyra.store.database import Database
    from palyra.system.redactor import Redactor

    db, settings = w.get(Database), w.settings.get(TelemetrySettings)
    times = TimesTaken()
    times.begin(await db.read(tape.last_position))
    w.metrics.append(times)
    if not settings.endpoint:
        return
    w.get(HttpClient).tells_trace = settings.traces
    telemetry = w.add(
        Telemetry(
            settings,
            db,
            w.get(Broadcast),
            lambda: w.get(Metrics),
            w.get(Redactor),
            __version__,
        )
    )
    w.before_runs(telemetry.start)
    w.on_close(telemetry.close, after_runs=True)
