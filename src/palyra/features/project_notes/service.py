"""Reviewing notes for agents: what each says, how it differs from what was accepted last, accepting
it and taking that back.

Accepting binds a workspace, a file and a digest. Another content, and the same content elsewhere,
needs an acceptance of its own.
"""

import os
from collections.abc import Sequence
from functools import partial

from palyra.core.errors import Conflict, InvalidInput, NotFound, PalyraError
from palyra.core.sentences import visible
from palyra.features.notices.service import Notices
from palyra.features.project_notes import files as project_notes_files
from palyra.features.project_notes import rows
from palyra.features.project_notes.files import NAMES, Note, NoteFile, NoteState
from palyra.features.project_notes.rows import AcceptedNote
from palyra.store.database import Database
from palyra.system import thread_pool
from palyra.system.redactor import Redactor
from palyra.tools import previews

_MOST_WORKSPACES = 50
# Notices of one workspace about a file each; the others are told of together.
_MOST_TOLD = 3
PAGE = "#/skills/notes"


class ProjectNotes:
    def __init__(self, db: Database, notices: Notices, redactor: Redactor) -> None:
        self._db = db
        self._notices = notices
        self._redactor = redactor

    async def accepted(self, workspace: str) -> frozenset[tuple[str, str]]:
        """Return which contents count in a workspace, as (file, digest)."""
        return await self._db.read(partial(rows.digests, workspace=workspace))

    async def tell(
        self, workspace: str, waiting: Sequence[NoteFile], accepted: frozenset[tuple[str, str]]
    ) -> None:
        """Tell the owner that a run went without these notes: once until they accept something,
        however often a file changes.
        """
        for each in waiting[:_MOST_TOLD]:
            known = ",".join(sorted(digest[:12] for name, digest in accepted if name == each.name))
            text = (
                f"{each.name} in {workspace} is not accepted, so the agent does not follow it."
                " Review it with: palyra notes"
            )
            await self._notices.tell("notes", f"notes:{workspace}:{each.name}:{known}", text, PAGE)
        if len(waiting) > _MOST_TOLD:
            text = (
                f"{len(waiting) - _MOST_TOLD} more notes in {workspace} are not accepted, so the"
                " agent does not follow them. Review them with: palyra notes"
            )
            await self._notices.tell("notes", f"notes:{workspace}:more:{len(accepted)}", text, PAGE)

    async def of(self, workspace: str) -> tuple[Note, ...]:
        """Return the notes of a workspace with their text and diff."""
        return await self._of(workspace, whole=True)

    async def everywhere(self, principal: str) -> tuple[Note, ...]:
        """Return the notes of every workspace in use, without their text."""
        folders = await self._db.read(
            partial(rows.workspaces, owner=principal, limit=_MOST_WORKSPACES)
        )
        return tuple([note for folder in folders for note in await self._of(folder, whole=False)])

    async def _of(self, workspace: str, *, whole: bool) -> tuple[Note, ...]:
        last = await self._db.read(partial(rows.last, workspace=workspace))
        accepted = await self.accepted(workspace)
        return await thread_pool.everyday.run(self._look, workspace, last, accepted, whole)

    def _look(
        self,
        workspace: str,
        last: dict[str, AcceptedNote],
        accepted: frozenset[tuple[str, str]],
        whole: bool,
    ) -> tuple[Note, ...]:
        files = {each.name: each for each in project_notes_files.read(workspace)}
        notes = []
        for name in dict.fromkeys((*files, *sorted(last))):
            file, before = files.get(name), last.get(name)
            if file is None and before is None:
                continue
            state = _state(file, before, accepted)
            text = self._text(file) if file is not None and whole else ""
            notes.append(
                Note(
                    workspace=workspace,
                    file=name,
                    state=state,
                    applies=file.applies if file else "",
                    sha256=file.digest if file else "",
                    size=len(file.body) if file else 0,
                    text=visible(text),
                    diff=_diff(name, before, text) if whole and state in ("new", "changed") else "",
                    problem=file.problem if file else "",
                    accepted_sha256=before.digest if before else "",
                    accepted_by=before.accepted_by if before else "",
                    accepted_ms=before.accepted_ms if before else 0,
                )
            )
        return tuple(notes)

    def _text(self, file: NoteFile) -> str:
        return self._redactor.redact(file.body.decode("utf-8", "replace"))

    async def accept(self, by: str, workspace: str, file: str, digest: str) -> Note:
        """Accept the content with this digest. Raise Conflict if the file has another one now."""
        found, text = await thread_pool.everyday.run(self._found, workspace, file)
        if found.problem:
            raise Conflict(f"{file} cannot be accepted: {found.problem}")
        if found.digest != digest:
            raise Conflict(
                f"{file} has changed since it was shown: review it again, then accept it",
                sha256=found.digest,
            )
        await self._db.write(
            partial(rows.accept, workspace=workspace, file=file, digest=digest, text=text, by=by)
        )
        return next(each for each in await self.of(workspace) if each.file == file)

    def _found(self, workspace: str, file: str) -> tuple[NoteFile, str]:
        files = {each.name: each for each in project_notes_files.read(workspace)}
        if file not in files:
            raise _unknown(workspace, file, tuple(files))
        found = files[file]
        return found, self._text(found)

    async def reject(self, by: str, workspace: str, file: str) -> None:
        """Take every acceptance of a file back: the next run goes without it. The folder may be
        gone.
        """
        place = await thread_pool.everyday.run(_resolved, workspace)
        taken = await self._db.write(partial(rows.forget, workspace=place, file=file, by=by))
        if not taken:
            raise NotFound(
                f"{file} in {place} is not accepted, so the agent does not follow it already"
            )


def _resolved(folder: str) -> str:
    if "\0" in folder:
        raise InvalidInput("a workspace path has no NUL bytes")
    return os.path.realpath(os.path.expanduser(folder))


def _unknown(workspace: str, file: str, there: tuple[str, ...]) -> PalyraError:
    if file in NAMES:
        return NotFound(f"there is no {file} in {workspace}")
    return InvalidInput(
        f"{file[:100]} is no note for agents here: those are {', '.join(NAMES)}, those in its"
        f" folders, and what they import; there {'is' if len(there) == 1 else 'are'}"
        f" {', '.join(there[:8]) or 'none'}",
        file=file[:100],
    )


def _state(
    file: NoteFile | None, before: AcceptedNote | None, accepted: frozenset[tuple[str, str]]
) -> NoteState:
    if file is None:
        return "missing"
    if file.problem:
        return "unusable"
    if (file.name, file.digest) in accepted:
        return "accepted"
    return "changed" if before else "new"


def _diff(name: str, before: AcceptedNote | None, text: str) -> str:
    lines = previews.compared(name, before.text.encode() if before else None, text.encode())[0]
    return lines or "only secrets or bytes that cannot be shown are different"
