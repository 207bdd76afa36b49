"""Wiring of a feature: what it is given, and where it says what it brings.

A feature's package has `async def wire(w)`. It runs once, before there is a loop: it makes the
feature's services and fills the loop's ports. What needs the gateway or the runs comes later, by
`with_loop`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from palyra.api.metrics import MetricsSources
from palyra.core.services import Services
from palyra.tools.net.resolve import Resolver
from palyra.tools.paths import PathGuard

T = TypeVar("T")
Later = Callable[[], object]
Work = Callable[[], Awaitable[object]]
Reload = Callable[[Services], Awaitable[object]]


@dataclass
class Wiring:
    """`settings` has what the config says to each feature, by class. `secret` reads a reference to
    the environment or a file. What is in `forbidden` is the daemon's own.
    """

    services: Services
    settings: Services
    home: Path
    env: Mapping[str, str]
    resolver: Resolver
    secret: Callable[[str], str]
    forbidden: tuple[str, ...]
    metrics: MetricsSources = field(default_factory=MetricsSources)
    notes: list[Callable[[], tuple[str, ...]]] = field(default_factory=list)
    later: list[Later] = field(default_factory=list)
    starts_before_runs: list[Work] = field(default_factory=list)
    starts_after_runs: list[Work] = field(default_factory=list)
    halts: list[Later] = field(default_factory=list)
    closes_before_runs: list[Work] = field(default_factory=list)
    closes_after_runs: list[Work] = field(default_factory=list)
    reloads: list[Reload] = field(default_factory=list)

    @property
    def guard(self) -> PathGuard:
        return PathGuard(self.forbidden)

    @property
    def journal(self) -> Path:
        return self.home / "journal.db"

    def get(self, kind: type[T]) -> T:
        return self.services.get(kind)

    def find(self, kind: type[T]) -> T | None:
        return self.services.find(kind)

    def add(self, service: T, *ports: type[Any]) -> T:
        """Offer a service under its class, and as what fills these ports."""
        self.services.add(service)
        for port in ports:
            self.services.add(service, port)
        return service

    def with_loop(self, later: Later) -> None:
        """Do this when the runs, the gateway, the sessions and the approvals are there."""
        self.later.append(later)

    def before_runs(self, work: Work) -> None:
        """Recover this before any run goes on."""
        self.starts_before_runs.append(work)

    def after_runs(self, work: Work) -> None:
        """Start this once unfinished runs go on."""
        self.starts_after_runs.append(work)

    def on_halt(self, halt: Later) -> None:
        """Begin nothing more: the daemon ends."""
        self.halts.append(halt)

    def on_close(self, work: Work, *, after_runs: bool = False) -> None:
        """Close this, the last wired first; `after_runs`: when no run uses it any more."""
        (self.closes_after_runs if after_runs else self.closes_before_runs).append(work)

    def on_reload(self, work: Reload) -> None:
        """Apply changed settings."""
        self.reloads.append(work)
