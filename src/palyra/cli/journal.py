"""`palyra journal`: the history itself. Verifying and restoring also work on the file alone, when
no daemon runs.
"""

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
from msgspec import Struct

import palyra
from palyra.cli import daemon_process, exit_codes, formatting, json_shapes, lookup, short_ids
from palyra.cli.commands import group, verb
from palyra.cli.render import entries as render_entries
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.client.http import ServerSentEvent, StopSignal, decode
from palyra.client.types.journal import BackedUp, Bad, Verified, Vouched, Voucher, WrongRow
from palyra.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from palyra.core.events import Entry

_BACKUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,96}", re.ASCII)
# Every entry of a large journal takes its time.
_LONG_S = 3_600.0


class _Progress(Struct):
    entries: int


journal = group("journal", "The history: show, verify, prove, export, back up, restore, clean up.")


@verb(
    journal, "show", help="Show entries of a session, or one entry by its position in the journal."
)
@click.argument("what", metavar="SESSION|POSITION")
@click.option("--after", default=0, metavar="SEQ", help="Only entries behind this one.")
@click.option("--limit", type=click.IntRange(1), help="At most so many.")
@click.option("--follow", is_flag=True, help="Follow new entries.")
def show(state: CliState, what: str, after: int, limit: int | None, follow: bool) -> None:
    if what.isdecimal() and len(what) < 10:
        state.out.json(state.api.get_entry(int(what)))
        return
    session_id = short_ids.session(state.api, what)
    seq = after
    for entry in lookup.entries(state.api, session_id, after, limit):
        _tell(state, entry)
        seq = entry.seq
    if follow:
        for message in lookup.watch(state.api, session_id, seq, StopSignal(), patience_s=60):
            item = decode(message) if isinstance(message, ServerSentEvent) else None
            if isinstance(item, Entry):
                _tell(state, item)
                sys.stdout.flush()


def _no_daemon(state: CliState) -> bool:
    """Return whether no daemon runs on this home. One that was killed has left its address behind,
    but not the lock.
    """
    return not state.env.get("PALYRA_URL") and (
        discovery.running(state.home) is None or not daemon_process.held(state.home)
    )


def _tell(state: CliState, entry: Entry) -> None:
    if state.out.as_json:
        state.out.json_line(entry)
        return
    clock = time.strftime("%H:%M:%S", time.localtime(entry.time_ms / 1000))
    head = f"{entry.seq:>6} {clock} {entry.kind:<18} "
    room = max(40, state.out.width - len(head)) if state.out.is_terminal else 0
    state.out.line(state.out.style(head, "dim") + render_entries.summary(entry, room))


@verb(
    journal,
    "verify",
    help="Check every entry. Names the first bad one. Works on the file when no daemon runs.",
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--offline", is_flag=True, help="Read the file also while the daemon runs.")
@click.option("--deep", is_flag=True, help="Also name rows that the entries do not imply.")
def verify(state: CliState, file: Path | None, offline: bool, deep: bool) -> int:
    alone = file is not None or offline or _no_daemon(state)
    source = verify_file(state.home, file, deep=deep) if alone else _verified(state, deep)
    report: Verified | None = None
    progress = sys.stderr.isatty() and not state.out.as_json
    for step in source:
        if isinstance(step, Verified):
            report = step
        elif progress:
            sys.stderr.write(f"\r{formatting.count(step)} entries checked")
            sys.stderr.flush()
    if progress:
        sys.stderr.write("\r\x1b[K")
    assert report is not None
    if state.out.as_json:
        state.out.json(report)
    else:
        _report(state, report)
    return exit_codes.OK if report.ok else exit_codes.FAILED


@verb(journal, "segments", help="List the segments that hold sealed sessions.")
def segments(state: CliState) -> None:
    found = state.api.list_segments().segments
    if state.out.as_json:
        state.out.json({"segments": found})
        return
    if not found:
        state.out.line("no session is sealed yet: `palyra sessions archive-old` does it")
        return
    rows = [
        [
            each.segment_id[:16],
            formatting.ago(each.created_ms),
            str(each.tapes),
            str(each.entries),
            formatting.size(each.bytes),
        ]
        for each in found
    ]
    state.out.table(
        ["segment", "sealed", "sessions", "entries", "size"],
        rows,
        right=["sessions", "entries", "size"],
    )


@verb(
    journal,
    "clean",
    help=(
        "Remove stored files that nothing names, and look after the database file, without"
        " stopping."
    ),
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def clean_up(state: CliState, dry_run: bool) -> None:
    done = state.api.within(_LONG_S).clean_journal(dry_run=dry_run)
    if state.out.as_json:
        state.out.json(json_shapes.cleaned(done))
        return
    gone = "would be removed" if dry_run else "removed"
    state.out.line(
        f"{done.artifacts.artifacts} stored files that nothing names {gone},"
        f" {formatting.size(done.artifacts.bytes)}"
    )
    if done.file is not None:
        state.out.line(
            f"{formatting.size(done.file.released_bytes)} given back to the disk,"
            f" {formatting.size(done.file.free_bytes)} free in the file,"
            f" {formatting.size(done.file.log_bytes)} in its log"
        )


def _verified(state: CliState, deep: bool) -> Iterator[int | Verified]:
    """Numbers of entries seen so far, then the report."""
    for message in state.api.verify_journal_events(deep=deep):
        if message.event == "progress":
            yield msgspec.json.decode(message.data, type=_Progress).entries
        elif message.event == "report":
            yield msgspec.json.decode(message.data, type=Verified)
            return
    raise Unavailable(
        "the daemon ended before the journal was verified: try again, or stop it and verify the"
        " file"
    )


def verify_file(
    home: Path, file: Path | None = None, *, deep: bool = False
) -> Iterator[int | Verified]:
    """The same as the daemon gives, from a file: numbers of entries seen, then the report. Another
    file than the journal itself is a copy, which may have fewer entries than were signed for.
    """
    from queue import SimpleQueue
    from threading import Thread

    from palyra.store import log_keys, sqlite_files

    path = file or home / "journal.db"
    trust = log_keys.trust(home / "journal.db")
    if file is not None:
        trust = trust.of_a_copy
    steps: SimpleQueue[int | Verified | Exception] = SimpleQueue()

    def work() -> None:
        try:
            report = sqlite_files.inspect(path, steps.put, trust=trust)
            pages, guards = sqlite_files.page_problems(path), sqlite_files.missing_guards(path)
            found = sqlite_files.inspect_rows(path, steps.put) if deep and report.ok else []
        except Exception as error:  # noqa: BLE001  whatever it is, somebody waits for an answer
            steps.put(error)
            return
        bad = None if report.bad is None else msgspec.convert(report.bad, Bad, from_attributes=True)
        vouched = (
            msgspec.convert(report.vouched, Vouched, from_attributes=True)
            if report.vouched
            else None
        )
        rows = msgspec.convert(found, list[WrongRow], from_attributes=True)
        good = report.ok and not pages and not guards and not rows
        steps.put(
            Verified(
                ok=good,
                entries=report.entries,
                tapes=report.tapes,
                bad=bad,
                pages=pages,
                guards=guards,
                vouched=vouched,
                rows=rows,
            )
        )

    Thread(target=work, daemon=True).start()
    while True:
        step = steps.get()
        if isinstance(step, Exception):
            raise step
        yield step
        if isinstance(step, Verified):
            return


def _report(state: CliState, report: Verified) -> None:
    counted = (
        f"{formatting.count(report.entries)} entries on {formatting.count(report.tapes)} tapes"
    )
    if report.ok:
        state.out.line(state.out.style("✓ ", "green") + f"Journal verified: {counted}")
        for line in _vouched(report):
            state.out.line(f"  {line}")
        return
    state.out.line(
        state.out.style("✗ the journal is not as it was written", "red") + f" ({counted} are good)"
    )
    if report.bad:
        bad = report.bad
        state.out.line(
            f"  first bad entry: position {bad.position}, tape {clean(bad.tape)}, number {bad.seq}:"
            f" {clean(bad.problem)}"
        )
    for problem in report.pages:
        state.out.line(f"  the file: {clean(problem)}")
    for row in report.rows:
        state.out.line(f"  {row.table} {clean(row.row)}: {clean(row.problem)}")
    for guard in report.guards:
        state.out.line(f"  a guard against changes was removed: {clean(guard)}")
    state.out.line(
        "  what to do: stop the daemon, keep the file, and `palyra journal restore` the newest"
        " backup that verifies"
    )


def _vouched(report: Verified) -> Iterator[str]:
    """Say how far the journal is proven, and by whom: first the newest checkpoint, then those who
    vouch for fewer entries.
    """
    found = report.vouched
    if found is None:
        yield "hash chain intact; no signed checkpoint covers it yet"
        return
    by: dict[int, list[Voucher]] = {found.size: []}
    for each in found.vouchers:
        by.setdefault(each.size, []).append(each)
    for size, who in by.items():
        names = clean(", ".join([each.name for each in who] or found.by))
        if not size:
            yield f"nothing yet by {names}"
            continue
        time_ms = found.time_ms if size == found.size else who[0].time_ms
        clock = time.strftime(" of %Y-%m-%d %H:%M", time.localtime(time_ms / 1000))
        line = f"proven by checkpoint{clock if time_ms else ''} ({names})"
        newer = f"; {formatting.count(found.newer)} newer by chain only" if found.newer else ""
        yield (
            f"entries 1\u2013{formatting.count(size)} {line}{newer if size == found.size else ''}"
        )


@verb(
    journal,
    "export",
    help=(
        "Write entries as they stand on the tape, one JSON object a line; with --proof, a bundle"
        " that anybody can check."
    ),
)
@click.option("--session", "session_id", default="", metavar="ID", help="Only this session.")
@click.option("--proof", is_flag=True, help="With proofs, checkpoint and keys, as one JSON file.")
@click.option("--run", "run_id", default="", metavar="ID", help="Only this run; needs --proof.")
@click.option("--positions", default="", metavar="A-B", help="Only these positions; needs --proof.")
@click.option("--without-bodies", is_flag=True, help="Leave out every body; needs --proof.")
@click.option(
    "--without",
    multiple=True,
    type=click.IntRange(1),
    metavar="POSITION",
    help="Leave out the body of this entry; needs --proof.",
)
@click.option(
    "--after",
    default=0,
    metavar="N",
    help="Only behind this position, or number on the session's tape.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Into this new file.  [default: standard output]",
)
def export(
    state: CliState,
    session_id: str,
    proof: bool,
    run_id: str,
    positions: str,
    without_bodies: bool,
    without: tuple[int, ...],
    after: int,
    output: Path | None,
) -> None:
    session_id = short_ids.session(state.api, session_id) if session_id else ""
    if not proof and (run_id or positions or without_bodies or without):
        raise InvalidInput("--run, --positions and --without need --proof")
    pieces = (
        _bundle(state, session_id, run_id, positions, not without_bodies, without)
        if proof
        else state.api.export_journal(session_id=session_id, after=after)
    )
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        return
    try:
        target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Conflict(f"{output} exists already: choose another name") from None
    except OSError as error:
        raise InvalidInput(f"{output} cannot be written: {error.strerror}") from error
    lines = 0
    with os.fdopen(target, "wb") as handle:
        for piece in pieces:
            handle.write(piece)
            lines += piece.count(b"\n")
    if state.out.as_json:
        state.out.json({"path": str(output), "entries": lines})
    elif proof:
        state.out.line(f"bundle written to {output}; check it: python3 {_verifier()} {output}")
    else:
        state.out.line(f"{formatting.count(lines)} entries written to {output}")


def _bundle(
    state: CliState,
    session_id: str,
    run_id: str,
    positions: str,
    bodies: bool,
    without: tuple[int, ...],
) -> Iterator[bytes]:
    """The bundle, as one line for every entry and a few around them."""
    first, last = _range(positions)
    made = state.api.within(_LONG_S).export_proof(
        session_id=session_id,
        run_id=short_ids.run(state.api, run_id) if run_id else "",
        first=first,
        last=last,
        bodies=bodies,
        without=",".join(map(str, without)),
    )
    *head, (_, entries) = sorted(
        msgspec.to_builtins(made).items(), key=lambda item: item[0] == "entries"
    )
    yield msgspec.json.encode(dict(head))[:-1] + b',"entries":['
    for at, entry in enumerate(entries):
        yield (b"," if at else b"") + msgspec.json.encode(entry)
        yield b"\n"
    yield b"]}"


def _range(positions: str) -> tuple[int, int]:
    if not positions:
        return 0, 0
    found = re.fullmatch(r"(\d{1,15})(?:-(\d{1,15}))?", positions, re.ASCII)
    if found is None:
        raise InvalidInput(f"{positions!r} are no positions: name one, or two as 10-20")
    return int(found[1]), int(found[2] or found[1])


def _verifier() -> Path:
    """Return where the program lies that checks bundles without the product."""
    return Path(palyra.__file__).parent / "features" / "proof" / "verify_bundle.py"


@verb(
    journal,
    "backup",
    help="Make a verified copy in the backups folder of the home folder. Needs no daemon.",
)
@click.argument("name", default="")
def backup(state: CliState, name: str) -> None:
    if name and not _BACKUP.fullmatch(name):
        rule = (
            "a name has letters, digits, dots, dashes and underscores, begins with a letter or"
            " digit, and names no folder"
        )
        raise InvalidInput(
            f"{name!r} cannot name a backup, which goes into {state.home / 'backups'}: {rule}"
        )
    name = name if not name or name.endswith(".db") else f"{name}.db"
    made = (
        _backup_file(state, name)
        if _no_daemon(state)
        else state.api.within(_LONG_S).back_up_journal(name=name)
    )
    if state.out.as_json:
        state.out.json(made)
    else:
        state.out.line(
            f"{formatting.count(made.entries)} entries backed up and verified: {clean(made.path)}"
        )


def _backup_file(state: CliState, name: str) -> BackedUp:
    """A backup without a daemon."""
    from palyra.store import sqlite_files

    journal_ = state.home / "journal.db"
    if not journal_.exists():
        raise NotFound(f"there is no journal at {journal_} to back up")
    target = (
        state.home / "backups" / (name or time.strftime("journal-%Y%m%d-%H%M%S.db", time.gmtime()))
    )
    with daemon_process.exclusive(state.home):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return BackedUp(path=str(target), entries=sqlite_files.backup(journal_, target).entries)


@verb(
    journal,
    "restore",
    help=(
        "Put a verified backup in the journal's place. The daemon must not run; the old journal is"
        " kept."
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
def restore(state: CliState, file: Path) -> None:
    from palyra.store import sqlite_files

    with daemon_process.exclusive(state.home):
        aside = state.home / "backups" / time.strftime("replaced-%Y%m%d-%H%M%S.db")
        aside.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        had_one = (state.home / "journal.db").exists()
        report = sqlite_files.restore(file, state.home / "journal.db", aside)
    if state.out.as_json:
        state.out.json(
            {
                "entries": report.entries,
                "tapes": report.tapes,
                "set_aside": str(aside) if had_one else "",
            }
        )
        return
    kept = f"; the journal before it is at {aside}" if had_one else ""
    state.out.line(f"{formatting.count(report.entries)} entries restored from {file}{kept}")
