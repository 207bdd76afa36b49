"""The skills of a daemon: installed, shown, kept apart until somebody vouches for them, removed.

The rule: a record says which bytes were confirmed and what they may do. Files are read only while
they still are those bytes, and the record is replaced in one rename, so an install has happened or
it has not.
"""

import fcntl
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec import Struct

from palyra.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from palyra.features.skills import front_matter, manifest, package, wasm
from palyra.features.skills.engine import new_engine
from palyra.features.skills.front_matter import Head
from palyra.features.skills.manifest import Manifest, Permission, ToolEntry
from palyra.features.skills.module_cache import Modules
from palyra.features.skills.package import Package, Publishers
from palyra.features.skills.records import Record, SkillRecords, State, sync, write_new
from palyra.store.row_seals import RowSeals
from palyra.tools import archives

Source = Path | bytes


class Proposal(Struct, frozen=True, kw_only=True):
    """Preview of an installation. To install, give the same source with `confirm` set to
    `digest`.
    """

    name: str
    description: str
    version: str
    digest: str
    permissions: tuple[Permission, ...]
    # What the installed version was not granted; everything, if none is installed.
    added: tuple[Permission, ...]
    # What the installed version was granted and this one does not ask for.
    dropped: tuple[Permission, ...] = ()
    # Files that are not as they are installed: "new", "changed" or "gone".
    changes: dict[str, str] = {}
    updates: bool
    signer: str
    publisher: str
    state: State
    # The installed version, if this one is older: whoever says yes has seen it.
    older_than: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(permission.words for permission in self.permissions) or (
            "nothing: it has instructions only",
        )


class Listed(Struct, frozen=True, kw_only=True):
    """A skill as it is now. `problem` says why it is not offered although its state would allow
    it.
    """

    record: Record
    state: State
    publisher: str
    problem: str = ""


# 1.2.3, v1.2, 2.0.0-beta.1; what stands behind a plus says nothing about the order.
_VERSION = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,5})(-[0-9A-Za-z.-]+)?(?:\+.*)?$")


class _Checked(Struct, frozen=True):
    package: Package
    head: Head
    manifest: Manifest
    signer: str

    @property
    def digests(self) -> dict[str, str]:
        return {path: sha256(data).hexdigest() for path, data in self.package.files.items()}


class Skills:
    """Store of skills. It blocks on files, and `look` and `install` compile: call it off the event
    loop.
    """

    def __init__(
        self,
        folder: Path,
        *,
        cache: Path | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        seals: RowSeals | None = None,
    ) -> None:
        """`seals` makes records that anybody else wrote count for nothing."""
        self._folder = folder
        self._records = SkillRecords(folder / "records", seals)
        self._installed = folder / "installed"
        self._now_ms = now_ms
        self.modules = Modules(cache or folder / "compiled")
        self.publishers = Publishers(folder / "publishers.toml")

    def look(self, source: Source, *, generated: bool = False) -> Proposal:
        """Check a folder, a zip file or its bytes, and say what it asks for. Changes nothing but
        the cache of compiled modules.
        """
        return self._proposal(self._checked(source), generated=generated)

    def install(
        self, source: Source, *, confirm: str = "", generated: bool = False
    ) -> Record | Proposal:
        """Install or update. What asks for something new comes back as a proposal until it is
        confirmed by its digest.
        """
        checked = self._checked(source)
        with self._locked():
            proposal = self._proposal(checked, generated=generated)
            if confirm and confirm != proposal.digest:
                raise Conflict(
                    f"{proposal.name} is not what was confirmed: look at it again",
                    digest=proposal.digest,
                )
            if not confirm and (proposal.added or not proposal.updates or proposal.older_than):
                return proposal
            return self._put(checked, proposal, generated=generated)

    def _checked(self, source: Source) -> _Checked:
        skill = package.of_archive(source) if isinstance(source, bytes) else package.read(source)
        head = front_matter.read(skill.files["SKILL.md"])
        signer = package.signer(skill) or ""
        told = skill.files.get("skill.toml")
        wanted = manifest.read(told) if told is not None else Manifest()
        if wanted.tools:
            _require_packages()
        for tool in wanted.tools:
            if tool.module not in skill.files:
                raise InvalidInput(
                    f"tool {tool.name!r}: there is no file {tool.module[:120]!r} in the skill"
                )
            manifest.checker(tool.name, tool.arguments)
            wasm.check(self.modules.load(new_engine(), skill.files[tool.module]), tool.wants)
        return _Checked(skill, head, wanted, signer)

    def _proposal(self, checked: _Checked, *, generated: bool) -> Proposal:
        before = self._records.find(checked.head.name)
        asked = manifest.permissions(checked.manifest)
        publisher = "" if generated else self.publishers.name_of(checked.signer)
        digest = checked.package.digest
        state: State = "trusted" if publisher else "quarantined"
        granted = before.granted if before else ()
        if before is not None and before.digest == digest and before.state != "quarantined":
            state = before.state
        return Proposal(
            name=checked.head.name,
            description=checked.head.description,
            version=checked.head.version,
            digest=digest,
            permissions=asked,
            added=manifest.added(granted, asked),
            dropped=manifest.added(asked, granted),
            changes=_changes(before.files, checked.digests) if before else {},
            updates=before is not None,
            signer=checked.signer,
            publisher=publisher,
            state=state,
            older_than=(
                before.version
                if before is not None and _older(checked.head.version, before.version)
                else ""
            ),
        )

    def _put(self, checked: _Checked, proposal: Proposal, *, generated: bool) -> Record:
        before = self._records.find(proposal.name)
        same = before is not None and before.digest == proposal.digest
        record = Record(
            name=proposal.name,
            description=proposal.description,
            version=proposal.version,
            digest=proposal.digest,
            folder=f"{proposal.name}@{proposal.digest[:12]}-{secrets.token_hex(4)}",
            files=checked.digests,
            granted=proposal.permissions,
            state=proposal.state,
            vouched=(
                "publisher" if proposal.publisher else before.vouched if same and before else ""
            ),
            signer=proposal.signer,
            signature=checked.package.signature.decode() if proposal.signer else "",
            generated=generated,
            installed_ms=self._now_ms(),
        )
        self._unpack(record.folder, checked.package.files)
        self._records.put(record)
        self._sweep()
        return record

    def _unpack(self, name: str, files: dict[str, bytes]) -> None:
        """Write all files into a new folder, then give it its name."""
        temporary = self._installed / f".new-{secrets.token_hex(8)}"
        temporary.mkdir(mode=0o700, parents=True)
        for path, data in files.items():
            where = temporary.joinpath(*package.check_path(path).split("/"))
            where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_new(where, data)
        temporary.rename(self._installed / name)
        sync(self._installed)

    def sweep(self) -> None:
        """Remove what a crash left behind."""
        if self._installed.is_dir():
            with self._locked():
                self._sweep()

    def _sweep(self) -> None:
        """Remove what updates, removals and crashes left behind."""
        kept = {record.folder for record in self._records.all()}
        left = (
            [folder for folder in self._installed.iterdir() if folder.name not in kept]
            if self._installed.is_dir()
            else []
        )
        if left:
            # It brings three packers along, which a start should not wait for.
            import shutil

            for folder in left:
                shutil.rmtree(folder, ignore_errors=True)

    def set_state(self, name: str, state: State) -> Record:
        """The operator's word: `trusted` content counts as their own, `enabled` is offered and
        labelled, `quarantined` is not.
        """
        with self._locked():
            record = self._existing(name)
            problem = self._damage(record)
            if problem and state != "quarantined":
                raise Conflict(f"{name}: {problem}")
            changed = msgspec.structs.replace(
                record, state=state, vouched="" if state == "quarantined" else "operator"
            )
            self._records.put(changed)
            return changed

    def remove(self, name: str) -> None:
        with self._locked():
            self._existing(name)
            self._records.remove(name)
            self._sweep()

    def all(self) -> list[Listed]:
        """Return every installed skill, by name, with the state it really has now."""
        return [self._listed(record) for record in self._records.all()]

    def get(self, name: str) -> Listed:
        return self._listed(self._existing(name))

    def _listed(self, record: Record) -> Listed:
        try:
            publisher = self.publishers.name_of(record.signer)
        except InvalidInput:
            # Nobody vouches for anything while the list cannot be read.
            publisher = ""
        problem, state = self._damage(record), record.state
        if record.vouched == "publisher" and not publisher:
            problem = problem or "its publisher is not trusted any more"
        return Listed(
            record=record,
            state="quarantined" if problem else state,
            publisher=publisher,
            problem=problem,
        )

    def _damage(self, record: Record) -> str:
        """Return why the files are not those that were confirmed, or "" if they are."""
        if package.digest(record.files) != record.digest:
            return "its record was changed: install it again"
        for path in record.files:
            try:
                self.read(record, path)
            except (Conflict, NotFound):
                return f"{path} was changed after it was installed: install it again"
        return ""

    def read(self, record: Record, path: str) -> bytes:
        """A file of a skill, if it still is what was confirmed."""
        wanted = record.files.get(path)
        if wanted is None:
            raise NotFound(
                f"the skill {record.name} has no file {path[:120]!r}; it has"
                f" {', '.join(sorted(record.files))[:500]}"
            )
        try:
            descriptor = os.open(
                self._installed / record.folder / path,
                os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
            )
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(archives.MOST_FILE_BYTES + 1)
        except OSError:
            data = b""
        if sha256(data).hexdigest() != wanted:
            raise Conflict(
                f"{path} of the skill {record.name} was changed after it was installed: install it"
                " again"
            )
        return data

    def export(self, record: Record) -> bytes:
        """The skill as a zip file, with its signature; the same skill gives the same bytes."""
        files = {path: self.read(record, path) for path in record.files}
        if record.signature:
            files[package.SIGNATURE] = record.signature.encode()
        return package.to_zip(files)

    def check_current(self, record: Record) -> None:
        """Refuse what a record said if the skill was updated, removed or judged anew since. One
        small file, for every call.
        """
        now = self._records.find(record.name)
        if now is None or (now.folder, now.state) != (record.folder, record.state):
            raise Conflict(f"the skill {record.name} was changed or removed meanwhile")

    def instructions(self, record: Record) -> str:
        return front_matter.read(self.read(record, "SKILL.md")).body

    def entries(self, record: Record) -> tuple[ToolEntry, ...]:
        """The tools of a skill, as its manifest has them. More than was granted is nothing that was
        ever confirmed.
        """
        if "skill.toml" not in record.files:
            return ()
        found = manifest.read(self.read(record, "skill.toml"))
        if manifest.added(record.granted, manifest.permissions(found)):
            raise Conflict(
                f"the skill {record.name} asks for more than was granted: install it again"
            )
        return found.tools

    def adopt(self) -> None:
        """Seal the records from before there was a key, as they are."""
        with self._locked():
            self._records.adopt()

    def _existing(self, name: str) -> Record:
        record = self._records.find(front_matter.check_name(name))
        if record is None:
            raise NotFound(f"there is no skill {name!r}", skill=name)
        return record

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _older(version: str, other: str) -> bool:
    """Return whether a version comes before another. Numbers count part by part; what has none of
    them is not compared.
    """
    one, two = _numbers(version), _numbers(other)
    return bool(one and two) and one < two


def _numbers(version: str) -> tuple[tuple[int, ...], int]:
    found = _VERSION.match(version.strip())
    if found is None:
        return ()  # type: ignore[return-value]
    numbers = [int(each) for each in found[1].split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    # What is said behind a dash comes before the version itself.
    return tuple(numbers), 0 if found[2] else 1


def _changes(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    found = {
        path: "changed" if path in before else "new"
        for path, digest in after.items()
        if before.get(path) != digest
    }
    return dict(sorted({**found, **{path: "gone" for path in before if path not in after}}.items()))


def _require_packages() -> None:
    missing = [
        name
        for name, module in (("jsonschema-rs", "jsonschema_rs"), ("wasmtime", "wasmtime"))
        if find_spec(module) is None
    ]
    if missing:
        raise Unavailable(
            f"this skill has tools, and they need packages that are missing ({', '.join(missing)}):"
            " install palyra with the extra skills (palyra[skills]), and start the daemon again"
        )
