"""`message.send`: says something to somebody in a chat, of the agent's own accord.

The rule: it goes to those alone who were admitted, and is done when it is on disk to be sent. The
call's id is the message's, so that the same call made again sends nothing twice.
"""

import os
from threading import Event as Flag
from typing import Annotated, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace

from palyra.core.argument_roles import uses
from palyra.core.errors import Forbidden, InvalidInput, PalyraError
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, Scope, Subject, ToolResult
from palyra.tools import blocking, paths
from palyra.tools.catalogue import Arguments, TypedTool, declare
from palyra.tools.paths import PathGuard

# Said in few words, because it is sent with every request; what else it takes, a wrong call is
# told.
_SHOWN = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
    "required": ["to", "text"],
}
MOST_FILES = 4
MOST_FILE_BYTES = 8 << 20


class Recipient(Struct, frozen=True):
    """Destination of a message. `name` is what policies and people know it by: `owner`, or the
    channel and the conversation.
    """

    name: str
    channel: str
    conversation: str


class AddressedTo(Struct, frozen=True):
    name: str
    data: bytes


class SentMessage(Struct, frozen=True):
    """`connected`: the channel stands, so that it is sent now."""

    outbox_id: str
    recipient: Recipient
    connected: bool


class MessageOutbox(Protocol):
    """The outbox as the tool needs it. Both raise NotFound for somebody who was not admitted."""

    def find(self, to: str) -> Recipient:
        """Return who is meant. Called on a thread."""
        ...

    async def send(
        self, context: CallContext, to: str, text: str, files: tuple[AddressedTo, ...]
    ) -> SentMessage: ...


class SendArguments(Arguments, frozen=True, kw_only=True):
    to: Annotated[str, Meta(min_length=1, max_length=300)]
    text: Annotated[str, Meta(min_length=1, max_length=32_000)]
    files: Annotated[
        tuple[Annotated[str, Meta(max_length=4_096)], ...], Meta(max_length=MOST_FILES)
    ] = ()


class MessageSend:
    argument_type = SendArguments

    def __init__(self, post: MessageOutbox, fence: PathGuard, channels: tuple[str, ...]) -> None:
        self._post = post
        self._fence = fence
        self.spec = replace(
            declare(
                "message.send",
                f"Write to `owner` or CHANNEL/PERSON, with files; channels: {', '.join(channels)}.",
                SendArguments,
                effect="idempotent",
                capabilities=("message",),
                use=uses(to="recipient", text="content", files="path"),
                limits=Limits(time_ms=30_000, input_bytes=256 << 10, output_bytes=8 << 10),
            ),
            parameters=_SHOWN,
        )

    def scope(self, arguments: object, workspace: str) -> Scope:
        assert isinstance(arguments, SendArguments)
        found = self._post.find(arguments.to)
        if not arguments.files:
            return Scope(recipients=(found.name,), program=found.channel)
        if not workspace:
            raise Forbidden("this session has no workspace folder, so there are no files to send")
        places = [self._fence.place(each, workspace) for each in arguments.files]
        return Scope(
            recipients=(found.name,),
            program=found.channel,
            paths=tuple(place.absolute for place in places),
            workspace=places[0].root,
            capabilities=("fs.read",),
        )

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        """A wider yes is about whom it goes to. One to everybody is not offered."""
        return tuple(Subject(self.spec.name, "recipient", each) for each in scope.recipients)

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, SendArguments)
        found = self._post.find(arguments.to)
        files = "".join(f"\nfile: {paths.printable(each)}" for each in arguments.files)
        return Preview(
            "text", f"message to {found.name} on {found.channel}", f"{arguments.text}{files}"
        )

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, SendArguments)
        try:
            files = tuple([await self._read(each, context.workspace) for each in arguments.files])
            posted = await self._post.send(context, arguments.to, arguments.text, files)
        except Forbidden as denial:
            return ToolResult(outcome="denied", text=denial.message)
        except PalyraError as error:
            return ToolResult(outcome="error", text=error.message)
        how = (
            "it is being sent"
            if posted.connected
            else f"it is sent when {posted.recipient.channel} is connected"
        )
        return ToolResult(
            outcome="ok",
            text=f"in the outbox for {posted.recipient.name} as {posted.outbox_id}; {how}",
            data={"id": posted.outbox_id, "to": posted.recipient.name},
        )

    async def _read(self, given: str, workspace: str) -> AddressedTo:
        def job(stop: Flag) -> AddressedTo:
            place = self._fence.place(given, workspace)
            with (
                paths.opened_file(place) as descriptor,
                os.fdopen(os.dup(descriptor), "rb") as file,
            ):
                data = file.read(MOST_FILE_BYTES + 1)
            if len(data) > MOST_FILE_BYTES:
                raise InvalidInput(
                    f"{place.shown} is larger than {MOST_FILE_BYTES >> 20} MiB, too large for a"
                    " message"
                )
            return AddressedTo(place.name, data)

        with blocking.family(paths.printable(given)):
            return await blocking.off_loop(job)


def tools(
    post: MessageOutbox, fence: PathGuard, channels: tuple[str, ...]
) -> tuple[TypedTool, ...]:
    return (MessageSend(post, fence, channels),)
