"""Sessions as verbs: resolve, list, search, reset, branch, archive, rename."""

import os
import pwd
from functools import cache

from msgspec import Struct

from palyra.agent.runs import Runs
from palyra.core import ids
from palyra.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from palyra.core.events import SessionChanged, SessionCreated
from palyra.core.input_checks import check_line
from palyra.store import runs, sessions, tape
from palyra.store.database import Database, Tx
from palyra.store.sessions import Session
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

_LONGEST_NAME = 200
# What belongs to the kernel and to every program of the machine.
_SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/boot")
# Folders of anybody's own in memory.
_SCRATCH = "/dev/shm/"
# The numbers that Linux gives to people, below the one for nobody.
_FIRST_PERSON, _NOBODY = 1_000, 65_534


class Resolve(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Find a session by id, key or label, or make one. With `must_exist` a missing one is
    `not_found`.
    """

    session_id: str = ""
    key: str = ""
    label: str = ""
    title: str = ""
    workspace: str = ""
    device: str = ""
    channel: str = ""
    must_exist: bool = False


class Sessions:
    def __init__(
        self,
        db: Database,
        runs_: Runs,
        redactor: Redactor,
        clock: Clock,
        *,
        default_workspace: str,
        forbidden_roots: tuple[str, ...],
    ) -> None:
        self._db = db
        self._runs = runs_
        self._redactor = redactor
        self._clock = clock
        self._default_workspace = default_workspace
        self._forbidden = forbidden_roots

    @property
    def default_workspace(self) -> str:
        """Return where a session works by default; empty if it has no workspace then."""
        return self._default_workspace

    async def resolve(self, principal: str, wanted: Resolve) -> Session:
        return (await self.find_or_create(principal, wanted))[0]

    async def find_or_create(
        self, principal: str, wanted: Resolve, *, folder: str | None = None
    ) -> tuple[Session, bool]:
        """The session, and whether it was made just now. `folder` stands for the default workspace;
        empty: it has none.
        """
        for name in ("key", "label", "title", "device", "channel"):
            if len(getattr(wanted, name)) > _LONGEST_NAME:
                raise InvalidInput(f"{name} may have {_LONGEST_NAME} characters")
            check_line(name, _folded(wanted.title) if name == "title" else getattr(wanted, name))
        if wanted.session_id:
            ids.check(wanted.session_id, "session_id")
        workspace = self.workspace(
            wanted.workspace or (self._default_workspace if folder is None else folder)
        )
        new_id = wanted.session_id or self._clock.new_id()
        redact = self._redactor.redact
        created = SessionCreated(
            owner=principal,
            key=redact(wanted.key),
            label=redact(wanted.label),
            title=sessions.title_from(redact(wanted.title)),
            device=redact(wanted.device),
            channel=redact(wanted.channel),
            workspace=workspace,
        )

        def step(tx: Tx) -> tuple[Session, bool]:
            found = None
            if wanted.session_id or created.key or created.label:
                found = sessions.find(
                    tx,
                    session_id=wanted.session_id,
                    key=created.key,
                    label=created.label,
                    owner=principal,
                    device=created.device,
                )
            if found is not None:
                if found.owner != principal:
                    raise Forbidden("this session belongs to someone else")
                _check_same(found, wanted)
                return found, False
            if wanted.must_exist:
                raise NotFound(
                    "there is no such session",
                    session_id=wanted.session_id,
                    key=wanted.key,
                    label=wanted.label,
                )
            if wanted.session_id and created.key and sessions.find(tx, key=created.key) is not None:
                raise Conflict(
                    "another session has this key: leave the session_id out to find it",
                    key=created.key,
                )
            return sessions.create(tx, new_id, created), True

        return await self._db.write(step)

    def workspace(self, given: str) -> str:
        """Return the resolved folder that a session works in. Raise Forbidden for a folder of the
        system, the daemon or others.
        """
        if not given:
            return ""
        if "\0" in given:
            raise InvalidInput("a workspace path has no NUL bytes")
        path = os.path.realpath(os.path.expanduser(given))
        if not os.path.isdir(path):
            raise InvalidInput(
                f"the workspace {given} is not a folder: create it, or name another",
                workspace=given,
            )
        if path == "/":
            raise Forbidden("the whole machine is too wide a workspace: name a folder")
        for root, whose in (*((root, "the system") for root in _SYSTEM), *_homes_of_others()):
            if _overlap(path, root) and not path.startswith(_SCRATCH):
                raise Forbidden(
                    f"the workspace {given} belongs to {whose} ({root}): name a folder of your own",
                    workspace=given,
                )
        for root in self._forbidden:
            if _overlap(path, root):
                raise Forbidden(
                    f"the workspace {given} contains or lies in the daemon's own folder {root}:"
                    " name another"
                )
        return path

    async def get(self, principal: str, session_id: str) -> Session:
        ids.check(session_id, "session_id")
        return await self._db.read(
            lambda tx: sessions.get(tx, session_id, principal, in_segment=True)
        )

    async def listing(
        self, principal: str, *, archived: bool, before: str, limit: int, device: str = ""
    ) -> list[Session]:
        """`before` is the id of the last session of the page before. With `device`, list only the
        sessions made there.
        """
        if before:
            ids.check(before, "before")

        def query(tx: Tx) -> list[Session]:
            last = sessions.find(tx, session_id=before) if before else None
            at = (last.updated_ms, last.session_id) if last else None
            return sessions.listing(
                tx, principal, archived=archived, before=at, limit=limit, device=device
            )

        return await self._db.read(query)

    async def reset(self, principal: str, session_id: str) -> Session:
        """The next run starts with an empty conversation. What runs or waits is cancelled first."""
        session = await self.get(principal, session_id)
        for run in reversed(
            await self._db.read(lambda tx: runs.unfinished_of_session(tx, session_id))
        ):
            await self._runs.cancel(run, "the session was reset")

        def step(tx: Tx) -> Session:
            if runs.unfinished_of_session(tx, session_id):
                raise Conflict("a run began while the session was being reset: try again")
            sessions.reset(tx, session)
            return sessions.get(tx, session_id, principal)

        return await self._db.write(step)

    async def branch(self, principal: str, session_id: str, at: int | None, title: str) -> Session:
        """A new session that continues from a position of this one; without a position, from its
        end.
        """
        ids.check(session_id, "session_id")
        child_id = self._clock.new_id()
        check_line("title", _folded(title))
        title = self._redactor.redact_head(title, _LONGEST_NAME)

        def step(tx: Tx) -> Session:
            parent = sessions.get(tx, session_id, principal)
            last = tape.head(tx, session_id)
            position = last if at is None else at
            if not 1 <= position <= last:
                raise InvalidInput(f"the tape has entries 1 to {last}, not {position}", last=last)
            name = sessions.title_from(title or f"{parent.title or 'session'} (branch)")
            return sessions.branch(tx, parent, position, child_id, name)

        return await self._db.write(step)

    async def change(
        self,
        principal: str,
        session_id: str,
        *,
        title: str | None,
        archived: bool | None,
        kept: bool | None = None,
        model: str | None = None,
    ) -> Session:
        ids.check(session_id, "session_id")
        if title is not None:
            check_line("title", _folded(title))
            title = sessions.title_from(self._redactor.redact_head(title, _LONGEST_NAME))
        if title is None and archived is None and kept is None and model is None:
            raise InvalidInput("nothing to change: give a title, archived, kept, or model")

        def step(tx: Tx) -> Session:
            session = sessions.get(tx, session_id, principal)
            if archived and runs.unfinished_of_session(tx, session_id):
                raise Conflict("a run is active in this session: stop it before archiving")
            return sessions.change(
                tx, session, SessionChanged(title=title, archived=archived, kept=kept, model=model)
            )

        return await self._db.write(step)


def _folded(title: str) -> str:
    """Return a title as it is kept: what is broken into lines is one line."""
    return " ".join(title.split())


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")


@cache
def _homes_of_others() -> tuple[tuple[str, str], ...]:
    """Return the home folders of the machine's other people, each with whose it is."""
    return tuple(
        (os.path.realpath(user.pw_dir), f"the user {user.pw_name}")
        for user in pwd.getpwall()
        if user.pw_uid != os.getuid()
        and (user.pw_uid == 0 or _FIRST_PERSON <= user.pw_uid < _NOBODY)
        and user.pw_dir.count("/") > 0
        if os.path.realpath(user.pw_dir) != "/"
        and not _overlap(os.path.realpath(user.pw_dir), os.path.expanduser("~"))
    )


def _check_same(found: Session, wanted: Resolve) -> None:
    """Owner, device and channel are fixed at creation."""
    for name in ("device", "channel"):
        given = getattr(wanted, name)
        if given and given != getattr(found, name):
            raise Forbidden(f"the session's {name} is fixed at creation and is another one")
