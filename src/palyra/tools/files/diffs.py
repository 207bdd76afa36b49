"""Reading a unified diff as a model writes it.

The rule: what the lines say counts, what the headers count does not; models get line counts wrong.
Whatever the diff asks for that we do not do (renames, modes, binaries) is refused by name, never
skipped.
"""

import re
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core.errors import InvalidInput

Op = Literal[" ", "-", "+"]

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NULL = "/dev/null"
_NOT_DONE = {
    "rename from ": "a rename: create the new file and delete the old one",
    "rename to ": "a rename: create the new file and delete the old one",
    "copy from ": "a copy: create the new file with its content",
    "old mode ": "a change of mode",
    "GIT binary patch": "a binary patch",
    "Binary files ": "a binary patch",
}


class Hunk(Struct, kw_only=True):
    """One place of change. `start` is the old line it claims to begin at, or None if its header has
    no numbers.
    """

    number: int
    start: int | None
    ops: list[tuple[Op, str]] = msgspec.field(default_factory=list)
    old_unended: bool = False
    new_unended: bool = False

    @property
    def old(self) -> list[str]:
        return [text for op, text in self.ops if op != "+"]

    @property
    def new(self) -> list[str]:
        return [text for op, text in self.ops if op != "-"]

    @property
    def added(self) -> list[str]:
        return [text for op, text in self.ops if op == "+"]


class FilePatch(Struct, kw_only=True):
    path: str
    created: bool = False
    deleted: bool = False
    executable: bool = False
    hunks: list[Hunk] = msgspec.field(default_factory=list)


def parse(diff: str) -> list[FilePatch]:
    """The files that a diff changes, in its order."""
    lines = diff.split("\n")
    if any(line.endswith("\r") for line in lines if line.startswith(("--- ", "+++ ", "@@ "))):
        lines = [line.removesuffix("\r") for line in lines]
    if lines and not lines[-1]:
        lines.pop()
    reader = _Reader(lines)
    reader.read()
    if not reader.files:
        raise InvalidInput(
            "diff: there is no file in it; it needs lines such as '--- a/path', '+++ b/path' and"
            " '@@ -1,3 +1,4 @@'"
        )
    for patch in reader.files:
        if not patch.hunks and not (patch.created or patch.deleted):
            raise InvalidInput(
                f"diff: {patch.path} has no hunk; a hunk begins with '@@ -1,3 +1,4 @@'"
            )
    return reader.files


class _Reader:
    """Goes through the lines once; `at` is the line it looks at."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self.files: list[FilePatch] = []
        # What git says above the `---` line, and all it says about a file without content.
        self._git_path = ""
        self._git_fate: Literal["", "created", "deleted"] = ""
        self._git_executable = False

    def read(self) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("diff --git "):
                self._end_git_file()
                self._git_path = _git_path(line)
                self._at += 1
            elif self._begins_file(self._at):
                self._begin_file()
            elif line.startswith("@@"):
                self._read_hunk()
            else:
                self._read_remark(line)
        self._end_git_file()

    def _read_remark(self, line: str) -> None:
        if self._git_path:
            for words, what in _NOT_DONE.items():
                if line.startswith(words):
                    raise InvalidInput(
                        f"diff: {self._git_path}: {what} is not something fs.patch does"
                    )
            if line.startswith(("new file mode ", "deleted file mode ")):
                self._git_fate = "created" if line.startswith("new") else "deleted"
                self._git_executable = line.endswith("755")
        self._at += 1

    def _begins_file(self, at: int) -> bool:
        following = self._lines[at + 1] if at + 1 < len(self._lines) else ""
        return self._lines[at].startswith("--- ") and following.startswith("+++ ")

    def _begin_file(self) -> None:
        old, new = _name(self._lines[self._at]), _name(self._lines[self._at + 1])
        if old.startswith("a/") and (new.startswith("b/") or new == _NULL):
            old = old[2:]
        if new.startswith("b/") and (
            self._lines[self._at].startswith(("--- a/", '--- "a/')) or old == _NULL
        ):
            new = new[2:]
        if old == new == _NULL:
            raise InvalidInput("diff: a file cannot come from and go to /dev/null")
        if _NULL not in (old, new) and old != new:
            raise InvalidInput(
                f"diff: {old} → {new} is a rename, which fs.patch does not do: create the new file"
                " and delete the old one"
            )
        executable = self._git_executable and old == _NULL
        self.files.append(
            FilePatch(
                path=new if old == _NULL else old,
                created=old == _NULL,
                deleted=new == _NULL,
                executable=executable,
            )
        )
        self._git_path, self._git_fate, self._git_executable = "", "", False
        self._at += 2

    def _end_git_file(self) -> None:
        if self._git_path and self._git_fate:
            created = self._git_fate == "created"
            patch = FilePatch(
                path=self._git_path,
                created=created,
                deleted=not created,
                executable=self._git_executable and created,
            )
            self.files.append(patch)
        self._git_path, self._git_fate, self._git_executable = "", "", False

    def _read_hunk(self) -> None:
        if not self.files:
            raise InvalidInput("diff: a hunk comes before any '--- a/path' line")
        header = _HUNK.match(self._lines[self._at])
        hunks = self.files[-1].hunks
        hunk = Hunk(number=len(hunks) + 1, start=int(header[1]) if header else None)
        # How many lines the header promises; without numbers nothing is promised.
        old = int(header[2] or 1) if header else 0
        new = int(header[4] or 1) if header else 0
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("\\"):
                _mark_unended(hunk)
            elif not self._belongs(line, promised=old > 0 or new > 0):
                break
            else:
                op, text = _split(line)
                hunk.ops.append((op, text))
                old -= op != "+"
                new -= op != "-"
            self._at += 1
        if not any(op != " " for op, _ in hunk.ops):
            raise InvalidInput(
                f"diff: {self.files[-1].path}: hunk {hunk.number} neither adds nor removes a line"
            )
        hunks.append(hunk)

    def _belongs(self, line: str, *, promised: bool) -> bool:
        """Return whether a line is part of the hunk that is being read."""
        if line.startswith(("@@", "diff --git ", "```")) and not (
            promised and line.startswith("```")
        ):
            return False
        if self._begins_file(self._at) and not (promised and not self._hunk_follows()):
            return False
        if not line:
            # An empty line is context that lost its space, unless it only ends the diff.
            return promised and any(self._lines[self._at :])
        if line[0] in " +-":
            return line not in ("--", "-- ") or promised
        # Context that lost its space: harmless to accept, since context must be found in the file.
        return promised

    def _hunk_follows(self) -> bool:
        return self._at + 2 >= len(self._lines) or self._lines[self._at + 2].startswith("@@")


def _split(line: str) -> tuple[Op, str]:
    match line[:1]:
        case "+":
            return "+", line[1:]
        case "-":
            return "-", line[1:]
        case " ":
            return " ", line[1:]
        case _:
            return " ", line


def _mark_unended(hunk: Hunk) -> None:
    if hunk.ops:
        op = hunk.ops[-1][0]
        hunk.old_unended |= op != "+"
        hunk.new_unended |= op != "-"


def _name(header: str) -> str:
    """The path of a `---` or `+++` line, without a time stamp."""
    name = header[4:].split("\t")[0]
    if name.startswith('"') and name.rstrip().endswith('"'):
        return _unquote(name.rstrip()[1:-1])
    return name.rstrip() if name.rstrip() == _NULL else name.rstrip("\r")


def _git_path(line: str) -> str:
    names = line[len("diff --git ") :]
    first, second = names[: len(names) // 2], names[len(names) // 2 + 1 :]
    return _unquote(second.strip('"')).removeprefix("b/") if first[2:] == second[2:] else second


def _unquote(name: str) -> str:
    """Git writes unusual names as C strings: octal escapes of their bytes."""
    if "\\" not in name:
        return name
    plain = {"n": b"\n", "t": b"\t", '"': b'"', "\\": b"\\", "r": b"\r"}

    def replace(found: re.Match[str]) -> str:
        code = found[1]
        raw = (
            plain.get(code, b"")
            if len(code) == 1 and not code.isdigit()
            else bytes([int(code, 8) & 0xFF])
        )
        return raw.decode("latin-1")

    escaped = re.sub(r"\\([0-7]{1,3}|.)", replace, name)
    try:
        return escaped.encode("latin-1").decode()
    except UnicodeError:
        return escaped
