"""What a command left behind in a workspace, looked at when it ends and, for one that goes on, now
and then.

Files that programs on the host obey may be changed and are named. What git would take for a
repository and run programs for may not be left behind: see `new_repositories`. What a command may
change in a repository's folder is brought there: see `repositories`.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from threading import Event, Lock

from palyra.core.errors import PalyraError
from palyra.core.obeyed_files import obeyed
from palyra.tools.paths import printable
from palyra.tools.sandbox import new_repositories, repositories
from palyra.tools.sandbox.command import Command
from palyra.tools.sandbox.masks import Look, Mask, Masks
from palyra.tools.sandbox.repositories import Identity, Stage

_MOST_NAMED = 12
_KEPT = "objects, refs, logs, index, HEAD, packed-refs and the last commit message"


class ChangedFiles:
    """Made before a command starts; `masks` are the mounts of its repositories. Blocks on files."""

    def __init__(self, masks: Masks, command: Command, before: Look) -> None:
        self._look_at, self._workspace, self._hidden = masks, command.workspace, command.hidden
        self._holds = command.holds
        self._told = before.told
        self._busy = Lock()
        self._stages: list[Stage] = []
        self.masks: list[Mask] = []
        self._known = set(_identities([*before.repositories, *before.pointers, *before.covered]))
        self._unreadable = set(before.unreadable)
        self._said = set[Identity]()
        self._notes: list[str] = []

    @classmethod
    def staged(cls, masks: Masks, command: Command, before: Look) -> "ChangedFiles":
        """Put a folder of the command's own in the place of each repository's; those it cannot
        write stay read-only.
        """
        made = cls(masks, command, before)
        try:
            for path in before.repositories:
                made._stage(path)
        except BaseException:
            made.close()
            raise
        return made

    def _stage(self, path: str) -> None:
        if len(self._stages) >= repositories.MOST_STAGED:
            self.masks.append(Mask(path, "read_only"))
            return
        try:
            stage = Stage(path)
        except OSError:
            # The daemon may not write there, so neither may the command; a link is not followed.
            if os.path.isdir(path) and not os.path.islink(path):
                self.masks.append(Mask(path, "read_only"))
            return
        self._stages.append(stage)
        self.masks += stage.masks

    def check(self, hold: bool = False) -> None:
        """Look once, while the command goes on. `hold`: what is new comes from it, and what it may
        not leave is put aside.
        """
        with self._busy:
            self._try(functools.partial(self._check, hold=hold and self._holds))

    def finish(self) -> None:
        """Look for the last time: the tree is dead."""
        with self._busy:
            self._try(self._left)
            self._try(functools.partial(self._check, hold=False))
            self.close()

    def take(self) -> tuple[str, ...]:
        """Return what is to be said since the last time."""
        with self._busy:
            notes, self._notes = tuple(dict.fromkeys(self._notes)), []
        return notes

    def close(self) -> None:
        for stage in self._stages:
            stage.close()
        self._stages = []

    def _try(self, look: Callable[[], None]) -> None:
        try:
            look()
        except (OSError, PalyraError) as error:
            self._note(
                f"could not look at everything that the command left behind ({error}): check the"
                " workspace before you use git"
            )

    def _left(self) -> None:
        for stage in self._stages:
            left = stage.left()
            if left:
                self._note(
                    f"not kept: {_listed(left)}. Of a repository's own folder a command changes"
                    f" {_KEPT} and nothing else"
                )

    def _check(self, *, hold: bool) -> None:
        for stage in self._stages:
            if stage.moved():
                for why in stage.sync():
                    self._note(why)
            links = stage.unlink_links()
            if links:
                self._note(
                    f"removed symlinks that git would have written through: {_listed(links)}"
                )
        now = self._opened()
        self._repositories(now)
        changed = sorted(
            path for path in {*self._told, *now.told} if self._told.get(path) != now.told.get(path)
        )
        if hold:
            changed = [path for path in changed if not self._put_aside(path, now)]
        self._told = now.told
        if changed:
            named = [
                f"{self._shown(path)} ({row.who})"
                for path in changed
                if (row := obeyed(self._relative(path))) is not None
            ]
            self._note(
                f"changed files that other programs obey: {_listed(named)}. Review them before you"
                " use those programs"
            )

    def _opened(self) -> Look:
        """Look at everything. A folder that was closed meanwhile is opened: git goes through it,
        although nobody can list it.
        """
        while True:
            now = self._look_at.of(self._workspace, self._hidden, Event(), limited=False)
            closed = [
                path
                for path in now.unreadable
                if path not in self._unreadable and os.path.isdir(path) and not os.path.islink(path)
            ]
            for path in closed:
                self._unreadable.add(path)
                with contextlib.suppress(OSError):
                    os.chmod(path, 0o700)
            if not closed:
                return now

    def _put_aside(self, path: str, now: Look) -> bool:
        """Give a file that programs would obey another name, until a person gives it its own."""
        if path in self._told or path not in now.told:
            # What was there before is mounted read-only: whoever changed it was not the command.
            return False
        new = new_repositories.put_aside(path)
        now.told.pop(path)
        who = row.who if (row := obeyed(self._relative(path))) is not None else "a program"
        self._note(
            f"{self._shown(path)}, which {who} would obey, was renamed to {new}: rename it back if"
            " you want it"
        )
        return True

    def _repositories(self, now: Look) -> None:
        plain = set[Identity]()
        covered = [path for path in now.covered if os.path.isdir(path) and not os.path.islink(path)]
        for path in (*now.repositories, *covered):
            found = repositories.identity(path)
            if found is None or found in self._known:
                continue
            why = new_repositories.dangers(path)
            if why:
                new = new_repositories.put_to_rest(path)
                self._note(
                    f"{self._shown(path)} was made into a git repository with {_listed(why)}, which"
                    f" git on the host would obey: its {new}, so git ignores it"
                )
                continue
            # Looked at again the next time: its settings can still be changed.
            plain.add(found)
            if found not in self._said:
                self._said.add(found)
                self._note(f"made a git repository: {self._shown(path)}")
        for path in (*now.pointers, *(each for each in now.covered if each not in covered)):
            found = repositories.identity(path)
            if found is None or found in self._known:
                continue
            target = new_repositories.leads_to(path)
            if target is None or repositories.identity(target) not in self._known | plain:
                new = new_repositories.put_aside(path)
                self._note(
                    f"{self._shown(path)} pointed git at a folder that the command chose: it was"
                    f" renamed to {new}"
                )

    def _note(self, text: str) -> None:
        self._notes.append(text)

    def _relative(self, path: str) -> str:
        return path[len(self._workspace) :].lstrip("/")

    def _shown(self, path: str) -> str:
        return printable(self._relative(path)) or "."


def _identities(paths: Iterable[str]) -> list[Identity]:
    return [found for path in paths if (found := repositories.identity(path)) is not None]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else shown
