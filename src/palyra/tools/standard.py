"""The tools about files and results that every daemon has, in the order a model sees them."""

from palyra.tools.artifact_read import ArtifactRead, Load
from palyra.tools.catalogue import TypedTool
from palyra.tools.files.list import List
from palyra.tools.files.patch import Patch
from palyra.tools.files.read import Read
from palyra.tools.files.search import Search
from palyra.tools.files.write import Write
from palyra.tools.paths import Fence


def tools(fence: Fence, load: Load) -> tuple[TypedTool, ...]:
    return (Read(fence), List(fence), Search(fence), Write(fence), Patch(fence), ArtifactRead(load))
