"""A disk that refuses or does not answer: readiness, the doctor and an incident say so while it
lasts, and not only afterwards.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from palyra.api.auth import Access
from palyra.api.limits import ApiLimits
from palyra.core.ids import OWNER, SYSTEM_TAPE
from palyra.serve.process import http_app
from palyra.serve.wiring.daemon import Daemon
from palyra.store import write_buffer
from tests.faults import LONGEST_S, eventually, held_writer, in_daemon, on_full_disk
from tests.inprocess import entries
from tests.journals import noting

SETTINGS = "[healing]\nmode = 'observe_only'\nevery_ms = 3600000\n[memory]\nembeddings = false\n[learning]\nenabled = false\n"


@asynccontextmanager
async def over_http(d: Daemon) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody who asks this daemon by HTTP, with the owner's token."""
    access = Access(d.db, d.clock, d.redactor.redact)
    await access.open()
    secret, _ = await access.mint(OWNER, "test", "owner", principal=OWNER)
    app = await http_app(d, access, ApiLimits(), "http://127.0.0.1:7142", {})
    transport = httpx.ASGITransport(app=app)
    headers = {"authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:7142", headers=headers
    ) as client:
        yield client
    await access.close()


async def says_so(client: httpx.AsyncClient, why: str) -> None:
    """Readiness, the doctor, the incidents and the notices all tell of it."""
    ready = await client.get("/readyz")
    assert (ready.status_code, why in ready.json()["reason"]) == (503, True), ready.text
    doctor = (await client.get("/v1/doctor")).json()
    (store,) = [each for each in doctor["checks"] if each["id"] == "store"]
    assert (doctor["ok"], store["state"]) == (False, "fail")
    assert why in store["detail"]
    (incident,) = (await client.get("/v1/incidents", params={"open": True})).json()["incidents"]
    assert (incident["severity"], why in incident["summary"]) == ("critical", True)
    assert (await client.get(f"/v1/incidents/{incident['incident_id']}")).json() == incident
    assert [
        why in each["text"] for each in (await client.get("/v1/notices")).json()["notices"]
    ] == [True]
    assert (await client.get("/v1/status")).json()["incidents"] == 1


async def is_well(d: Daemon, client: httpx.AsyncClient) -> None:
    await d.watchdog.look()
    await d.watchdog.look()
    assert (await client.get("/readyz")).status_code == 200
    (incident,) = (await client.get("/v1/incidents")).json()["incidents"]
    assert incident.get("closed_ms"), incident
    kinds = [
        entry.kind for entry in await entries(d, SYSTEM_TAPE) if entry.kind.startswith("incident.")
    ]
    assert kinds == ["incident.opened", "incident.closed"]
    assert len((await client.get("/v1/notices")).json()["notices"]) == 1


def test_a_disk_that_refuses_is_told_of_at_once(tmp_path: Path) -> None:
    async def scenario(d: Daemon, disk: Any) -> None:
        async with over_http(d) as client:
            assert (await client.get("/readyz")).status_code == 200
            disk.fill()
            with pytest.raises(Exception, match="disk is full"):
                await d.db.write(noting(SYSTEM_TAPE, "a"))
            await says_so(client, "disk is full")
            disk.full = False
            await is_well(d, client)

    on_full_disk(tmp_path, [], scenario, SETTINGS)


def test_an_idle_daemon_finds_out_that_its_disk_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has written anything since the disk broke: being asked is reason enough to try."""

    async def scenario(d: Daemon, disk: Any) -> None:
        async with over_http(d) as client:
            disk.fill()
            assert (await client.get("/readyz")).status_code == 503
            disk.full = False
            await eventually_ready(client)

    monkeypatch.setattr(write_buffer, "_RECENT_S", 0.0)
    monkeypatch.setattr(write_buffer, "_ASK_AGAIN_S", 0.0)
    on_full_disk(tmp_path, [], scenario, SETTINGS)


async def eventually_ready(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(LONGEST_S):
        while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110  it is asked as a probe asks
            await asyncio.sleep(0.01)


def test_a_disk_that_does_not_answer_is_told_of_while_it_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(d: Daemon) -> None:
        async with over_http(d) as client:
            with held_writer(d):
                await eventually(lambda: d.incidents.unrecorded, "an incident is open")
                await says_so(client, "has not answered")
            await eventually_ready(client)
            await is_well(d, client)

    for module in ("palyra.store.write_buffer", "palyra.store.database"):
        monkeypatch.setattr(f"{module}.STALLED_S", 0.3)
    in_daemon(tmp_path, [], scenario, SETTINGS)


def test_readiness_is_answered_though_nothing_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()

    async def scenario(d: Daemon) -> None:
        async with over_http(d) as client:

            async def never(query: Callable[[Any], Any]) -> Any:
                await gate.wait()

            monkeypatch.setattr(d.db, "read", never)
            assert (await client.get("/readyz")).status_code == 503

    monkeypatch.setattr("palyra.api.about._LONGEST_READ_S", 0.05)
    in_daemon(tmp_path, [], scenario, SETTINGS)


def test_an_input_output_error_counts_as_a_disk_that_refuses(tmp_path: Path) -> None:
    async def scenario(d: Daemon, disk: Any) -> None:
        async with over_http(d) as client:
            disk.error = apsw.IOError("disk I/O error")
            disk.fill()
            with pytest.raises(Exception, match="the disk under"):
                await d.db.write(noting(SYSTEM_TAPE, "a"))
            await says_so(client, "the disk under")
            disk.full = False
            await is_well(d, client)

    on_full_disk(tmp_path, [], scenario, SETTINGS)
