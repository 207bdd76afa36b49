"""`fs.write`: create a file or replace its whole content."""

from hashlib import sha256
from typing import Annotated

from msgspec import Meta

from palyra.core.argument_roles import uses
from palyra.core.errors import Conflict, LimitExceeded, PalyraError
from palyra.core.tools import Limits, ToolResult
from palyra.tools import blocking
from palyra.tools.catalogue import Arguments, declare
from palyra.tools.files import changes
from palyra.tools.files.changes import ChangingTool, Plan
from palyra.tools.files.content import ContentChange
from palyra.tools.files.file_tool import from_files
from palyra.tools.paths import WorkspacePath

_MOST_BYTES = 1 << 20


class WriteArguments(Arguments, frozen=True, kw_only=True):
    path: str
    content: str
    expected_sha256: Annotated[
        str, Meta(pattern=r"^([0-9a-f]{12,64})?$", description="Refuse if the file is another")
    ] = ""


class Write(ChangingTool):
    argument_type = WriteArguments
    spec = declare(
        "fs.write",
        "Create or overwrite a file. To change parts of a file, use fs.patch.",
        WriteArguments,
        effect="reversible",
        capabilities=("fs.write",),
        use=uses(high_impact=False, path="path", content="content"),
        limits=Limits(time_ms=30_000, input_bytes=_MOST_BYTES, output_bytes=8 << 10),
    )

    def places(self, arguments: object, workspace: str) -> tuple[WorkspacePath, ...]:
        assert isinstance(arguments, WriteArguments)
        return (self._fence.place(arguments.path, workspace, writing=True),)

    def plan(self, arguments: object, workspace: str) -> Plan:
        assert isinstance(arguments, WriteArguments)
        (place,) = self.places(arguments, workspace)
        changes.refuse_placeholders("content", arguments.content)
        after = changes.encode("content", arguments.content)
        if len(after) > _MOST_BYTES:
            raise LimitExceeded(
                f"content has {len(after):,} bytes, the limit is {_MOST_BYTES:,}: write it in parts"
                " with fs.patch"
            )
        before = changes.read_before(place)
        if arguments.expected_sha256:
            found = sha256(before.data).hexdigest() if before else "none"
            if not found.startswith(arguments.expected_sha256):
                raise Conflict(
                    f"{place.shown} is not the file you expected (sha256 {found[:16]}): read it"
                    " again",
                    path=place.shown,
                    found=found,
                )
        return Plan((ContentChange(place, before, after),))

    def unchanged(self, arguments: object, workspace: str) -> ToolResult | None:
        assert isinstance(arguments, WriteArguments)
        with blocking.family(self.spec.name):
            try:
                (change,) = self.plan(arguments, workspace).changes
            except (PalyraError, OSError):
                return None
        if change.before is None or change.before.data != change.after:
            return None
        text = f"unchanged {change.place.shown}: it already has this content"
        # That the content is the same says what the file holds.
        return from_files(ToolResult(outcome="ok", text=text), *self.named(arguments))

    def named(self, arguments: object) -> tuple[str, ...]:
        assert isinstance(arguments, WriteArguments)
        return (arguments.path,)

    def report(self, change: ContentChange) -> str:
        assert change.after is not None
        verb = "created" if change.before is None else "overwrote"
        lines = change.after.count(b"\n") + (change.after[-1:] not in (b"", b"\n"))
        digest = sha256(change.after).hexdigest()[:16]
        counted = "1 line" if lines == 1 else f"{lines} lines"
        return (
            f"{verb} {change.place.shown}: {counted}, {len(change.after):,} bytes, sha256 {digest}"
        )
