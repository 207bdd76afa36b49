"""A question about causes: what somebody names is found, and followed back to what it came from."""

import os
import re

from palyra.core.errors import Forbidden, InvalidInput, NotFound
from palyra.core.ids import SYSTEM_TAPE
from palyra.features.why import messages, rows
from palyra.features.why.model import Cause, WhyAnswer
from palyra.features.why.rows import FileMatch, TapedEvent
from palyra.features.why.trace import Tracer
from palyra.store import sessions, subagents
from palyra.store.database import Tx

_ENTRY = re.compile(r"([0-7][0-9A-HJKMNP-TV-Z]{25}|system:local):([1-9][0-9]{0,14})\Z")
_POSITION = re.compile(r"[1-9][0-9]{0,14}\Z")
_REPLY = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}[a-z]?\Z")


class WhyQuestion:
    """One question of a principal within one read of the journal. `everything`: who asks may read
    all of it.
    """

    def __init__(self, tx: Tx, principal: str, *, everything: bool) -> None:
        self._tx = tx
        self._principal = principal
        self._everything = everything
        self._tracer = Tracer(tx)

    def answer(self, about: str, limit: int) -> WhyAnswer:
        if found := _ENTRY.match(about):
            # Who may not know of a session may not know how long it is.
            self._check(found[1])
            return self._one(about, rows.at(self._tx, found[1], int(found[2])))
        if _POSITION.match(about):
            return self._one(about, rows.at_position(self._tx, int(about)))
        if _REPLY.match(about):
            return WhyAnswer(about=about, found=self._named(about))
        if about.startswith("/"):
            return self._file(os.path.normpath(about), limit)
        raise InvalidInput(
            "ask about SESSION:NUMBER, a position in the journal, an absolute path, or the id of a"
            " call, approval, message or run",
            about=about[:200],
        )

    def _one(self, about: str, entry: TapedEvent) -> WhyAnswer:
        self._check(entry.tape)
        return WhyAnswer(about=about, found=(self._tracer.entry(entry),))

    def _check(self, tape: str) -> None:
        if tape == SYSTEM_TAPE:
            if not self._everything:
                raise Forbidden("the tape of the daemon is for its owner")
            return
        session = sessions.find(self._tx, session_id=tape)
        owner = session.owner if session is not None and self._everything else self._principal
        sessions.get(self._tx, tape, owner)

    def _named(self, name: str) -> tuple[Cause, ...]:
        """Return everything that goes by an id: one can be a run's, its first message's and its
        answer's.
        """
        tx, tracer = self._tx, self._tracer
        found: list[Cause | None] = []
        if sent := rows.replies(tx, name):
            self._check_sent(name)
            found += [messages.reply(tracer, each) for each in sent]
        bare = name[:26]
        if place := rows.approval(tx, bare):
            self._check(place.session_id)
            found.append(tracer.approval(bare))
        if not found and self._everything:
            found += [tracer.notice(bare), messages.received(tx, bare)]
        run = rows.place_of_run(tx, bare)
        call: tuple[str, str] | None = None
        if child := subagents.find(tx, bare):
            # The run of a subagent has the id of the call that it works for.
            call = (child.parent_session_id, child.parent_run_id)
        elif run is None and not any(found):
            call = rows.place_of_call(tx, bare)
        if call is not None:
            self._check(call[0])
            found.append(tracer.call(call[1], bare))
        if run is not None:
            self._check(run[0])
            found.append(tracer.cost(run[1]))
        if not any(found):
            raise NotFound(
                f"nothing here has the id {name}: ask about SESSION:NUMBER, a path, or the id of a"
                " call, approval, message or run",
                about=name,
            )
        return tuple(each for each in found if each is not None)

    def _check_sent(self, name: str) -> None:
        run_id = rows.run_of_message(self._tx, name[:26])
        place = rows.place_of_run(self._tx, run_id) or rows.place_of_call(self._tx, name[:26])
        self._check(place[0] if place else SYSTEM_TAPE)

    def _file(self, path: str, limit: int) -> WhyAnswer:
        found = rows.changes_of(self._tx, self._principal, _places(path), limit + 1)
        if not found:
            raise NotFound(
                f"no call of a session of yours changed {path}, as far as the journal goes",
                about=path,
            )
        trees = tuple(self._tracer.entry(each) for each in found[:limit])
        return WhyAnswer(about=path, found=trees, more=len(found) > limit)


def _places(path: str) -> list[FileMatch]:
    """Return where sessions may have found a file: each folder above it can be a workspace."""
    found: list[FileMatch] = []
    folder = os.path.dirname(path)
    while True:
        found.append(FileMatch(folder, os.path.relpath(path, folder)))
        if folder == os.path.dirname(folder):
            return found
        folder = os.path.dirname(folder)
