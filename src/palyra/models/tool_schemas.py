"""The tools of a request as a dialect writes them. They come with every request and rarely change,
so they are written once.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from palyra.core.messages import ModelRequest, ToolSchema
from palyra.models.request import encode
from palyra.models.wire_format import ToolNames


class Offers:
    """Remembers the last tools it wrote. They are compared by identity: whoever offers the same
    ones passes the same tuple.
    """

    def __init__(self, write: Callable[[ToolSchema, str], dict[str, Any]]) -> None:
        self._write = write
        self._tools: tuple[ToolSchema, ...] | None = None
        self._names = ToolNames()
        self._written = msgspec.Raw(b"[]")

    def of(self, request: ModelRequest) -> tuple[ToolNames, msgspec.Raw]:
        """Names for this request, which may add to them, and the tools as JSON."""
        if request.tools is not self._tools:
            self._names = ToolNames(tool.name for tool in request.tools)
            written = [self._write(tool, self._names.to_wire(tool.name)) for tool in request.tools]
            self._written = msgspec.Raw(encode(written))
            self._tools = request.tools
        return self._names.copy(), self._written
