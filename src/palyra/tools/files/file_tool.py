"""Base of all file tools: their scope is the places their arguments lead to, their subjects go from
narrow to wide.
"""

import os
from typing import ClassVar

import msgspec

from palyra.core.labels import private
from palyra.core.tools import Preview, Scope, Subject, ToolResult, ToolSpec
from palyra.tools import paths
from palyra.tools.catalogue import Arguments
from palyra.tools.paths import PathGuard, WorkspacePath


class FileTool:
    """Base of the file tools. Raises `paths.Refused` from `scope` for what is never allowed."""

    spec: ClassVar[ToolSpec]
    argument_type: ClassVar[type[Arguments]]

    def __init__(self, fence: PathGuard) -> None:
        self._fence = fence

    def places(self, arguments: object, workspace: str) -> tuple[WorkspacePath, ...]:
        """The files and folders that a call is about."""
        raise NotImplementedError

    def scope(self, arguments: object, workspace: str) -> Scope:
        places = self.places(arguments, workspace)
        root = places[0].root if places else os.path.realpath(workspace)
        return Scope(paths=tuple(place.absolute for place in places), workspace=root)

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return subjects(self.spec.name, scope)

    def preview(self, arguments: object, workspace: str) -> Preview:
        shown = ", ".join(place.shown for place in self.places(arguments, workspace))
        return Preview("text", f"{self.spec.name} {shown}")


def from_files(result: ToolResult, *given: str) -> ToolResult:
    """Label what a result shows of these files or folders as the user's own. Named as they were
    asked for: nothing is looked up again.
    """
    return msgspec.structs.replace(
        result, label=private(*(f"file:{_name(path)}" for path in given))
    )


def _name(path: str) -> str:
    return paths.printable(os.path.normpath(path)) if path else "."


def subjects(tool: str, scope: Scope) -> tuple[Subject, ...]:
    """Return what a grant may cover, narrowest first: these paths, their folder, the workspace, the
    tool with anything.
    """
    prefixes: dict[str, None] = {}
    if len(scope.paths) == 1:
        prefixes[scope.paths[0]] = None
    if scope.paths:
        prefixes[os.path.commonpath([os.path.dirname(path) for path in scope.paths])] = None
        prefixes[scope.workspace] = None
    # The folder of the workspace root itself lies outside and must not be offered.
    inside = [
        prefix
        for prefix in prefixes
        if prefix == scope.workspace or prefix.startswith(scope.workspace.rstrip("/") + "/")
    ]
    return (*(Subject(tool, "path_prefix", prefix) for prefix in inside), Subject(tool, "tool"))
