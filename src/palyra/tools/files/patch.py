"""`fs.patch`: change parts of files, by a unified diff or by search and replace, all or nothing."""

import re
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from palyra.core.argument_roles import uses
from palyra.core.errors import Conflict, InvalidInput, LimitExceeded, NotFound, PalyraError
from palyra.core.tools import Limits
from palyra.tools.catalogue import Arguments, declare
from palyra.tools.files import changes as files_changes
from palyra.tools.files import diffs, hunks
from palyra.tools.files.changes import MOST_BYTES, MOST_FILES, ChangingTool, Plan
from palyra.tools.files.content import Content, ContentChange
from palyra.tools.files.diffs import FilePatch
from palyra.tools.paths import WorkspacePath

_BOM = "\ufeff"


class Edit(Arguments, frozen=True, kw_only=True):
    path: str
    search: Annotated[str, Meta(min_length=1, description="Text that occurs once")]
    replace: str
    all: bool = False


# A line of a diff that is added or removed, and not one of the two that name files.
_CHANGED = re.compile(r"^(?:\+(?!\+\+ )|-(?!-- ))", re.MULTILINE)


class PatchArguments(Arguments, frozen=True, kw_only=True):
    diff: Annotated[str, Meta(description="Unified diff; /dev/null creates or deletes")] = ""
    edits: Annotated[list[Edit], Meta(description="Or these replacements, in order")] = []

    def __post_init__(self) -> None:
        # Weak models fill in both. A diff that adds and removes nothing says nothing.
        if self.edits and self.diff and _CHANGED.search(self.diff) is None:
            force_setattr(self, "diff", "")


class _Draft(Struct):
    """One file while its changes are worked out; `text` is None while the file does not exist."""

    place: WorkspacePath
    before: Content | None
    text: str | None
    bom: bool = False
    mode: int | None = None


class Patch(ChangingTool):
    argument_type = PatchArguments
    spec = declare(
        "fs.patch",
        "Change up to 64 files, all or nothing, by a unified diff or by search and replace.",
        PatchArguments,
        effect="reversible",
        capabilities=("fs.write",),
        use=uses(high_impact=False, edits="content", diff="content"),
        limits=Limits(time_ms=30_000, input_bytes=1 << 20, output_bytes=16 << 10),
    )

    def places(self, arguments: object, workspace: str) -> tuple[WorkspacePath, ...]:
        assert isinstance(arguments, PatchArguments)
        paths = _paths(arguments)
        places = {
            place.relative: place
            for place in (self._fence.place(path, workspace, writing=True) for path in paths)
        }
        if len(places) > MOST_FILES:
            raise LimitExceeded(
                f"a patch may change {MOST_FILES} files, this one changes {len(places)}: split it"
            )
        return tuple(places.values())

    def plan(self, arguments: object, workspace: str) -> Plan:
        assert isinstance(arguments, PatchArguments)
        drafts = _begin_all(self.places(arguments, workspace))
        remarks: list[str] = []
        if arguments.diff:
            for patch in diffs.parse(arguments.diff):
                draft = drafts[self._fence.place(patch.path, workspace, writing=True).relative]
                remarks += [
                    f"{draft.place.shown}: {remark}" for remark in _apply_patch(draft, patch)
                ]
        for edit in arguments.edits:
            draft = drafts[self._fence.place(edit.path, workspace, writing=True).relative]
            remark = _apply_edit(draft, edit)
            if remark:
                remarks.append(f"{draft.place.shown}: {remark}")
        changes = [
            ContentChange(draft.place, draft.before, _encoded(draft), draft.mode)
            for draft in drafts.values()
        ]
        changes = [
            change
            for change in changes
            if change.after != (change.before.data if change.before else None)
        ]
        if not changes:
            raise InvalidInput("the patch changes nothing")
        return Plan(tuple(changes), tuple(remarks))

    def named(self, arguments: object) -> tuple[str, ...]:
        assert isinstance(arguments, PatchArguments)
        try:
            return tuple(_paths(arguments))
        except PalyraError:
            return ()  # It names no file that could be shown.

    def report(self, change: ContentChange) -> str:
        return f"{files_changes.kind_of(change)} {change.place.shown}"


def _paths(arguments: PatchArguments) -> list[str]:
    if bool(arguments.diff) == bool(arguments.edits):
        raise InvalidInput("fs.patch takes either diff or edits: give one and leave the other out")
    if arguments.diff:
        return [patch.path for patch in diffs.parse(arguments.diff)]
    return [edit.path for edit in arguments.edits]


def _begin_all(places: tuple[WorkspacePath, ...]) -> dict[str, _Draft]:
    drafts: dict[str, _Draft] = {}
    total = 0
    for place in places:
        draft = _begin(place)
        total += len(draft.before.data) if draft.before else 0
        if total > MOST_BYTES:
            raise LimitExceeded(
                f"the files of one patch may have {MOST_BYTES >> 20} MiB together: split it"
            )
        drafts[place.relative] = draft
    return drafts


def _begin(place: WorkspacePath) -> _Draft:
    before = files_changes.read_before(place)
    if before is None:
        return _Draft(place, None, None)
    if b"\0" in before.data:
        raise InvalidInput(
            f"{place.shown} is a binary file, which fs.patch does not change", path=place.shown
        )
    # Bytes that are not UTF-8 survive as they are.
    text = before.data.decode("utf-8", "surrogateescape")
    return _Draft(place, before, text.removeprefix(_BOM), text.startswith(_BOM))


def _encoded(draft: _Draft) -> bytes | None:
    if draft.text is None:
        return None
    return (_BOM * draft.bom + draft.text).encode("utf-8", "surrogateescape")


def _apply_patch(draft: _Draft, patch: FilePatch) -> list[str]:
    name = draft.place.shown
    if patch.created:
        if draft.text is not None:
            raise Conflict(
                f"{name} exists already, and the diff says that it is created", path=name
            )
        draft.text = ""
        draft.mode = 0o755 if patch.executable else None
    if draft.text is None:
        raise NotFound(
            f"{name} does not exist; to create it, let the diff begin with '--- /dev/null'",
            path=name,
        )
    for hunk in patch.hunks:
        for line in hunk.added:
            files_changes.refuse_placeholders(f"{name}: hunk {hunk.number}", line)
            files_changes.encode(f"{name}: hunk {hunk.number}", line)
    text = hunks.FileLines.of(draft.text)
    try:
        remarks = hunks.apply_hunks(text, patch.hunks, name)
    except Conflict as misfit:
        raise _with_hint(misfit, [line for hunk in patch.hunks for line in hunk.old]) from None
    draft.text = str(text)
    if patch.deleted:
        if draft.text:
            raise Conflict(f"{name}: the diff deletes the file but not all of its lines", path=name)
        draft.text = None
    return remarks


def _apply_edit(draft: _Draft, edit: Edit) -> str:
    name = draft.place.shown
    if draft.text is None:
        raise NotFound(f"{name} does not exist; create it with fs.write", path=name)
    files_changes.refuse_placeholders(f"{name}: replace", edit.replace)
    files_changes.encode(f"{name}: replace", edit.replace)
    if edit.all and edit.search in draft.text:
        draft.text = draft.text.replace(edit.search, edit.replace)
        return ""
    try:
        draft.text, remark = hunks.replace_once(draft.text, edit.search, edit.replace, name)
    except Conflict as misfit:
        raise _with_hint(misfit, [edit.search]) from None
    return remark


def _with_hint(misfit: Conflict, old: list[str]) -> Conflict:
    """Text that was redacted cannot be found in the file: say so."""
    if not any(files_changes.placeholder_in(line) for line in old):
        return misfit
    said = (
        f"{misfit.message}\nit looks for a redaction placeholder, which is not in the file: leave"
        " that line out"
    )
    return Conflict(said, **misfit.details)
