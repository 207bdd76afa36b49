"""Metrics of the daemon, as Prometheus text. Counters start at zero with the process; a scrape
reads only what is new.
"""

import asyncio
import os
import resource
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from palyra.agent.broadcast import Broadcast
from palyra.agent.runs import Runs
from palyra.api.limits import OpenStreams
from palyra.store import runs, tape, usage
from palyra.store.database import Database, Tx
from palyra.store.upkeep import Upkeep
from palyra.store.usage import ModelUse
from palyra.system.thread_pool import everyday

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_ENDS = {"run.completed": "done", "run.failed": "failed", "run.cancelled": "cancelled"}
_STATES = ("accepted", "in_progress", "waiting")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class MetricsSource(Protocol):
    """Lines of the exposition that a feature adds."""

    def lines(self, tx: Tx) -> Iterable[str]: ...


class MetricsSources(list[MetricsSource]):
    """Everybody who adds lines, in their order."""


class _Latency:
    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BUCKETS) + 1)
        self.total_s = 0.0


class Metrics:
    def __init__(
        self,
        db: Database,
        hub: Broadcast,
        runs_: Runs,
        streams: OpenStreams,
        journal: Upkeep,
        sources: "MetricsSources",
    ) -> None:
        self._db = db
        self._hub = hub
        self._runs = runs_
        self._streams = streams
        self._journal = journal
        self._sources = sources
        self._requests: Counter[tuple[str, int]] = Counter()
        self._latency: dict[str, _Latency] = {}
        self._position = 0
        self._ended: Counter[str] = Counter()
        self._models: dict[tuple[str, str], list[int]] = {}
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Count from here on."""
        self._position = await self._db.read(tape.last_position)

    def request(self, label: str, status: int, seconds: float) -> None:
        self._requests[label, status] += 1
        latency = self._latency.get(label)
        if latency is None:
            latency = self._latency[label] = _Latency()
        latency.counts[bisect_left(_BUCKETS, seconds)] += 1
        latency.total_s += seconds

    async def text(self) -> bytes:
        """The exposition."""
        async with self._lock:
            after = self._position

            def query(
                tx: Tx,
            ) -> tuple[int, dict[str, int], dict[str, int], list[ModelUse], list[str]]:
                # What is committed while this is being read belongs to the next scrape.
                last = tape.last_position(tx)
                kinds, used = tape.kinds_between(tx, after, last), usage.between(tx, after, last)
                counted = [line for source in self._sources for line in source.lines(tx)]
                return last, runs.unfinished_by_state(tx), kinds, used, counted

            head, unfinished, kinds, used, counted = await self._db.read(query)
            self._add(head, kinds, used)
            stored = await everyday.run(self._journal.size)
        lines = [
            *self._of_runs(head, unfinished, stored),
            *counted,
            *self._of_models(),
            *self._of_requests(),
            *self._of_process(),
        ]
        return "\n".join(lines).encode() + b"\n"

    def _add(self, head: int, kinds: dict[str, int], used: list[ModelUse]) -> None:
        self._position = head
        for kind, state in _ENDS.items():
            self._ended[state] += kinds.get(kind, 0)
        for use in used:
            sums = self._models.setdefault((use.provider, use.model), [0, 0, 0, 0, 0, 0])
            numbers = (
                use.calls,
                use.input_tokens,
                use.output_tokens,
                use.cached_tokens,
                use.cost_microusd,
                use.cache_write_tokens,
            )
            self._models[use.provider, use.model] = [
                a + b for a, b in zip(sums, numbers, strict=True)
            ]

    def _of_runs(self, head: int, unfinished: dict[str, int], stored: int) -> Iterable[str]:
        yield from family("palyra_runs", "gauge", "runs that have not ended, by state")
        for state in _STATES:
            yield f"palyra_runs{labels_of(state=state)} {unfinished.get(state, 0)}"
        yield from family("palyra_runs_ended_total", "counter", "runs that ended, by state")
        for state in _ENDS.values():
            yield f"palyra_runs_ended_total{labels_of(state=state)} {self._ended[state]}"
        yield from single(
            "palyra_runs_working", "gauge", "runs that are being worked on", self._runs.working
        )
        yield from single(
            "palyra_watchers", "gauge", "open subscriptions to sessions", self._hub.watchers
        )
        yield from single("palyra_streams", "gauge", "open streams over HTTP", self._streams.count)
        yield from single("palyra_journal_entries", "gauge", "entries in the journal", head)
        yield from single(
            "palyra_journal_commits_total",
            "counter",
            "transactions committed to the journal",
            self._db.commits,
        )
        yield from single(
            "palyra_journal_steps_total", "counter", "steps in those transactions", self._db.steps
        )
        yield from single("palyra_journal_bytes", "gauge", "size of the journal", stored)

    def _of_models(self) -> Iterable[str]:
        names = (
            ("palyra_model_calls_total", "model calls that gave a reply"),
            ("palyra_model_input_tokens_total", "tokens sent to models"),
            ("palyra_model_output_tokens_total", "tokens received from models"),
            ("palyra_model_cached_tokens_total", "tokens sent that the provider had cached"),
            ("palyra_model_cost_microusd_total", "cost of model calls in millionths of a dollar"),
            (
                "palyra_model_cache_write_tokens_total",
                "tokens sent that the provider wrote to its cache",
            ),
        )
        for at, (name, about) in enumerate(names):
            yield from family(name, "counter", about)
            for (provider, model), sums in self._models.items():
                yield f"{name}{labels_of(provider=provider, model=model)} {sums[at]}"

    def _of_requests(self) -> Iterable[str]:
        yield from family(
            "palyra_http_requests_total", "counter", "HTTP requests, by route and status"
        )
        for (label, status), count in sorted(self._requests.items()):
            yield f"palyra_http_requests_total{labels_of(route=label, status=str(status))} {count}"
        yield from family(
            "palyra_http_request_seconds", "histogram", "time to answer HTTP requests, by route"
        )
        for label, latency in sorted(self._latency.items()):
            seen = 0
            for bound, count in zip((*map(str, _BUCKETS), "+Inf"), latency.counts, strict=True):
                seen += count
                yield f"palyra_http_request_seconds_bucket{labels_of(route=label, le=bound)} {seen}"
            yield f"palyra_http_request_seconds_sum{labels_of(route=label)} {latency.total_s:.6f}"
            yield f"palyra_http_request_seconds_count{labels_of(route=label)} {seen}"

    def _of_process(self) -> Iterable[str]:
        yield from single(
            "process_cpu_seconds_total",
            "counter",
            "user and system time",
            f"{time.process_time():.3f}",
        )
        yield from single(
            "process_resident_memory_bytes", "gauge", "resident memory", resident_bytes()
        )


def family(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def single(name: str, kind: str, about: str, value: object) -> tuple[str, ...]:
    return (*family(name, kind, about), f"{name} {value}")


def labels_of(**labels: str) -> str:
    escaped = (f'{name}="{_escape(value)}"' for name, value in labels.items())
    return "{" + ",".join(escaped) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resident_bytes() -> int:
    """The daemon's resident memory."""
    try:
        with open("/proc/self/statm", "rb") as handle:
            return int(handle.read().split()[1]) * _PAGE
    except OSError:
        # Elsewhere the greatest size so far has to do, in kilobytes.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
