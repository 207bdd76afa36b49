"""Replies that tell how a tool would be called, and call none.

Weak models explain to the user what they could do ("you can use the `fs.list` tool with …") as if
the user had the tools. The model is then asked once for the call itself.
"""

import re
from typing import Final

from palyra.core.messages import AssistantMessage, ModelRequest, ToolMessage
from palyra.models.text_tools.calls import Offered

# The commands of a fence like this are meant for somebody to run.
_SHELL_FENCE: Final = re.compile(r"^(?:```|~~~)[ \t]*(?:bash|sh|shell|console|zsh)[ \t]*$", re.M)
_LONGEST: Final = 16_384


def describes(text: str, request: ModelRequest, offered: Offered) -> bool:
    """Return whether a reply without calls speaks of calls, in a run that has made none."""
    if not offered or _has_called(request):
        return False
    text = text[:_LONGEST]
    if _SHELL_FENCE.search(text) and offered.needs("command"):
        return True
    return any(
        re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\w)", text)
        for name in offered.spellings()
        if "." in name or "_" in name or f"`{name}`" in text
    )


def _has_called(request: ModelRequest) -> bool:
    """Return whether a call has been made since the user spoke."""
    for message in reversed(request.messages):
        if isinstance(message, ToolMessage):
            return True
        if not isinstance(message, AssistantMessage):
            return False
    return False
