"""The API calls of putting away, bringing back and cleaning up."""

from msgspec import Struct

from palyra.cli.client import checked
from palyra.client.http import Api
from palyra.features.retention.rows import Old
from palyra.store.segments import Segment
from palyra.store.sessions import Session

_LONG_S = 3_600.0


class Archived(Struct):
    dry_run: bool
    days: int
    sessions: list[Old]
    entries: int
    bytes: int
    segments: list[str]
    sealed_bytes: int


class Cleaned(Struct):
    artifacts: int
    bytes: int


class Maintained(Struct):
    log_bytes: int
    free_bytes: int
    released_bytes: int


class CleanedUp(Struct):
    artifacts: Cleaned
    file: Maintained | None = None


class _Segments(Struct):
    segments: list[Segment]


def archive_old(api: Api, days: int | None, *, dry_run: bool) -> Archived:
    return api.post(
        "/v1/journal/archive",
        Archived,
        {"dry_run": dry_run} | ({"days": days} if days else {}),
        timeout_s=_LONG_S,
    )


def clean(api: Api, *, dry_run: bool) -> CleanedUp:
    return api.post("/v1/journal/clean", CleanedUp, {"dry_run": dry_run}, timeout_s=_LONG_S)


def segments(api: Api) -> list[Segment]:
    return api.get("/v1/journal/segments", _Segments).segments


def restore(api: Api, session_id: str) -> Session:
    return api.post(f"/v1/sessions/{checked(session_id)}/restore", Session, {}, timeout_s=_LONG_S)
