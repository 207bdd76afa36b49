"""Labels of files: what a call has read of files that were written after untrusted content, and
which files it has written so itself.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from msgspec import Struct

from palyra.agent.active_run import ActiveRun
from palyra.core import labels
from palyra.core.events import FileDigest, ToolFinished
from palyra.core.labels import CLEAN, Label
from palyra.core.run_progress import CallProgress
from palyra.core.tools import Scope, ToolResult, ToolSpec
from palyra.store import file_labels
from palyra.store.database import Database, Tx
from palyra.store.file_labels import LabelledFile
from palyra.system import thread_pool

# Of a workspace, so many files are looked at for what a command has changed; if there are more, all
# of it counts as changed.
_MOST_LOOKED_AT = 20_000
_MOST_LABELLED = 200
_MOST_DIGESTED = 16 << 20
# It is looked some time after a command has ended: rather a file too many than one too few.
_SPARE_NS = 2_000_000_000
_SKIPPED = frozenset({".git"})
# Their results name files and show lines of them: only what is named there was read.
_NAMING = frozenset({"fs.list", "fs.search"})
# What they say is what the model wrote.
_WRITING = frozenset({"fs.write"})


def worth_keeping(label: Label) -> bool:
    """Return whether what is written now must be remembered."""
    return label.integrity == "untrusted" or label.confidentiality == "secret"


def joined(found: Iterable[LabelledFile], workspace: str) -> Label:
    """One label for all of these, with the names of the files."""
    label = CLEAN
    for each in found:
        name = f"file:{each.path.removeprefix(workspace.rstrip('/') + '/')}"
        own = labels.untrusted(name) if each.label.integrity == "untrusted" else CLEAN
        label = labels.merge(labels.merge(label, own), each.label)
    return label


def written(call: CallProgress, spec: ToolSpec, finished: ToolFinished) -> list[FileDigest]:
    """The files that a call may have written. Reads the disk: call it on a thread."""
    scope = call.proposed.scope if call.proposed is not None else Scope()
    root = scope.workspace
    if not root:
        return []
    if finished.changes:
        return [
            _digested(os.path.join(root, each.path))
            for each in finished.changes
            if each.change != "deleted"
        ]
    if "process" not in spec.capabilities or scope.harmless or _elsewhere(spec):
        return []
    if isinstance(finished.data, dict) and finished.data.get("job"):
        # Nobody knows when it writes.
        return [FileDigest(root, "")]
    since = time.time_ns() - finished.duration_ms * 1_000_000 - _SPARE_NS
    changed = list(_changed(root, since))
    if len(changed) > _MOST_LABELLED:
        return [FileDigest(root, "")]
    return [_digested(path) for path in changed]


def _elsewhere(spec: ToolSpec) -> bool:
    """Return whether a tool runs on another machine: what it changes here, its result says."""
    return spec.name.startswith("worker:")


def _changed(root: str, since_ns: int) -> Iterator[str]:
    """Files below a folder that were changed since; the folder itself if it is too large."""
    left, waiting = _MOST_LOOKED_AT, [root]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listed:
                for entry in listed:
                    left -= 1
                    if left < 0:
                        yield root
                        return
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in _SKIPPED:
                            waiting.append(entry.path)
                    elif entry.stat(follow_symlinks=False).st_ctime_ns >= since_ns:
                        yield entry.path
        except OSError:
            continue  # It is gone, or nobody may look.


def _digested(path: str) -> FileDigest:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > _MOST_DIGESTED:
                return FileDigest(path, "")
            return FileDigest(path, sha256(file.read()).hexdigest())
    except OSError:
        return FileDigest(path, "")


def rewritten(call: CallProgress, spec: ToolSpec, finished: ToolFinished) -> list[FileDigest]:
    """The files whose whole content is what a model wrote that has read nothing untrusted."""
    if spec.name not in _WRITING or finished.outcome != "ok" or call.proposed is None:
        return []
    return [FileDigest(path, "") for path in call.proposed.scope.paths]


class FileTrace(Struct, frozen=True):
    """Record of what a call did with files: the label of its result, what its model had read by
    then, and the files that it wrote, or wrote from scratch from nothing untrusted.
    """

    label: Label
    read: Label
    wrote: Sequence[FileDigest] = ()
    anew: Sequence[FileDigest] = ()


class FileLabels:
    """Labels that files carry into sessions and out of them. Nearly nobody has a labelled file: as
    long as there is none, nothing is read.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        # None until the store was asked once.
        self._any: bool | None = None

    async def _touched(
        self, paths: Iterable[str], digests: Iterable[str] = ()
    ) -> list[LabelledFile]:
        if self._any is None:
            there = await self._db.read(file_labels.anything)
            # One may have been labelled meanwhile.
            self._any = self._any or there
        if not self._any:
            return []
        return await self._db.read(lambda tx: file_labels.touched(tx, paths, digests))

    async def shown_by(self, spec: ToolSpec, scope: Scope, result: ToolResult) -> Label:
        """The label of the files that a result may show."""
        if not scope.paths or spec.name in _WRITING:
            return CLEAN
        whole = "process" in spec.capabilities and bool(scope.workspace)
        paths = (*scope.paths, scope.workspace) if whole else scope.paths
        digest = result.data.get("sha256") if isinstance(result.data, dict) else ""
        digests = [digest] if isinstance(digest, str) else []
        found = await self._touched(paths, digests)
        if spec.name in _NAMING and len(found) <= _MOST_LABELLED:
            found = [each for each in found if os.path.basename(each.path) in result.text]
        return joined(found, scope.workspace)

    async def given(self, spec: ToolSpec, scope: Scope) -> Label:
        """The label of the files that a call takes along: to a command, a worker or a person."""
        out = not {"process", "message", "network", "browser"}.isdisjoint(
            (*spec.capabilities, *scope.capabilities)
        )
        if not scope.paths or not out or scope.harmless:
            return CLEAN
        return joined(await self._touched(scope.paths), scope.workspace)

    async def trace(
        self,
        run: ActiveRun,
        call: CallProgress,
        spec: ToolSpec,
        finished: ToolFinished,
        result: ToolResult,
    ) -> FileTrace:
        scope = call.proposed.scope if call.proposed is not None else Scope()
        if not scope.workspace:
            return FileTrace(finished.label, CLEAN)
        label = labels.merge(finished.label, await self.shown_by(spec, scope, result))
        read = labels.merge(run.live.conversation.label, label)
        if not worth_keeping(read):
            return FileTrace(label, read, anew=rewritten(call, spec, finished))
        if not finished.changes and "process" not in spec.capabilities:
            return FileTrace(label, read)
        wrote = await thread_pool.everyday.run(written, call, spec, finished)
        return FileTrace(label, read, wrote)

    def keep(self, tx: Tx, run: ActiveRun, traced: FileTrace) -> None:
        """Remember the label of what a call has written."""
        files, label, anew = traced.wrote, traced.read, False
        if not files and traced.anew and self._any is not False:
            label, anew = CLEAN, True
            known = {each.path for each in file_labels.touched(tx, [e.path for e in traced.anew])}
            files = [each for each in traced.anew if each.path in known]
        if files:
            self._any = True
        file_labels.put(
            tx,
            run.principal,
            files,
            label,
            session_id=run.session_id,
            run_id=run.run_id,
            anew=anew,
        )
