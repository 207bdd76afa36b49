"""The journal over HTTP: one entry, verify, export. Long work happens on threads and stops when
nobody waits for it.
"""

from collections.abc import AsyncGenerator
from functools import partial

from msgspec import Struct

from palyra.agent.sessions import Sessions
from palyra.api import streams
from palyra.api.calls import (
    NDJSON,
    ApiCall,
    Count,
    HttpResponse,
    Input,
    Nothing,
    StreamingResponse,
    Ulid,
    ok,
)
from palyra.core.errors import Unavailable
from palyra.core.services import Services
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.store.tape import StoredEntry
from palyra.store.upkeep import Progress, Upkeep
from palyra.store.verify import Bad
from palyra.store.verify_rows import WrongRow
from palyra.store.verify_tree import Vouched

_PAGE = 1_000


class Verified(Struct, frozen=True, kw_only=True):
    """`bad` is the first bad entry; `pages` is what the database says of its file; `guards` are
    append-only rules that are gone; `vouched` says how far signed checkpoints prove the entries;
    `rows` are those that the entries do not imply, if that was asked for.
    """

    ok: bool
    entries: int
    tapes: int
    bad: Bad | None
    pages: list[str]
    guards: list[str]
    vouched: Vouched | None = None
    rows: list[WrongRow] = []


class WantedVerify(Input, frozen=True, kw_only=True):
    """`deep`: fold everything anew, and compare the tables with it."""

    deep: bool = False


class JournalProgress(Struct, frozen=True):
    entries: int


class Export(Input, frozen=True, kw_only=True):
    """`after`: a position in the journal, or in the session's tape if there is a session."""

    session_id: Ulid = ""
    after: Count = 0


async def entry(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(
        await call.services.get(Database).read(
            lambda tx: tape.entry_at(tx, int(call.path["position"]))
        )
    )


async def verify(call: ApiCall[WantedVerify, Nothing]) -> HttpResponse | StreamingResponse:
    work = partial(verified, call.services.get(Upkeep), deep=call.query.deep)
    return await streams.told(call.headers, work, JournalProgress)


def verified(journal: Upkeep, progress: Progress, *, deep: bool = False) -> Verified:
    pages = journal.page_problems()
    try:
        report = journal.inspect(progress)
        guards = journal.missing_guards()
        rows = journal.wrong_rows(progress) if deep and report.ok else []
    except Unavailable as error:
        # A file that cannot be read to its end is an answer, not a failure to give one.
        return Verified(
            ok=False, entries=0, tapes=0, bad=None, pages=[*pages, error.message], guards=[]
        )
    return Verified(
        ok=report.ok and not pages and not guards and not rows,
        entries=report.entries,
        tapes=report.tapes,
        bad=report.bad,
        pages=pages,
        guards=guards,
        vouched=report.vouched,
        rows=rows,
    )


async def export(call: ApiCall[Export, Nothing]) -> StreamingResponse:
    query = call.query
    if query.session_id:
        await call.services.get(Sessions).get(call.principal, query.session_id)
    last = await call.services.get(Database).read(
        lambda tx: tape.head(tx, query.session_id) if query.session_id else tape.last_position(tx)
    )
    disposition = (
        b'attachment; filename="palyra-%b.ndjson"' % (query.session_id or "journal").encode()
    )
    return StreamingResponse(
        NDJSON, _lines(call.services, query, last), headers=((b"content-disposition", disposition),)
    )


async def _lines(services: Services, query: Export, last: int) -> AsyncGenerator[bytes, None]:
    """Entries as they are now: those appended meanwhile are for the next export."""
    cursor = query.after
    while cursor < last:
        at, most = cursor, min(_PAGE, last - cursor)

        def page(tx: Tx, at: int = at, most: int = most) -> list[StoredEntry]:
            return (
                tape.after(tx, query.session_id, at, most)
                if query.session_id
                else tape.everything_after(tx, at, most)
            )

        stored = await services.get(Database).read(page)
        if not stored:
            return
        cursor = stored[-1].seq if query.session_id else stored[-1].position
        yield b"\n".join([entry.wire for entry in stored]) + b"\n"
