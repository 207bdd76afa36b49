"""Traces, metrics and logs on their way to a collector (OTLP over HTTP).

A trace is read off the journal when its run has ended, so that nothing is gathered while it works
and nothing is lost while the collector is away: what it has not taken is read again.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Literal

from msgspec import Struct

from palyra.agent.broadcast import Broadcast
from palyra.api.metrics import Metrics
from palyra.features.telemetry import exposition, otlp, rows, spans
from palyra.features.telemetry.otlp import LogLine, TraceSpan
from palyra.models.http import HttpClient
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.system.redactor import Redactor
from palyra.system.thread_pool import everyday

log = logging.getLogger("palyra.telemetry")

_RUNS_AT_ONCE: Final = 32
_LINES_AT_ONCE: Final = 500
_MOST_LINES: Final = 4_096
_TIMEOUT_S: Final = 10.0
# Runs that end within this time of each other are sent together.
_GATHER_S: Final = 1.0
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
# Nobody waits longer than this for a collector when the daemon ends.
_LAST_TRY_S: Final = 2.0
_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_SEVERITY = {"DEBUG": 5, "INFO": 9, "WARNING": 13, "ERROR": 17, "CRITICAL": 21}

Signal = Literal["traces", "metrics", "logs"]


class TelemetrySettings(Struct, frozen=True, kw_only=True):
    """What is sent, and where. Without an endpoint, nothing."""

    endpoint: str = ""
    authorization: str = ""
    service: str = "palyra"
    traces: bool = True
    metrics: bool = True
    logs: bool = False
    content: bool = False
    metrics_seconds: int = 60


class LogQueue(logging.Handler):
    """What was logged and not yet sent. The oldest lines give way."""

    def __init__(self, wake: Callable[[], object]) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[LogLine] = deque(maxlen=_MOST_LINES)
        self._wake = wake

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == log.name:
            return  # that a collector is away is not told to the collector
        text = record.getMessage()
        severity = _SEVERITY.get(record.levelname, 9)
        at_ns = int(record.created * 1e9)
        self.lines.append(LogLine(at_ns, severity, record.levelname.lower(), record.name, text))
        self._wake()


class Collector:
    """The collector: takes what it is sent, or is tried again."""

    def __init__(self, settings: TelemetrySettings) -> None:
        self._http = HttpClient()
        self._base = settings.endpoint.rstrip("/")
        self._headers = {"content-type": "application/x-protobuf"}
        if settings.authorization:
            self._headers["authorization"] = settings.authorization
        self._away = False

    async def send(self, what: Signal, body: bytes) -> None:
        """Send until it is taken. What the collector refuses for good is given up."""
        pause_s = _FIRST_PAUSE_S
        while (problem := await self._try(what, body)) is not None:
            if not self._away:
                self._away = True
                log.warning("%s takes no %s: %s; it is tried again", self._base, what, problem)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        if self._away:
            self._away = False
            log.warning("%s takes %s again", self._base, what)

    async def close(self) -> None:
        await self._http.close()

    async def _try(self, what: Signal, body: bytes) -> str | None:
        try:
            status, answer = await self._http.fetch(
                f"{self._base}/v1/{what}", headers=self._headers, body=body, limit_s=_TIMEOUT_S
            )
        except (OSError, TimeoutError) as error:
            return str(error) or type(error).__name__
        if status in _TRY_AGAIN:
            return f"it answers {status}"
        if status >= 300:
            told = answer[:200].decode("utf-8", "replace")
            log.warning("%s refuses %s with %s: %s", self._base, what, status, told)
        return None


class Telemetry:
    """Export of a daemon's telemetry, if the settings name a collector."""

    def __init__(
        self,
        settings: TelemetrySettings,
        db: Database,
        hub: Broadcast,
        metrics: Callable[[], Metrics],
        redactor: Redactor,
        version: str,
    ) -> None:
        self._settings = settings
        self._db = db
        self._hub = hub
        self._collector = Collector(settings)
        self._metrics = metrics
        self._redactor = redactor
        self._version = version
        self._resource = {"service.name": settings.service, "service.version": version}
        self._since_ns = time.time_ns()
        self._position = 0
        self._logged = asyncio.Event()
        self._queue: LogQueue | None = None
        self._work: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        settings = self._settings
        if not settings.endpoint:
            return
        self._position = await self._db.read(tape.last_position)
        wanted: list[Callable[[], Awaitable[None]]] = []
        if settings.traces:
            wanted.append(self._trace)
        if settings.metrics:
            wanted.append(self._measure)
        if settings.logs:
            loop = asyncio.get_running_loop()
            self._queue = LogQueue(lambda: loop.call_soon_threadsafe(self._logged.set))
            logging.getLogger().addHandler(self._queue)
            wanted.append(self._tell)
        self._work = [asyncio.ensure_future(each()) for each in wanted]

    async def close(self) -> None:
        """Send what is left, if that can be done soon."""
        if self._queue is not None:
            logging.getLogger().removeHandler(self._queue)
        work, self._work = self._work, []
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        try:
            async with asyncio.timeout(_LAST_TRY_S):
                if work and self._settings.traces:
                    await self._send_traces()
                if self._queue is not None:
                    await self._send_lines(self._queue)
        except TimeoutError:
            log.warning("what was left of the telemetry was not taken in time")
        finally:
            await self._collector.close()

    async def _trace(self) -> None:
        watching = self._hub.subscribe(None)
        try:
            while True:
                await self._send_traces()
                await watching.take()
                watching.lagging = False
                await asyncio.sleep(_GATHER_S)
        finally:
            self._hub.unsubscribe(None, watching)

    async def _send_traces(self) -> None:
        """Send the traces of all runs that have ended since the last time."""
        while True:
            reached, found = await self._db.read(self._ended)
            if found:
                body = otlp.traces(self._resource, self._version, found)
                await self._collector.send("traces", body)
            if reached == self._position:
                return
            self._position = reached

    def _ended(self, tx: Tx) -> tuple[int, list[TraceSpan]]:
        last = tape.last_position(tx)
        ended = rows.ended_after(tx, self._position, last, _RUNS_AT_ONCE)
        if len(ended) == _RUNS_AT_ONCE:
            last = ended[-1].position
        found: list[TraceSpan] = []
        for each in ended:
            run = rows.traced(tx, each.tape, each.run_id)
            found += spans.spans_of(run, content=self._settings.content)
        return last, found

    async def _measure(self) -> None:
        while True:
            await asyncio.sleep(self._settings.metrics_seconds)
            text = (await self._metrics().text()).decode()
            body = await everyday.run(self._measured, text)
            await self._collector.send("metrics", body)

    def _measured(self, text: str) -> bytes:
        found = exposition.families_of(text)
        now_ns = time.time_ns()
        return otlp.metrics(self._resource, self._version, found, self._since_ns, now_ns)

    async def _tell(self) -> None:
        assert self._queue is not None
        while True:
            await self._logged.wait()
            await asyncio.sleep(_GATHER_S)
            self._logged.clear()
            await self._send_lines(self._queue)

    async def _send_lines(self, queue: LogQueue) -> None:
        while queue.lines:
            taken = [queue.lines.popleft() for _ in range(min(len(queue.lines), _LINES_AT_ONCE))]
            safe = [line._replace(text=await self._redactor.redacted(line.text)) for line in taken]
            await self._collector.send("logs", otlp.logs(self._resource, self._version, safe))
