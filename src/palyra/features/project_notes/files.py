"""Notes for agents in a workspace: AGENTS.md, CLAUDE.md and PALYRA.md at its top, the first two in
its folders, Copilot's instructions, Cursor's rules, and what these import with `@path`.

A file is read once: the bytes whose digest is checked are the bytes that are used.

The rule: nothing outside the workspace is a note, nor anything behind a link, and looking for notes
costs a bounded time.
"""

import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from typing import Annotated, Literal

from msgspec import Meta, Struct

NoteState = Literal["accepted", "changed", "new", "missing", "unusable"]
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Note(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file as it is now. `text` and `diff` show secrets and invisible characters by a mark;
    lists leave both out.

    `new`: no content of it was ever accepted here. `changed`: another one was. `missing`: the file
    is gone. `unusable`: see `problem`. `applies` says what it is about; empty for everything.
    `diff` is against what was accepted last, which `accepted_sha256`, `accepted_by` and
    `accepted_ms` are about.
    """

    workspace: str
    file: str
    state: NoteState
    applies: str = ""
    sha256: str = ""
    size: int = 0
    text: str = ""
    diff: str = ""
    problem: str = ""
    accepted_sha256: str = ""
    accepted_by: str = ""
    accepted_ms: int = 0

    @property
    def waits(self) -> bool:
        """Return whether somebody should review it: it is there, and runs go without it."""
        return self.state in ("new", "changed")


NAMES = ("AGENTS.md", "CLAUDE.md", "PALYRA.md")
COPILOT = ".github/copilot-instructions.md"
CURSOR_RULES = ".cursor/rules"
_NESTED = ("AGENTS.md", "CLAUDE.md")
# What goes into a prompt, of one file and of all.
LARGEST = 24 << 10
LARGEST_IN_ALL = 64 << 10
# What is read of a file to know it by its digest. No person reviews more.
LARGEST_READ = 256 << 10
# What is looked at in a workspace: the first folders from its top, and the first notes in them.
MOST_FOLDERS = 400
MOST_NAMES = 20_000
MOST_NOTES = 64
MOST_DEEP = 6
# An import of an import of an import is not what anybody reviews.
MOST_IMPORTS_DEEP = 4

# A link could lead out of the workspace, to a file that changes with nobody looking.
LINK = "it is a symbolic link; use a regular file"
_BEHIND_LINK = "it lies behind a symbolic link; use a regular folder"

# Folders of other people's files, and of what programs make.
_PASSED_OVER = frozenset(
    (
        *("node_modules", "bower_components", "vendor", "third_party", "site-packages"),
        *("__pycache__", "venv", "env", "target", "build", "dist", "out", "coverage"),
    )
)
_OPEN = {".github", ".cursor", ".claude"}
_IMPORT = re.compile(r"(?<![\w`@/.])@(~?[\w./-]*[\w-])")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.M | re.S)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?\n?", re.M | re.S)

StampLine = tuple[str, int, int, int, int, int]
Stamp = tuple[StampLine, ...]


class NoteFile(Struct, frozen=True):
    """One file with all of its bytes, or with the reason why it cannot be used. `applies` says what
    it is about. Its `text` begins behind what it says of itself.
    """

    name: str
    body: bytes = b""
    digest: str = ""
    problem: str = ""
    applies: str = ""
    importer: str = ""

    @property
    def text(self) -> bytes:
        if not self.name.endswith(".mdc"):
            return self.body
        found = _FRONT_MATTER.match(self.body.decode("utf-8", "replace"))
        return self.body.decode("utf-8", "replace")[found.end() :].encode() if found else self.body


class NotedFolder(Struct, frozen=True):
    """A folder as it was looked into: the folders in it that are looked into, its notes, and how
    many names it has.
    """

    stamp: StampLine
    inner: tuple[str, ...]
    notes: tuple[str, ...]
    names: int


class FoundNotes(Struct, frozen=True):
    """The notes of a workspace in the order of the prompt, and what tells whether they are still
    those: each folder and file as it was before it was read.
    """

    files: tuple[NoteFile, ...]
    stamp: Stamp
    folders: dict[str, NotedFolder]


def holds(workspace: str, stamp: Stamp) -> bool:
    """Return whether the folders and files are still as they were."""
    return all(_line(workspace, line[0]) == line for line in stamp)


def _line(workspace: str, name: str) -> StampLine:
    """Return what changes with a file. The change time cannot be set back by a program."""
    try:
        about = os.lstat(os.path.join(workspace, name))
    except OSError:
        return (name, 0, 0, 0, 0, 0)
    return (
        name,
        about.st_mtime_ns,
        about.st_ctime_ns,
        about.st_size,
        about.st_ino,
        about.st_mode,
    )


def read(workspace: str) -> tuple[NoteFile, ...]:
    """Return the notes that a workspace has, in the order of the prompt."""
    return find(workspace).files


def find(workspace: str, known: FoundNotes | None = None) -> FoundNotes:
    """Return the notes that a workspace has, and the stamp by which a change of them is seen. Of
    what is known, folders that have not changed are not looked into again.
    """
    folders = _folders(workspace, known.folders if known else {})
    stamps = {name: each.stamp for name, each in folders.items()}
    found = dict[str, NoteFile]()
    for name in _candidates(folders):
        if len(found) < MOST_NOTES:
            _take(workspace, name, stamps, found)
    return FoundNotes(tuple(found.values()), tuple(stamps.values()), folders)


def _take(
    workspace: str,
    name: str,
    stamps: dict[str, StampLine],
    found: dict[str, NoteFile],
    importers: tuple[str, ...] = (),
) -> None:
    """Add a note, and what it imports behind it. What is there already is not added again, so a
    circle of imports ends.
    """
    if name in found or len(found) >= MOST_NOTES:
        return
    stamps.setdefault(name, _line(workspace, name))
    note = read_one(workspace, name)
    if note is None:
        return
    importer = importers[-1] if importers else ""
    applies = f"imported by {importer}" if importer else _applies(note)
    found[name] = NoteFile(name, note.body, note.digest, note.problem, applies, importer)
    if len(importers) < MOST_IMPORTS_DEEP:
        for each, problem in _imports(workspace, note):
            if problem:
                found.setdefault(
                    each, NoteFile(each, problem=problem, applies=f"imported by {name}")
                )
            else:
                _take(workspace, each, stamps, found, (*importers, name))


def _folders(workspace: str, known: dict[str, NotedFolder]) -> dict[str, NotedFolder]:
    """Return the folders that notes are looked for in, from the top of the workspace down."""
    waiting, names = deque([("", 0)]), 0
    found = dict[str, NotedFolder]()
    while waiting and len(found) < MOST_FOLDERS and names < MOST_NAMES:
        folder, depth = waiting.popleft()
        stamp, before = _line(workspace, folder), known.get(folder)
        same = before is not None and before.stamp == stamp
        here = before if same and before else _look_into(workspace, folder, stamp)
        found[folder] = here
        names += here.names
        if depth < MOST_DEEP:
            waiting.extend((each, depth + 1) for each in here.inner)
    return found


def _look_into(workspace: str, folder: str, stamp: StampLine) -> NotedFolder:
    inner, notes, names = list[str](), list[str](), 0
    for entry in _entries(os.path.join(workspace, folder)):
        names += 1
        path = os.path.join(folder, entry.name)
        if entry.is_dir(follow_symlinks=False):
            if _is_open(path) and path.isprintable() and len(path) <= MOST_NAME:
                inner.append(path)
        elif (folder and entry.name in _NESTED and not folder.startswith(".")) or (
            path.startswith(f"{CURSOR_RULES}/") and path.endswith(".mdc") and path.isprintable()
        ):
            notes.append(path)
    return NotedFolder(stamp, tuple(sorted(inner)), tuple(notes), names)


def _candidates(folders: dict[str, NotedFolder]) -> Iterator[str]:
    """Yield the names of notes, from the top of the workspace down."""
    found = [path for each in folders.values() for path in each.notes]
    yield from NAMES
    yield COPILOT
    yield from sorted(path for path in found if path.endswith(".mdc"))
    nested = (path for path in found if not path.endswith(".mdc"))
    yield from sorted(nested, key=lambda path: (path.count("/"), path))


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, MOST_NAMES))
    except OSError:
        return []


def _is_open(path: str) -> bool:
    """Return whether notes are looked for in a folder."""
    if path.startswith("."):
        return path in (".github", ".cursor") or f"{path}/".startswith(f"{CURSOR_RULES}/")
    name = os.path.basename(path)
    return not name.startswith(".") and name not in _PASSED_OVER


def _applies(note: NoteFile) -> str:
    folder = os.path.dirname(note.name)
    if note.name.endswith(".mdc"):
        return _rule(note)
    if not folder or note.name == COPILOT:
        return ""
    return f"files below {folder}; there it wins over the notes above it"


def _rule(note: NoteFile) -> str:
    """Return what a rule of Cursor says that it is for."""
    found = _FRONT_MATTER.match(note.body.decode("utf-8", "replace"))
    said = dict[str, str]()
    key = ""
    for line in found[1].splitlines() if found else ():
        if line.lstrip().startswith("- ") and key:
            said[key] = ", ".join(filter(None, (said[key], _plain(line.lstrip()[2:]))))
            continue
        name, mark, value = line.partition(":")
        if mark and not line[:1].isspace():
            key = name.strip()
            said[key] = _plain(value)
    if said.get("alwaysApply", "").lower() == "true":
        return ""
    if said.get("globs"):
        return f"files that match {said['globs']}"
    if said.get("description"):
        return f"when it is about: {said['description']}"
    return BY_HAND


# A rule that nobody asked for by its name.
BY_HAND = "only when the user names it"


def _plain(value: str) -> str:
    """Return a value of front matter as one line without its quotes and brackets."""
    value = "".join(each for each in value if each.isprintable())
    return value.strip().strip("[]").replace('"', "").replace("'", "").strip()[:200]


def _imports(workspace: str, note: NoteFile) -> Iterator[tuple[str, str]]:
    """Yield what a note imports, with a reason where that cannot be."""
    if note.problem:
        return
    text = _CODE.sub("", note.body.decode("utf-8", "replace"))
    for given in dict.fromkeys(match[1] for match in _IMPORT.finditer(text)):
        if given.startswith(("/", "~")):
            yield f"@{given}"[:100], "it lies outside the workspace"
            continue
        path = os.path.normpath(os.path.join(os.path.dirname(note.name), given))
        if path.startswith("../") or path == "..":
            yield f"@{given}"[:100], "it lies outside the workspace"
        elif len(path) > MOST_NAME or not os.path.isfile(os.path.join(workspace, path)):
            continue  # A name of somebody or of a package, more likely than a file.
        elif any(part.startswith(".") and part not in _OPEN for part in path.split("/")):
            yield path, "hidden files are not imported"
        else:
            yield path, ""


MOST_NAME = 300


def read_one(workspace: str, name: str) -> NoteFile | None:
    """Return one of them, or None if there is no such file or it says nothing."""
    try:
        descriptor = _open(workspace, name)
    except FileNotFoundError:
        return None
    except _Linked as link:
        return NoteFile(name, problem=str(link))
    except OSError as error:
        return NoteFile(name, problem=f"it cannot be read ({error.strerror})")
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return NoteFile(name, problem="it is not a regular file")
        try:
            body = file.read(LARGEST_READ + 1)
        except OSError as error:
            return NoteFile(name, problem=f"it cannot be read ({error.strerror})")
    if len(body) > LARGEST_READ:
        return NoteFile(name, problem=f"it is larger than {LARGEST_READ >> 10} KiB; shorten it")
    return NoteFile(name, body, sha256(body).hexdigest()) if body.strip() else None


class _Linked(Exception):
    pass


def _open(workspace: str, name: str) -> int:
    """Return a descriptor of a file, with no link on the way to it."""
    *folders, last = name.split("/")
    here = os.open(workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            if stat.S_ISLNK(os.lstat(folder, dir_fd=here).st_mode):
                raise _Linked(_BEHIND_LINK)
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(folder, flags, dir_fd=here)
            os.close(here)
            here = inner
        if stat.S_ISLNK(os.lstat(last, dir_fd=here).st_mode):
            raise _Linked(LINK)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(last, flags, dir_fd=here)
    finally:
        os.close(here)
