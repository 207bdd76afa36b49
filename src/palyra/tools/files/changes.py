"""Base of the tools that change files: a plan of whole-file changes, from which preview, checkpoint
and execution all come.

The rule: the plan is made before anything is touched, and again when the call runs, so that what a
person saw, what can be undone and what happens cannot drift apart.
"""

from hashlib import sha256
from threading import Event as Flag
from typing import Any

from msgspec import Struct

from palyra.core.errors import InvalidInput
from palyra.core.ports import CallContext
from palyra.core.redaction import PLACEHOLDER
from palyra.core.tools import Preview, ToolResult
from palyra.tools import blocking, previews
from palyra.tools.files import content
from palyra.tools.files.content import ContentChange
from palyra.tools.files.file_tool import FileTool, from_files
from palyra.tools.paths import WorkspacePath

MOST_FILES = 64
MOST_FILE_BYTES = 8 << 20
# Of all files of a call together: a checkpoint must be able to hold them.
MOST_BYTES = 32 << 20


class Plan(Struct, frozen=True):
    """All that a call would do, worked out against the files as they are now; `remarks` are for the
    model.
    """

    changes: tuple[ContentChange, ...]
    remarks: tuple[str, ...] = ()


class ChangingTool(FileTool):
    """Base of the reversible file tools."""

    def plan(self, arguments: object, workspace: str) -> Plan:
        """Raises a PalyraError, and has touched nothing, if the call cannot be done."""
        raise NotImplementedError

    def named(self, arguments: object) -> tuple[str, ...]:
        """The paths of a call as the model wrote them."""
        raise NotImplementedError

    def report(self, change: ContentChange) -> str:
        """Describe one change for the model, after it was made."""
        raise NotImplementedError

    def preview(self, arguments: object, workspace: str) -> Preview:
        with blocking.family(self.spec.name):
            return previews.of_changes(self.plan(arguments, workspace).changes)

    def checkpoint_paths(self, arguments: object, workspace: str) -> tuple[str, ...]:
        return tuple(place.absolute for place in self.places(arguments, workspace))

    def foresee(self, arguments: object, workspace: str) -> dict[str, str]:
        """The digest that each path will have when the call has run; empty for a file that will be
        gone.
        """
        with blocking.family(self.spec.name):
            changes = self.plan(arguments, workspace).changes
        return {
            change.place.absolute: (
                sha256(change.after).hexdigest() if change.after is not None else ""
            )
            for change in changes
        }

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        def job(stop: Flag) -> ToolResult:
            plan = self.plan(arguments, context.workspace)
            content.apply(plan.changes, stop)
            text = "\n".join(
                [
                    *(self.report(change) for change in plan.changes),
                    *(f"note: {remark}" for remark in plan.remarks),
                ]
            )
            return ToolResult(outcome="ok", text=text, data={"changes": _listed(plan.changes)})

        result = await blocking.results_in(job, self.spec.name, settle=True)
        # What was changed, the model wrote. Why it was not can show lines of a file.
        return result if result.outcome == "ok" else from_files(result, *self.named(arguments))


def placeholder_in(text: str) -> str | None:
    """The first redaction placeholder in a text: it stands for a secret that the model was not
    shown.
    """
    found = PLACEHOLDER.search(text)
    return found.group() if found else None


def refuse_placeholders(what: str, text: str) -> None:
    placeholder = placeholder_in(text)
    if placeholder:
        raise InvalidInput(
            f"{what} contains {placeholder}, which stands for a secret that you were not shown:"
            " writing it would destroy the secret; use fs.patch to change only the lines"
            " around it",
            placeholder=placeholder,
        )


def encode(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} is not valid Unicode: it has a lone surrogate") from None


def read_before(place: WorkspacePath) -> content.Content | None:
    return content.read(place, MOST_FILE_BYTES)


def _listed(changes: tuple[ContentChange, ...]) -> list[dict[str, Any]]:
    return [{"path": change.place.relative, "change": kind_of(change)} for change in changes]


def kind_of(change: ContentChange) -> str:
    if change.after is None:
        return "deleted"
    return "created" if change.before is None else "modified"
