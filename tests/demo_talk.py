"""A conversation with the demo model over the real file tools, without a daemon: what it says and
what it does to a folder.
"""

import asyncio
from pathlib import Path

import msgspec

from palyra.core.errors import PalyraError
from palyra.core.messages import (
    AssistantMessage,
    Message,
    ModelReply,
    ModelRequest,
    Text,
    ToolMessage,
    ToolSchema,
    UserMessage,
)
from palyra.models.demo import DemoModel
from tests import tools_at_work

_MOST_TURNS = 20


class Talk:
    """`deny` maps a tool to the reason why it is denied; `without` names tools that are not
    offered.
    """

    def __init__(
        self, folder: Path, *, deny: dict[str, str] | None = None, without: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.messages: list[Message] = []
        self.replies: list[ModelReply] = []
        self._deny = deny or {}
        self._catalogue = tools_at_work.catalogue()
        self._tools = tuple(
            ToolSchema(spec.name, spec.description, spec.parameters)
            for spec in self._catalogue.specs()
            if spec.name.startswith(("fs.", "artifact.")) and spec.name not in without
        )

    def request(self) -> ModelRequest:
        return ModelRequest(
            model="demo-1", instructions="", messages=tuple(self.messages), tools=self._tools
        )

    def say(self, *inputs: str) -> str:
        """Say something and let it work until its final answer. A new model object serves every
        turn, as after a crash.
        """
        self.messages.append(UserMessage(tuple(Text(text) for text in inputs)))
        for _ in range(_MOST_TURNS):
            if not self.turn().calls:
                return self.replies[-1].text
        raise AssertionError("it never came to an end")

    def turn(self) -> ModelReply:
        """One model turn, and the calls it asks for."""
        reply = asyncio.run(
            DemoModel(delay_ms=0).stream(self.request(), lambda channel, piece: None)
        )
        self.replies.append(reply)
        self.messages.append(
            AssistantMessage(text=reply.text, reasoning=reply.reasoning, calls=reply.calls)
        )
        for call in reply.calls:
            text, failed = self._perform(call.name, msgspec.json.decode(call.arguments))
            self.messages.append(ToolMessage(call.id, call.name, text, failed))
        return reply

    def _perform(self, name: str, arguments: dict[str, object]) -> tuple[str, bool]:
        if name in self._deny:
            return f"denied by the user: {self._deny[name]}", True
        try:
            tool, typed, _ = self._catalogue.parse(name, arguments)
            result = asyncio.run(tool.execute(typed, tools_at_work.context(self.folder)))
        except PalyraError as error:
            return error.message, True
        if len(result.text.encode()) > 8 << 10:
            # As the daemon does with a large result.
            lines = result.text.count("\n") + 1
            return (
                f"{result.text[:3072]}\n… [{len(result.text)} bytes, {lines} lines in all; read the rest with artifact.read, id x]",
                False,
            )
        return result.text, result.outcome != "ok"

    @property
    def calls(self) -> list[list[str]]:
        """The tools called, turn by turn, in the answer to what was said last."""
        begin = max(
            at for at, message in enumerate(self.messages) if isinstance(message, UserMessage)
        )
        return [
            [call.name for call in message.calls]
            for message in self.messages[begin:]
            if isinstance(message, AssistantMessage) and message.calls
        ]
