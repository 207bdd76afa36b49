"""Repositories that a command made: may they stay as they are, or would git on the host run what
their settings name?

The rule is an allow-list of names and settings. A repository that has anything else is not deleted
but put to rest: its HEAD gets another name, and without one git does not take a folder for a
repository.
"""

import contextlib
import os
import re
import secrets
import stat

from palyra.core.file_names import fold
from palyra.core.obeyed_files import GIT_FILES, GIT_FOLDERS, GIT_LOCKS

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
