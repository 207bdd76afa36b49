"""The same API over HTTP/3, by other people's code than the daemon's: curl with ngtcp2 and
nghttp3.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from curl_cffi import AsyncSession, CurlHttpVersion

from tests.doors.doors import Http, SseTalk, Talk, checked


def client(authority: Path, secret: str) -> AsyncSession:
    """It speaks HTTP/3 or nothing, and believes the daemon's own authority."""
    return AsyncSession(
        verify=str(authority),
        headers={"Authorization": f"Bearer {secret}"},
        http_version=CurlHttpVersion.V3ONLY,
        timeout=20,
        max_clients=64,
    )


class Http3(Http):
    name = "http3"

    def __init__(self, url: str, session: AsyncSession) -> None:
        self._url = url
        self._session = session

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        response = await self._session.request(method, self._url + path, json=body)
        assert response.http_version == CurlHttpVersion.V3
        return checked(response.status_code, response.content)

    @asynccontextmanager
    async def open(self, session_id: str, after: int = 0) -> AsyncIterator[Talk]:
        path = f"{self._url}/v1/sessions/{session_id}/events?after={after}"
        response = await self._session.request("GET", path, stream=True, timeout=None)
        try:
            assert response.http_version == CurlHttpVersion.V3
            if response.status_code != 200:
                checked(response.status_code, await response.acontent())
            yield _Http3Talk(self, session_id, response.aiter_content())
        finally:
            # Its own way to close waits for the end, and these streams have none.
            response.astream_task.cancel()
            await asyncio.wait([response.astream_task])


class _Http3Talk(SseTalk):
    def __init__(self, door: Http3, session_id: str, pieces: AsyncIterator[bytes]) -> None:
        super().__init__(door, session_id)
        self._pieces = pieces
        self._kept = b""

    async def line(self) -> str:
        while b"\n" not in self._kept:
            self._kept += await anext(self._pieces)
        line, _, self._kept = self._kept.partition(b"\n")
        return line.decode()
