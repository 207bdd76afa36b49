"""Findings of a compaction, noted in MEMORY.md of the workspace, if the owner wants that. Off
unless it is configured.

The rule: a note is a change of files like any other. It can be undone, a person's edits win, and
where a session has rules nothing is written at all.

Blocks of a document that the daemon keeps up to date, between marks that say so. The rest of the
document is its owner's.

The rule: what a person has changed is never overwritten. A block carries the digest of what was
last written into it; if that no longer fits, or the marks do not pair, it is a conflict, and
nothing is written.
"""

import logging
import re
from collections.abc import Sequence
from hashlib import sha256

from msgspec import Struct

from palyra.agent.checkpoints import Checkpoints
from palyra.agent.session_cache import LiveSession
from palyra.core.errors import Conflict, InvalidInput, LimitExceeded, PalyraError
from palyra.core.events import SessionCompacted
from palyra.core.redaction import PLACEHOLDER
from palyra.core.sentences import cut
from palyra.store import artifacts
from palyra.store.database import Appended, Database
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday
from palyra.tools.files import changes
from palyra.tools.files import content as files_content
from palyra.tools.files.content import ContentChange
from palyra.tools.paths import PathGuard

_BEGIN = re.compile(r"^<!-- palyra:begin (\S{1,64}) ([0-9a-f]{16}) -->[ \t]*\r?\n", re.MULTILINE)
_ANY_MARK = re.compile(r"^<!-- palyra:(?:begin|end)\b[^\n]*$", re.MULTILINE)
_END_MARK = "<!-- palyra:end -->"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_MOST_LINES = 200
_LONGEST_LINE = 500
_MOST_BYTES = 1 << 20


class Block(Struct, frozen=True):
    """`start` and `end` are those of the whole block with its marks; `lines` are what stands
    between them.
    """

    name: str
    digest: str
    lines: tuple[str, ...]
    start: int
    end: int

    @property
    def edited(self) -> bool:
        """Return whether somebody else has changed it since it was written."""
        return digest(self.lines) != self.digest


def digest(lines: Sequence[str]) -> str:
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def find(text: str) -> dict[str, Block]:
    """The blocks of a document by name. Raises Conflict if the marks are not as they were
    written.
    """
    found: dict[str, Block] = {}
    at = 0
    while (mark := _ANY_MARK.search(text, at)) is not None:
        begin = _BEGIN.match(text, mark.start())
        end = _ANY_MARK.search(text, begin.end()) if begin else None
        if begin is None or end is None or end[0].strip() != _END_MARK or begin[1] in found:
            line = text.count("\n", 0, mark.start()) + 1
            raise Conflict(
                f"the marks of a managed block were changed by hand (line {line})", line=line
            )
        body = text[begin.end() : end.start()]
        found[begin[1]] = Block(
            begin[1], begin[2], tuple(body.splitlines()), begin.start(), end.end()
        )
        at = end.end()
    return found


def replaced(text: str, name: str, lines: Sequence[str]) -> str:
    """The document with these lines in a block, which is put at the end if there is none. Raises
    Conflict over hand edits.
    """
    checked = _checked(name, lines)
    block = find(text).get(name)
    written = "\n".join((f"<!-- palyra:begin {name} {digest(checked)} -->", *checked, _END_MARK))
    if block is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{written}\n"
    if block.edited:
        raise Conflict(
            f"the block {name} was changed by hand: it stays as it is; remove its marks to keep it,"
            " or it to get a new one"
        )
    return text[: block.start] + written + text[block.end :]


def merged(text: str, name: str, lines: Sequence[str]) -> str:
    """The same, keeping the lines that the block has, and each line once."""
    block = find(text).get(name)
    return replaced(text, name, tuple(dict.fromkeys((*(block.lines if block else ()), *lines))))


def _checked(name: str, lines: Sequence[str]) -> tuple[str, ...]:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            "the name of a block is made of letters, digits, dots, dashes and underscores",
            name=name[:64],
        )
    if len(lines) > _MOST_LINES:
        raise LimitExceeded(f"a block may have {_MOST_LINES} lines", limit=_MOST_LINES)
    for line in lines:
        if (
            "\n" in line
            or "\r" in line
            or line.splitlines() != ([line] if line else [])
            or len(line) > _LONGEST_LINE
        ):
            raise InvalidInput(
                f"a line of a block is one line of at most {_LONGEST_LINE} characters"
            )
        if "<!--" in line or "-->" in line:
            raise InvalidInput("a line of a block may not contain a comment")
        changes.refuse_placeholders("a line of a block", line)
    return tuple(lines)


def plan(
    fence: PathGuard, workspace: str, path: str, name: str, lines: Sequence[str]
) -> ContentChange | None:
    """The change of a document in a workspace that brings a block up to date; None if it is.
    Touches nothing.
    """
    place = fence.place(path, workspace, writing=True)
    before = files_content.read(place, _MOST_BYTES)
    try:
        text = before.data.decode() if before is not None else ""
    except UnicodeDecodeError:
        raise Conflict(f"{place.shown} is not text in UTF-8") from None
    after = changes.encode("the document", replaced(text, name, lines))
    return (
        None if before is not None and before.data == after else ContentChange(place, before, after)
    )


log = logging.getLogger("palyra.notes")

DOCUMENT = "MEMORY.md"
# How the effect is called in the journal: no tool has such a name.
EFFECT = "@notes"
_LONGEST = 400
_MOST = 100


class Notes:
    def __init__(
        self, db: Database, checkpoints: Checkpoints, fence: PathGuard, clock: Clock
    ) -> None:
        self._db = db
        self._checkpoints = checkpoints
        self._fence = fence
        self._clock = clock

    async def keep(self, live: LiveSession, applied: Appended) -> None:
        """Bring the session's block up to date. What cannot be written is said in the log: the
        compaction stands either way.
        """
        event = applied.event
        assert isinstance(event, SessionCompacted)
        session = live.session
        lines = _lines(event)
        if not lines or not session.workspace or live.rules:
            return
        effect_id = self._clock.new_id()
        name = f"session-{session.session_id}"
        try:
            change = await everyday.run(plan, self._fence, session.workspace, DOCUMENT, name, lines)
            if change is None:
                return
            sealed = await self._checkpoints.of_change(change, session.workspace, effect_id)
            await self._db.write(
                lambda tx: artifacts.keep_effect(
                    tx,
                    call_id=effect_id,
                    session_id=session.session_id,
                    run_id="",
                    tool=EFFECT,
                    position=applied.position,
                    checkpoint=sealed,
                )
            )
            await everyday.run(files_content.apply, [change])
        except (PalyraError, OSError) as error:
            log.warning("%s was not brought up to date: %s", DOCUMENT, error)


def _lines(event: SessionCompacted) -> list[str]:
    """Return what the user requires; and what was decided, unless something untrusted may have had
    a part in it.
    """
    kinds = ("constraint", "decision") if event.label.integrity == "trusted" else ("constraint",)
    found = [
        f"- {cut(point.text, _LONGEST)} ({point.kind})"
        for point in event.points
        if point.kind in kinds
    ]
    plain = [
        line
        for line in found
        if "<!--" not in line and "-->" not in line and not PLACEHOLDER.search(line)
    ]
    return plain[-_MOST:]
