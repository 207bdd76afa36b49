"""The tools about files and results that every daemon has, in the order a model sees them."""

from palyra.tools.artifact_read import ArtifactRead, Load
from palyra.tools.catalogue import TypedTool
from palyra.tools.files.list import List
from palyra.tools.files.patch import Patch
from palyra.tools.files.read import FileRead
from palyra.tools.files.search import FileSearch
from palyra.tools.files.write import Write
from palyra.tools.paths import PathGuard


def tools(fence: PathGuard, load: Load) -> tuple[TypedTool, ...]:
    return (
        FileRead(fence),
        List(fence),
        FileSearch(fence),
        Write(fence),
        Patch(fence),
        ArtifactRead(load),
    )
