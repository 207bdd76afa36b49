"""The tools about files and results that every daemon has, in the order a model sees them."""

from palyra.tools.artifact_read import ArtifactRead, Load
from palyra.tools.catalogue import TypedTool
from palyra.tools.fs_list import List
from palyra.tools.fs_patch import Patch
from palyra.tools.fs_read import Read
from palyra.tools.fs_search import Search
from palyra.tools.fs_write import Write
from palyra.tools.paths import Fence


def tools(fence: Fence, load: Load) -> tuple[TypedTool, ...]:
    return (Read(fence), List(fence), Search(fence), Write(fence), Patch(fence), ArtifactRead(load))
