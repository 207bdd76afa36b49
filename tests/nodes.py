"""Several daemons on one journal, for tests: each with a home of its own, one workspace, a scripted
model, and a short lease.
"""

import json
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psycopg

from tests.crash.test_process import CONFIG, PERMIT_ALL
from tests.daemon import DaemonProcess, configure, launch
from tests.postgres_server import server

LEASE_MS = 2_000
LONGEST_S = 60.0
_SECRET = "a secret that all nodes of this test have in common"


class Nodes:
    """Nodes of one journal, by name. They share a workspace, as nodes on shared storage do."""

    def __init__(
        self,
        folder: Path,
        script: Any,
        *,
        port: int = 0,
        lease_ms: int = LEASE_MS,
    ) -> None:
        self.folder = folder
        self.address = server().database(folder)
        self.script = script
        self.lease_ms = lease_ms
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.up: dict[str, DaemonProcess] = {}

    def start(
        self, name: str, *, address: str = "", env: Mapping[str, str] | None = None, port: int = 0
    ) -> DaemonProcess:
        home = self.folder / name
        if not home.exists():
            configure(home, config=CONFIG, script=self.script)
            (home / "policies").mkdir(mode=0o700)
            (home / "policies/all.cedar").write_text(PERMIT_ALL)
        given = {
            "PALYRA_JOURNAL__STORE": address or self.address,
            "PALYRA_CLUSTER__SECRET": "env:NODES_SECRET",
            "PALYRA_CLUSTER__NAME": name,
            "PALYRA_CLUSTER__LEASE_MS": str(self.lease_ms),
            "NODES_SECRET": _SECRET,
            **(env or {}),
        }
        self.up[name] = launch(home, self.workspace, env=given, port=port)
        return self.up[name]

    def lease(self) -> dict[str, Any]:
        with psycopg.connect(self.address, autocommit=True) as raw:
            row = raw.execute(
                "SELECT l.epoch, coalesce(n.name, ''), coalesce(n.address, ''), l.shared,"
                " l.expires_ms - extract(epoch FROM clock_timestamp()) * 1000"
                " FROM cluster_lease l LEFT JOIN cluster_nodes n ON n.id = l.holder"
            ).fetchone()
        assert row is not None
        return dict(zip(("epoch", "leader", "address", "shared", "left_ms"), row, strict=True))

    def led_by(self, name: str = "", *, not_by: str = "") -> str:
        """Wait until this node leads and is open, or any but another one; say who does."""

        def leads() -> bool:
            lease = self.lease()
            return bool(
                lease["address"]
                and lease["leader"] not in ("", not_by)
                and name in ("", lease["leader"])
                and lease["left_ms"] > 0
            )

        until(leads, f"{name or 'another node'} does not lead")
        return str(self.lease()["leader"])

    def together(self) -> None:
        """Wait until the leader knows of another node: from then on its lease is short."""
        until(lambda: 0 < self.lease()["left_ms"] <= self.lease_ms, "the lease stays long")

    def stop(self) -> None:
        for each in self.up.values():
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGCONT)
        for each in self.up.values():
            each.stop()


def until(holds: Callable[[], bool], why: str, seconds: float = LONGEST_S) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, why
        time.sleep(0.02)  # Another process: there is nothing to wait on but the clock.


def said(daemon: DaemonProcess) -> Any:
    return json.loads((daemon.home / "daemon.json").read_text())
