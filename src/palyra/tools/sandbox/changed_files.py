"""Changes that a command left in a workspace, checked when it ends and, for one that continues, now
and then.

Files that programs on the host obey may be changed and are named. Files that git would take for a
repository and run programs for may not be left behind: see `new_repositories`. What a command may
change in a repository's folder is brought there: see `repositories`.

Repositories that a command made: may they stay as they are, or would git on the host run what their
settings name?

The rule is an allow-list of names and settings. A repository that has anything else is not deleted
but disabled: its HEAD gets another name, and without one git does not take a folder for a
repository.
"""

import contextlib
import functools
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Sequence
from threading import Event, Lock

from palyra.core.errors import PalyraError
from palyra.core.input_checks import fold
from palyra.core.obeyed_files import GIT_FILES, GIT_FOLDERS, GIT_LOCKS, obeyed
from palyra.tools.paths import printable
from palyra.tools.sandbox import repositories
from palyra.tools.sandbox.command import Command
from palyra.tools.sandbox.masks import Look, Mask, Masks
from palyra.tools.sandbox.repositories import Identity, Stage

HELD = "palyra-held"
_LARGEST = 256 << 10
_STATES = (
    "MERGE_HEAD MERGE_MSG MERGE_MODE MERGE_RR AUTO_MERGE CHERRY_PICK_HEAD REVERT_HEAD SQUASH_MSG"
)
_PLAIN_FILES = (
    GIT_FILES
    | GIT_LOCKS
    | {"description", "shallow", "gc.log", "gc.pid"}
    | frozenset(_STATES.split())
)
_EMPTY_FOLDERS = frozenset({"branches", "worktrees", "rr-cache"})
_INFO = frozenset({"exclude", "refs", "sparse-checkout"})
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"([^"\\\n]*)")?\s*\]')
_SETTING = re.compile(r'([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(?:"([^"\\]*)"|([^"\\#;]*)))?')
# Settings that choose among what git can do by itself. What names a program, a folder or another
# file is not among them.
_SETTINGS = {
    "core": (
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode"
        " symlinks autocrlf eol safecrlf abbrev quotepath protecthfs protectntfs sharedrepository"
        " compression bigfilethreshold"
    ),
    "extensions": "objectformat refstorage partialclone",
    "user": "name email",
    "author": "name email",
    "committer": "name email",
    "init": "defaultbranch",
    "remote": "url pushurl fetch push tagopt prune promisor partialclonefilter mirror",
    "branch": "remote merge rebase",
    "submodule": "url active",
    "pull": "rebase ff",
    "push": "default autosetupremote",
    "merge": "ff conflictstyle",
    "rebase": "autostash autosquash",
    "fetch": "prune",
    "gc": "auto",
    "advice": "detachedhead defaultbranchname",
    "receive": "denycurrentbranch",
}
_ALLOWED = {section: frozenset(names.split()) for section, names in _SETTINGS.items()}


def dangers(path: str) -> list[str]:
    """Return what in a repository's folder is not on the list; nothing if it may stay."""
    found = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                found += _entry(entry)
    except OSError as error:
        return [f"it cannot be read ({error.strerror})"]
    return sorted(found)


def _entry(entry: os.DirEntry[str]) -> list[str]:
    name = entry.name
    if entry.is_symlink():
        return [f"{name} is a symlink"]
    if entry.is_file(follow_symlinks=False):
        if name == "config":
            return _settings(entry.path)
        return [] if name in _PLAIN_FILES or name.startswith("sharedindex.") else [name]
    if name == "objects":
        return _within(entry.path, "info", frozenset({"packs", "commit-graph", "commit-graphs"}))
    if name in GIT_FOLDERS:
        return []
    below = _names(entry.path)
    match name:
        case "hooks":
            return [f"hooks/{each}" for each in below if not each.endswith(".sample")]
        case "info":
            return [f"info/{each}" for each in below if each not in _INFO]
        case "modules":
            return [
                f"modules/{each}: {why}"
                for each in below
                for why in dangers(os.path.join(entry.path, each))
            ]
        case _ if name in _EMPTY_FOLDERS:
            return [f"{name}/{each}" for each in below]
        case _:
            return [name]


def _within(path: str, folder: str, allowed: frozenset[str]) -> list[str]:
    inside = os.path.join(path, folder)
    if os.path.islink(inside):
        return [f"{os.path.basename(path)}/{folder} is a symlink"]
    return [
        f"{os.path.basename(path)}/{folder}/{each}"
        for each in _names(inside)
        if each not in allowed
    ]


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _settings(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        return [f"config cannot be read ({error.strerror})"]
    if len(text) > _LARGEST:
        return ["config is too long to be checked"]
    return unknown_settings(text)


def unknown_settings(text: str) -> list[str]:
    """Return the settings of a git configuration that are not on the list, and the lines that
    cannot be read for certain.
    """
    found: list[str] = []
    section = ""
    for line in text.split("\n"):
        line = line.strip(" \t")
        heading = _SECTION.match(line)
        if heading:
            section = heading[1].lower()
            line = line[heading.end() :].strip(" \t")
        if not line or line.startswith(("#", ";")):
            continue
        setting = _SETTING.fullmatch(line)
        if setting is None:
            found.append(f"a line of config that cannot be read ({line[:40]!r})")
            continue
        name, value = setting[1].lower(), (setting[2] or setting[3] or "").strip()
        if name not in _ALLOWED.get(section, ()) or not _plain(name, value):
            found.append(f"{section}.{name}")
    return found


def _plain(name: str, value: str) -> bool:
    """An address can name a program that git starts to speak to it: `ext::sh -c …`, or an
    option.
    """
    if any(ord(char) < 32 for char in value):
        return False
    return name not in ("url", "pushurl") or not ("::" in value or value.startswith("-"))


def put_to_rest(path: str) -> str:
    """Rename the HEAD of a repository, and then its folder, if git looks for that by name. Return
    what is called what now.
    """
    head = f"HEAD is {_renamed(os.path.join(path, 'HEAD'))} now"
    # A submodule whose `.git` is no repository makes `git status` fail; one without it does not.
    return (
        f"{head}, the folder {_renamed(path)}" if fold(os.path.basename(path)) == ".git" else head
    )


def put_aside(pointer: str) -> str:
    """Rename a `.git` file or link. Return its new name."""
    return _renamed(pointer)


def leads_to(pointer: str) -> str | None:
    """Return the folder that a `.git` file or link names; None if it names none."""
    try:
        if stat.S_ISLNK(os.lstat(pointer).st_mode):
            return os.path.realpath(pointer)
        descriptor = os.open(pointer, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read(8 << 10)
    if not text.startswith("gitdir: "):
        return None
    return os.path.realpath(
        os.path.join(os.path.dirname(pointer), text[len("gitdir: ") :].rstrip("\r\n"))
    )


def _renamed(path: str) -> str:
    new = f"{path}.{HELD}-{secrets.token_hex(3)}"
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, new)
    return os.path.basename(new)


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
        new = put_aside(path)
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
            why = dangers(path)
            if why:
                new = put_to_rest(path)
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
            target = leads_to(path)
            if target is None or repositories.identity(target) not in self._known | plain:
                new = put_aside(path)
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
